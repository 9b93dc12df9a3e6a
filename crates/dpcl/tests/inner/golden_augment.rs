//! Augmentation against numbers computed elsewhere: every AutoAugment operation pixel by pixel, and CutMix.

use crate::augment::Canvas;
use crate::augment::auto_augment::Operation;
use crate::augment::cutmix::{Area, Mix};
use crate::data::Image;

/// Every operation once.
const OPERATIONS: [Operation; 14] = [
    Operation::ShearX,
    Operation::ShearY,
    Operation::TranslateX,
    Operation::TranslateY,
    Operation::Rotate,
    Operation::Brightness,
    Operation::Color,
    Operation::Contrast,
    Operation::Sharpness,
    Operation::Posterize,
    Operation::Solarize,
    Operation::AutoContrast,
    Operation::Equalize,
    Operation::Invert,
];

#[test]
fn golden_autoaugment_operations() {
    let tensors = super::reference::tensors("autoaugment.safetensors");
    for case in super::reference::cases("autoaugment.json") {
        let name: String = case.input("op");
        let operation = OPERATIONS.into_iter().find(|operation| format!("{operation:?}") == name);
        let operation = operation.unwrap_or_else(|| panic!("no operation called {name}"));
        let source = &tensors[&case.input::<String>("image")];
        let image =
            Image { height: source.shape[0], width: source.shape[1], pixels: source.bytes.clone().into() };
        let sign = if case.input::<i32>("sign") < 0 { -1.0 } else { 1.0 };
        let magnitude = case
            .input::<Option<u8>>("magnitude_index")
            .map_or(0.0, |index| operation.magnitude(index) * sign);

        let mut canvas = Canvas::of(&image);
        operation.apply(&mut canvas, magnitude);

        if let Some(expected) = case.input::<Option<f64>>("signed_magnitude") {
            assert!((magnitude - expected).abs() < 1e-12, "{}: magnitude {magnitude}", case.name);
        }
        let expected = &tensors[&case.expected::<String>("tensor")];
        let differing =
            canvas.pixels().iter().zip(&expected.bytes).filter(|(one, other)| one != other).count();
        assert_eq!(differing, 0, "{}: bytes that differ", case.name);
    }
}

#[test]
fn golden_cutmix_boxes() {
    for case in super::reference::cases_named("cutmix.json", "box_") {
        let (height, width) = (case.input("height"), case.input("width"));
        let area = Area::around((case.input("cy"), case.input("cx")), case.input("lambda"), height, width);
        check_area(&case, area, area.share_outside(height, width));
    }
}

#[test]
fn golden_cutmix_batch() {
    for case in super::reference::cases_named("cutmix.json", "image_batch") {
        // [row][channel][y][x]; with its single channel this is also [row][y][x][channel].
        let images: Vec<Vec<Vec<Vec<f32>>>> = case.input("images");
        let (height, width) = (images[0][0].len(), images[0][0][0].len());
        assert_eq!(images[0].len(), 1);
        let mut batch: Vec<f32> = images.iter().flatten().flatten().flatten().copied().collect();

        let area = Area::around((case.input("cy"), case.input("cx")), case.input("lambda"), height, width);
        let coefficient = area.share_outside(height, width);
        let mix = Mix { first: 0, area, coefficient, permutation: case.input("permutation") };
        mix.apply(&mut batch, height, width);

        check_area(&case, area, coefficient);
        let expected: Vec<Vec<Vec<Vec<f32>>>> = case.expected("images");
        let expected: Vec<f32> = expected.into_iter().flatten().flatten().flatten().collect();
        assert_eq!(batch, expected, "{}", case.name);
    }
}

fn check_area(case: &super::reference::Case, area: Area, coefficient: f64) {
    case.check("x1", area.left);
    case.check("x2", area.right);
    case.check("y1", area.top);
    case.check("y2", area.bottom);
    case.check("lambda_corrected", coefficient);
}
