//! Base and controller step by step.

use std::sync::Arc;

use burn::tensor::Device;

use super::*;
use crate::{
    augment::{CutMix, Pipeline},
    batch::{Batcher, Ingredients},
    config::Config,
    data::{Picture, Policy},
    memory::Drawn,
    model::{Growth, Model, Outcome},
    state::Array,
};

const SIZE: usize = 8;

/// A method with the configured keys and what it works on.
fn made(keys: &str) -> (Ctn, Core) {
    let usual = "method = 'ctn'\nmodel = 'slim'\nwidth = 2\nmemory = 20\ntasks = 2\nbatch = 8\nupdates = 1.0\n\
                 cutmix_prob = 0.0";
    let mut table: toml::Table = usual.parse().unwrap();
    table.extend(keys.parse::<toml::Table>().unwrap());
    let setup = Config::from_table(table).unwrap().check().unwrap();
    let ctn = Ctn::new(&setup).unwrap();
    let architecture = ctn.architecture(setup.architecture().unwrap());
    let pipeline = Pipeline { padding: 0, flip: false, policy: Policy::None, mean: [0.5; 3], std: [0.25; 3] };
    let cutmix = CutMix { probability: setup.cutmix_prob, alpha: 1.0 };
    let model = Model::new(architecture, 1, setup.seed, &Device::flex());
    let growth = Growth { keep_bias: true, keep_moments: false };
    (ctn, Core { model, batcher: Batcher::new(pipeline, cutmix, SIZE, setup.seed), growth })
}

fn sample(number: usize, class: usize) -> Sample {
    let pixels: Vec<u8> =
        (0..SIZE * SIZE * 3).map(|at| ((at * (2 * class + 3) + 40 * number) % 251) as u8).collect();
    Sample::new(Image { height: SIZE, width: SIZE, pixels: pixels.into() }, class)
}

/// Learns so many samples of two classes of a task; gives back the training steps.
fn teach(ctn: &mut Ctn, core: &mut Core, task: usize, count: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for number in 0..count {
        let class = 2 * task + number % 2;
        if class == core.model.heads().classes() {
            ctn.new_class(core);
        }
        let arrival = Arrival { sample: sample(number, class), task: Some(task) };
        steps.extend(ctn.observe(core, arrival).unwrap());
    }
    steps
}

fn end(ctn: &mut Ctn, core: &mut Core) {
    ctn.task_end(core).unwrap();
    while !ctn.catch_up(core).unwrap().is_empty() {}
}

fn numbers(part: &impl Persist) -> Vec<(String, Arc<Array>)> {
    let mut state = State::default();
    part.save(&mut state);
    state.arrays.into_iter().collect()
}

/// Everything stored of a kind.
fn stored(ctn: &Ctn, part: Part) -> Vec<(Drawn, usize)> {
    let sample = |slot: usize| ctn.memory.slots()[slot].clone();
    let all = ctn.rings.all(part).into_iter();
    all.map(|(slot, task)| (Drawn { slot, sample: sample(slot) }, task)).collect()
}

#[test]
fn a_step_of_the_base_leaves_the_controller_alone() {
    let (mut ctn, mut core) = made("[ctn]\nsemantic = 0.0");
    teach(&mut ctn, &mut core, 0, 1);
    let (controller, base) = (numbers(&ctn.controller), numbers(&core.model));
    let steps = teach(&mut ctn, &mut core, 0, 7);
    assert_eq!(steps.len(), 8, "the first sample has waited for its batch");
    assert!(numbers(&ctn.controller) == controller);
    assert!(numbers(&core.model) != base);
}

#[test]
fn a_step_of_the_controller_leaves_the_base_alone() {
    let (mut ctn, mut core) = made("");
    teach(&mut ctn, &mut core, 0, 8);
    let (controller, base) = (numbers(&ctn.controller), numbers(&core.model));
    let semantic = stored(&ctn, Part::Semantic);
    assert_eq!(semantic.len(), 2);
    let images = core.batcher.stored(semantic.iter().map(|(drawn, _)| &drawn.sample));
    ctn.control(&core.model, &semantic, images, SIZE).unwrap();
    assert!(numbers(&core.model) == base, "weights, moments and running statistics");
    for ((name, before), (_, after)) in controller.iter().zip(numbers(&ctn.controller)) {
        assert!(*before != after, "{name}");
    }
}

