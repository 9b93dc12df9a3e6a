//! The two tables of AutoAugment: operation, probability, magnitude index.
//!
//! Operations without a strength carry index 0.

use super::auto_augment::Operation::{
    self, AutoContrast, Brightness, Color, Contrast, Equalize, Invert, Posterize, Rotate, Sharpness, ShearX,
    ShearY, Solarize, TranslateX, TranslateY,
};
use super::auto_augment::Step;

const fn step(operation: Operation, probability: f64, index: u8) -> Step {
    Step { operation, probability, index }
}

/// Found on CIFAR-10.
pub(super) const CIFAR10: [[Step; 2]; 25] = [
    [step(Invert, 0.1, 0), step(Contrast, 0.2, 6)],
    [step(Rotate, 0.7, 2), step(TranslateX, 0.3, 9)],
    [step(Sharpness, 0.8, 1), step(Sharpness, 0.9, 3)],
    [step(ShearY, 0.5, 8), step(TranslateY, 0.7, 9)],
    [step(AutoContrast, 0.5, 0), step(Equalize, 0.9, 0)],
    [step(ShearY, 0.2, 7), step(Posterize, 0.3, 7)],
    [step(Color, 0.4, 3), step(Brightness, 0.6, 7)],
    [step(Sharpness, 0.3, 9), step(Brightness, 0.7, 9)],
    [step(Equalize, 0.6, 0), step(Equalize, 0.5, 0)],
    [step(Contrast, 0.6, 7), step(Sharpness, 0.6, 5)],
    [step(Color, 0.7, 7), step(TranslateX, 0.5, 8)],
    [step(Equalize, 0.3, 0), step(AutoContrast, 0.4, 0)],
    [step(TranslateY, 0.4, 3), step(Sharpness, 0.2, 6)],
    [step(Brightness, 0.9, 6), step(Color, 0.2, 8)],
    [step(Solarize, 0.5, 2), step(Invert, 0.0, 0)],
    [step(Equalize, 0.2, 0), step(AutoContrast, 0.6, 0)],
    [step(Equalize, 0.2, 0), step(Equalize, 0.6, 0)],
    [step(Color, 0.9, 9), step(Equalize, 0.6, 0)],
    [step(AutoContrast, 0.8, 0), step(Solarize, 0.2, 8)],
    [step(Brightness, 0.1, 3), step(Color, 0.7, 0)],
    [step(Solarize, 0.4, 5), step(AutoContrast, 0.9, 0)],
    [step(TranslateY, 0.9, 9), step(TranslateY, 0.7, 9)],
    [step(AutoContrast, 0.9, 0), step(Solarize, 0.8, 3)],
    [step(Equalize, 0.8, 0), step(Invert, 0.1, 0)],
    [step(TranslateY, 0.7, 9), step(AutoContrast, 0.9, 0)],
];

/// Found on ImageNet; the last five pairs repeat earlier ones.
pub(super) const IMAGENET: [[Step; 2]; 25] = [
    [step(Posterize, 0.4, 8), step(Rotate, 0.6, 9)],
    [step(Solarize, 0.6, 5), step(AutoContrast, 0.6, 0)],
    [step(Equalize, 0.8, 0), step(Equalize, 0.6, 0)],
    [step(Posterize, 0.6, 7), step(Posterize, 0.6, 6)],
    [step(Equalize, 0.4, 0), step(Solarize, 0.2, 4)],
    [step(Equalize, 0.4, 0), step(Rotate, 0.8, 8)],
    [step(Solarize, 0.6, 3), step(Equalize, 0.6, 0)],
    [step(Posterize, 0.8, 5), step(Equalize, 1.0, 0)],
    [step(Rotate, 0.2, 3), step(Solarize, 0.6, 8)],
    [step(Equalize, 0.6, 0), step(Posterize, 0.4, 6)],
    [step(Rotate, 0.8, 8), step(Color, 0.4, 0)],
    [step(Rotate, 0.4, 9), step(Equalize, 0.6, 0)],
    [step(Equalize, 0.0, 0), step(Equalize, 0.8, 0)],
    [step(Invert, 0.6, 0), step(Equalize, 1.0, 0)],
    [step(Color, 0.6, 4), step(Contrast, 1.0, 8)],
    [step(Rotate, 0.8, 8), step(Color, 1.0, 2)],
    [step(Color, 0.8, 8), step(Solarize, 0.8, 7)],
    [step(Sharpness, 0.4, 7), step(Invert, 0.6, 0)],
    [step(ShearX, 0.6, 5), step(Equalize, 1.0, 0)],
    [step(Color, 0.4, 0), step(Equalize, 0.6, 0)],
    [step(Equalize, 0.4, 0), step(Solarize, 0.2, 4)],
    [step(Solarize, 0.6, 5), step(AutoContrast, 0.6, 0)],
    [step(Invert, 0.6, 0), step(Equalize, 1.0, 0)],
    [step(Color, 0.6, 4), step(Contrast, 1.0, 8)],
    [step(Equalize, 0.8, 0), step(Equalize, 0.6, 0)],
];
