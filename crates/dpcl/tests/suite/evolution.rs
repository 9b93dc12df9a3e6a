//! Memory rows that evolve (`dro`): what is left of it without them, what they leave alone, and exact resume.

use crate::{
    baselines::{assert_same_run, config, learn, learner, losses, refusal, state},
    quarters::{SHAPE, samples},
};
use dpcl::{Error, Learner};

const LANGEVIN: &str = "method = 'dro'\n[dro]\nevolution = 'langevin'\nbeta = 0.5";

#[test]
fn without_a_memory_dro_is_experience_replay_without_one() {
    let without = |method: &str| format!("method = '{method}'\nmemory_scheme = 'none'");
    assert_same_run(&without("er"), &without("dro"));
}

#[test]
fn without_evolved_rows_dro_is_experience_replay_with_a_mean_for_each_half() {
    let text = "method = 'dro'\ncutmix_prob = 0.0\n[dro]\nbeta = 0.0";
    let halves = "method = 'der++'\ncutmix_prob = 0.0\n[der]\na = 0.0\nb = 1.0";
    let samples = samples(48);
    let (mut dro, mut der) = (learner(text), learner(halves));
    assert_eq!(learn(&mut dro, &samples), learn(&mut der, &samples));
    for part in ["core.model", "method.memory", "method.rate"] {
        assert!(state(&dro).part(part) == state(&der).part(part), "{part}");
    }
    let dro = losses(learn(&mut learner(text), &samples));
    let er = losses(learn(&mut learner("method = 'er'\ncutmix_prob = 0.0"), &samples));
    // Four steps on the stream alone, then batches whose halves are equally large.
    assert_eq!(dro[..4], er[..4]);
    assert!((dro[4] - 2.0 * er[4]).abs() < 1e-5, "{} is not twice {}", dro[4], er[4]);
}

#[test]
fn evolution_leaves_the_running_statistics_alone() {
    let samples = samples(8);
    let learned = |beta: f64| {
        // One step on each four samples: the second is the first that has memory rows.
        let mut config = config(&format!("method = 'dro'\n[dro]\nbeta = {beta}\nstep = 1.0"));
        config.settings.updates = Some(0.25);
        let mut learner = Learner::new(&config, SHAPE).unwrap();
        let losses = losses(learn(&mut learner, &samples));
        assert_eq!(losses.len(), 2);
        (losses, state(&learner).part("core.model.encoder"))
    };
    let ((plain, without), (evolved, with)) = (learned(0.0), learned(0.5));
    assert_eq!(plain[0], evolved[0]);
    assert!(evolved[1] > plain[1], "evolved rows have a loss: {evolved:?}, {plain:?}");
    let statistics = with.arrays.keys().filter(|name| name.contains(".running_"));
    let count = statistics.map(|name| assert_eq!(with.arrays[name], without.arrays[name], "{name}")).count();
    assert!(count > 30 && with.arrays != without.arrays, "the weights learned from the evolved rows");
}

#[test]
fn what_rows_evolve_to_changes_what_is_learned() {
    let samples = samples(48);
    let run = |keys: &str| {
        losses(learn(&mut learner(&format!("method = 'dro'\n[dro]\nbeta = 0.5\n{keys}")), &samples))
    };
    let coded = run("step = 0.1");
    for other in [
        "step = 0.2",
        "step = 0.1\nsteps = 2",
        "step = 0.1\ngamma = 5.0",
        "step = 0.1\nevolution = 'langevin'",
    ] {
        assert_ne!(coded, run(other), "{other}");
    }
    let langevin = "step = 0.1\nevolution = 'langevin'";
    assert_ne!(run(langevin), run(&format!("{langevin}\nfix_sign = true")));
}

#[test]
fn one_stored_sample_evolves_by_itself() {
    let mut config = config("method = 'dro'\n[dro]\nbeta = 0.5");
    config.settings.memory = Some(1);
    let mut learner = Learner::new(&config, SHAPE).unwrap();
    let losses = losses(learn(&mut learner, &samples(24)));
    assert!(losses.len() == 24 && losses.iter().all(|loss| loss.is_finite()));
    assert_eq!(learner.memory().unwrap().slots().len(), 1);
}

#[test]
fn noise_resumes_exactly() {
    let samples = samples(48);
    let mut whole = learner(LANGEVIN);
    learn(&mut whole, &samples[..30]);
    let mut resumed = learner(LANGEVIN);
    resumed.restore(&state(&whole)).unwrap();
    assert_eq!(learn(&mut whole, &samples[30..]), learn(&mut resumed, &samples[30..]));
    assert!(state(&whole) == state(&resumed));
}

#[test]
fn an_average_teaches_evolved_replay_too() {
    let samples = samples(48);
    let run =
        |keys: &str| losses(learn(&mut learner(&format!("method = 'dro'\naverage = 20\n{keys}")), &samples));
    assert_ne!(run(""), run("teacher = 1.0"));
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    assert!(refusal("method = 'dro'\nasymmetric = true").starts_with("asymmetric: `dro`"));
    assert_eq!(refusal("method = 'dro'\n[dro]\nstep = 0.0"), "dro.step: must be above 0, not 0");
    assert!(refusal("method = 'dro'\n[dro]\nbeta = -1.0").starts_with("dro.beta: must be at least 0"));
    let unknown = config("method = 'dro'\n[dro]\nevolution = 'drift'").check().unwrap_err();
    let Error::UnknownValue { key, known, .. } = &unknown else { panic!("{unknown}") };
    assert_eq!((key.as_str(), &known[..]), ("dro.evolution", &["svgd", "langevin"].map(str::to_owned)[..]));
}
