//! Checkpoints on a small learner: what goes in comes out, and no accident goes unnoticed.

use std::io;

use proptest::prelude::*;
use safetensors::SafeTensors;

use super::*;
use crate::{Image, Label};

const SHAPE: Shape = Shape { channels: 3, height: 8, width: 8 };

fn learner() -> Learner {
    let text = "method = 'dpcl'\nmodel = 'slim'\nwidth = 2\nmemory = 6\nupdates = 1.0\nbatch = 4";
    let mut learner = Learner::new(&Config::from_toml(text).unwrap(), SHAPE).unwrap();
    for number in 0..7_u8 {
        learner.observe(&image(number * 30), i32::from(number % 3)).unwrap();
    }
    learner
}

fn image(grey: u8) -> Image {
    Image { height: 8, width: 8, pixels: vec![grey; 8 * 8 * 3].into() }
}

fn bytes() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut checkpoint = Checkpoint::of(&learner());
    checkpoint.classes = vec!["otter".into(), "seal".into()];
    checkpoint.run = Some(serde_json::json!({ "task": 1 }));
    checkpoint.write_to(&mut bytes).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> Result<Checkpoint> {
    Checkpoint::from_bytes(bytes, Path::new("some.ckpt"))
}

fn flaw(bytes: &[u8]) -> Flaw {
    match read(bytes) {
        Err(Error::BadCheckpoint { flaw, .. }) => flaw,
        other => panic!("taken as {other:?}"),
    }
}

#[test]
fn what_goes_in_comes_out_and_goes_on() {
    let mut original = learner();
    let checkpoint = read(&bytes()).unwrap();
    assert!(checkpoint.state == original.state());
    assert_eq!(checkpoint.run, Some(serde_json::json!({ "task": 1 })));
    assert_eq!(checkpoint.class_name(&Label::Number(1)), "seal");
    assert_eq!(checkpoint.class_name(&Label::Number(7)), "7");
    let mut restored = checkpoint.learner().unwrap();
    for grey in 0..9 {
        original.observe(&image(grey), "new").unwrap();
        restored.observe(&image(grey), "new").unwrap();
    }
    assert!(original.state() == restored.state());
}

#[test]
fn anybody_can_read_the_arrays() {
    let bytes = bytes();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let weight = file.tensor("core.model.encoder.stem.conv.weight").unwrap();
    assert_eq!(weight.shape(), [2, 3, 3, 3]);
    assert_eq!(file.tensor("method.memory.images").unwrap().shape()[1..], [8, 8, 3]);
    let floats = file.tensors().into_iter().filter(|(_, view)| view.dtype() == safetensors::Dtype::F32);
    for (name, view) in floats {
        assert_eq!((view.data().as_ptr() as usize - bytes.as_ptr() as usize) % 4, 0, "{name} is not aligned");
    }
}

#[test]
fn saving_replaces_a_file_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("otter.ckpt");
    std::fs::write(&path, "something older").unwrap();
    let learner = learner();
    learner.save(&path).unwrap();
    assert!(Learner::load(&path).unwrap().state() == learner.state());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing half-written is left");
}

/// Takes that many bytes and then says that the disk is full.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported_wherever_it_fills_up() {
    let checkpoint = Checkpoint::of(&learner());
    let length = bytes().len();
    for room in (0..length - 200).step_by(length / 50) {
        let error = checkpoint.write_to(&mut Full(room)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{room}");
    }
}

