//! AutoAugment (Cubuk et al. 2019): two operations in a row, chosen from a table found by search.
//!
//! Per image one of 25 pairs is drawn; each of its two operations happens with its own probability and strength.
//! Strengths are magnitude indices 0..=9, whose meaning is the operation's.

use super::canvas::Canvas;
use super::{colour, geometry, policies};
use crate::data::Policy;
use crate::random::Random;

/// What can be done to an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Slants rows; the magnitude is an angle in radians.
    ShearX,
    /// Slants columns; the magnitude is an angle in radians.
    ShearY,
    /// Moves right by a share of the width.
    TranslateX,
    /// Moves down by a share of the height.
    TranslateY,
    /// Turns counter-clockwise; the magnitude is in degrees.
    Rotate,
    /// Blends with black at factor 1 + magnitude.
    Brightness,
    /// Blends with grey at factor 1 + magnitude.
    Color,
    /// Blends with the mean grey at factor 1 + magnitude.
    Contrast,
    /// Blends with a smoothed version at factor 1 + magnitude.
    Sharpness,
    /// Drops low bits; the magnitude is how many bits stay.
    Posterize,
    /// Inverts bright bytes; the magnitude is the threshold.
    Solarize,
    /// Stretches each channel to the whole range.
    AutoContrast,
    /// Flattens each channel's histogram.
    Equalize,
    /// The negative.
    Invert,
}

impl Operation {
    /// What magnitude index 0..=9 means, before its sign is drawn; 0 for operations that have no strength.
    pub fn magnitude(self, index: u8) -> f64 {
        let share = f64::from(index) / 9.0;
        match self {
            Self::ShearX | Self::ShearY => 0.3 * share,
            // The search space was laid out on images of 331 pixels, with shifts up to 150.
            Self::TranslateX | Self::TranslateY => 150.0 / 331.0 * share,
            Self::Rotate => 30.0 * share,
            Self::Brightness | Self::Color | Self::Contrast | Self::Sharpness => 0.9 * share,
            Self::Posterize => f64::from(8 - index / 2),
            Self::Solarize => 256.0 * (1.0 - share),
            Self::AutoContrast | Self::Equalize | Self::Invert => 0.0,
        }
    }

    /// Whether the magnitude is negated half of the time.
    pub fn is_signed(self) -> bool {
        !matches!(self, Self::Posterize | Self::Solarize | Self::AutoContrast | Self::Equalize | Self::Invert)
    }

    /// Changes the image; `magnitude` carries its sign.
    pub fn apply(self, canvas: &mut Canvas, magnitude: f64) {
        match self {
            Self::ShearX => geometry::warp(canvas, [1.0, magnitude.tan(), 0.0, 1.0]),
            Self::ShearY => geometry::warp(canvas, [1.0, 0.0, magnitude.tan(), 1.0]),
            Self::TranslateX => geometry::shift(canvas, (canvas.width() as f64 * magnitude) as isize, 0),
            Self::TranslateY => geometry::shift(canvas, 0, (canvas.height() as f64 * magnitude) as isize),
            Self::Rotate => {
                let (sine, cosine) = magnitude.to_radians().sin_cos();
                geometry::warp(canvas, [cosine, -sine, sine, cosine]);
            }
            Self::Brightness => colour::brightness(canvas, 1.0 + magnitude),
            Self::Color => colour::saturation(canvas, 1.0 + magnitude),
            Self::Contrast => colour::contrast(canvas, 1.0 + magnitude),
            Self::Sharpness => colour::sharpness(canvas, 1.0 + magnitude),
            Self::Posterize => colour::posterize(canvas, magnitude as u32),
            Self::Solarize => colour::solarize(canvas, magnitude),
            Self::AutoContrast => colour::auto_contrast(canvas),
            Self::Equalize => colour::equalize(canvas),
            Self::Invert => colour::invert(canvas),
        }
    }
}

/// An operation as it stands in a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// What is done.
    pub operation: Operation,
    /// How often.
    pub probability: f64,
    /// How strongly, 0..=9.
    pub index: u8,
}

/// The 25 pairs of a policy; none for [`Policy::None`].
pub fn pairs(policy: Policy) -> &'static [[Step; 2]] {
    match policy {
        Policy::None => &[],
        Policy::Cifar10 => &policies::CIFAR10,
        Policy::Imagenet => &policies::IMAGENET,
    }
}

