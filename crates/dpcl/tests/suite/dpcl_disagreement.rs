//! What DPCL measures around a training step: the disagreement on each row and who hears of it, and the losses of the
//! classes. Images without chance in their augmentation let the test measure the same with `predict`.

use crate::quarters::{SIZE, config, learner, perturbed};
use dpcl::{Image, Learner, Random};

/// Rows of the stream in a batch; as many come from memory.
const STREAM: usize = 4;

/// How far a measurement on a batch may be from the same on other images beside it.
const ROUNDING: f64 = 1e-5;

/// How far apart measurements on something else are at least.
const DIFFERENT: f64 = 1e-3;

/// Images that are their own mirror images: stripes as high as the class says, and noise. New classes come in pairs, at
/// the beginning of a batch.
fn samples(count: usize) -> Vec<(Image, usize)> {
    let mut random = Random::named(4, "mirrored");
    let sample = |index: usize| {
        let class = index % 2 + 2 * usize::from(index >= count / 2);
        let mut pixels = vec![0; SIZE * SIZE * 3];
        for row in 0..SIZE {
            let level = if (row >> class).is_multiple_of(2) { 60 } else { 150 };
            for (column, channel) in
                (0..SIZE / 2).flat_map(|column| [0, 1, 2].map(|channel| (column, channel)))
            {
                let value = level + random.below(100) as u8;
                pixels[(row * SIZE + column) * 3 + channel] = value;
                pixels[(row * SIZE + SIZE - 1 - column) * 3 + channel] = value;
            }
        }
        (Image { height: SIZE, width: SIZE, pixels: pixels.into() }, class)
    };
    (0..count).map(sample).collect()
}

/// A learner that follows disagreement and takes `steps` training steps on every batch.
fn follower(steps: usize, keys: &str) -> Learner {
    let text = "method = 'dpcl'\naverage = 0\ncutmix_prob = 0.0\npad_crop = 0\nmemory_scheme = 'pim'\n\
                rate = 'pima'\n[dpcl]\npredict = 'current'\ngamma = 0.3\n";
    let mut config = config(&format!("{text}{}", perturbed(keys)));
    config.settings.updates = Some(steps as f64 / STREAM as f64);
    learner(&config)
}

fn disagreement<'a>(learner: &Learner, images: impl Iterator<Item = &'a Image>) -> Vec<f64> {
    let images: Vec<Image> = images.cloned().collect();
    learner.predict_all(&images).unwrap().into_iter().map(|answer| answer.disagreement).collect()
}

/// How the slots of a memory fared in one step.
#[derive(Debug, Default)]
struct Slots {
    newcomers: usize,
    rehearsed: usize,
    /// Largest distance of a newcomer's history from what was measured on it before the step.
    newcomer_off: f64,
    /// The same for the history of rehearsed slots after their share of what was measured on them.
    rehearsed_off: f64,
    /// Distance between the most and the least disputed image of the batch.
    spread: f64,
}

/// Lets a learner take one step on a batch and compares its memory with what it answered before.
fn step(learner: &mut Learner, batch: &[(Image, usize)]) -> Slots {
    let (last, first) = batch.split_last().unwrap();
    for (image, class) in first {
        assert!(learner.observe(image, *class).unwrap().steps.is_empty());
    }
    let stored = learner.memory().unwrap().slots().to_vec();
    let history = learner.memory().unwrap().history().to_vec();
    let arriving = disagreement(learner, batch.iter().map(|(image, _)| image));
    let images: Vec<Image> = stored.iter().map(|sample| sample.image.to_bytes().into_owned()).collect();
    let kept = disagreement(learner, images.iter());
    let observation = learner.observe(&last.0, last.1).unwrap();
    assert_eq!((observation.new_class, observation.steps.len()), (false, 1));

    let range = arriving.iter().fold((f64::MAX, 0.0_f64), |(low, high), &x| (low.min(x), high.max(x)));
    let mut slots = Slots { spread: range.1 - range.0, ..Slots::default() };
    let memory = learner.memory().unwrap();
    for (slot, (sample, &found)) in memory.slots().iter().zip(memory.history()).enumerate() {
        if let Some(row) = batch.iter().position(|(image, _)| *image == *sample.image.to_bytes()) {
            slots.newcomers += 1;
            slots.newcomer_off = slots.newcomer_off.max((found - arriving[row]).abs());
        } else if found != history[slot] {
            slots.rehearsed += 1;
            let expected = 0.7 * history[slot] + 0.3 * kept[slot];
            slots.rehearsed_off = slots.rehearsed_off.max((found - expected).abs());
        }
    }
    slots
}

