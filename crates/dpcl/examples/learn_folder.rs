//! Learns from a folder of images, one sample at a time, and answers for every test image.
//!
//! ```sh
//! cargo run --release -p dpcl --example learn_folder -- path/to/images
//! ```
//!
//! The folder holds `train/<class>/*` and `test/<class>/*` (any size). Without an argument a small folder is
//! written first, from the built-in images, so that the example runs on its own.

#![expect(clippy::print_stdout, reason = "an example talks to whoever runs it")]

use std::path::{Path, PathBuf};

use dpcl::{Config, Learner, Random, Shape, data};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = match std::env::args_os().nth(1) {
        Some(folder) => PathBuf::from(folder),
        None => write_small_folder()?,
    };
    let images = data::open("folder", Some(&folder), Some(32))?;

    let mut config = Config::default();
    config.settings.model = "slim".into();
    config.settings.width = Some(8);
    config.settings.memory = Some(100);
    config.settings.updates = Some(1.0);
    config.settings.mean = Some(images.mean);
    config.settings.std = Some(images.std);
    let mut learner = Learner::new(&config, Shape { channels: 3, height: 32, width: 32 })?;

    // Class after class, as a camera that is carried from room to room would see them.
    let mut order: Vec<usize> = (0..images.train.labels.len()).collect();
    Random::named(1, "example").shuffle(&mut order);
    order.sort_by_key(|&position| images.train.labels[position]);
    for position in order {
        let class = images.classes[images.train.labels[position]].as_str();
        let seen = learner.observe(&images.train.images.image(position)?, class)?;
        if seen.new_class {
            println!("after {:>5} samples: first {class}", learner.samples());
        }
    }
    learner.flush()?;

    let mut right = 0;
    for (position, &label) in images.test.labels.iter().enumerate() {
        let answer = learner.predict(&images.test.images.image(position)?)?;
        right += usize::from(answer.label == images.classes[label].as_str().into());
    }
    println!("{right} of {} test images right", images.test.labels.len());
    Ok(())
}

/// Four built-in classes as PNG files in a temporary folder.
fn write_small_folder() -> Result<PathBuf, Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join("dpcl-example-images");
    let source = data::open("fashion-mini", None, None)?;
    for (name, split, most) in [("train", &source.train, 60), ("test", &source.test, 20)] {
        let mut written = vec![0; source.classes.len()];
        for (position, &label) in split.labels.iter().enumerate() {
            if label < 4 && written[label] < most {
                let class: &Path = source.classes[label].as_ref();
                let directory = folder.join(name).join(class);
                std::fs::create_dir_all(&directory)?;
                let file = directory.join(format!("{:04}.png", written[label]));
                std::fs::write(file, data::png(&split.images.image(position)?))?;
                written[label] += 1;
            }
        }
    }
    println!("images in {}", folder.display());
    Ok(folder)
}
