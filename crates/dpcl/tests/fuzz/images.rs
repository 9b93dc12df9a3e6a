//! Image files: PNG in several colour types, JPEG in grey, colour and CMYK, WebP, BMP and GIF.

use std::{fs, io::Cursor};

use dpcl::data;
use image::{DynamicImage, ImageFormat};

use super::{MIB, Target, measured, seal};

/// Two whole images of the most pixels that are decoded, and room to work.
const MEMORY: usize = 576 * MIB;

fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn noise() -> DynamicImage {
    let pixel = |x: u32, y: u32| image::Rgb([(x * y * 7 % 251) as u8, (x * 31) as u8, (y * 57) as u8]);
    image::RgbImage::from_fn(24, 17, pixel).into()
}

fn reader() -> impl FnMut(&[u8]) -> bool {
    let root = tempfile::tempdir().unwrap();
    move |bytes| {
        let path = root.path().join("image.png");
        fs::write(&path, bytes).unwrap();
        data::read_image(&path, 16).is_ok_and(|image| image.pixels.len() == 16 * 16 * 3)
    }
}

#[test]
fn png_files() {
    let noise = noise();
    let grey = DynamicImage::from(noise.to_luma8());
    let deep = DynamicImage::from(noise.to_rgba16());
    let seeds = [&noise, &grey, &deep].map(|image| encoded(image, ImageFormat::Png));
    let target =
        Target { seal: Some(seal::png), memory: MEMORY, every: 2, ..Target::new("png", seeds.into()) };
    target.run(reader());
}

#[test]
fn jpeg_files() {
    let noise = noise();
    let grey = DynamicImage::from(noise.to_luma8());
    let mut seeds = [&noise, &grey].map(|image| encoded(image, ImageFormat::Jpeg)).to_vec();
    seeds.push(include_bytes!("../fixtures/cmyk.jpg").to_vec());
    Target { memory: MEMORY, every: 2, ..Target::new("jpeg", seeds) }.run(reader());
}

fn of_kind(name: &'static str, format: ImageFormat) {
    let noise = noise();
    let grey = DynamicImage::from(noise.to_luma8());
    let clear = DynamicImage::from(noise.to_rgba8());
    let plain = if format == ImageFormat::Gif { &clear } else { &grey };
    let seeds = [&noise, plain, &clear].map(|image| encoded(image, format));
    Target { memory: MEMORY, every: 2, ..Target::new(name, seeds.into()) }.run(reader());
}

#[test]
fn webp_files() {
    of_kind("webp", ImageFormat::WebP);
}

#[test]
fn bmp_files() {
    of_kind("bmp", ImageFormat::Bmp);
}

#[test]
fn gif_files() {
    of_kind("gif", ImageFormat::Gif);
}

/// The little-endian number at a place.
fn put(bytes: &mut [u8], at: usize, number: u32, length: usize) {
    bytes[at..at + length].copy_from_slice(&number.to_le_bytes()[..length]);
}

#[test]
fn other_formats_announce_more_than_fits_in_vain() {
    let announced = |format: ImageFormat, alter: &dyn Fn(&mut [u8])| {
        let mut bytes = encoded(&noise(), format);
        alter(&mut bytes);
        bytes
    };
    let bombs = [
        announced(ImageFormat::Bmp, &|bytes| [18, 22].into_iter().for_each(|at| put(bytes, at, 60_000, 4))),
        announced(ImageFormat::Gif, &|bytes| [6, 8].into_iter().for_each(|at| put(bytes, at, 65_535, 2))),
        announced(ImageFormat::WebP, &|bytes| put(bytes, 21, 0x0fff_ffff, 4)),
    ];
    let good = encoded(&noise(), ImageFormat::Bmp);
    let mut read = reader();
    assert!(read(&good));
    let seeds = std::iter::once(good).chain(bombs.iter().cloned()).collect();
    // Room for the good one, not for any part of what is announced.
    Target { memory: MIB, every: 1_000, ..Target::new("announced", seeds) }.run(&mut read);
    assert!(bombs.iter().all(|bomb| !read(bomb)));
}

#[test]
fn an_extremely_tall_picture_takes_no_more_than_others() {
    let tall = encoded(&image::RgbImage::new(1, 8_000_000).into(), ImageFormat::Png);
    Target { memory: MEMORY, every: 1_000, ..Target::new("extreme", vec![tall]) }.run(reader());
}

#[test]
fn an_image_that_announces_more_than_fits_is_refused_without_trying() {
    let mut bytes = encoded(&noise(), ImageFormat::Png);
    bytes[16..24].copy_from_slice(&[0, 0, 0x40, 0, 0, 0, 0x40, 0]);
    seal::png(&mut bytes);
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("bomb.png");
    fs::write(&path, bytes).unwrap();
    let error = data::read_image(&path, 16).unwrap_err();
    assert!(error.to_string().contains("is larger than an image may be"), "{error}");
}

/// A PNG of a few kilobytes that is so wide and a pixel high.
fn wide(width: u32) -> Vec<u8> {
    encoded(&image::GrayImage::new(width, 1).into(), ImageFormat::Png)
}

#[test]
fn a_small_file_of_a_very_wide_image_takes_no_more_than_any_image_may() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("wide.png");
    for (width, taken) in [(200_000, true), (8_000_000, false), (80_000_000, false)] {
        fs::write(&path, wide(width)).unwrap();
        let (used, read) = measured(|| data::read_image(&path, 32));
        assert!(used <= MEMORY, "{width} pixels took {used} bytes");
        assert_eq!(read.is_ok(), taken, "{width} pixels");
        if let Err(error) = read {
            assert!(error.to_string().contains("is larger than an image may be"), "{error}");
        }
    }
}
