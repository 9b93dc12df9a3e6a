//! Every key at numbers nobody means: refused with the reason, or harmless.

use std::sync::atomic::AtomicBool;

use dpcl::{
    Config, Error, Run, Settings, Watch,
    config::{Key, Keys as _, Kind},
    methods::METHODS,
};

use crate::small::QUICK;

/// Whole numbers and others that are far beyond what is meant.
const COUNTS: [&str; 2] = ["1000000000000", "1000000000000000000"];
const NUMBERS: [&str; 4] = ["1e300", "1e18", "1e12", "1e-300"];

fn texts(key: &Key) -> Vec<String> {
    match key.kind {
        Kind::Count => COUNTS.map(String::from).to_vec(),
        Kind::Number => NUMBERS.map(String::from).to_vec(),
        Kind::Numbers(count) => {
            let list = |number: &str| format!("[{}]", vec![number; count].join(", "));
            ["1e38", "1e-38"].map(list).to_vec()
        }
        _ => Vec::new(),
    }
}

/// Refused with the key's name, or run to an end that has no panic in it.
fn tried(name: &str, text: &str) {
    let tables: toml::Table = QUICK.parse().unwrap();
    let mut table = tables;
    let more: toml::Table = text.parse().unwrap();
    let small = "classes = 2\ntasks = 2\nper_class = 6\nbatch = 4\nmemory = 4\nwidth = 2";
    for (key, value) in small.parse::<toml::Table>().unwrap().into_iter().chain(more) {
        table.insert(key, value);
    }
    let checked = Config::from_table(table).and_then(|config| config.check().map(|_| config));
    let config = match checked {
        Ok(config) => config,
        Err(error) => {
            assert!(matches!(error, Error::BadKey { .. }), "{text}: {error}");
            assert!(error.to_string().contains(name), "{text}: {error}");
            return;
        }
    };
    let run = match Run::open(&config) {
        Ok(run) => run,
        Err(error) => {
            assert!(matches!(error, Error::BadKey { .. }), "{text}: {error}");
            return;
        }
    };
    let stop = AtomicBool::new(false);
    let mut watch =
        Watch { event: &mut |_| Ok(()), progress: &mut |_| {}, keep: &mut |_, _, _| Ok(()), stop: &stop };
    match run.execute(&mut watch) {
        Ok(_) | Err(Error::Diverged { .. } | Error::RanAway { .. } | Error::PartNotFinite { .. }) => {}
        Err(error) => panic!("{text}: {error}"),
    }
}

#[test]
fn common_keys_far_beyond_their_meaning_are_refused_or_harmless() {
    for key in Settings::keys().iter().filter(|key| key.name != "threads") {
        for number in texts(key) {
            tried(key.name, &format!("{} = {number}", key.name));
        }
    }
}

#[test]
fn keys_of_methods_far_beyond_their_meaning_are_refused_or_harmless() {
    for info in METHODS {
        for key in (info.keys.list)() {
            for number in texts(&key) {
                let text = format!("method = '{}'\n[{}]\n{} = {number}", info.name, info.section, key.name);
                tried(key.name, &text);
            }
        }
    }
}

#[test]
fn a_number_of_steps_that_no_run_comes_to_the_end_of_is_refused_with_the_reason() {
    for number in ["1e300", "1e18", "1e12"] {
        let error = Config::from_toml(&format!("updates = {number}")).unwrap().check().unwrap_err();
        let text = error.to_string();
        assert!(text.contains("`updates`: must be at most 1000000"), "{text}");
        assert!(text.ends_with("no run would come to an end"), "{text}");
    }
    let error = Config::from_toml("method = 'bic'\nmemory = 1000000000000").unwrap().check().unwrap_err();
    assert!(error.to_string().ends_with("no stream has so many samples to keep"), "{error}");
    let error = Config::from_toml("updates = 0.0").unwrap().check().unwrap_err();
    assert!(!error.to_string().contains("come to an end"), "{error}");
}
