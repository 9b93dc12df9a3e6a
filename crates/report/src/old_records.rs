//! Records from before a result said which setting and group it belongs to: the same is worked out from their
//! configuration, so that old and new records of one configuration stand in one row.
//!
//! The lists are what keys were when records began to speak for themselves, and nothing here grows: of a key that came
//! after that, a record says itself what others stand for that lack it (`later_keys.rs`).

use std::collections::BTreeMap;

use crate::record::{Remark, RunResult, dotted};

/// Keys that say which stream is learned.
const STREAM_KEYS: [&str; 13] = [
    "blurry_order",
    "classes",
    "dataset",
    "first_tasks",
    "holdout",
    "m",
    "n",
    "on_bad_image",
    "per_class",
    "scenario",
    "split",
    "superclass_order",
    "tasks",
];

/// Keys that change nothing a run learns. The label is compared by itself, and a checkpoint by its checksum.
const INCIDENTAL_KEYS: [&str; 7] = ["command", "data_dir", "from", "label", "online", "seed", "threads"];

/// Keys that have another name today.
const RENAMED_KEYS: [(&str, &str); 4] = [
    ("updates_per_sample", "updates"),
    ("rm_rebuild", "rebuild"),
    ("dpcl.mi_pass", "dpcl.disagreement_pass"),
    ("dpcl.mi_heads", "dpcl.disagreement_heads"),
];

/// Values that have another name today, with their keys.
const RENAMED_VALUES: [(&str, &str, &str); 1] = [("memory_scheme", "rm", "balanced")];

/// Keys that some of these records lack, each with the value that its absence stands for. Those of a method are missed only where
/// it has a table.
const LATER_KEYS: [(&str, &str); 11] = [
    ("on_bad_image", "fail"),
    ("bic.gamma", "0.1"),
    ("bic.lr_clamp", "[0.05, 2.0]"),
    ("bic.lr_lag", "iteration"),
    ("bic.lr_rule", "text"),
    ("bic.omega", "1.0526315789473684"),
    ("clib.gamma", "0.1"),
    ("clib.lr_clamp", "[0.05, 2.0]"),
    ("clib.lr_lag", "iteration"),
    ("clib.lr_rule", "text"),
    ("clib.omega", "1.0526315789473684"),
];

/// Adds what a result would say of itself today, in its own spelling.
pub fn complete(result: &mut RunResult, config: &toml::Table) {
    if result.setting.is_empty() && result.group.is_empty() {
        let keys = said(result, config);
        (result.setting, result.group) =
            keys.into_iter().partition(|(key, _)| STREAM_KEYS.contains(&key.as_str()));
        let period = config.get("imp_period").and_then(toml::Value::as_integer).unwrap_or(1);
        let period = u64::try_from(period).ok().filter(|&period| period > 1);
        result.remarks = period.map(Remark::measured_every).into_iter().collect();
    }
    for (key, value) in LATER_KEYS {
        let keys = if STREAM_KEYS.contains(&key) { &mut result.setting } else { &mut result.group };
        let missed = key.rsplit_once('.').is_none_or(|(method, _)| has_table(keys, method));
        if missed {
            keys.entry(key.to_owned()).or_insert_with(|| value.to_owned());
        }
    }
}

fn has_table(keys: &BTreeMap<String, String>, method: &str) -> bool {
    let dotted = format!("{method}.");
    keys.range(dotted.clone()..).next().is_some_and(|(key, _)| key.starts_with(&dotted))
}

/// Gives keys and values the names they have today. Only for reports with records of both kinds: old ones among themselves
/// are shown as they were written.
pub fn renew(result: &mut RunResult) {
    let keys = &mut result.group;
    for (old, new) in RENAMED_KEYS {
        if let Some(value) = keys.remove(old) {
            keys.insert(new.to_owned(), value);
        }
    }
    for (key, old, new) in RENAMED_VALUES {
        if let Some(value) = keys.get_mut(key).filter(|value| *value == old) {
            *value = new.to_owned();
        }
    }
}

/// The keys of a configuration that say what was learned.
fn said(result: &RunResult, config: &toml::Table) -> BTreeMap<String, String> {
    let mut keys = dotted(config);
    // The result names these even where the configuration leaves them to a default.
    for (key, value) in [("model", &result.model), ("method", &result.method)] {
        keys.entry(key.to_owned()).or_insert_with(|| value.clone());
    }
    keys.retain(|key, _| !INCIDENTAL_KEYS.contains(&key.as_str()));
    keys
}
