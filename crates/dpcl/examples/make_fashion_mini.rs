//! Makes the built-in data set from the official Fashion-MNIST files: the first images of each class, in official
//! order, in the same IDX layout and compressed.
//!
//! ```text
//! cargo run --release --example make_fashion_mini -- FOLDER-WITH-THE-FOUR-GZ-FILES crates/dpcl/assets/fashion-mini
//! ```

use std::{
    error::Error,
    fs::File,
    io::{Read, Write},
    path::Path,
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};

/// Training and test images kept of each class.
const PER_CLASS: [(&str, usize); 2] = [("train", 250), ("t10k", 50)];

const CLASSES: usize = 10;
const IMAGE_HEADER: usize = 16;
const LABEL_HEADER: usize = 8;
const IMAGE_BYTES: usize = 28 * 28;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, into] = arguments.as_slice() else {
        return Err("two arguments are needed: the folder to read from and the folder to write into".into());
    };
    for (half, per_class) in PER_CLASS {
        let images_name = format!("{half}-images-idx3-ubyte.gz");
        let labels_name = format!("{half}-labels-idx1-ubyte.gz");
        let images = read(&Path::new(from).join(&images_name))?;
        let labels = read(&Path::new(from).join(&labels_name))?;
        let (images, labels) = (&images[IMAGE_HEADER..], &labels[LABEL_HEADER..]);

        let mut kept = [0; CLASSES];
        let mut kept_images = idx_header(0x0803, &[per_class * CLASSES, 28, 28]);
        let mut kept_labels = idx_header(0x0801, &[per_class * CLASSES]);
        for (image, &label) in images.chunks_exact(IMAGE_BYTES).zip(labels) {
            let count = &mut kept[usize::from(label)];
            if *count < per_class {
                *count += 1;
                kept_images.extend(image);
                kept_labels.push(label);
            }
        }
        write(&Path::new(into).join(&images_name), &kept_images)?;
        write(&Path::new(into).join(&labels_name), &kept_labels)?;
    }
    Ok(())
}

fn idx_header(magic: u32, extents: &[usize]) -> Vec<u8> {
    let mut bytes = magic.to_be_bytes().to_vec();
    for &extent in extents {
        bytes.extend((extent as u32).to_be_bytes());
    }
    bytes
}

fn read(path: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut bytes = Vec::new();
    GzDecoder::new(File::open(path)?).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    let mut encoder = GzEncoder::new(File::create(path)?, Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()?.sync_all()?;
    Ok(())
}