#[test]
fn a_write_that_fails_leaves_the_earlier_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("otter.ckpt");
    std::fs::write(&path, "the earlier one").unwrap();
    let checkpoint = Checkpoint::of(&learner());
    let failed = disk::write_through(&path, &mut |file| {
        file.write_all(b"half")?;
        checkpoint.write_to(&mut Full(1000)).map(|_| ())
    });
    assert!(matches!(failed, Err(Error::Io { path: named, .. }) if named == path));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "the earlier one");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn every_truncation_is_refused() {
    let bytes = bytes();
    let step = (bytes.len() / 997).max(1);
    let ends = (0..64).chain((64..bytes.len() - 64).step_by(step)).chain(bytes.len() - 64..bytes.len());
    for end in ends {
        flaw(&bytes[..end]);
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(matches!(flaw(&longer), Flaw::Damaged(_)));
}

#[test]
fn a_flipped_bit_in_any_byte_of_header_and_checksum_is_refused() {
    let mut bytes = bytes();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let length = bytes.len();
    let mut flip = |position: usize, bit: usize| {
        bytes[position] ^= 1 << bit;
        flaw(&bytes);
        bytes[position] ^= 1 << bit;
    };
    (0..header).step_by(7).for_each(|position| flip(position, position % 8));
    (length - 32..length).for_each(|position| (0..8).for_each(|bit| flip(position, bit)));
    read(&bytes).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_change_anywhere_is_refused(places in prop::collection::vec((any::<prop::sample::Index>(), 1_u8..), 1..4)) {
        static WHOLE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        let whole = WHOLE.get_or_init(bytes);
        let mut changed = whole.clone();
        for (place, change) in places {
            changed[place.index(whole.len())] ^= change;
        }
        prop_assume!(changed != *whole);
        flaw(&changed);
    }
}

/// Replaces text in the header and makes the checksums right again, as only somebody who knows them would.
fn forged(from: &str, to: &str) -> Vec<u8> {
    use md5::{Digest, Md5};
    let bytes = bytes();
    let header_length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header = String::from_utf8(bytes[8..8 + header_length].to_vec()).unwrap();
    assert!(header.contains(from), "{from} is not in {header}");
    let header = header.replacen(from, to, 1);
    let mut forged = (header.len() as u64).to_le_bytes().to_vec();
    forged.extend_from_slice(header.as_bytes());
    let head = Md5::digest(&forged);
    forged.extend_from_slice(&bytes[8 + header_length..bytes.len() - 32]);
    let whole = Md5::digest(&forged);
    [&forged[..], &head, &whole].concat()
}

#[test]
fn newer_foreign_and_short_files_are_told_apart() {
    assert_eq!(flaw(&forged(r#""version":"1""#, r#""version":"2""#)), Flaw::Newer { found: 2 });
    assert!(matches!(flaw(&forged("dpcl-checkpoint", "another format!")), Flaw::SomethingElse(_)));
    assert!(matches!(flaw(b"short"), Flaw::SomethingElse(_)));
    assert!(matches!(flaw(&[b'{'; 4000]), Flaw::SomethingElse(_)));
    let Flaw::Damaged(where_) = flaw(&bytes()[..5000]) else { panic!("it was one once") };
    assert!(where_.contains("bytes"), "{where_}");
    let mut flipped = bytes();
    let place = flipped.len() - 1000;
    flipped[place] ^= 1;
    let Flaw::Damaged(where_) = flaw(&flipped) else { panic!("it was one once") };
    assert!(where_.contains("do not match their checksum"), "{where_}");
}

#[test]
fn forged_numbers_make_errors_not_learners() {
    for (from, to) in [
        (r#"core.model.heads.classes\":3"#, r#"core.model.heads.classes\":4000000000000000"#),
        (r#"core.model.heads.classes\":3"#, r#"core.model.heads.classes\":2"#),
        (r"\nwidth = 2", r"\nwidth = 2000000"),
        (r#"method.memory.classes\":["#, r#"method.memory.classes\":[99,"#),
        (r#"\"height\":8"#, r#"\"height\":16"#),
        (r#"labels\":[0"#, r#"labels\":[1"#),
    ] {
        let read = read(&forged(from, to));
        assert!(read.and_then(|checkpoint| checkpoint.learner()).is_err(), "{from} → {to}");
    }
    for (from, to) in
        [("[2,3,3,3]", "[2,3,3,4]"), ("[2,3,3,3]", "[0,9223372036854775807,9,3]"), ("F32", "F64")]
    {
        flaw(&forged(from, to));
    }
}

#[test]
fn class_numbers_can_be_called_by_their_names() {
    let named = read(&bytes()).unwrap().with_names().unwrap();
    assert!(named.classes.is_empty());
    let labels = named.learner().unwrap().labels().to_vec();
    assert_eq!(labels, ["otter", "seal", "2"].map(Label::from));
}
