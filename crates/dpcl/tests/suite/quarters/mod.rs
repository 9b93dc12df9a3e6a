//! Four classes of small images that tell apart quickly, and learners that meet them.

#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses some of it, and a test may fail")]

use dpcl::{Config, Image, Learner, Random, Shape};

/// Side of the images.
pub const SIZE: usize = 16;

/// The images' shape.
pub const SHAPE: Shape = Shape { channels: 3, height: SIZE, width: SIZE };

/// Images of four classes: a bright quarter, and noise. Two classes come in turn at first, then the other two.
pub fn samples(count: usize) -> Vec<(Image, usize)> {
    let mut random = Random::named(9, "samples");
    let sample = |index: usize| {
        let class = index % 2 + 2 * usize::from(index >= count / 2);
        let bright = |row: usize, column: usize| {
            (row < SIZE / 2) == (class < 2) && (column < SIZE / 2) == class.is_multiple_of(2)
        };
        let mut pixel = |index: usize| {
            let level = if bright(index / 3 / SIZE, index / 3 % SIZE) { 150 } else { 40 };
            level + random.below(100) as u8
        };
        let pixels: Vec<u8> = (0..SIZE * SIZE * 3).map(&mut pixel).collect();
        (Image { height: SIZE, width: SIZE, pixels: pixels.into() }, class)
    };
    (0..count).map(sample).collect()
}

/// A small network and memory, with more keys or other values in `text`.
pub fn config(text: &str) -> Config {
    let common = "model = 'slim'\nwidth = 4\nmemory = 12\nbatch = 8\nupdates = 1.0\nautoaugment = 'none'\nlr = 0.002\n";
    Config::from_toml(&format!("{common}{text}")).unwrap()
}

/// Keys of `dpcl`, with perturbed activations unless they speak of them.
pub fn perturbed(keys: &str) -> String {
    if keys.contains("pfi =") { keys.to_owned() } else { format!("pfi = true\n{keys}") }
}

/// A learner of such images that has met none.
pub fn learner(config: &Config) -> Learner {
    Learner::new(config, SHAPE).unwrap()
}

/// A learner that has met these samples.
pub fn taught(config: &Config, samples: &[(Image, usize)]) -> Learner {
    let mut learner = learner(config);
    for (image, class) in samples {
        learner.observe(image, *class).unwrap();
    }
    learner
}