#[test]
fn each_row_counts_for_its_own_slot_and_for_its_own_newcomer() {
    // Until a first snapshot heads drawn from their distribution are the heads as they are.
    for whose in ["variational", "current"] {
        let mut learner = follower(
            1,
            &format!(
                "noise = 'paper'\ndisagreement_pass = 'clean'\ndisagreement_heads = '{whose}'\nperiod = 1000"
            ),
        );
        for (number, batch) in samples(32).chunks_exact(STREAM).enumerate() {
            let slots = step(&mut learner, batch);
            let context = format!("{whose} batch {number}: {slots:?}");
            assert!(slots.spread > DIFFERENT, "{context}");
            assert!(slots.newcomer_off < ROUNDING && slots.rehearsed_off < ROUNDING, "{context}");
            if number < 3 {
                assert_eq!(
                    (slots.newcomers, slots.rehearsed),
                    (STREAM, STREAM.min(STREAM * number)),
                    "{context}"
                );
            }
        }
        assert!(learner.counters()["memory_refusals"] > 0.0, "the memory was full");
    }
}

#[test]
fn the_training_pass_measures_something_else_than_a_clean_pass() {
    for pfi in [true, false] {
        let mut learner = follower(1, &format!("pfi = {pfi}\ndisagreement_heads = 'current'"));
        let samples = samples(32);
        let steps: Vec<Slots> = samples.chunks_exact(STREAM).map(|batch| step(&mut learner, batch)).collect();
        for slots in &steps[..3] {
            assert!(slots.newcomers == STREAM && slots.newcomer_off > DIFFERENT, "pfi {pfi}: {slots:?}");
        }
        assert!(steps[1..3].iter().all(|slots| slots.rehearsed == STREAM), "pfi {pfi}: {steps:?}");
        assert!(steps[1..3].iter().all(|slots| slots.rehearsed_off > DIFFERENT), "pfi {pfi}: {steps:?}");
    }
}

#[test]
fn a_newcomer_brings_what_the_last_step_on_it_measured() {
    let batch = &samples(2 * STREAM)[..STREAM];
    // After one step the one stands where the other stands before its second.
    let [one, two] = [1, 2].map(|steps| {
        let mut learner = follower(steps, "disagreement_pass = 'clean'\ndisagreement_heads = 'current'");
        let last = batch.iter().map(|(image, class)| learner.observe(image, *class).unwrap()).last().unwrap();
        assert_eq!(last.steps.len(), steps);
        learner
    });
    let expected = disagreement(&one, batch.iter().map(|(image, _)| image));
    let [before, found] = [&one, &two].map(|learner| learner.memory().unwrap().history().to_vec());
    for ((found, expected), before) in found.iter().zip(&expected).zip(&before) {
        assert!((found - expected).abs() < ROUNDING, "{found} for {expected}");
        assert!((found - before).abs() > DIFFERENT, "{found} was {before}");
    }
}