/// Draws a pair of the policy and does what its chances allow.
pub fn augment(policy: Policy, canvas: &mut Canvas, random: &mut Random) {
    let pairs = pairs(policy);
    if pairs.is_empty() {
        return;
    }
    for step in &pairs[random.below(pairs.len())] {
        if random.uniform() <= step.probability {
            let magnitude = step.operation.magnitude(step.index);
            let negated = step.operation.is_signed() && random.chance(0.5);
            step.operation.apply(canvas, if negated { -magnitude } else { magnitude });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Image;

    fn near(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 1e-4
    }

    #[test]
    fn magnitudes_follow_the_table() {
        assert!(near(Operation::Rotate.magnitude(2), 6.666_7));
        assert!(near(Operation::Solarize.magnitude(5), 113.777_8));
        assert!(near(Operation::ShearX.magnitude(9), 0.3));
        assert!(near(Operation::Color.magnitude(3), 0.3));
        let bits: Vec<f64> = (0..10).map(|index| Operation::Posterize.magnitude(index)).collect();
        assert_eq!(bits, [8.0, 8.0, 7.0, 7.0, 6.0, 6.0, 5.0, 5.0, 4.0, 4.0]);
    }

    #[test]
    fn shifts_are_whole_pixels_of_the_side() {
        let moved = |size: usize, index: u8, sign: f64| {
            let pixels = vec![255; size * size * 3].into();
            let mut canvas = Canvas::of(&Image { height: size, width: size, pixels });
            let operation = Operation::TranslateX;
            operation.apply(&mut canvas, sign * operation.magnitude(index));
            let first_row = &canvas.pixels()[..size * 3];
            let black = first_row.iter().filter(|&&byte| byte == 0).count() / 3;
            (black, first_row[0] == 0)
        };
        assert_eq!(moved(32, 9, 1.0), (14, true));
        assert_eq!(moved(32, 9, -1.0), (14, false));
        assert_eq!(moved(32, 8, 1.0), (12, true));
        assert_eq!(moved(32, 3, 1.0), (4, true));
        assert_eq!(moved(224, 9, 1.0), (101, true));
    }

    #[test]
    fn the_tables_have_their_landmarks() {
        let [first, second] = pairs(Policy::Cifar10)[14];
        assert_eq!((first.operation, first.probability, first.index), (Operation::Solarize, 0.5, 2));
        assert_eq!((second.operation, second.probability), (Operation::Invert, 0.0));
        let imagenet = pairs(Policy::Imagenet);
        // Pairs 20 to 24 repeat 4, 1, 13, 14 and 2.
        for (late, early) in [(20, 4), (21, 1), (22, 13), (23, 14), (24, 2)] {
            assert_eq!(imagenet[late], imagenet[early]);
        }
        assert!(pairs(Policy::None).is_empty());
    }

    #[test]
    fn operations_happen_as_often_as_the_policy_says() {
        // A plain image of 100 changes only by operations that act on plain images; counting unchanged results
        // of the CIFAR policy against the closed form needs no look inside.
        let image = Image { height: 1, width: 1, pixels: vec![100, 100, 100].into() };
        let mut random = Random::named(1, "augmentation");
        let draws = 60_000;
        let changed = (0..draws)
            .filter(|_| {
                let mut canvas = Canvas::of(&image);
                augment(Policy::Cifar10, &mut canvas, &mut random);
                canvas.pixels() != &image.pixels[..]
            })
            .count();
        let expected: f64 =
            pairs(Policy::Cifar10).iter().map(|pair| change_chance(*pair)).sum::<f64>() / 25.0;
        assert!((changed as f64 / f64::from(draws) - expected).abs() < 0.01, "{changed} against {expected}");
    }

    /// Chance that a pair changes a single grey pixel of value 100, from each operation's effect on it.
    fn change_chance(pair: [Step; 2]) -> f64 {
        let mut chance = 0.0;
        for (first, second) in [(false, false), (false, true), (true, false), (true, true)] {
            for (first_sign, second_sign) in [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)] {
                let mut canvas =
                    Canvas::of(&Image { height: 1, width: 1, pixels: vec![100, 100, 100].into() });
                let mut weight = 0.25;
                for (step, happens, sign) in [(pair[0], first, first_sign), (pair[1], second, second_sign)] {
                    weight *= if happens { step.probability } else { 1.0 - step.probability };
                    let sign = if step.operation.is_signed() { sign } else { 1.0 };
                    if happens {
                        step.operation.apply(&mut canvas, sign * step.operation.magnitude(step.index));
                    }
                }
                if canvas.pixels() != [100, 100, 100] {
                    chance += weight;
                }
            }
        }
        chance
    }
}
