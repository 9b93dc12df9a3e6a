//! Keys that some records lack because they came later: records that have them say what the others stand for, so that
//! both stand in one row. No key is known here.

use std::collections::BTreeSet;

use crate::group::Run;

/// What records stand for that lack a key.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Absent {
    /// The key, dotted.
    key: String,
    value: String,
    /// Whether it says which stream is learned, not how.
    of_setting: bool,
    /// The method that has it among its own keys; none for a key that every method has.
    method: Option<String>,
}

/// Completes runs by what any of them says of keys that others lack. A key that a run does not record itself (it changes
/// nothing that is learned) is passed over.
pub fn complete(runs: &mut [Run]) {
    let absent: BTreeSet<Absent> = runs.iter().flat_map(said).collect();
    for result in runs.iter_mut().map(|run| &mut run.result) {
        for Absent { key, value, of_setting, method } in &absent {
            if method.as_ref().is_none_or(|method| *method == result.method) {
                let keys = if *of_setting { &mut result.setting } else { &mut result.group };
                keys.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
    }
}

/// What a run says of keys that others may lack.
fn said(run: &Run) -> Vec<Absent> {
    let result = &run.result;
    let recorded = |key: &&String| result.setting.contains_key(*key) || result.group.contains_key(*key);
    let one = |key: &String| Absent {
        key: key.clone(),
        value: result.absent[key].clone(),
        of_setting: result.setting.contains_key(key),
        method: key.contains('.').then(|| result.method.clone()),
    };
    result.absent.keys().filter(recorded).map(one).collect()
}
