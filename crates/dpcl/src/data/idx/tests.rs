//! IDX files, good and bad.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;

use super::*;

fn file(magic: u32, extents: &[u32], body: &[u8]) -> Vec<u8> {
    let mut bytes = magic.to_be_bytes().to_vec();
    for extent in extents {
        bytes.extend(extent.to_be_bytes());
    }
    bytes.extend(body);
    bytes
}

/// Two training images (all 0, all 255) and one test image.
fn good() -> [Vec<u8>; 4] {
    let train = [[0_u8; 784], [255; 784]].concat();
    [
        file(IMAGES_MAGIC, &[2, 28, 28], &train),
        file(LABELS_MAGIC, &[2], &[9, 0]),
        file(IMAGES_MAGIC, &[1, 28, 28], &[7; 784]),
        file(LABELS_MAGIC, &[1], &[3]),
    ]
}

fn read(files: &[Vec<u8>; 4]) -> Result<Dataset> {
    read_set("mnist", &MNIST.classes, &|name| {
        let position = FILES.iter().position(|file| *file == name).unwrap();
        Ok(Input { path: name.into(), reader: Box::new(&files[position][..]) })
    })
}

fn problem(change: impl FnOnce(&mut [Vec<u8>; 4])) -> String {
    let mut files = good();
    change(&mut files);
    match read(&files) {
        Err(error @ Error::BadData { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn images_are_padded_and_measured_with_their_border() {
    let set = read(&good()).unwrap();
    assert_eq!(set.train.labels, [9, 0]);
    assert_eq!(set.test.labels, [3]);
    let image = set.test.images.image(0).unwrap();
    assert_eq!((image.height, image.width), (32, 32));
    let row = |row: usize| image.pixels[row * 96..(row + 1) * 96].to_vec();
    assert_eq!(row(1), [0; 96]);
    assert_eq!(row(2), [vec![0; 6], vec![7; 84], vec![0; 6]].concat());
    assert_eq!(row(30), [0; 96]);
    // One of the two images is white on 784 of 1,024 pixels: mean 0.3828125, variance p (1 - p).
    assert!(set.mean.iter().all(|mean| (mean - 0.382_812_5).abs() < 1e-6), "{:?}", set.mean);
    assert!(set.std.iter().all(|std| (std - 0.486_073_24).abs() < 1e-6), "{:?}", set.std);
    assert_eq!(set.policy, Policy::None);
}

#[test]
fn plain_and_compressed_files_open_from_folder_and_parent() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("fashion-mnist");
    std::fs::create_dir(&folder).unwrap();
    for (at, (name, bytes)) in FILES.iter().zip(good()).enumerate() {
        if at % 2 == 0 {
            std::fs::write(folder.join(name), bytes).unwrap();
        } else {
            let file = File::create(folder.join(format!("{name}.gz"))).unwrap();
            let mut encoder = GzEncoder::new(file, Compression::best());
            encoder.write_all(&bytes).unwrap();
            encoder.finish().unwrap();
        }
    }
    for directory in [root.path(), &folder] {
        let set = open(&FASHION, directory).unwrap();
        assert_eq!(set.name, "fashion-mnist");
        assert_eq!(set.classes[set.train.labels[0]], "ankle-boot");
    }
    let error = open(&MNIST, &folder).unwrap_err();
    assert!(matches!(error, Error::NoData { .. }), "its sister's folder is not MNIST: {error:?}");

    std::fs::remove_file(folder.join(FILES[2])).unwrap();
    let error = open(&FASHION, &folder).unwrap_err();
    assert!(
        error.to_string().ends_with("has no t10k-images-idx3-ubyte or t10k-images-idx3-ubyte.gz"),
        "{error}"
    );
    let compressed = folder.join(format!("{}.gz", FILES[3]));
    let whole = std::fs::read(&compressed).unwrap();
    std::fs::write(&compressed, &whole[..whole.len() - 4]).unwrap();
    std::fs::write(folder.join(FILES[2]), &good()[2]).unwrap();
    let error = open(&FASHION, &folder).unwrap_err();
    assert!(error.to_string().contains("t10k-labels-idx1-ubyte.gz: is damaged or incomplete"), "{error}");
}

#[test]
fn wrong_headers_are_named() {
    assert_eq!(
        problem(|files| files.swap(0, 1)),
        "train-images-idx3-ubyte: is no IDX file of images (begins with 0x00000801, not 0x00000803)"
    );
    assert_eq!(problem(|files| files[1][7] = 0), "train-labels-idx1-ubyte: holds no labels");
    assert_eq!(
        problem(|files| files[0][4] = 255),
        "train-images-idx3-ubyte: says it holds 4278190082 images; at most 1000000 will do"
    );
    assert_eq!(
        problem(|files| files[0][8] = 128),
        "train-images-idx3-ubyte: says its images are 2147483676×28; at most 32×32 will do"
    );
    assert_eq!(
        problem(|files| files[0][15] = 0),
        "train-images-idx3-ubyte: says its images are 28×0; at most 32×32 will do"
    );
    assert!(problem(|files| files[0].truncate(9)).contains("is damaged or incomplete"));
}

#[test]
fn wrong_lengths_and_labels_are_named() {
    let short = problem(|files| files[0].truncate(1000));
    assert_eq!(short, "train-images-idx3-ubyte: ends after 984 of 1568 data bytes");
    let long = problem(|files| files[2].push(0));
    assert_eq!(long, "t10k-images-idx3-ubyte: goes on after the 784 data bytes its header announces");
    let announced = problem(|files| files[2][6] = 15);
    assert_eq!(announced, "t10k-images-idx3-ubyte: ends after 784 of 3011344 data bytes");
    let count = problem(|files| files[1] = file(LABELS_MAGIC, &[3], &[0, 0, 0]));
    assert_eq!(count, "train-labels-idx1-ubyte: has 3 labels, but train-images-idx3-ubyte has 2 images");
    let label = problem(|files| files[3][8] = 10);
    assert_eq!(label, "t10k-labels-idx1-ubyte: image 0 has label 10, but there are only 10");
}

proptest! {
    #[test]
    fn any_bytes_give_a_set_or_an_error(
        which in 0_usize..4,
        position in 0_usize..40,
        bytes in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut files = good();
        let position = position.min(files[which].len());
        let end = (position + bytes.len()).min(files[which].len());
        files[which].splice(position..end, bytes);
        if let Ok(set) = read(&files) {
            prop_assert!(set.train.labels.iter().chain(&set.test.labels).all(|&label| label < 10));
        }
    }
}
