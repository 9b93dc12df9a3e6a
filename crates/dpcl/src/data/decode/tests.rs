//! Image files of every kind that turns up.

use std::path::PathBuf;

use image::{GrayAlphaImage, GrayImage, Luma, LumaA, Rgb, RgbImage};
use proptest::prelude::*;

use super::*;

/// An 8 × 8 JPEG in inverted CMYK, as image editors write it: cyan 0, magenta 128, yellow 255, black 0.
const CMYK: &[u8] = include_bytes!("../../../tests/fixtures/cmyk.jpg");

fn saved(folder: &Path, name: &str, image: impl Into<DynamicImage>) -> PathBuf {
    let path = folder.join(name);
    image.into().save(&path).unwrap();
    path
}

fn problem(folder: &Path, bytes: &[u8]) -> String {
    let path = folder.join("bad.png");
    std::fs::write(&path, bytes).unwrap();
    match read_image(&path, 8) {
        Err(Error::BadData { problem, .. }) => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn grey_and_transparent_images_become_rgb() {
    let root = tempfile::tempdir().unwrap();
    let grey = saved(root.path(), "grey.png", GrayImage::from_pixel(8, 8, Luma([77])));
    assert_eq!(read_image(&grey, 8).unwrap().pixels[..], [77; 192]);
    let grey = saved(root.path(), "grey.jpg", GrayImage::from_pixel(20, 30, Luma([77])));
    assert_eq!(read_image(&grey, 8).unwrap().pixels[..], [77; 192]);
    let clear = saved(root.path(), "clear.png", GrayAlphaImage::from_pixel(8, 8, LumaA([77, 0])));
    assert_eq!(read_image(&clear, 8).unwrap().pixels[..], [77; 192]);
}

#[test]
fn cmyk_becomes_rgb() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("cmyk.jpg");
    std::fs::write(&path, CMYK).unwrap();
    let image = read_image(&path, 8).unwrap();
    for pixel in image.pixels.chunks(3) {
        assert!(pixel[0] > 245 && pixel[1].abs_diff(127) < 8 && pixel[2] < 10, "{pixel:?}");
    }
}

#[test]
fn the_content_tells_the_format() {
    let root = tempfile::tempdir().unwrap();
    let path = saved(root.path(), "real.png", RgbImage::from_pixel(8, 8, Rgb([1, 2, 3])));
    let renamed = root.path().join("named.JPEG");
    std::fs::rename(path, &renamed).unwrap();
    assert_eq!(read_image(&renamed, 8).unwrap().pixels[..3], [1, 2, 3]);
}

#[test]
fn resizing_ignores_the_aspect_and_averages_when_shrinking() {
    let root = tempfile::tempdir().unwrap();
    // Columns of 0 and 200 alternate; four become one, so every pixel away from the edge averages to 100.
    let stripes = RgbImage::from_fn(32, 8, |column, _| Rgb([if column % 2 == 0 { 0 } else { 200 }; 3]));
    let path = saved(root.path(), "stripes.png", stripes);
    let image = read_image(&path, 8).unwrap();
    assert_eq!((image.height, image.width), (8, 8));
    let row: Vec<u8> = image.pixels[..24].iter().step_by(3).copied().collect();
    assert!(row[1..7].iter().all(|value| value.abs_diff(100) <= 1), "{row:?}");

    // Twice the size: halfway between neighbours come quarters of their difference.
    let step = RgbImage::from_fn(8, 8, |column, _| Rgb([if column < 4 { 0 } else { 80 }; 3]));
    let path = saved(root.path(), "step.png", step);
    let image = read_image(&path, 16).unwrap();
    let row: Vec<u8> = image.pixels[..48].iter().step_by(3).copied().collect();
    assert_eq!(row, [0, 0, 0, 0, 0, 0, 0, 20, 60, 80, 80, 80, 80, 80, 80, 80]);
}

#[test]
fn unreadable_images_are_refused() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(problem(root.path(), b""), "is not a PNG, JPEG, WebP, BMP or GIF image");
    assert_eq!(problem(root.path(), b"qoif........"), "is not a PNG, JPEG, WebP, BMP or GIF image");
    assert!(problem(root.path(), b"GIF89a......").contains("cannot be decoded"));
    let noise =
        RgbImage::from_fn(64, 64, |x, y| Rgb([(x * y * 7 % 251) as u8, (x * 31) as u8, (y * 57) as u8]));
    for name in ["noise.png", "noise.jpg", "noise.webp", "noise.bmp", "noise.gif"] {
        let path = saved(root.path(), name, noise.clone());
        let whole = std::fs::read(&path).unwrap();
        for cut in [whole.len() / 4, whole.len() / 2, whole.len() - 20] {
            let problem = problem(root.path(), &whole[..cut]);
            assert!(
                problem.contains("cut off") || problem.contains("cannot be decoded"),
                "{name}: {problem}"
            );
        }
    }
    let error = read_image(&root.path().join("absent.png"), 8).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error:?}");
}

#[test]
fn an_image_that_announces_absurd_extents_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let path = saved(root.path(), "small.png", RgbImage::new(8, 8));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
    let problem = problem(root.path(), &bytes);
    assert!(problem.contains("cannot be decoded") || problem.contains("larger than"), "{problem}");
}

