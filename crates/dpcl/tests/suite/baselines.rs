//! What the rehearsal baselines reduce to when their own terms are switched off, and what they refuse.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::quarters::{SHAPE, samples};
use dpcl::method::State;
use dpcl::methods::METHODS;
use dpcl::names::RATES;
use dpcl::{Config, Error, Image, Learner, Observation, Progress, Run, Watch};

pub fn config(text: &str) -> Config {
    let common = "model = 'slim'\nwidth = 4\nmemory = 10\nbatch = 8\nupdates = 1.0\nlr = 0.002\n";
    Config::from_toml(&format!("{common}{text}")).unwrap()
}

pub fn learner(text: &str) -> Learner {
    Learner::new(&config(text), SHAPE).unwrap()
}

pub fn state(learner: &Learner) -> State {
    learner.state()
}

/// Learns the samples, those of two tasks, and returns what each set off.
pub fn learn(learner: &mut Learner, samples: &[(Image, usize)]) -> Vec<Observation> {
    let mut observations = Vec::new();
    for (index, (image, class)) in samples.iter().enumerate() {
        let task = usize::from(index >= samples.len() / 2);
        observations.push(learner.observe_in(task, image, *class).unwrap());
        if index + 1 == samples.len() / 2 {
            learner.task_end().unwrap();
        }
    }
    observations
}

/// Fails unless both configurations learn the same network, memory and rate by the same steps.
pub fn assert_same_run(one: &str, other: &str) {
    let samples = samples(48);
    let (mut first, mut second) = (learner(one), learner(other));
    assert_eq!(learn(&mut first, &samples), learn(&mut second, &samples), "{other}: losses and rates");
    let (first_state, second_state) = (state(&first), state(&second));
    for part in ["core", "method.memory", "method.rate"] {
        assert!(!first_state.part(part).values.is_empty());
        assert!(first_state.part(part) == second_state.part(part), "{other}: {part} differs");
    }
    let images: Vec<Image> = samples.into_iter().map(|(image, _)| image).collect();
    assert_eq!(first.predict_all(&images).unwrap(), second.predict_all(&images).unwrap(), "{other}");
}

/// Why a configuration is refused, as `key: problem`.
pub fn refusal(text: &str) -> String {
    match config(text).check() {
        Err(Error::BadKey { key, problem }) => format!("{key}: {problem}"),
        other => panic!("expected a refusal of {text}, got {other:?}"),
    }
}

#[test]
fn without_its_entropy_er_cpr_is_experience_replay() {
    assert_same_run("method = 'er'", "method = 'er-cpr'\n[cpr]\nweight = 0.0");
}

#[test]
fn with_a_symmetric_loss_er_ace_is_experience_replay() {
    assert_same_run("method = 'er'", "method = 'er-ace'\nasymmetric = false");
    assert_same_run("method = 'er'\nasymmetric = true", "method = 'er-ace'");
}

#[test]
fn nfm_is_dpcl_with_its_noise_and_one_plain_head_at_a_constant_rate() {
    let dpcl = "method = 'dpcl'\naverage = 0\n[dpcl]\npfi = true\nbsc = false\nnoise = 'nfm'";
    assert_same_run(dpcl, "method = 'nfm'");
}

/// Losses of every step, in order.
pub fn losses(observations: Vec<Observation>) -> Vec<f64> {
    observations.into_iter().flat_map(|observation| observation.steps).map(|step| step.loss).collect()
}

#[test]
fn without_its_memory_terms_der_is_training_on_the_stream() {
    let (mut der, mut finetune) =
        (learner("method = 'der++'\n[der]\na = 0.0\nb = 0.0"), learner("method = 'finetune'"));
    let samples = samples(48);
    assert_eq!(learn(&mut der, &samples), learn(&mut finetune, &samples));
    assert!(state(&der).part("core") == state(&finetune).part("core"));
    assert_eq!(der.memory().unwrap().slots().len(), 10);
}

