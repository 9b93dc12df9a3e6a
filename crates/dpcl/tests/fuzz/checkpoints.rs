//! Checkpoints and weight files: read, made into a learner, asked and taught.

use std::{fs, path::Path};

use dpcl::{Config, Image, Learner, Shape, checkpoint::Checkpoint, methods::METHODS};

use super::{MIB, Target, seal};

const SIDE: usize = 8;

fn image(side: usize, value: u8) -> Image {
    Image { height: side, width: side, pixels: vec![value; side * side * 3].into() }
}

/// As small as learners get; every method, with a partly filled buffer and a memory.
fn seeds() -> Vec<Vec<u8>> {
    let learned = |method: &str| {
        let text = format!(
            "method = '{method}'\nmodel = 'slim'\nwidth = 1\nmemory = 4\nupdates = 1.0\nbatch = 4\nthreads = 1"
        );
        let shape = Shape { channels: 3, height: SIDE, width: SIDE };
        let mut learner = Learner::new(&Config::from_toml(&text).unwrap(), shape).unwrap();
        for number in 0..7_u8 {
            learner.observe(&image(SIDE, number * 30), i64::from(number % 3)).unwrap();
        }
        let mut bytes = Vec::new();
        let mut checkpoint = Checkpoint::of(&learner);
        checkpoint.classes = ["otter", "seal", "eel"].map(String::from).to_vec();
        checkpoint.write_to(&mut bytes).unwrap();
        bytes
    };
    METHODS.iter().map(|info| learned(info.name)).collect()
}

/// Whether a learner came out of it. What it makes of its work is its own affair, as long as it does not fall over.
fn taken_up(bytes: &[u8]) -> bool {
    let Ok(checkpoint) = Checkpoint::from_bytes(bytes, Path::new("some.ckpt")) else { return false };
    let Ok(mut learner) = checkpoint.learner() else { return false };
    let side = learner.shape().height;
    let settings = &learner.config().settings;
    // Large images, long buffers and many steps are asked for by right, and take their time.
    let small = side <= 64 && settings.batch <= Some(64) && settings.updates <= Some(4.0);
    if small {
        let _ = learner.predict(&image(side, 100));
        for number in 0..3_u8 {
            let _ = learner.observe(&image(side, number), i64::from(number));
        }
        let _ = learner.predict_all(&[image(side, 1), image(side, 200)]);
    }
    learner.state();
    true
}

#[test]
fn checkpoints() {
    let target = Target {
        seal: Some(seal::checkpoint),
        memory: 128 * MIB,
        every: 5,
        ..Target::new("checkpoint", seeds())
    };
    target.run(taken_up);
}

#[test]
fn weight_files() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("weights.safetensors");
    let mut config =
        Config::from_toml("method = 'er'\nmodel = 'slim'\nwidth = 1\nmemory = 4\nbatch = 4\nthreads = 1")
            .unwrap();
    config.settings.weights = Some(path.clone());
    let shape = Shape { channels: 3, height: SIDE, width: SIDE };
    let target = Target { every: 5, ..Target::new("weights", seeds()) };
    target.run(|bytes| {
        fs::write(&path, bytes).unwrap();
        Learner::new(&config, shape).is_ok()
    });
}
