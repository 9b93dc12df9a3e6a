//! CLIB and BiC as wholes: what is left of them with everything switched off, every reading resumed exactly across a task
//! end, their memory and rate inside other methods, and what they refuse.

use crate::memory::{Memory, Sample};
use crate::model::{Architecture, Growth, Model, Outcome, cross_entropy, floats};
use crate::random::Random;
use crate::state::State;
use crate::{Config, Error, Image, Learner, Shape};
use burn::tensor::Device;

const SIZE: usize = 16;

/// Images of four classes, each with its own brightness, and noise; two classes at first, then the other two.
fn samples(count: usize) -> Vec<(Image, usize)> {
    let mut random = Random::named(5, "samples");
    let sample = |index: usize| {
        let class = index % 2 + 2 * usize::from(index >= count / 2);
        let pixels: Vec<u8> = (0..SIZE * SIZE * 3).map(|_| (50 * class + random.below(80)) as u8).collect();
        (Image { height: SIZE, width: SIZE, pixels: pixels.into() }, class)
    };
    (0..count).map(sample).collect()
}

fn config(text: &str) -> Config {
    let common = "model = 'slim'\nwidth = 4\nmemory = 40\nbatch = 8\nupdates = 1.0\nautoaugment = 'none'\nlr = 0.002\n";
    Config::from_toml(&format!("{common}{text}")).unwrap()
}

fn learner(text: &str) -> Learner {
    Learner::new(&config(text), Shape { channels: 3, height: SIZE, width: SIZE }).unwrap()
}

fn state(learner: &Learner) -> State {
    learner.state()
}

fn learn(learner: &mut Learner, samples: &[(Image, usize)]) {
    for (image, class) in samples {
        learner.observe(image, *class).unwrap();
    }
}

fn refusal(text: &str) -> String {
    match config(text).check() {
        Err(Error::BadKey { key, problem }) => format!("{key}: {problem}"),
        Err(Error::UnknownKey { key, known }) => format!("{key}: unknown beside {}", known.join(", ")),
        Err(other) => panic!("{text}: {other}"),
        Ok(_) => panic!("{text}: accepted"),
    }
}

const PERTURBED: [&str; 4] = [
    "",
    "pfi = true",
    "bsc = true\nperiod = 3\nheads = 2",
    "pfi = true\nbsc = true\nperiod = 3\nlayers = [0, 2, 4]",
];

#[test]
fn without_a_task_end_and_samples_set_aside_bic_is_experience_replay_bit_for_bit() {
    let mut er = learner("method = 'er'");
    let mut bic = learner("method = 'bic'\n[bic]\nval_frac = 0.0\nclip = 1e30");
    let samples = samples(48);
    for (image, class) in &samples {
        assert_eq!(er.observe(image, *class).unwrap(), bic.observe(image, *class).unwrap());
    }
    let (er_state, bic_state) = (state(&er), state(&bic));
    for part in ["core", "method.memory", "method.rate", "method.buffer"] {
        assert!(er_state.part(part) == bic_state.part(part), "{part} differs");
    }
    assert_eq!(er.predict(&samples[0].0).unwrap(), bic.predict(&samples[0].0).unwrap());
}

#[test]
fn every_reading_resumes_exactly_across_a_task_end() {
    let samples = samples(80);
    for method in ["bic", "clib"] {
        for reading in PERTURBED {
            let text = format!("method = '{method}'\n[{method}]\n{reading}");
            let (mut whole, mut first) = (learner(&text), learner(&text));
            for learner in [&mut whole, &mut first] {
                learn(learner, &samples[..40]);
                learner.task_end().unwrap();
                learn(learner, &samples[40..55]);
            }
            let mut second = learner(&text);
            second.restore(&state(&first)).unwrap();
            for (image, class) in &samples[55..] {
                whole.observe(image, *class).unwrap();
                second.observe(image, *class).unwrap();
                second.predict(image).unwrap();
            }
            assert!(state(&whole) == state(&second), "{text}");
            let answer = whole.predict(&samples[0].0).unwrap();
            assert_eq!(answer, second.predict(&samples[0].0).unwrap(), "{text}");
            let several = reading.contains("bsc");
            assert_eq!(answer.disagreement > 0.0, several, "{text}: only several heads disagree");
        }
    }
}