#[test]
fn steps_of_a_round_share_the_gradient_of_the_batch() {
    let heads = |updates: &str| {
        let (mut ctn, mut core) = made(&format!("updates = {updates}\n[ctn]\ninner = 2"));
        teach(&mut ctn, &mut core, 0, 1);
        let start = floats(core.model.heads().weights().value(0).clone());
        // The second class brings a column; one class alone teaches nothing.
        let steps = teach(&mut ctn, &mut core, 0, 4);
        (start.len(), floats(core.model.heads().weights().value(0).clone()), steps)
    };
    let [(width, none, no_steps), (_, one, _), (_, two, steps)] = ["0.1", "0.25", "0.5"].map(heads);
    assert_eq!((width, no_steps.len(), steps.len()), (16, 0, 2));
    assert_eq!(steps[0].loss, steps[1].loss);
    let mut moved = 0.0_f32;
    for ((start, one), two) in none.iter().zip(&one).zip(&two) {
        assert!((two - start - 2.0 * (one - start)).abs() < 1e-6, "{start} {one} {two}");
        moved = moved.max((one - start).abs());
    }
    assert!(moved > 1e-4, "{moved}");
}

/// The outcome of replaying everything stored.
fn replayed(ctn: &Ctn, core: &mut Core) -> Outcome {
    let all = stored(ctn, Part::Episodic);
    let drawn = all.iter().map(|(drawn, _)| drawn.clone()).collect();
    let batch = core.batcher.make(&[], &Ingredients::beside(drawn));
    ctn.replay_outcome(&core.model, &batch, 0, &all)
}

#[test]
fn columns_of_other_tasks_get_no_gradient() {
    let (mut ctn, mut core) = made("[ctn]\nreplay = 0");
    teach(&mut ctn, &mut core, 0, 8);
    end(&mut ctn, &mut core);
    let columns = |core: &Core| -> Vec<Vec<f32>> {
        let heads = core.model.heads();
        let table = floats(heads.weights().value(0).clone());
        (0..heads.classes())
            .map(|class| table.iter().skip(class).step_by(heads.classes()).copied().collect())
            .collect()
    };
    let before = columns(&core);
    teach(&mut ctn, &mut core, 1, 8);
    let after = columns(&core);
    assert_eq!(before[..2], after[..2], "without replay the first task's columns stay as they are");

    let batch = core.batcher.of(&[sample(50, 2), sample(51, 3)]);
    let outcome = ctn.rows_outcome(&core.model, &batch, 2);
    let rehearsed = replayed(&ctn, &mut core);
    for (own, rehearsed) in outcome.heads.iter().zip(&rehearsed.heads) {
        for row in floats(own.clone().unwrap()).chunks_exact(4) {
            assert!(row[..2] == [0.0, 0.0] && row[2] != 0.0 && row[3] != 0.0, "{row:?}");
        }
        assert!(floats(rehearsed.clone().unwrap()).iter().all(|&number| number != 0.0), "rows of both tasks");
    }
}