#[test]
fn histories_are_what_the_heads_say_where_nothing_changes() {
    // Next to no learning, statistics that stay and nothing drawn: what was measured once is measured again.
    let still = |keys: &str| {
        let text = "method = 'dpcl'\naverage = 0\npad_crop = 0\nmemory_scheme = 'pim'\n[dpcl]\npfi = true\nperiod = 2\n";
        let mut config = config(&format!("{text}disagreement_heads = 'mean'\n{keys}"));
        (config.settings.lr, config.settings.bn_momentum) = (Some(1e-12), 0.0);
        let mut learner = learner(&config);
        for (image, class) in samples(64).iter().take(32) {
            learner.observe(image, *class).unwrap();
        }
        learner.check_histories().unwrap()
    };
    let found = still("disagreement_pass = 'clean'");
    assert_eq!(
        found.ways.iter().map(|way| way.between).collect::<Vec<_>>(),
        ["heads", "draws", "means of heads"]
    );
    let [heads, draws, means] = &found.ways[..] else { panic!("three ways") };
    assert!(means.history.all.unwrap() > 0.999 && means.history.within_classes.unwrap() > 0.999, "{found:?}");
    assert!((means.mean - found.history).abs() < ROUNDING, "{found:?}");
    assert!(means.repeated.is_none() && draws.mean >= heads.mean, "{found:?}");
    assert!(found.logit_deviation < 1e-3, "{found:?}");
    // A training pass measures rows that were mixed.
    let mixed = still("disagreement_pass = 'train'");
    assert!(mixed.ways[2].history.all.unwrap() < 0.9, "{mixed:?}");
}

#[test]
fn where_nothing_is_measured_there_are_no_histories_to_check() {
    for text in ["method = 'er'", "method = 'dpcl'", "method = 'dpcl'\n[dpcl]\npfi = true\nbsc = false"] {
        let mut learner = learner(&config(text));
        for (image, class) in &samples(16) {
            learner.observe(image, *class).unwrap();
        }
        assert_eq!(learner.check_histories(), None, "{text}");
    }
}

/// The first batch of a learner with one plain head: its labels, the losses of its images before the step and the mean
/// training loss, and the running losses of the classes after it.
fn first_step(keys: &str) -> (Vec<usize>, Vec<f64>, f64, Vec<f64>) {
    let text =
        "method = 'dpcl'\naverage = 0\npad_crop = 0\n[dpcl]\npfi = true\nbsc = false\nnoise = 'paper'\n";
    let mut config = config(&format!("{text}{keys}"));
    config.settings.updates = Some(1.0 / STREAM as f64);
    let mut learner = learner(&config);
    let mut samples = samples(STREAM * 2);
    samples.truncate(STREAM);
    // Unequal shares, so that no class stands for another.
    samples[2].1 = 1;
    for (image, class) in &samples[..STREAM - 1] {
        learner.observe(image, *class).unwrap();
    }
    let images: Vec<Image> = samples.iter().map(|(image, _)| image.clone()).collect();
    let answers = learner.predict_all(&images).unwrap();
    let losses = answers.iter().zip(&samples);
    let losses = losses.map(|(answer, (_, class))| -f64::from(answer.probabilities[*class].1).ln()).collect();
    let (image, class) = &samples[STREAM - 1];
    let steps = learner.observe(image, *class).unwrap().steps;
    let running: Vec<Option<f64>> = learner.state().get("method.perturbed.losses.averages").unwrap();
    let labels = samples.iter().map(|(_, class)| *class).collect();
    (labels, losses, steps[0].loss, running.into_iter().map(Option::unwrap).collect())
}

#[test]
fn losses_of_a_clean_pass_are_those_of_the_answers_before_the_step() {
    let (labels, losses, _, running) = first_step("loss_source = 'clean'");
    assert_eq!((labels.as_slice(), running.len()), ([0, 1, 1, 1].as_slice(), 2));
    let mean = losses[1..].iter().sum::<f64>() / 3.0;
    assert!((running[0] - losses[0]).abs() < ROUNDING, "{running:?} for {losses:?}");
    assert!((running[1] - mean).abs() < ROUNDING, "{running:?} for {losses:?}");
}

#[test]
fn losses_of_the_mixed_batch_are_the_training_loss_taken_apart() {
    let (labels, losses, loss, running) = first_step("loss_source = 'mixed'");
    // Rows are permuted, so that each class has the weight of its rows in all.
    let whole: f64 = labels.iter().map(|&class| running[class]).sum();
    assert!((whole / labels.len() as f64 - loss).abs() < ROUNDING, "{running:?} for {loss}");
    assert!((running[0] - losses[0]).abs() > DIFFERENT, "not those of a clean pass: {running:?}");
}