/// Samples that are set aside earn steps which wait for the next buffer, many at the start of a task.
#[test]
fn bic_resumes_exactly_after_any_sample() {
    let samples = samples(60);
    let text = "method = 'bic'\n[bic]\nval_frac = 0.3";
    let new = || {
        let mut config = config(text);
        config.settings.updates = Some(3.0);
        Learner::new(&config, Shape { channels: 3, height: SIZE, width: SIZE }).unwrap()
    };
    let (mut whole, mut resumed) = (new(), new());
    for (position, (image, class)) in samples.iter().enumerate() {
        if position == 30 {
            whole.task_end().unwrap();
            resumed.task_end().unwrap();
        }
        whole.observe(image, *class).unwrap();
        resumed.observe(image, *class).unwrap();
        let mut next = new();
        next.restore(&state(&resumed)).unwrap_or_else(|error| panic!("sample {position}: {error}"));
        resumed = next;
    }
    assert!(whole.updates() > 100);
    assert!(state(&whole) == state(&resumed));
}

#[test]
fn bic_corrects_the_new_classes_after_the_first_task() {
    let samples = samples(80);
    let images: Vec<Image> = samples.iter().map(|(image, _)| image.clone()).collect();
    let answers = |epochs: usize, tasks: bool| {
        let mut learner = learner(&format!("method = 'bic'\n[bic]\nfit_epochs = {epochs}"));
        learn(&mut learner, &samples[..40]);
        if tasks {
            learner.task_end().unwrap();
        }
        learn(&mut learner, &samples[40..]);
        let before = learner.predict_all(&images).unwrap();
        learner.task_end().unwrap();
        assert_eq!(
            learner.predict_all(&images).unwrap(),
            before,
            "the ended task is corrected until the next begins"
        );
        before
    };
    assert_ne!(answers(256, true), answers(0, true));
    assert_eq!(answers(256, false), answers(0, false), "the first task has nothing to correct");
}

#[test]
fn a_teacher_changes_what_is_learned_in_the_second_task_only() {
    let samples = samples(64);
    let losses = |temperature: f64| {
        let mut learner = learner(&format!("method = 'bic'\n[bic]\ntemperature = {temperature}"));
        let mut losses = Vec::new();
        for (index, (image, class)) in samples.iter().enumerate() {
            if index == 32 {
                learner.task_end().unwrap();
            }
            losses.push(learner.observe(image, *class).unwrap().steps);
        }
        losses
    };
    let (warm, cool) = (losses(2.0), losses(1.0));
    assert_eq!(warm[..32], cool[..32]);
    assert_ne!(warm[32..], cool[32..]);
}

#[test]
fn what_bic_sets_aside_is_part_of_its_budget() {
    let mut learner = learner("method = 'bic'");
    for (image, class) in &samples(80) {
        learner.observe(image, *class).unwrap();
        let aside = state(&learner).values["method.validation.classes"].as_array().unwrap().len();
        let quota = 4 / learner.labels().len();
        assert!(aside <= quota * learner.labels().len(), "a tenth of 40, in equal shares");
        assert!(learner.memory().unwrap().slots().len() + aside <= 40);
    }
}

