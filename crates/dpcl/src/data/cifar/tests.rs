//! Whole copies of the CIFAR sets, good and bad.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};

use super::*;

fn record(labels: &[u8], value: u8) -> Vec<u8> {
    [labels, &[value; 3072]].concat()
}

fn write(folder: &Path, files: &[(&str, Vec<u8>)]) {
    std::fs::create_dir_all(folder).unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
}

fn archive(path: &Path, files: &[(&str, Vec<u8>)]) {
    let mut tar = Vec::new();
    for (name, bytes) in files {
        // Written by hand, because the builder itself refuses paths that lead outside.
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(bytes.len() as u64);
        header.set_entry_type(tar::EntryType::Regular);
        header.set_cksum();
        tar.extend(header.as_bytes());
        tar.extend(bytes);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.extend([0; 1024]);
    let mut encoder = GzEncoder::new(File::create(path).unwrap(), Compression::fast());
    encoder.write_all(&tar).unwrap();
    encoder.finish().unwrap();
}

fn first_pixel(split: &Split, index: usize) -> u8 {
    split.images.image(index).unwrap().pixels[0]
}

fn small_cifar100() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("train.bin", [record(&[4, 0], 11), record(&[1, 1], 12)].concat()),
        ("test.bin", record(&[1, 1], 13)),
    ]
}

#[test]
fn a_folder_its_parent_and_any_child_all_open() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("my-subset");
    write(&folder, &small_cifar100());
    for directory in [root.path(), &folder] {
        let set = open(&CIFAR100, directory).unwrap();
        assert_eq!(set.train.labels, [0, 1]);
        assert_eq!(set.test.labels, [1]);
        assert_eq!([first_pixel(&set.train, 1), first_pixel(&set.test, 0)], [12, 13]);
        assert_eq!(set.classes[..2], ["apple", "aquarium_fish"]);
        assert_eq!(set.superclasses.unwrap(), names::SUPERCLASS);
        assert_eq!((set.size, set.padding, set.policy), (32, 4, Policy::Cifar10));
        assert_eq!(set.mean, [0.5071, 0.4867, 0.4408]);
    }
}

#[test]
fn superclasses_follow_the_records_and_must_agree() {
    let root = tempfile::tempdir().unwrap();
    let mut files = small_cifar100();
    files[0].1[0] = 19;
    write(root.path(), &files);
    let set = open(&CIFAR100, root.path()).unwrap();
    assert_eq!(set.superclasses.unwrap()[..2], [19, 1]);

    files[1].1[0] = 7;
    write(root.path(), &files);
    let error = open(&CIFAR100, root.path()).unwrap_err().to_string();
    assert!(error.ends_with("fine label 1 comes with the coarse labels 1 and 7"), "{error}");
}

#[test]
fn cifar10_joins_its_training_files_in_order() {
    let root = tempfile::tempdir().unwrap();
    write(
        root.path(),
        &[
            ("data_batch_2.bin", record(&[7], 2)),
            ("data_batch_1.bin", record(&[3], 1)),
            ("test_batch.bin", record(&[9], 3)),
            ("batches.meta.txt", b"a\r\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n".to_vec()),
        ],
    );
    let set = open(&CIFAR10, root.path()).unwrap();
    assert_eq!(set.train.labels, [3, 7]);
    assert_eq!([first_pixel(&set.train, 0), first_pixel(&set.train, 1)], [1, 2]);
    assert_eq!(set.classes, ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]);
    assert!(set.superclasses.is_none());

    write(root.path(), &[("data_batch_5.bin", record(&[7], 2))]);
    let error = open(&CIFAR10, root.path()).unwrap_err();
    assert!(error.to_string().ends_with("has no data_batch_3.bin"), "{error}");
}

#[test]
fn missing_halves_and_short_name_lists_are_named() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &small_cifar100()[..1]);
    let error = open(&CIFAR100, root.path()).unwrap_err();
    assert!(error.to_string().ends_with("has no test.bin"), "{error}");
    assert_eq!(error.hint().unwrap(), "get the whole set with `dpcl data fetch cifar100`");

    write(root.path(), &small_cifar100()[1..]);
    write(root.path(), &[("fine_label_names.txt", b"apple\n".to_vec())]);
    let error = open(&CIFAR100, root.path()).unwrap_err();
    assert!(error.to_string().ends_with("fine_label_names.txt: names 1 classes, not 100"), "{error}");
}

#[test]
fn the_archive_opens_without_unpacking() {
    let root = tempfile::tempdir().unwrap();
    let [train, test] = small_cifar100().try_into().unwrap();
    let names: String = (0..100).map(|class| format!("class {class}\n")).collect();
    let path = root.path().join("cifar-100-binary.tar.gz");
    archive(
        &path,
        &[
            ("cifar-100-binary/fine_label_names.txt", names.into_bytes()),
            ("cifar-100-binary/train.bin", train.1),
            ("cifar-100-binary/file.txt~", b"ignored".to_vec()),
            ("cifar-100-binary/test.bin", test.1),
        ],
    );
    for directory in [root.path(), &path] {
        let set = open(&CIFAR100, directory).unwrap();
        assert_eq!((set.train.labels, set.test.labels), (vec![0, 1], vec![1]));
        assert_eq!(set.classes[99], "class 99");
    }
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1);
}

#[test]
fn bad_archives_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("cifar-100-binary.tar.gz");
    let mut train = small_cifar100().remove(0).1;
    for name in ["../train.bin", "/etc/train.bin", "a/../../train.bin"] {
        archive(&path, &[(name, train.clone())]);
        let error = open(&CIFAR100, &path).unwrap_err().to_string();
        assert!(error.contains("leads outside it"), "{error}");
    }

    train.pop();
    archive(&path, &[("x/train.bin", train)]);
    let error = open(&CIFAR100, &path).unwrap_err().to_string();
    assert!(error.contains("x/train.bin: 6147 bytes are not a whole number of 3074-byte"), "{error}");

    archive(&path, &[("x/readme", vec![])]);
    let error = open(&CIFAR100, &path).unwrap_err().to_string();
    assert!(error.ends_with("cifar-100-binary.tar.gz: has no train.bin"), "{error}");

    std::fs::write(&path, "this is a web page, not an archive").unwrap();
    let error = open(&CIFAR100, &path).unwrap_err();
    assert!(error.to_string().contains("is damaged or incomplete"), "{error}");
    assert!(error.hint().unwrap().contains("delete it and get it again"), "{error:?}");
}

#[test]
fn a_cut_or_altered_archive_is_refused_wherever_the_damage_is() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("cifar-100-binary.tar.gz");
    let noise = |seed: u32| {
        (0..3072_u32).map(move |at| (at.wrapping_mul(at ^ seed).wrapping_mul(2_654_435_761) >> 24) as u8)
    };
    let train = [4, 0].into_iter().chain(noise(5)).collect();
    let test = [4, 0].into_iter().chain(noise(9)).collect();
    archive(&path, &[("x/train.bin", train), ("x/test.bin", test)]);
    let whole = std::fs::read(&path).unwrap();
    open(&CIFAR100, &path).unwrap();
    for cut in (1..whole.len()).step_by(97).chain(whole.len() - 9..whole.len()) {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let error = open(&CIFAR100, &path).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::BadData { .. }), "cut at {cut}: {error:?}");
    }
    let mut altered = whole.clone();
    altered[whole.len() - 8] ^= 1;
    std::fs::write(&path, altered).unwrap();
    assert!(matches!(open(&CIFAR100, &path), Err(Error::BadData { .. })));
}
