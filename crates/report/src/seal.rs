//! A checksum over a finished record, kept in its result: damage that still reads well is found by it.
//!
//! It covers `config.toml`, `events.jsonl` and `result.json` itself, the last with zeros in the checksum's place. Any
//! single changed bit changes it. It finds accidents, not forgeries.

use crate::record::RunResult;

/// Stands in the result's text where the checksum will be.
const BLANK: &str = "0000000000000000";

/// The text of a result file, with the checksum of the whole record in it.
pub fn sealed(result: &RunResult, config: &[u8], events: &[u8]) -> String {
    let blank = RunResult { checksum: BLANK.to_owned(), ..result.clone() };
    let text = serde_json::to_string_pretty(&blank).expect("a result is plain data with string keys");
    let checksum = checksum([config, events, text.as_bytes()]);
    replace(&text, BLANK, &checksum)
}

/// Whether the files are what they were when the checksum was made. A result without one tells nothing.
pub fn is_whole(result: &RunResult, text: &[u8], config: &[u8], events: &[u8]) -> bool {
    let found = &result.checksum;
    if found.is_empty() {
        return true;
    }
    let text = replace(&String::from_utf8_lossy(text), found, BLANK);
    checksum([config, events, text.as_bytes()]) == *found
}

/// The last place, because it is the last key.
fn replace(text: &str, old: &str, new: &str) -> String {
    match text.rsplit_once(&format!("\"{old}\"")) {
        Some((before, after)) => format!("{before}\"{new}\"{after}"),
        None => text.to_owned(),
    }
}

/// FNV-1a over the parts and their lengths: each step is one to one, so that no single change is lost on the way.
fn checksum(parts: [&[u8]; 3]) -> String {
    let lengths = parts.map(|part| (part.len() as u64).to_le_bytes());
    let bytes = lengths.iter().flatten().chain(parts.into_iter().flatten());
    let sum = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{sum:016x}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::record::{BadImages, FORMAT, Metrics};

    fn result() -> RunResult {
        RunResult {
            format: FORMAT,
            method: "er".into(),
            label: BLANK.into(),
            dataset: "toy".into(),
            scenario: "disjoint".into(),
            model: "slim".into(),
            seed: 1,
            metrics: Metrics::default(),
            updates: 3,
            samples: 1,
            bad_images: BadImages::default(),
            train_seconds: 0.1,
            eval_seconds: 1e-7,
            multiply_adds: None,
            peak_memory_bytes: 5,
            isa: "portable".into(),
            threads: 1,
            knowledge: "none".into(),
            answers: "any-time".into(),
            parameters: None,
            version: "0.1.0".into(),
            setting: BTreeMap::from([("tasks".into(), "5".into())]),
            group: BTreeMap::from([("lr".into(), BLANK.into())]),
            absent: BTreeMap::new(),
            remarks: Vec::new(),
            checksum: String::new(),
        }
    }

    #[test]
    fn every_changed_bit_that_still_reads_is_found() {
        let (config, events) = (b"seed = 1\n", b"{\"event\":\"start\"}\n");
        let text = sealed(&result(), config, events);
        let read: RunResult = serde_json::from_str(&text).unwrap();
        assert_eq!(RunResult { checksum: String::new(), ..read.clone() }, result());
        assert!(is_whole(&read, text.as_bytes(), config, events));
        assert!(!is_whole(&read, text.as_bytes(), b"seed = 2\n", events));
        assert!(!is_whole(&read, text.as_bytes(), config, &events[1..]));
        let key = text.find("\"checksum\"").unwrap();
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut altered = text.clone().into_bytes();
                altered[at] ^= 1 << bit;
                let Ok(read) = serde_json::from_slice::<RunResult>(&altered) else { continue };
                let found = !is_whole(&read, &altered, config, events);
                // Without its key the checksum is not there, and nothing else was touched.
                assert!(found || (key..key + 10).contains(&at), "bit {bit} of byte {at}");
            }
        }
        assert!(is_whole(&result(), b"{}", config, events), "a result from before there were checksums");
    }
}