#[test]
fn without_stored_logits_der_is_experience_replay_with_a_mean_for_each_half() {
    let der = losses(learn(&mut learner("method = 'der++'\n[der]\na = 0.0\nb = 1.0"), &samples(8)));
    let er = losses(learn(&mut learner("method = 'er'"), &samples(8)));
    // Four steps on the stream alone, then batches whose halves are equally large.
    assert_eq!(der[..4], er[..4]);
    assert!((der[4] - 2.0 * er[4]).abs() < 1e-5, "{} is not twice {}", der[4], er[4]);
}

#[test]
fn stored_logits_change_what_is_learned() {
    let samples = samples(48);
    let run = |a: &str| {
        losses(learn(&mut learner(&format!("method = 'der++'\ncutmix_prob = 1.0\n[der]\na = {a}")), &samples))
    };
    assert_ne!(run("0.3"), run("0.0"));
    assert_ne!(run("0.3"), run("0.6"));
}

#[test]
fn with_no_choice_mir_is_experience_replay() {
    assert_same_run("method = 'er'", "method = 'mir'\n[mir]\ncandidates = 4");
    let samples = samples(48);
    let er = losses(learn(&mut learner("method = 'er'"), &samples));
    let mir = losses(learn(&mut learner("method = 'mir'"), &samples));
    assert_eq!(er.len(), mir.len());
    // The memory holds no more than a batch takes up to here, and from here on there is a choice.
    assert_eq!(er[..8], mir[..8]);
    assert_ne!(er, mir);
}

#[test]
fn without_its_anchor_ewc_is_experience_replay() {
    assert_same_run("method = 'er'", "method = 'ewc++'\n[ewc]\nlambda = 0.0");
}

#[test]
fn the_anchor_of_ewc_pulls_from_the_first_task_end_on() {
    let samples = samples(48);
    let er = losses(learn(&mut learner("method = 'er'"), &samples));
    let ewc = losses(learn(&mut learner("method = 'ewc++'"), &samples));
    assert_eq!(er[..25], ewc[..25], "at the anchor itself there is no penalty yet");
    assert_ne!(er[25], ewc[25]);
}

#[test]
fn an_anchored_learner_resumes_exactly() {
    let samples = samples(48);
    let mut whole = learner("method = 'ewc++'");
    learn(&mut whole, &samples);
    let mut resumed = learner("method = 'ewc++'");
    resumed.restore(&state(&whole)).unwrap();
    assert_eq!(learn(&mut whole, &samples), learn(&mut resumed, &samples));
    assert!(state(&whole) == state(&resumed));
}

#[test]
fn every_memory_scheme_serves_er_and_dpcl() {
    let samples = samples(48);
    for scheme in ["reservoir", "balanced", "cbrs"] {
        for method in ["method = 'er'", "method = 'dpcl'\nrate = 'exp-reset'"] {
            let mut learner = learner(&format!("{method}\nmemory_scheme = '{scheme}'"));
            learn(&mut learner, &samples);
            let histogram = learner.memory().unwrap().histogram();
            assert_eq!(histogram.iter().sum::<usize>(), 10, "{scheme}");
            assert!(
                scheme == "reservoir" || histogram.iter().all(|&slots| slots >= 2),
                "{scheme}: {histogram:?}"
            );
        }
    }
}

/// A rate is refused only where what it follows is not there.
#[test]
fn every_rate_serves_every_method_that_measures_what_it_follows() {
    let samples = samples(32);
    let mut refused = Vec::new();
    for method in METHODS {
        for rate in RATES {
            let text = format!("method = '{}'\nrate = '{}'", method.name, rate.name);
            if config(&text).check().is_err() {
                refused.push((rate.name, method.name));
                continue;
            }
            let mut learner = learner(&text);
            learn(&mut learner, &samples);
            learner.finish().unwrap();
            assert!(learner.updates() >= 24, "{text}");
        }
    }
    refused.sort_unstable();
    let one_head = [
        "bic", "ccll", "clib", "ctn", "der++", "dro", "er", "er-ace", "er-cpr", "ewc++", "finetune",
        "fs-dgpm", "gdumb", "joint", "mir", "nfm", "oddl",
    ];
    let nothing_measured =
        ["ccll", "ctn", "finetune", "gdumb", "joint", "oddl"].map(|method| ("clib", method));
    let expected: Vec<_> =
        nothing_measured.into_iter().chain(one_head.map(|method| ("pima", method))).collect();
    assert_eq!(refused, expected);
}