#[test]
fn the_first_sample_is_the_controllers_and_the_one_it_displaces_joins_the_batch() {
    let (mut ctn, mut core) = made("updates = 0.01\nmemory = 10");
    teach(&mut ctn, &mut core, 0, 1);
    // Five slots a task: one semantic, four episodic.
    let samples: Vec<Sample> = (0..8).map(|number| sample(number, 0)).collect();
    assert_eq!(ctn.store(&samples[..4]), samples[1..4]);
    let held = |ctn: &Ctn, part| -> Vec<Sample> {
        ctn.rings.of(0, part).map(|slot| ctn.memory.slots()[slot].clone()).collect()
    };
    assert_eq!(
        (held(&ctn, Part::Semantic), held(&ctn, Part::Episodic)),
        (samples[..1].to_vec(), samples[1..4].to_vec())
    );
    let joined = ctn.store(&samples[4..8]);
    assert_eq!(joined, [&samples[5..8], &samples[..1]].concat());
    assert_eq!(held(&ctn, Part::Semantic), samples[4..5]);
    assert_eq!(held(&ctn, Part::Episodic), joined);
    assert_eq!(ctn.memory.slots().len(), 5);

    let (mut lone, mut core) = made("memory = 10");
    teach(&mut lone, &mut core, 0, 1);
    assert_eq!(lone.store(&samples[..1]), samples[..1], "a lone sample is the controller's and is learned");
    assert!(lone.store(&[]).is_empty());
}

#[test]
fn answers_are_stored_when_a_task_ends() {
    let (mut ctn, mut core) = made("lr = 1e-4");
    teach(&mut ctn, &mut core, 0, 8);
    assert_eq!(ctn.targets.count(), 0);
    end(&mut ctn, &mut core);
    let slots: Vec<usize> = ctn.rings.of(0, Part::Episodic).collect();
    let images: Vec<Image> = slots
        .iter()
        .map(|&slot| match &ctn.memory.slots()[slot].image {
            Picture::Bytes(image) => image.clone(),
            Picture::Floats(_) => panic!("stream images are bytes"),
        })
        .collect();
    let answers = ctn.predict(&core, &images, Some(0)).unwrap();
    for (slot, answer) in slots.iter().zip(answers) {
        let stored = ctn.targets.get(*slot);
        // Logits a fifth as far apart.
        let (expected, found) = (answer.probabilities[0] / answer.probabilities[1], stored[0] / stored[1]);
        let [expected, found] = [expected, found].map(|ratio| f64::from(ratio).ln());
        assert!((expected / 5.0 - found).abs() < 1e-4, "{expected} {found}");
    }
    for slot in ctn.rings.of(0, Part::Semantic) {
        assert!(ctn.targets.get(slot).is_empty());
    }
    assert_eq!(ctn.extra_parameters().history, 2 * slots.len() as u64);

    let before = ctn.targets.clone();
    teach(&mut ctn, &mut core, 1, 8);
    assert!(slots.iter().all(|&slot| ctn.targets.get(slot) == before.get(slot)));
    // Nobody says that the second task is over, but the first one comes again.
    teach(&mut ctn, &mut core, 0, 1);
    assert!(ctn.rings.of(1, Part::Episodic).all(|slot| ctn.targets.get(slot).len() == 2));
}

#[test]
fn replay_holds_to_stored_answers_and_to_labels() {
    let outcome = |weight: &str| {
        let (mut ctn, mut core) = made(&format!("[ctn]\nweight = {weight}"));
        teach(&mut ctn, &mut core, 0, 8);
        end(&mut ctn, &mut core);
        // Evaluation and training answer differently, so that there is a distance at once.
        replayed(&ctn, &mut core).loss
    };
    let (labels, both) = (outcome("0.0"), outcome("100.0"));
    assert!(labels > 0.0 && both > labels, "{labels} and {both}");
}

#[test]
fn rows_beside_a_batch_are_never_mixed() {
    let (_, mut core) = made("cutmix_prob = 1.0");
    let drawn: Vec<Drawn> = (0..3).map(|slot| Drawn { slot, sample: sample(slot, 1) }).collect();
    let rows: Vec<Sample> = (0..2).map(|number| sample(number, 0)).collect();
    let batch = core.batcher.make(&rows, &Ingredients::beside(drawn.clone()));
    assert_eq!((batch.stream_rows(), batch.beside, &batch.slots[..]), (2, 3, &[0, 1, 2][..]));
    assert_eq!(batch.mixes[0].permutation.len(), 2);
    let clean = core.batcher.stored(drawn.iter().map(|drawn| &drawn.sample));
    assert_eq!(batch.images[2 * SIZE * SIZE * 3..], clean);
}