#[test]
fn gradients_are_clipped_together() {
    let architecture = Architecture::named("slim", Some(4), 1e-6, 0.1).unwrap();
    let mut model = Model::new(architecture, 1, 4, &Device::flex());
    (0..2).for_each(|_| model.grow(Growth { keep_bias: true, keep_moments: true }));
    let mut random = Random::named(1, "clip");
    let images = (0..4 * SIZE * SIZE * 3).map(|_| random.normal() as f32).collect();
    let mut pass = model.pass();
    let features = pass.features(model.images(images, SIZE));
    let loss = cross_entropy(pass.logits(features), &[0, 1, 1, 0]);
    let mut outcome = pass.backward(&loss);
    let gradients = |outcome: &Outcome| -> Vec<f32> {
        let all = outcome.encoder.iter().chain(&outcome.heads).flatten();
        all.flat_map(|gradient| floats(gradient.clone())).collect()
    };
    let norm = |numbers: &[f32]| numbers.iter().map(|&number| f64::from(number).powi(2)).sum::<f64>().sqrt();
    let before = gradients(&outcome);

    outcome.clip(2.0 * norm(&before));
    assert_eq!(gradients(&outcome), before, "below the limit nothing changes");
    outcome.clip(0.5 * norm(&before));
    let after = gradients(&outcome);
    assert!((norm(&after) / norm(&before) - 0.5).abs() < 1e-4);
    for (after, before) in after.iter().zip(&before) {
        assert!((after - 0.5 * before).abs() <= 1e-4 * before.abs(), "every gradient by the same factor");
    }
}

#[test]
fn clib_keeps_every_newcomer() {
    let mut learner = learner("method = 'clib'");
    for (image, class) in &samples(64) {
        let observation = learner.observe(image, *class).unwrap();
        assert_eq!(observation.steps.len(), 1, "every sample earns its step when it arrives");
        let slots = learner.memory().unwrap().slots();
        assert!(slots.iter().any(|sample| *sample.image.to_bytes() == *image));
    }
    let histogram = learner.memory().unwrap().histogram();
    assert_eq!(histogram, [10, 10, 10, 10]);
}

#[test]
fn memory_and_rate_of_clib_serve_other_methods() {
    let samples = samples(64);
    for text in [
        "method = 'er'\nmemory_scheme = 'clib'\nimp_period = 3",
        "method = 'er'\nrate = 'clib'",
        "method = 'dpcl'\nmemory_scheme = 'clib'\nrate = 'clib'\nimp_period = 2",
        "method = 'bic'\nmemory_scheme = 'clib'\nrate = 'clib'",
        "method = 'clib'\nmemory_scheme = 'reservoir'\nrate = 'exp-reset'",
    ] {
        let (mut whole, mut first) = (learner(text), learner(text));
        learn(&mut whole, &samples);
        learn(&mut first, &samples[..33]);
        let mut second = learner(text);
        second.restore(&state(&first)).unwrap();
        learn(&mut second, &samples[33..]);
        let end = state(&whole);
        assert!(end == state(&second), "{text}");
        let moving = |part: &str| end.values.get(&format!("method.{part}.moving")).cloned();
        if text.contains("memory_scheme = 'clib'") {
            let scores = moving("memory.scheme").unwrap()["scores"].clone();
            assert!(scores.as_array().unwrap().iter().any(|score| score.as_f64() != Some(0.0)), "{text}");
        }
        if text.contains("rate = 'clib'") {
            assert!(moving("rate").unwrap()["measurements"].as_u64().unwrap() > 5, "{text}");
        }
    }
}

#[test]
fn a_first_measurement_is_no_change_of_disagreement() {
    let (image, class) = samples(1).remove(0);
    let sample = Sample::new(image, class);
    let mut memory = Memory::new("reservoir", 2, 1).unwrap();
    memory.offer(&sample, None);
    assert_eq!(memory.rehearsed(&[0], &[0.25], 0.5), None);
    assert_eq!(memory.history(), [0.25]);
    memory.offer(&sample, None);
    assert_eq!(memory.rehearsed(&[0, 1], &[0.25, 0.5], 0.5), Some(0.0), "the second slot had no history");
    assert_eq!(memory.rehearsed(&[1], &[1.5], 0.5), Some(1.0));
    assert_eq!(memory.history(), [0.25, 1.0]);
    memory.refill(vec![sample]);
    assert_eq!(memory.rehearsed(&[0], &[0.25], 0.5), None, "a memory that was rebuilt has no history");
}

