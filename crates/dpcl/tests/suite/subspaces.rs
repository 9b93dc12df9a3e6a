//! Weights that keep out of what was learned (`fs-dgpm`): what is left of it without its parts, when it begins, and exact
//! resume.

use crate::{
    baselines::{assert_same_run, config, learn, learner, losses, refusal, state},
    quarters::{SHAPE, samples},
};
use dpcl::{Error, Learner, method::Array};

/// Without bases, perturbation and cut gradients.
const BARE: &str = "method = 'fs-dgpm'\n[fsdgpm]\nimages = 0\ne1 = 0.0\nclip = 1e30";

#[test]
fn without_bases_and_perturbation_fs_dgpm_is_experience_replay() {
    assert_same_run("method = 'er'", BARE);
    assert_same_run("method = 'er'\nasymmetric = true", &format!("asymmetric = true\n{BARE}"));
    let teacher = "average = 20\nteacher = 1.0\n";
    let samples = samples(24);
    let taught = |text: &str| losses(learn(&mut learner(&format!("{teacher}{text}")), &samples));
    assert_eq!(taught("method = 'er'"), taught(BARE));
    assert_ne!(taught(BARE), losses(learn(&mut learner(BARE), &samples)));
}

#[test]
fn bases_are_made_at_task_ends_and_are_counted() {
    let samples = samples(48);
    let mut fs_dgpm = learner("method = 'fs-dgpm'");
    for (image, class) in &samples[..24] {
        fs_dgpm.observe(image, *class).unwrap();
    }
    assert_eq!(fs_dgpm.parameters().state, 0);
    fs_dgpm.task_end().unwrap();
    let held = state(&fs_dgpm).part("method.subspaces");
    let numbers = |kind: &str| -> usize {
        let arrays = held.arrays.iter().filter(|(name, _)| name.ends_with(kind));
        arrays.map(|(_, array)| array.shape.iter().product::<usize>()).sum()
    };
    assert!(numbers(".soft") > 100);
    assert_eq!(fs_dgpm.parameters().state, (numbers(".basis") + numbers(".soft")) as u64);
    assert!(held.arrays.iter().filter(|(name, _)| name.ends_with(".soft")).all(|(_, array)| {
        array.elements == Array::floats(array.shape.clone(), vec![1.0; array.shape[0]]).elements
    }));
}

#[test]
fn what_is_held_changes_what_is_learned_from_the_first_task_end_on() {
    let samples = samples(48);
    let run =
        |keys: &str| losses(learn(&mut learner(&format!("method = 'fs-dgpm'\n[fsdgpm]\n{keys}")), &samples));
    let (whole, bare) = (run(""), run("images = 0"));
    // The step after the task end still starts from the same weights; places differ by the bases.
    assert_eq!(whole[..24], bare[..24]);
    assert_ne!(whole[25..], bare[25..]);
    for other in ["e1 = 0.1", "e2 = 1.0", "th = 0.5", "inner_steps = 1", "clip = 0.1", "images = 3"] {
        assert_ne!(whole, run(other), "{other}");
    }
}

#[test]
fn a_learner_with_bases_resumes_exactly_and_refuses_those_of_another_network() {
    let samples = samples(48);
    let text = "method = 'fs-dgpm'\n[fsdgpm]\ne1 = 0.05\ne2 = 0.5";
    let mut whole = learner(text);
    learn(&mut whole, &samples);
    let mut resumed = learner(text);
    resumed.restore(&state(&whole)).unwrap();
    assert_eq!(learn(&mut whole, &samples), learn(&mut resumed, &samples));
    assert!(state(&whole) == state(&resumed));

    let mut altered = state(&whole);
    let name = "method.subspaces.encoder.stem.conv.weight";
    altered.put_array(&format!("{name}.basis"), Array::floats([27, 30], vec![0.0; 27 * 30]));
    for kind in ["soft", "momentum"] {
        altered.put_array(&format!("{name}.{kind}"), Array::floats([30], vec![0.0; 30]));
    }
    let error = learner(text).restore(&altered).unwrap_err();
    assert!(matches!(&error, Error::BadState { key, .. } if key == &format!("{name}.basis")), "{error}");
}

#[test]
fn one_stored_sample_and_odd_batches_are_enough() {
    let mut config = config("method = 'fs-dgpm'");
    (config.settings.memory, config.settings.batch) = (Some(1), Some(6));
    let mut learner = Learner::new(&config, SHAPE).unwrap();
    let losses = losses(learn(&mut learner, &samples(24)));
    assert!(losses.len() == 24 && losses.iter().all(|loss| loss.is_finite()));
    assert!(learner.parameters().state > 0);
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    let of = |key: &str| refusal(&format!("method = 'fs-dgpm'\n[fsdgpm]\n{key}"));
    assert_eq!(of("e1 = -1.0"), "fsdgpm.e1: must be at least 0, not -1");
    assert!(of("th = 0.0").starts_with("fsdgpm.th: ") && of("th = 1.5").starts_with("fsdgpm.th: "));
    assert_eq!(of("inner_steps = 0"), "fsdgpm.inner_steps: must be at least 1, not 0");
    assert!(of("clip = 0.0").starts_with("fsdgpm.clip: "));
}