/// Methods that learn when the stream pauses.
const OFFLINE: [&str; 2] = ["method = 'gdumb'", "method = 'joint'"];

#[test]
fn offline_methods_learn_as_many_steps_as_the_stream_has_earned() {
    let samples = samples(48);
    let [mut gdumb, mut joint] = OFFLINE.map(learner);
    for learner in [&mut gdumb, &mut joint] {
        assert!(losses(learn(learner, &samples)).is_empty(), "nothing is learned from the stream itself");
    }
    assert_eq!(gdumb.updates(), 24, "from the first half, at the task end");
    assert_eq!(joint.updates(), 0);
    for learner in [&mut gdumb, &mut joint] {
        learner.finish().unwrap();
    }
    assert_eq!(gdumb.updates(), 24 + 48);
    assert_eq!(joint.updates(), 48);
    gdumb.finish().unwrap();
    assert_eq!(gdumb.updates(), 24 + 48, "nothing has come since");
    let mut epochs = learner("method = 'joint'\n[joint]\nepochs = 2");
    learn(&mut epochs, &samples);
    epochs.finish().unwrap();
    assert_eq!(epochs.updates(), 12, "two passes in batches of eight");
}

#[test]
fn offline_methods_resume_exactly() {
    let samples = samples(48);
    for text in OFFLINE {
        let mut whole = learner(text);
        learn(&mut whole, &samples);
        let mut resumed = learner(text);
        resumed.restore(&state(&whole)).unwrap();
        for learner in [&mut whole, &mut resumed] {
            learner.finish().unwrap();
        }
        assert!(state(&whole) == state(&resumed), "{text}");
        let images: Vec<Image> = samples.iter().map(|(image, _)| image.clone()).collect();
        assert_eq!(whole.predict_all(&images).unwrap(), resumed.predict_all(&images).unwrap());
    }
}

#[test]
fn put_off_work_can_be_watched_and_stopped() {
    let text =
        "method = 'joint'\nclasses = 2\ntasks = 1\nper_class = 40\nmodel = 'slim'\nwidth = 4\nupdates = 1.0";
    let run = Run::open(&Config::from_toml(text).unwrap()).unwrap();
    let stop = AtomicBool::new(false);
    let mut seen = Vec::new();
    let mut progress = |progress: &Progress| {
        if progress.updates > 0 {
            seen.push(progress.updates);
            stop.store(seen.len() == 2, Ordering::Relaxed);
        }
    };
    let mut watch =
        Watch { event: &mut |_| Ok(()), progress: &mut progress, keep: &mut |_, _, _| Ok(()), stop: &stop };
    assert!(matches!(run.execute(&mut watch), Err(Error::Interrupted)));
    assert_eq!(seen, [8, 16], "of eighty steps");
}

#[test]
fn between_task_ends_gdumb_answers_as_of_the_last_one() {
    let samples = samples(48);
    let mut gdumb = learner("method = 'gdumb'");
    for (image, class) in &samples[..24] {
        gdumb.observe(image, *class).unwrap();
        let answer = gdumb.predict(image).unwrap();
        assert_eq!(answer.label, samples[0].1.into(), "before the first task end the class met first");
        assert_eq!(answer.entropy, 0.0);
    }
    gdumb.task_end().unwrap();
    let before = gdumb.predict(&samples[1].0).unwrap();
    for (image, class) in &samples[24..] {
        gdumb.observe(image, *class).unwrap();
    }
    let after = gdumb.predict(&samples[1].0).unwrap();
    assert_eq!(before.probabilities[..], after.probabilities[..2]);
    assert_eq!(after.probabilities.len(), 4);
    assert!(after.probabilities[2..].iter().all(|(_, probability)| *probability == 0.0));
}

