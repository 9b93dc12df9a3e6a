//! DPCL as a whole: what is left of it with everything switched off, every branch taken, what it keeps, its keys and what
//! it refuses.

use std::{collections::BTreeSet, sync::atomic::AtomicBool};

use crate::quarters::{SHAPE, config, learner, samples};
use dpcl::methods::find;
use dpcl::{Config, Error, Image, Learner, Run, Watch};
use dpcl_report::record::Event;

/// The parts that follow disagreement, as the paper has them.
const PIMA: &str = "method = 'dpcl'\nmemory_scheme = 'pim'\nrate = 'pima'\n";

const LETTER: &str = include_str!("../../../../presets/dpcl-literal.toml");

fn refusal(text: &str) -> String {
    match Learner::new(&config(text), SHAPE) {
        Err(Error::BadKey { key, problem }) => format!("{key}: {problem}"),
        Err(Error::UnknownKey { key, known }) => format!("{key}: unknown beside {}", known.join(", ")),
        Err(other) => panic!("{text}: {other}"),
        Ok(_) => panic!("{text}: accepted"),
    }
}

#[test]
fn with_everything_off_it_is_experience_replay_bit_for_bit() {
    let samples = samples(48);
    let mut er = learner(&config("method = 'er'\ncutmix_prob = 0.0"));
    let learned: Vec<_> = samples.iter().map(|(image, class)| er.observe(image, *class).unwrap()).collect();
    let er_state = er.state();
    // With so small a second parameter Beta gives exactly 1: rows keep all of themselves.
    let still = "sigma_a = 0.0\nsigma_m = 0.0\nalpha = 1.0\nbeta = 1e-300\nlayers = [0, 1, 2, 3, 4]\n";
    for (pfi, keys) in [(false, ""), (true, "noise = 'paper'"), (true, "noise = 'nfm'")] {
        let bare = format!(
            "method = 'dpcl'\naverage = 0\ncutmix_prob = 0.0\nmemory_scheme = 'reservoir'\n\
             rate = 'exp-reset'\nhead_keep_adam = false\n[dpcl]\nheads = 1\npredict = 'current'\nperiod = 3\npfi = {pfi}\n{still}{keys}"
        );
        let mut dpcl = learner(&config(&bare));
        for ((image, class), expected) in samples.iter().zip(&learned) {
            assert_eq!(dpcl.observe(image, *class).unwrap(), *expected, "losses and rates, {pfi} {keys}");
        }
        assert_eq!(dpcl.counters().get("pfi_depth_1").is_some_and(|&steps| steps > 0.0), pfi);
        let dpcl_state = dpcl.state();
        for part in ["core", "method.memory", "method.rate"] {
            assert!(!er_state.part(part).values.is_empty());
            assert!(er_state.part(part) == dpcl_state.part(part), "{part} differs, {pfi} {keys}");
        }
        for (image, _) in &samples[..8] {
            assert_eq!(er.predict(image).unwrap(), dpcl.predict(image).unwrap());
        }
    }
}

#[test]
fn every_branch_is_taken_in_a_small_run() {
    let text = format!(
        "{PIMA}classes = 4\ntasks = 2\nper_class = 40\nmodel = 'slim'\nwidth = 4\nmemory = 16\nupdates = 1.0\n\
         eval_period = 0\nautoaugment = 'none'\nlr = 0.002\n[dpcl]\npfi = true\nperiod = 3\nnoise = 'paper'"
    );
    let run = Run::open(&Config::from_toml(&text).unwrap()).unwrap();
    let mut counters = std::collections::BTreeMap::new();
    let mut keep = |event: &Event| {
        if let Event::Progress { counters: new, .. } = event {
            counters = new.clone();
        }
        Ok(())
    };
    let stop = AtomicBool::new(false);
    let mut watch =
        Watch { event: &mut keep, progress: &mut |_| {}, keep: &mut |_, _, _| Ok(()), stop: &stop };
    run.execute(&mut watch).unwrap();

    for name in [
        "rate_ups",
        "rate_downs",
        "memory_accepts",
        "memory_refusals",
        "pfi_depth_0",
        "pfi_depth_1",
        "pfi_depth_2",
    ] {
        assert!(counters[name] > 0.0, "{name}: {counters:?}");
    }
    assert_eq!(counters["first_met"], 4.0);
    assert_eq!(counters["collections"], (160 / 3) as f64);
    assert_eq!(counters["memory_accepts"] + counters["memory_refusals"], 160.0);
    assert_eq!(counters["pfi_depth_3"] + counters["pfi_depth_4"], 0.0, "the default depths are 0, 1 and 2");
}

#[test]
fn what_it_keeps_beside_replay_is_counted() {
    let samples = samples(24);
    let count = |text: &str| {
        let mut learner = learner(&config(text));
        samples.iter().for_each(|(image, class)| drop(learner.observe(image, *class).unwrap()));
        learner.parameters()
    };
    let er = count("method = 'er'");
    assert_eq!((er.state, er.history), (0, 0));
    // Four classes on eight times the width in features, and their biases.
    let row = 4 * 32 + 4;
    let dpcl = count(
        "method = 'dpcl'\naverage = 0\n[dpcl]\npfi = true\nheads = 3\nperiod = 4\nrank = 2\nbsc_window = 0",
    );
    assert_eq!(dpcl.network, er.network + 2 * row, "two heads more");
    assert_eq!(dpcl.state, 2 * 3 * row, "a mean and a mean of squares for each of three heads");
    assert_eq!(dpcl.history, 2 * 3 * row, "two deviation columns");
    let windowed = count(
        "method = 'dpcl'\naverage = 0\n[dpcl]\npfi = true\nheads = 3\nperiod = 4\nrank = 0\nbsc_window = 3",
    );
    assert_eq!(windowed.history, 3 * 3 * row, "three snapshots");
}

