//! CIFAR's archives: packed, unpacked and packed again, with entries that lead elsewhere.

use std::{collections::BTreeMap, fs, io::Write as _, path::Path};

use dpcl::data;
use flate2::{Compression, write::GzEncoder};
use tar::EntryType;

use super::{MIB, Target, measured, seal};

fn record(labels: &[u8], value: u8) -> Vec<u8> {
    [labels, &[value; 3072]].concat()
}

/// An entry written by hand, because the builder refuses names and links that lead outside.
fn entry(kind: EntryType, name: &str, link: &str, bytes: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link.as_bytes());
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_entry_type(kind);
    header.set_cksum();
    let mut entry = header.as_bytes().to_vec();
    entry.extend(bytes);
    entry.resize(entry.len().next_multiple_of(512), 0);
    entry
}

fn archive(first: &[Vec<u8>]) -> Vec<u8> {
    let train = [record(&[4, 0], 11), record(&[1, 1], 12)].concat();
    let mut tar = first.concat();
    tar.extend(entry(EntryType::Regular, "cifar-100-binary/train.bin", "", &train));
    tar.extend(entry(EntryType::Regular, "cifar-100-binary/test.bin", "", &record(&[1, 1], 13)));
    tar.extend([0; 1024]);
    tar
}

fn seeds() -> Vec<Vec<u8>> {
    let train = record(&[4, 0], 1);
    let regular = |name: &str| entry(EntryType::Regular, name, "", &train);
    let link = |kind, name: &str, target: &str| entry(kind, name, target, &[]);
    let pax = b"32 path=../../outside/train.bin\n";
    vec![
        archive(&[]),
        archive(&[regular("../train.bin")]),
        archive(&[regular("/tmp/dpcl-fuzz-outside/train.bin")]),
        archive(&[regular("x/../../../train.bin")]),
        archive(&[link(EntryType::Symlink, "x/train.bin", "/etc/passwd")]),
        archive(&[link(EntryType::Symlink, "x", "../outside"), regular("x/train.bin")]),
        archive(&[link(EntryType::Link, "x/train.bin", "../outside/canary")]),
        archive(&[entry(EntryType::GNULongName, "././@LongLink", "", &[b'a'; 700]), regular("short")]),
        archive(&[entry(EntryType::XHeader, "pax", "", pax), regular("x/train.bin")]),
        archive(&[link(EntryType::Fifo, "x/test.bin", ""), link(EntryType::Char, "x/train.bin", "")]),
        archive(&[link(EntryType::Directory, "cifar-100-binary/", "")]),
        archive(&[entry(EntryType::GNUSparse, "x/train.bin", "", &train)]),
    ]
}

fn packed(tar: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(tar).unwrap();
    encoder.finish().unwrap()
}

/// Everything below a folder with its content.
fn tree(folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            tree(&path, found);
        } else {
            found.insert(path.display().to_string(), fs::read(&path).unwrap());
        }
    }
}

fn everything(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    tree(folder, &mut found);
    found
}

/// Opens archives and makes sure that nothing around them changes.
fn read(pack: fn(&[u8]) -> Vec<u8>) -> impl FnMut(&[u8]) -> bool {
    let root = tempfile::tempdir().unwrap();
    let inside = root.path().join("a/inside");
    fs::create_dir_all(&inside).unwrap();
    fs::create_dir_all(root.path().join("a/outside")).unwrap();
    fs::write(root.path().join("a/outside/canary"), "untouched").unwrap();
    let path = inside.join("cifar-100-binary.tar.gz");
    move |bytes| {
        fs::write(&path, pack(bytes)).unwrap();
        let before = everything(root.path());
        let opened = data::open("cifar100", Some(&path), None);
        assert!(everything(root.path()) == before, "an archive wrote files");
        assert!(!Path::new("/tmp/dpcl-fuzz-outside").exists(), "an archive wrote to where it said");
        opened.is_ok_and(|set| {
            let last = set.train.labels.len() - 1;
            set.train.images.image(last).is_ok() && set.train.labels.iter().all(|&label| label < 100)
        })
    }
}

#[test]
fn tar_archives() {
    // What goes in is packed first: a stream of zeros packs a thousandfold, and the 2 MiB buffers come on top.
    let target = Target { seal: Some(seal::tar), memory: 96 * MIB, ..Target::new("tar", seeds()) };
    target.run(read(packed));
}

#[test]
fn compressed_archives() {
    let seeds = seeds().iter().map(|tar| packed(tar)).collect();
    Target::new("tar-gz", seeds).run(read(<[u8]>::to_vec));
}

#[test]
fn entries_that_lead_elsewhere_are_refused_or_passed_over() {
    let mut open = read(packed);
    let taken: Vec<bool> = seeds().iter().map(|seed| open(seed)).collect();
    // Names that lead outside are refused; links, devices and foreign names are not what is looked for.
    let expected = [true, false, false, false, true, true, true, true, false, true, true];
    assert_eq!(taken[..11], expected);
}

#[test]
fn a_small_archive_that_unpacks_to_gigabytes_takes_no_more_than_any_archive_may() {
    const LONG: usize = 900 * MIB;
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("cifar-100-binary.tar.gz");
    for (kind, name) in [
        (EntryType::GNULongName, "././@LongLink"),
        (EntryType::GNULongLink, "././@LongLink"),
        (EntryType::XHeader, "pax"),
        (EntryType::XGlobalHeader, "pax"),
        (EntryType::Regular, "cifar-100-binary/train.bin"),
        (EntryType::Regular, "cifar-100-binary/fine_label_names.txt"),
        (EntryType::Regular, "something else"),
    ] {
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(LONG as u64);
        header.set_mode(0o644);
        header.set_entry_type(kind);
        header.set_cksum();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(header.as_bytes()).unwrap();
        let letters = vec![if kind == EntryType::Regular { 0 } else { b'a' }; MIB];
        (0..LONG / MIB).for_each(|_| encoder.write_all(&letters).unwrap());
        let packed = encoder.finish().unwrap();
        fs::write(&path, &packed).unwrap();
        let (used, opened) = measured(|| data::open("cifar100", Some(&path), None).map(|_| ()));
        assert!(used <= (96 * MIB).max(64 * packed.len()), "{name}: {used} bytes for {}", packed.len());
        let error = opened.unwrap_err();
        assert!(error.to_string().contains("damaged or incomplete"), "{name}: {error}");
    }
}