#[test]
fn the_network_that_gdumb_starts_from_is_counted() {
    let mut gdumb = learner("method = 'gdumb'");
    assert_eq!(gdumb.parameters().state, 0, "nothing is copied before the first sample");
    learn(&mut gdumb, &samples(8));
    gdumb.finish().unwrap();
    let held = gdumb.parameters();
    // Four classes on eight times the width in features, and their biases, came after the start.
    assert_eq!(held.state, held.network - (4 * 32 + 4));
    assert_eq!(held.history, 0);
    let mut resumed = learner("method = 'gdumb'");
    resumed.restore(&state(&gdumb)).unwrap();
    assert_eq!(resumed.parameters(), held);
}

#[test]
fn a_memory_rebuilt_at_task_ends_holds_equal_shares_and_resumes_exactly() {
    let samples = samples(48);
    for (method, slots) in [("ewc++", 10), ("bic", 9)] {
        rebuilt(method, slots, &samples);
    }
}

/// Checks the memory of a method that trains on that many slots.
fn rebuilt(method: &str, slots: usize, samples: &[(Image, usize)]) {
    let text = &format!("method = '{method}'\nmemory_scheme = 'balanced'\nrebuild = true");
    let (mut whole, mut first) = (learner(text), learner(text));
    for learner in [&mut whole, &mut first] {
        learn(learner, samples);
    }
    let mut resumed = learner(text);
    resumed.restore(&state(&first)).unwrap();
    for learner in [&mut whole, &mut resumed] {
        learner.task_end().unwrap();
        let histogram = learner.memory().unwrap().histogram();
        assert_eq!(histogram.iter().sum::<usize>(), slots, "{method}");
        assert!(histogram.iter().all(|&slots| slots >= 2), "{method}: {histogram:?}");
    }
    assert!(state(&whole) == state(&resumed));

    let mut online = learner(&format!("method = '{method}'\nmemory_scheme = 'balanced'"));
    learn(&mut online, samples);
    online.task_end().unwrap();
    assert_ne!(online.memory().unwrap().slots(), whole.memory().unwrap().slots(), "{method}");
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    assert_eq!(
        refusal("method = 'er-cpr'\n[cpr]\nweight = -0.1"),
        "cpr.weight: must be at least 0, not -0.1"
    );
    assert_eq!(refusal("method = 'der++'\n[der]\nb = -1.0"), "der.b: must be at least 0, not -1");
    assert_eq!(refusal("method = 'mir'\n[mir]\ncandidates = 0"), "mir.candidates: must be at least 1, not 0");
    assert_eq!(refusal("method = 'ewc++'\n[ewc]\nlambda = -1.0"), "ewc.lambda: must be at least 0, not -1");
    assert!(refusal("method = 'ewc++'\n[ewc]\nalpha = 0.0").starts_with("ewc.alpha: "));
    assert!(
        refusal("method = 'joint'\nmemory_scheme = 'balanced'").starts_with("memory_scheme: joint keeps")
    );
    assert_eq!(
        refusal("method = 'gdumb'\nmemory_scheme = 'pim'"),
        "memory_scheme: `pim` needs heads that disagree, which `gdumb` as configured has not; try `balanced`"
    );
    assert!(
        refusal("method = 'gdumb'\nmemory_scheme = 'clib'")
            .starts_with("memory_scheme: `clib` needs losses measured while the stream comes in")
    );
    for method in OFFLINE {
        let with_rate = |rate: &str| refusal(&format!("{method}\nrate = '{rate}'"));
        assert!(with_rate("pima").starts_with("rate: `pima` needs heads that disagree"), "{method}");
        assert!(with_rate("clib").starts_with("rate: `clib` needs losses measured"), "{method}");
    }
    assert_eq!(
        refusal("method = 'er'\nmemory_scheme = 'balanced'\nrebuild = true"),
        "rebuild: needs a method that is told where tasks end, and `er` is not"
    );
    assert_eq!(
        refusal("method = 'gdumb'\nrebuild = true"),
        "rebuild: `gdumb` does not rebuild its memory; try `ewc++`"
    );
    assert_eq!(
        refusal("method = 'ewc++'\nrebuild = true"),
        "rebuild: rebuilds the memory `balanced`, not `reservoir`"
    );
}