#[test]
fn several_heads_can_lead_the_rate() {
    let samples = samples(64);
    for method in ["bic", "clib"] {
        let text =
            format!("method = '{method}'\nrate = 'pima'\n[{method}]\nbsc = true\nperiod = 3\nomega = 1.5");
        let (mut whole, mut first) = (learner(&text), learner(&text));
        learn(&mut whole, &samples);
        learn(&mut first, &samples[..33]);
        let mut second = learner(&text);
        second.restore(&state(&first)).unwrap();
        learn(&mut second, &samples[33..]);
        let end = state(&whole);
        assert!(end == state(&second), "{text}");
        assert!(whole.memory().unwrap().history().iter().any(|&value| value > 0.0), "{text}");
        let moving = &end.values["method.rate.moving"];
        let moves = moving["ups"].as_u64().unwrap() + moving["downs"].as_u64().unwrap();
        assert!(moves > 10, "{text}: {moving}");
        assert_ne!(moving["rate"].as_f64(), Some(0.002), "{text}");

        let plain = refusal(&format!("method = '{method}'\nrate = 'pima'"));
        let expected =
            format!("rate: `pima` needs heads that disagree, which `{method}` as configured has not");
        assert!(plain.starts_with(&expected), "{plain}");
        let one_draw = "bsc = true\nheads = 1\ndraws = 1";
        let alone = refusal(&format!("method = '{method}'\nrate = 'pima'\n[{method}]\n{one_draw}"));
        assert!(alone.starts_with(&expected), "{alone}");
    }
    assert!(refusal("method = 'bic'\n[bic]\nomega = 1.0").starts_with("bic.omega: "));
}

#[test]
fn perturbed_activations_take_the_place_of_cutmix() {
    for method in ["bic", "clib"] {
        let checked = |section: &str| config(&format!("method = '{method}'\n{section}")).check().unwrap();
        assert_eq!(checked("").cutmix_prob, 0.5);
        let perturbed = checked(&format!("[{method}]\npfi = true"));
        assert_eq!(perturbed.cutmix_prob, 0.0);
        assert_eq!(perturbed.config().check().unwrap().to_table(), perturbed.to_table());
        let shared = config(&format!("method = '{method}'\ncutmix_prob = 0.5\n[{method}]\npfi = true"))
            .check()
            .unwrap();
        assert_eq!(shared.cutmix_prob, 0.5);
    }
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    let unknown = refusal("method = 'clib'\n[clib]\nwindow = 3");
    assert!(unknown.starts_with("clib.window: unknown beside "), "{unknown}");
    assert!(unknown.contains("clib.lr_window") && unknown.contains("clib.bsc_window"), "{unknown}");
    assert!(refusal("method = 'clib'\n[clib]\nlr_step = 1.0").starts_with("clib.lr_step: "));
    assert!(refusal("method = 'clib'\nmemory_scheme = 'none'").starts_with("memory: "));
    assert!(refusal("method = 'clib'\nimp_period = 0").starts_with("imp_period: "));
    assert!(refusal("method = 'finetune'\nrate = 'clib'").starts_with("rate: `clib` follows the losses"));
    assert!(refusal("method = 'bic'\n[bic]\nval_frac = 1.0").starts_with("bic.val_frac: "));
    assert!(refusal("method = 'bic'\n[bic]\nclip = 0").starts_with("bic.clip: "));
    assert!(refusal("method = 'bic'\n[bic]\nrank = 1").starts_with("bic.rank: "));
    assert!(refusal("method = 'bic'\nmemory_scheme = 'pim'").starts_with("memory_scheme: "));
}

#[test]
fn the_period_of_measurements_is_named_only_where_something_is_measured() {
    let period = |text: &str| config(text).check().unwrap().to_table().get("imp_period").cloned();
    assert_eq!(period("method = 'clib'"), Some(1.into()));
    assert_eq!(period("method = 'er'\nrate = 'clib'\nimp_period = 10"), Some(10.into()));
    assert_eq!(period("method = 'er'\nimp_period = 10"), None);
}
