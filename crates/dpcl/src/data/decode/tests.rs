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
    assert_eq!(problem(root.path(), b""), "is neither a PNG nor a JPEG image");
    assert_eq!(problem(root.path(), b"GIF89a......"), "is neither a PNG nor a JPEG image");
    let noise =
        RgbImage::from_fn(64, 64, |x, y| Rgb([(x * y * 7 % 251) as u8, (x * 31) as u8, (y * 57) as u8]));
    for name in ["noise.png", "noise.jpg"] {
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

proptest! {
    #[test]
    fn altered_images_decode_or_fail_but_never_panic(position in 0_usize..700, value in any::<u8>()) {
        let mut bytes = CMYK.to_vec();
        let position = position % bytes.len();
        bytes[position] = value;
        if let Ok(image) = decode(&bytes) {
            prop_assert_eq!(resize(image, 8).pixels.len(), 192);
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
