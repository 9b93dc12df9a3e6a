//! Counts in a saved learner: none is taken up from where counting on would not be exact, or overflow.

use std::collections::BTreeSet;

use crate::quarters::{config, learner, samples};
use dpcl::{Error, Learner, methods::METHODS};
use serde_json::{Value, json};

/// Entries in which every whole number counts something, by the last part of their names.
const COUNTS: [&str; 12] = [
    "collections",
    "count",
    "counts",
    "left",
    "moving",
    "samples",
    "seen",
    "steps",
    "task",
    "trained_at",
    "updates",
    "used",
];

/// One more than what is counted exactly.
const TOO_MANY: u64 = (1 << 53) + 1;

/// Further parts that count: rates, memories, perturbations, an average.
const PARTS: [&str; 3] = [
    "method = 'dpcl'\nmemory_scheme = 'pim'\nrate = 'pima'\naverage = 10\n[dpcl]\npfi = true\nperiod = 2\nheads = 2\nrank = 2",
    "method = 'er'\nmemory_scheme = 'cbrs'\nrate = 'clib'",
    "method = 'bic'\nmemory_scheme = 'clib'\n[bic]\npfi = true\nbsc = true\nperiod = 2\nheads = 2",
];

fn taught(text: &str) -> Learner {
    let mut learner = learner(&config(text));
    for (number, (image, class)) in samples(24).iter().enumerate() {
        learner.observe_in(0, image, *class).unwrap();
        if number == 14 {
            learner.task_end().unwrap();
        }
    }
    learner
}

/// A value with another number in the place of each whole number in it, one at a time.
fn altered(value: &Value) -> Vec<Value> {
    match value {
        Value::Number(number) if number.is_u64() => vec![json!(TOO_MANY)],
        Value::Array(values) => {
            let at = |place: usize| {
                let with = move |inner| {
                    let mut whole = values.clone();
                    whole[place] = inner;
                    Value::Array(whole)
                };
                altered(&values[place]).into_iter().map(with)
            };
            (0..values.len()).flat_map(at).collect()
        }
        Value::Object(entries) => {
            let at = |(key, value): (&String, &Value)| {
                let with = |inner| {
                    let mut whole = entries.clone();
                    whole[key] = inner;
                    Value::Object(whole)
                };
                altered(value).into_iter().map(with).collect::<Vec<_>>()
            };
            entries.iter().flat_map(at).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn counts_that_nobody_lived_to_see_are_refused_by_name() {
    let mut seen = BTreeSet::new();
    let methods = METHODS.iter().map(|info| format!("method = '{}'", info.name));
    for text in methods.chain(PARTS.map(str::to_owned)) {
        let learner = taught(&text);
        let state = learner.state();
        let mut again = Learner::new(&config(&text), learner.shape()).unwrap();
        again.restore(&state).unwrap();
        let counts = state.values.iter().filter(|(key, _)| COUNTS.contains(&key.rsplit('.').next().unwrap()));
        // A network put by is taken up when it is needed, and refused then.
        for (key, value) in counts.filter(|(key, _)| !key.starts_with("method.start.")) {
            for value in altered(value) {
                let mut state = state.clone();
                state.values.insert(key.clone(), value);
                let refused = again.restore(&state).expect_err(key);
                assert!(matches!(&refused, Error::BadState { key: named, .. } if named == key), "{refused}");
                seen.insert(key.clone());
            }
        }
    }
    for key in [
        "samples",
        "updates",
        "core.model.optimiser.counts",
        "core.model.average.steps",
        "method.counts",
        "method.memory.scheme.seen",
        "method.offline.left",
        "method.perturbed.bsc.0.0.count",
        "method.perturbed.bsc.collections",
        "method.perturbed.counts",
        "method.perturbed.pfi.used",
        "method.rate.moving",
        "method.refresh.steps",
        "method.samples",
        "method.task",
        "method.trained_at",
    ] {
        assert!(seen.contains(key), "{key} is not among {seen:?}");
    }
}
