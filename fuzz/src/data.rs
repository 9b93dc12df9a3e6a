//! Data sets, images, configurations and checkpoints.

use std::{cell::OnceCell, fs, io::Write as _, path::{Path, PathBuf}};

use dpcl::{Checkpoint, Config, Learner, Shape, data, stream};
use flate2::{Compression, write::GzEncoder};
use md5::{Digest, Md5};

/// The thread's folder for one reader, made by `fill` when it is first asked for.
macro_rules! place {
    ($fill:expr) => {{
        thread_local! {
            static FOLDER: OnceCell<PathBuf> = const { OnceCell::new() };
        }
        FOLDER.with(|folder| {
            folder
                .get_or_init(|| {
                    let folder = crate::folder();
                    let fill: fn(&Path) = $fill;
                    fill(&folder);
                    folder
                })
                .clone()
        })
    }};
}

fn put(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("there is room");
}

/// A configuration; what is accepted reads the same when it was written.
pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(checked) = Config::from_toml(text).and_then(|config| config.check()) {
        let again = Config::from_toml(&checked.to_toml()).and_then(|config| config.check());
        assert!(again.is_ok_and(|again| again.to_table() == checked.to_table()), "{text}");
    }
}

/// Writes the digests of header and whole where a checkpoint has them.
fn seal(bytes: &mut [u8]) -> Option<()> {
    let end = bytes.len().checked_sub(32)?;
    let header = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
    let start = usize::try_from(header).ok()?.checked_add(8).filter(|&start| start <= end)?;
    for (place, covered) in [(end, start), (end + 16, end)] {
        let digest = Md5::digest(&bytes[..covered]);
        bytes[place..place + 16].copy_from_slice(&digest);
    }
    Some(())
}

/// A checkpoint, checksums put right, and the learner in it.
pub fn checkpoint(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    let _ = seal(&mut bytes);
    let bytes = &bytes;
    if let Ok(checkpoint) = Checkpoint::from_bytes(bytes, Path::new("some.ckpt")) {
        let _ = checkpoint.learner();
    }
}

/// The values of a small learner's checkpoint: counters, labels, generators, histories.
pub fn values(bytes: &[u8]) {
    thread_local! {
        static WHOLE: OnceCell<Checkpoint> = const { OnceCell::new() };
    }
    let Ok(values) = serde_json::from_slice(bytes) else { return };
    WHOLE.with(|whole| {
        let whole = whole.get_or_init(|| {
            let text = "method = 'dpcl'\nmodel = 'slim'\nwidth = 1\nmemory = 4\nupdates = 1.0\nbatch = 4\nthreads = 1";
            let shape = Shape { channels: 3, height: 8, width: 8 };
            let config = Config::from_toml(text).expect("it is a configuration");
            let mut learner = Learner::new(&config, shape).expect("it can be run");
            for number in 0..7_u8 {
                let image = dpcl::Image { height: 8, width: 8, pixels: vec![number * 30; 192].into() };
                learner.observe(&image, i64::from(number / 2)).expect("it learns");
            }
            Checkpoint::of(&learner)
        });
        let mut altered = whole.clone();
        altered.state.values = values;
        let _ = altered.learner();
    });
}

/// Encoder weights to start from.
pub fn weights(bytes: &[u8]) {
    let path = place!(|_| {}).join("weights.safetensors");
    put(&path, bytes);
    let mut config = Config::from_toml("model = 'slim'\nwidth = 1\nmemory = 4\nbatch = 4\nthreads = 1").expect("it is one");
    config.settings.weights = Some(path);
    let _ = Learner::new(&config, Shape { channels: 3, height: 8, width: 8 });
}

/// An image file of any kind.
pub fn image(bytes: &[u8]) {
    let path = place!(|_| {}).join("image.png");
    put(&path, bytes);
    let _ = data::read_image(&path, 16);
}

/// CIFAR-10's records, with a good test file beside them.
pub fn cifar(bytes: &[u8]) {
    let folder = place!(|folder| put(&folder.join("test_batch.bin"), &[0; 3073]));
    put(&folder.join("data_batch_1.bin"), bytes);
    let _ = data::open("cifar10", Some(&folder), None);
}

/// CIFAR's archive as it comes.
pub fn archive(bytes: &[u8]) {
    let path = place!(|_| {}).join("cifar-100-binary.tar.gz");
    put(&path, bytes);
    let _ = data::open("cifar100", Some(&path), None);
}

/// The same, packed here: what is inside is the fuzzer's.
pub fn tar(bytes: &[u8]) {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    encoder.write_all(bytes).expect("memory takes it");
    archive(&encoder.finish().expect("memory takes it"));
}

fn idx(folder: &Path) {
    for half in ["train", "t10k"] {
        let images = [&[0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 28, 0, 0, 0, 28][..], &[7; 784]].concat();
        put(&folder.join(format!("{half}-images-idx3-ubyte")), &images);
        put(&folder.join(format!("{half}-labels-idx1-ubyte")), &[0, 0, 8, 1, 0, 0, 0, 1, 3]);
    }
}

/// MNIST's images.
pub fn idx_images(bytes: &[u8]) {
    let folder = place!(idx);
    put(&folder.join("train-images-idx3-ubyte"), bytes);
    let _ = data::open("mnist", Some(&folder), None);
}

/// MNIST's labels.
pub fn idx_labels(bytes: &[u8]) {
    let folder = place!(idx);
    put(&folder.join("train-labels-idx1-ubyte"), bytes);
    let _ = data::open("mnist", Some(&folder), None);
}

/// A published split of a stream.
pub fn split(bytes: &[u8]) {
    let folder = place!(|folder| {
        let records: Vec<u8> = (0..10).flat_map(|label| [vec![label], vec![0; 3072]].concat()).collect();
        put(&folder.join("data_batch_1.bin"), &records);
        put(&folder.join("test_batch.bin"), &records);
    });
    let set = data::open("cifar10", Some(&folder), None).expect("it is whole");
    let settings =
        stream::StreamSettings { tasks: 1, split: Some(folder.clone()), ..stream::StreamSettings::default() };
    put(&folder.join(stream::task_file_name(&set.name, &settings, 1, 0)), bytes);
    if let Ok(parts) = stream::cut(&set.train.labels, set.classes.len(), &settings) {
        let _ = stream::schedule(&set, &parts, &settings, 1);
    }
}
