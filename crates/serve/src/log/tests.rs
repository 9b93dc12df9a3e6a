//! The log on a real disk: what was appended is found again, what was torn is cut off, damage is refused.

use super::*;
use crate::keys::Kept;

const SIDE: usize = 8;

fn entry(first: u64, count: u8) -> Entry {
    let image = |grey| Image { height: SIDE, width: SIDE, pixels: vec![grey; SIDE * SIDE * 3].into() };
    let samples = (0..count).map(|grey| (format!("class {grey}"), image(grey))).collect();
    Entry { first, key: Some(Key::of(&first.to_string(), [])), samples }
}

fn open(folder: &Path) -> Log {
    Log::open(folder, SIDE, &Scan::of(folder, SIDE).unwrap(), 1).unwrap()
}

fn replayed(folder: &Path, after: u64) -> Vec<u64> {
    let until = Scan::of(folder, SIDE).unwrap().next.unwrap() - 1;
    let mut replay = Replay::new(folder, SIDE, after, until).unwrap();
    let mut numbers = Vec::new();
    while let Some(entry) = replay.next().unwrap() {
        numbers.extend(entry.first..=entry.last());
    }
    numbers
}

fn segment(folder: &Path, position: usize) -> PathBuf {
    segments::list(&folder.join(FOLDER)).unwrap()[position].1.clone()
}

#[test]
fn what_was_appended_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).append(&[entry(1, 2), entry(3, 1)]).unwrap();
    let mut log = open(folder.path());
    assert_eq!(log.next(), 4);
    log.append(&[entry(4, 3)]).unwrap();
    assert_eq!(replayed(folder.path(), 0), [1, 2, 3, 4, 5, 6]);
    assert_eq!(replayed(folder.path(), 1), [2, 3, 4, 5, 6], "the middle of a request");
    assert_eq!(replayed(folder.path(), 6), [0u64; 0]);
}

#[test]
fn a_torn_end_is_cut_off_wherever_it_was_torn() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).append(&[entry(1, 1)]).unwrap();
    let path = segment(folder.path(), 0);
    let whole = std::fs::read(&path).unwrap();
    open(folder.path()).append(&[entry(2, 2)]).unwrap();
    let longer = std::fs::read(&path).unwrap();
    for end in whole.len()..longer.len() {
        std::fs::write(&path, &longer[..end]).unwrap();
        let scan = Scan::of(folder.path(), SIDE).unwrap();
        assert_eq!((scan.next, scan.torn), (Some(2), (end - whole.len()) as u64), "cut at {end}");
        if end % 97 == 0 {
            let mut log = Log::open(folder.path(), SIDE, &scan, 1).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), whole);
            log.append(&[entry(2, 2)]).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), longer);
        }
    }
}

#[test]
fn damage_before_the_end_and_missing_segments_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(folder.path());
    for first in 1..4 {
        log.append(&[entry(first, 1)]).unwrap();
        log.turn_over(&Keys::default()).unwrap();
    }
    let path = segment(folder.path(), 1);
    let good = std::fs::read(&path).unwrap();
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 1;
    std::fs::write(&path, bad).unwrap();
    let refused = || Scan::of(folder.path(), SIDE).err().unwrap().to_string();
    assert!(refused().contains("does not match its checksum"), "{}", refused());
    std::fs::remove_file(&path).unwrap();
    assert!(refused().contains("a segment before it is missing"), "{}", refused());
    std::fs::write(&path, good).unwrap();
    assert_eq!(replayed(folder.path(), 0), [1, 2, 3]);
    assert!(Scan::of(folder.path(), SIDE + 1).err().unwrap().to_string().contains("another segment"));
}

#[test]
fn what_checkpoints_have_learned_is_removed_and_keys_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, mut keys) = (open(folder.path()), Keys::default());
    for first in 1..=6 {
        let entry = entry(first, 1);
        log.append(std::slice::from_ref(&entry)).unwrap();
        keys.remember(Kept { key: entry.key.unwrap(), samples: 1 });
        if first % 2 == 0 {
            log.turn_over(&keys).unwrap();
        }
    }
    let bytes = log.bytes();
    log.compact(3, &keys).unwrap();
    assert_eq!(replayed(folder.path(), 3), [4, 5, 6], "samples 3 and 4 share a segment");
    assert_eq!(Scan::first(folder.path()).unwrap(), Some(3));
    log.compact(6, &keys).unwrap();
    assert!(log.bytes() < bytes);
    let scan = Scan::of(folder.path(), SIDE).unwrap();
    assert_eq!((scan.next, scan.keys.iter().len()), (Some(7), 6));
}