#[test]
fn many_images_are_answered_with_the_same_draws_as_one() {
    let mut learner = learner(&config("method = 'dpcl'\n[dpcl]\npfi = true\nperiod = 2"));
    let samples = samples(32);
    for (image, class) in &samples {
        learner.observe(image, *class).unwrap();
    }
    let images: Vec<Image> = samples[..5].iter().map(|(image, _)| image.clone()).collect();
    for (image, together) in images.iter().zip(learner.predict_all(&images).unwrap()) {
        let alone = learner.predict(image).unwrap();
        for ((_, one), (_, other)) in alone.probabilities.iter().zip(&together.probabilities) {
            assert!((one - other).abs() < 1e-4, "{one} and {other}");
        }
    }
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    assert_eq!(
        refusal("method = 'er'\nmemory_scheme = 'pim'"),
        "memory_scheme: `pim` needs heads that disagree, which `er` as configured has not; try `balanced`"
    );
    assert_eq!(
        refusal("method = 'dpcl'\nrate = 'pima'\n[dpcl]\npfi = true\nbsc = false"),
        "rate: `pima` needs heads that disagree, which `dpcl` as configured has not; try `exp-reset`"
    );
    assert!(
        refusal(&format!("{PIMA}[dpcl]\npfi = true\nheads = 1\ndraws = 1")).starts_with("memory_scheme: ")
    );
    assert_eq!(
        refusal("method = 'dpcl'\n[dpcl]\npfi = true\nomega = 0.9"),
        "dpcl.omega: must be above 1, not 0.9"
    );
    assert_eq!(
        refusal("method = 'dpcl'\n[dpcl]\npfi = true\nlayers = [0, 5]"),
        "dpcl.layers: must be between 0 and 4, not 5"
    );
    assert!(refusal("method = 'dpcl'\n[dpcl]\nrank = 1").starts_with("dpcl.rank: "));
    assert!(
        refusal("method = 'dpcl'\n[dpcl]\nsigma = 1.0").starts_with("dpcl.sigma: unknown beside dpcl.pfi, ")
    );
    assert!(refusal("method = 'dpcl'\n[dpcl]\npfi = true\nperiod = 'often'").starts_with("dpcl.period: "));
}

#[test]
fn a_checked_configuration_names_every_key() {
    let setup = config("method = 'dpcl'").check().unwrap();
    assert_eq!((setup.memory_scheme.as_str(), setup.rate.as_str()), ("reservoir", "constant"));
    assert_eq!((setup.head_keep_adam, setup.cutmix_prob, setup.average), (false, 0.5, 1000));
    let keys = &setup.config().sections["dpcl"];
    assert_eq!(keys["layers"].as_array().unwrap().len(), 3);
    assert_eq!(keys["predict"].as_str(), Some("posterior"));
    let again = Config::from_toml(&setup.to_toml()).unwrap().check().unwrap();
    assert_eq!(again.to_table(), setup.to_table());
}

#[test]
fn a_key_left_out_is_the_methods_default_whatever_else_is_said() {
    let keys = |text: &str| config(text).check().unwrap().config().sections.remove("dpcl").unwrap();
    let (all, some) = (keys("method = 'dpcl'"), keys("method = 'dpcl'\n[dpcl]\nsigma_a = 0.3\nheads = 2"));
    assert_eq!((all["noise"].as_str(), all["bsc_window"].as_integer()), (Some("nfm"), Some(20)));
    for (key, value) in &all {
        let said = ["sigma_a", "heads"].contains(&key.as_str());
        assert_eq!(said, some[key] != *value, "{key}");
    }
    // Methods that share these keys start them from the paper's values.
    let clib = config("method = 'clib'").check().unwrap().config().sections.remove("clib").unwrap();
    assert_eq!((clib["noise"].as_str(), clib["bsc_window"].as_integer()), (Some("paper"), Some(0)));
}

#[test]
fn the_letter_of_the_paper_leaves_nothing_to_the_defaults() {
    let letter = Config::from_toml(LETTER).unwrap();
    let checked = letter.check().unwrap().config();
    let names = |config: &Config| config.sections["dpcl"].keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&letter), names(&checked));
    let (said, settled) = (&letter.settings, &checked.settings);
    assert_eq!((&said.memory_scheme, &said.rate), (&settled.memory_scheme, &settled.rate));
    assert_eq!((said.head_keep_adam, said.cutmix_prob, said.average), (Some(true), Some(0.0), Some(0)));
}

/// The letter has the depths of the authors' code, too.
#[test]
fn departures_are_the_keys_where_the_default_differs_from_the_letter_and_the_depths() {
    let keys = |text: &str| {
        let mut keys = Config::from_toml(text).unwrap().check().unwrap().to_table();
        let own = keys.remove("dpcl").unwrap();
        let own = own.as_table().unwrap().iter();
        keys.extend(own.map(|(key, value)| (format!("dpcl.{key}"), value.clone())));
        keys.remove("label");
        keys
    };
    let (default, letter) = (keys("method = 'dpcl'"), keys(LETTER));
    let all = default.keys().chain(letter.keys()).map(String::as_str);
    let mut expected: BTreeSet<&str> = all.filter(|key| default.get(*key) != letter.get(*key)).collect();
    expected.insert("dpcl.layers");
    // Each begins with its key in backticks.
    let named = |departure: &&'static str| departure.split('`').nth(1).unwrap();
    let departures: BTreeSet<&str> = find("dpcl").unwrap().departures.iter().map(named).collect();
    assert_eq!(departures, expected);
    assert_eq!(departures.len(), 10);
}
