//! Data sets in binary files: CIFAR records and names, IDX images and labels, plain and compressed.

use std::{fs, io::Write as _, path::Path};

use dpcl::data::{self, Dataset};
use flate2::{Compression, write::GzEncoder};

use super::Target;

/// Opens the set in `folder` with one of its files replaced.
fn read_file(name: &'static str, folder: &Path, file: &'static str) -> impl FnMut(&[u8]) -> bool {
    let folder = folder.to_owned();
    move |bytes| {
        fs::write(folder.join(file), bytes).unwrap();
        data::open(name, Some(&folder), None).is_ok_and(|set| whole(&set))
    }
}

/// Every promise of a data set: labels name classes, and each has its image.
fn whole(set: &Dataset) -> bool {
    for split in [&set.train, &set.test] {
        assert!(split.labels.iter().all(|&label| label < set.classes.len()));
        for position in [0, split.labels.len() - 1] {
            let image = split.images.image(position).unwrap();
            assert_eq!(image.pixels.len(), set.size * set.size * 3);
        }
    }
    true
}

#[test]
fn cifar_records_and_names() {
    let root = tempfile::tempdir().unwrap();
    let record = |label: u8| [vec![label], vec![label * 20; 3072]].concat();
    let records: Vec<u8> = (0..3).flat_map(record).collect();
    fs::write(root.path().join("data_batch_1.bin"), &records).unwrap();
    fs::write(root.path().join("test_batch.bin"), &records).unwrap();
    let names = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n";
    Target::new("cifar-names", vec![names.into(), b"a\r\n".repeat(10)]).run(read_file(
        "cifar10",
        root.path(),
        "batches.meta.txt",
    ));
    fs::remove_file(root.path().join("batches.meta.txt")).unwrap();
    Target::new("cifar", vec![records.clone(), record(9)]).run(read_file(
        "cifar10",
        root.path(),
        "data_batch_1.bin",
    ));

    let root = tempfile::tempdir().unwrap();
    let fine = [vec![4, 0], vec![1; 3072], vec![1, 1], vec![2; 3072]].concat();
    fs::write(root.path().join("test.bin"), &fine).unwrap();
    Target::new("cifar100", vec![fine]).run(read_file("cifar100", root.path(), "train.bin"));
}

fn idx(magic: u32, extents: &[u32], body: &[u8]) -> Vec<u8> {
    let header = std::iter::once(&magic).chain(extents).flat_map(|word| word.to_be_bytes());
    header.chain(body.iter().copied()).collect()
}

#[test]
fn idx_files() {
    let images = idx(0x0803, &[2, 28, 28], &[7; 2 * 784]);
    let small = idx(0x0803, &[2, 3, 5], &[7; 30]);
    let labels = idx(0x0801, &[2], &[9, 0]);
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("mnist");
    fs::create_dir(&folder).unwrap();
    for half in ["train", "t10k"] {
        fs::write(folder.join(format!("{half}-images-idx3-ubyte")), &images).unwrap();
        fs::write(folder.join(format!("{half}-labels-idx1-ubyte")), &labels).unwrap();
    }
    Target::new("idx-images", vec![images.clone(), small]).run(read_file(
        "mnist",
        &folder,
        "train-images-idx3-ubyte",
    ));
    fs::write(folder.join("train-images-idx3-ubyte"), &images).unwrap();
    Target::new("idx-labels", vec![labels.clone()]).run(read_file(
        "mnist",
        &folder,
        "train-labels-idx1-ubyte",
    ));

    fs::remove_file(folder.join("train-labels-idx1-ubyte")).unwrap();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&labels).unwrap();
    Target::new("idx-gz", vec![encoder.finish().unwrap()]).run(read_file(
        "mnist",
        &folder,
        "train-labels-idx1-ubyte.gz",
    ));
}
