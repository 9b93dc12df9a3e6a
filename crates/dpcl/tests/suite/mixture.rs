//! A mixture that grows (`oddl`): what it is while there is one component, when others open, how many there can be, and
//! exact resume.

use crate::{
    baselines::{config, learn, learner, losses, refusal, state},
    quarters::{SHAPE, samples},
};
use dpcl::{Config, Error, Learner, Run, Watch};
use std::sync::atomic::AtomicBool;

/// Another opens whenever labels differ at all.
const WIDE: &str = "method = 'oddl'\n[oddl]\nthreshold = 0.0\ncomponents = 3";

fn components(learner: &Learner) -> usize {
    learner.counters()["components"] as usize
}

#[test]
fn until_the_memory_is_full_it_is_experience_replay() {
    let samples = samples(48);
    let made = |text: &str| {
        let mut config = config(text);
        config.settings.memory = Some(48);
        Learner::new(&config, SHAPE).unwrap()
    };
    for keys in ["", "average = 20\nteacher = 1.0\n", "asymmetric = true\n"] {
        let mut er = made(&format!("{keys}method = 'er'\nmemory_scheme = 'first'"));
        let mut oddl = made(&format!("{keys}method = 'oddl'"));
        assert_eq!(learn(&mut er, &samples), learn(&mut oddl, &samples), "{keys}");
        for part in ["core", "method.memory", "method.rate"] {
            assert!(state(&er).part(part) == state(&oddl).part(part), "{keys}: {part} differs");
        }
        let image = &samples[0].0;
        assert_eq!(er.predict(image).unwrap(), oddl.predict(image).unwrap());
    }
}

#[test]
fn a_full_memory_opens_components_up_to_the_limit() {
    let samples = samples(48);
    let mut oddl = learner(WIDE);
    let before = oddl.parameters();
    let mut found = Vec::new();
    for (image, class) in &samples {
        oddl.observe(image, *class).unwrap();
        assert!(oddl.memory().unwrap().slots().len() <= 10);
        found.push(components(&oddl));
    }
    // Four samples at a time: eight are stored, and the next four make twelve.
    assert!(found[..11].iter().all(|&count| count == 1) && found[11] == 2, "{found:?}");
    assert!(found.is_sorted() && found.iter().all(|&count| count <= 3), "{found:?}");
    assert!(oddl.parameters().network > 2 * before.network);
}

#[test]
fn with_one_component_at_most_chance_decides_what_stays() {
    let mut oddl = learner("method = 'oddl'\n[oddl]\ncomponents = 1\nroom = 0.0");
    learn(&mut oddl, &samples(48));
    assert_eq!((components(&oddl), oddl.memory().unwrap().slots().len()), (1, 10));
    assert_eq!(oddl.counters()["components_refused"], 10.0, "once for each batch after the second");
}

#[test]
fn a_limit_that_was_met_is_said() {
    let said = |components: usize| {
        let mut oddl =
            learner(&format!("method = 'oddl'\n[oddl]\nthreshold = 0.0\ncomponents = {components}"));
        assert!(oddl.remarks().is_empty());
        learn(&mut oddl, &samples(48));
        oddl.remarks()
    };
    let met = said(1);
    assert_eq!(met[0].one, "wanted another component and may have no more (`oddl.components` is 1)");
    assert!(met.len() == 1 && said(100).is_empty());

    let text = "method = 'oddl'\nclasses = 4\ntasks = 2\nper_class = 20\nmodel = 'slim'\nwidth = 4\nmemory = 12\n\
                updates = 1.0\neval_period = 0\nautoaugment = 'none'\nthreads = 1\n[oddl]\ncomponents = 1";
    let run = Run::open(&Config::from_toml(text).unwrap()).unwrap();
    let stop = AtomicBool::new(false);
    let mut watch =
        Watch { event: &mut |_| Ok(()), progress: &mut |_| {}, keep: &mut |_, _, _| Ok(()), stop: &stop };
    assert_eq!(run.execute(&mut watch).unwrap().remarks, met, "the record has it too");
}

#[test]
fn a_mixture_resumes_exactly() {
    let samples = samples(48);
    for text in [WIDE, "method = 'oddl'\naverage = 20\nteacher = 1.0\n[oddl]\ndiscrepancy = 'index'"] {
        let (mut whole, mut first) = (learner(text), learner(text));
        for learner in [&mut whole, &mut first] {
            for (image, class) in &samples[..22] {
                learner.observe(image, *class).unwrap();
            }
        }
        assert!(components(&whole) > 1);
        let mut resumed = learner(text);
        resumed.restore(&state(&first)).unwrap();
        assert_eq!(learn(&mut whole, &samples[22..]), learn(&mut resumed, &samples[22..]));
        assert!(state(&whole) == state(&resumed), "{text}");
        for (image, _) in &samples[..8] {
            assert_eq!(whole.predict(image).unwrap(), resumed.predict(image).unwrap());
        }
    }
}

#[test]
fn what_goes_beyond_the_configuration_is_refused() {
    let mut oddl = learner(WIDE);
    learn(&mut oddl, &samples(24));
    let held = state(&oddl);
    let error = learner("method = 'oddl'\n[oddl]\ncomponents = 1").restore(&held).unwrap_err();
    assert!(error.to_string().contains("of which there may be 1"), "{error}");
    let mut altered = held.clone();
    altered.put("method.labels", &vec![vec![0_usize; 40]]);
    let error = learner(WIDE).restore(&altered).unwrap_err();
    assert!(matches!(&error, Error::BadState { key, .. } if key == "method.labels"), "{error}");
    altered = held;
    altered.put("method.frozen", &usize::MAX);
    assert!(matches!(learner(WIDE).restore(&altered), Err(Error::BadState { .. })));
}

#[test]
fn every_key_says_something() {
    let samples = samples(48);
    let run = |keys: &str| losses(learn(&mut learner(&format!("method = 'oddl'\n[oddl]\n{keys}")), &samples));
    let plain = run("threshold = 0.0");
    for other in ["threshold = 1.0", "threshold = 0.0\ncomponents = 1", "threshold = 0.0\nvae_width = 0.02"] {
        assert_ne!(plain, run(other), "{other}");
    }
    assert_ne!(run("threshold = 1.0"), run("threshold = 1.0\nroom = 0.5"));
}

#[test]
fn an_autoencoder_that_runs_away_is_an_error() {
    let mut oddl = learner("method = 'oddl'\n[oddl]\nvae_lr = 1e30");
    let samples = samples(24);
    let error = samples.iter().find_map(|(image, class)| oddl.observe(image, *class).err()).unwrap();
    assert!(error.to_string().starts_with("the loss of the autoencoder became "), "{error}");
    assert_eq!(error.hint().unwrap(), "lower `oddl.vae_lr`, or look for damaged images");
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    let of = |keys: &str| refusal(&format!("{keys}method = 'oddl'\n"));
    assert!(
        of("memory_scheme = 'reservoir'\n").starts_with("memory_scheme: `oddl` chooses what stays itself")
    );
    assert!(of("weights = 'a.safetensors'\n").starts_with("weights: "));
    let own = |key: &str| refusal(&format!("method = 'oddl'\n[oddl]\n{key}"));
    assert_eq!(own("components = 0"), "oddl.components: must be at least 1, not 0");
    assert!(own("room = 1.0").starts_with("oddl.room: ") && own("vae_lr = 0.0").starts_with("oddl.vae_lr: "));
    let mut config = config("method = 'oddl'");
    config.settings.memory = Some(0);
    assert!(config.check().unwrap_err().to_string().contains("`memory`: must be at least 1"));
}