/// A picture red above and blue below, with an EXIF block that says how it is to be turned.
fn turned(folder: &Path, name: &str, orientation: u8) -> PathBuf {
    use image::{ImageEncoder as _, codecs::jpeg::JpegEncoder, codecs::png::PngEncoder};
    let picture = RgbImage::from_fn(48, 32, |_, row| Rgb(if row < 16 { [250, 0, 0] } else { [0, 0, 250] }));
    // Big-endian TIFF header, one entry: tag 0x0112, one short.
    let mut exif = b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
    let mut bytes = Vec::new();
    if name.ends_with("png") {
        let mut encoder = PngEncoder::new(&mut bytes);
        encoder.set_exif_metadata(exif).unwrap();
        encoder.write_image(&picture, 48, 32, image::ExtendedColorType::Rgb8).unwrap();
    } else {
        let mut encoder = JpegEncoder::new_with_quality(&mut bytes, 95);
        encoder.set_exif_metadata(exif).unwrap();
        encoder.write_image(&picture, 48, 32, image::ExtendedColorType::Rgb8).unwrap();
    }
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_photo_is_seen_as_it_was_taken() {
    let root = tempfile::tempdir().unwrap();
    // Where the stored picture's upper edge, which is red, is to be seen.
    for (orientation, [row, column], sideways) in [
        (1, [1, 8], false),
        (2, [1, 8], false),
        (3, [14, 8], false),
        (4, [14, 8], false),
        (5, [8, 1], true),
        (6, [8, 14], true),
        (7, [8, 14], true),
        (8, [8, 1], true),
    ] {
        for name in ["photo.jpg", "photo.png"] {
            let path = turned(root.path(), name, orientation);
            let image = read_image(&path, 16).unwrap();
            let pixel = &image.pixels[(row * 16 + column) * 3..][..3];
            assert!(pixel[0] > 200 && pixel[2] < 60, "{name} {orientation}: {pixel:?}");
            let extent = if sideways { [48, 32] } else { [32, 48] };
            assert_eq!(read_extent(&path).unwrap(), extent, "{name} {orientation}");
        }
    }
    assert_eq!(
        read_image(&turned(root.path(), "a.png", 9), 16).unwrap(),
        read_image(&turned(root.path(), "b.png", 1), 16).unwrap(),
        "a number that means nothing turns nothing"
    );
}

#[test]
fn every_known_format_is_read() {
    let root = tempfile::tempdir().unwrap();
    let half =
        RgbImage::from_fn(20, 10, |column, _| Rgb(if column < 10 { [200, 0, 0] } else { [0, 0, 200] }));
    for name in ["a.png", "a.jpg", "a.webp", "a.bmp", "a.gif"] {
        let path = saved(root.path(), name, half.clone());
        let image = read_image(&path, 8).unwrap();
        let (first, last) = (&image.pixels[..3], &image.pixels[21..24]);
        let near = |pixel: &[u8], colour: [u8; 3]| {
            pixel.iter().zip(colour).all(|(one, other)| one.abs_diff(other) < 12)
        };
        assert!(near(first, [200, 0, 0]) && near(last, [0, 0, 200]), "{name}: {first:?} {last:?}");
        assert_eq!(read_extent(&path).unwrap(), [10, 20], "{name}");
    }
}

#[test]
fn of_a_moving_picture_the_first_frame_is_read() {
    use image::{Delay, Frame, RgbaImage, codecs::gif::GifEncoder};
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("moving.gif");
    let frame = |value| {
        let image = RgbaImage::from_pixel(12, 12, image::Rgba([value, value, value, 255]));
        Frame::from_parts(image, 0, 0, Delay::from_numer_denom_ms(10, 1))
    };
    GifEncoder::new(File::create(&path).unwrap()).encode_frames([frame(40), frame(220)]).unwrap();
    let image = read_image(&path, 8).unwrap();
    assert!(image.pixels.iter().all(|value| value.abs_diff(40) < 4), "{:?}", &image.pixels[..3]);
}

proptest! {
    #[test]
    fn altered_images_decode_or_fail_but_never_panic(position in 0_usize..700, value in any::<u8>()) {
        let mut bytes = CMYK.to_vec();
        let position = position % bytes.len();
        bytes[position] = value;
        if let Ok(image) = decode(&bytes) {
            prop_assert_eq!(fitted(image, 8, Fit::Squash).unwrap().pixels.len(), 192);
        }
    }
}

#[test]
fn bytes_are_decoded_within_limits() {
    let png = crate::data::png(&Image { height: 10, width: 20, pixels: vec![9; 600].into() });
    let image = decode_image(&png, 8, 200).unwrap();
    assert_eq!((image.height, image.width, &image.pixels[..3]), (8, 8, &[9, 9, 9][..]));
    let too_large = decode_image(&png, 8, 199).unwrap_err();
    assert_eq!(too_large, BadBytes::TooLarge("has 20 × 10 pixels, and at most 199 are taken".into()));
    for bad in [&b"text"[..], b"", &png[..30], &png[..png.len() - 20]] {
        assert!(matches!(decode_image(bad, 8, 200), Err(BadBytes::NotAnImage(_))), "{} bytes", bad.len());
    }
}
