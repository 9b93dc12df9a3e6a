//! From stored bytes to what a network is fed: crop, flip, AutoAugment, normalisation, and CutMix on whole batches.
//!
//! Every draw comes from the generator that is handed in; nothing here knows classes, tasks or memory. The memory
//! keeps images as they came, so each use of an image is augmented afresh.

use std::cell::RefCell;

pub mod auto_augment;
mod canvas;
mod colour;
pub mod cutmix;
mod geometry;
mod policies;

pub use canvas::Canvas;
pub use cutmix::{CutMix, Mix};

use crate::data::{FloatImage, Image, Picture, Policy};
use crate::random::Random;

thread_local! {
    // Only room to work in: nothing read from it was written before the call that reads it.
    static CANVAS: RefCell<Canvas> = RefCell::default();
}

/// How single images become floats.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// Black pixels added on every side before cropping back to size; 0 turns cropping off.
    pub padding: usize,
    /// Whether half of the training images are mirrored left to right.
    pub flip: bool,
    /// Which AutoAugment policy is drawn from.
    pub policy: Policy,
    /// Taken off each channel once its bytes are scaled to 0..1.
    pub mean: [f32; 3],
    /// What each channel is divided by after that.
    pub std: [f32; 3],
}

impl Pipeline {
    /// The usual pipeline for images of `size` pixels a side: an eighth of it as padding, flips, and `policy`.
    pub fn new(size: usize, policy: Policy, mean: [f32; 3], std: [f32; 3]) -> Self {
        Self { padding: size / 8, flip: true, policy, mean, std }
    }

    /// Writes a freshly augmented, normalised image: height × width × 3 floats, which `out` must have room for
    /// exactly. AutoAugment is made for bytes: images of floats are cropped and mirrored only.
    pub fn train(&self, picture: &Picture, random: &mut Random, out: &mut [f32]) {
        let corner = (random.below(2 * self.padding + 1), random.below(2 * self.padding + 1));
        let mirrored = self.flip && random.chance(0.5);
        match picture {
            Picture::Bytes(image) => CANVAS.with_borrow_mut(|canvas| {
                geometry::load_window(canvas, image, self.padding, corner, mirrored);
                auto_augment::augment(self.policy, canvas, random);
                self.normalise(canvas.pixels(), scaled, out);
            }),
            Picture::Floats(image) => {
                let window = geometry::window(image, self.padding, corner, mirrored);
                self.normalise(&window, |value| value, out);
            }
        }
    }

    /// Writes the normalised image as it is: height × width × 3 floats, which `out` must have room for exactly.
    pub fn test(&self, image: &Image, out: &mut [f32]) {
        self.normalise(&image.pixels, scaled, out);
    }

    /// The same for an image of floats.
    pub fn test_floats(&self, image: &FloatImage, out: &mut [f32]) {
        self.normalise(&image.pixels, |value| value, out);
    }

    fn normalise<T: Copy>(&self, pixels: &[T], value: impl Fn(T) -> f32, out: &mut [f32]) {
        assert_eq!(pixels.len(), out.len(), "room for exactly one image");
        for (pixel, out) in pixels.as_chunks::<3>().0.iter().zip(out.as_chunks_mut::<3>().0) {
            for channel in 0..3 {
                out[channel] = (value(pixel[channel]) - self.mean[channel]) / self.std[channel];
            }
        }
    }
}

/// A byte on the scale of floats.
fn scaled(value: u8) -> f32 {
    f32::from(value) / 255.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN: [f32; 3] = [0.5071, 0.4867, 0.4408];
    const STD: [f32; 3] = [0.2675, 0.2565, 0.2761];

    fn image(size: usize) -> Image {
        let pixels: Vec<u8> = (0..size * size * 3).map(|index| (index * 37 % 251) as u8 + 1).collect();
        Image { height: size, width: size, pixels: pixels.into() }
    }

    /// The same picture in floats.
    fn in_floats(image: &Image) -> FloatImage {
        let pixels = image.pixels.iter().map(|&value| scaled(value)).collect();
        FloatImage { height: image.height, width: image.width, pixels }
    }

    fn train(pipeline: &Pipeline, image: &Image, random: &mut Random) -> Vec<f32> {
        let mut out = vec![f32::NAN; image.pixels.len()];
        pipeline.train(&image.clone().into(), random, &mut out);
        out
    }

    #[test]
    fn floats_are_cropped_mirrored_and_normalised_as_bytes_are() {
        let pipeline = Pipeline::new(16, Policy::None, MEAN, STD);
        let image = image(16);
        for seed in 0..40 {
            let mut out = vec![f32::NAN; image.pixels.len()];
            let random = &mut Random::named(seed, "augmentation");
            pipeline.train(&in_floats(&image).into(), random, &mut out);
            assert_eq!(
                out,
                train(&pipeline, &image, &mut Random::named(seed, "augmentation")),
                "seed {seed}"
            );
        }
        let (mut one, mut other) = (vec![0.0; image.pixels.len()], vec![0.0; image.pixels.len()]);
        pipeline.test(&image, &mut one);
        pipeline.test_floats(&in_floats(&image), &mut other);
        assert_eq!(one, other);
    }

    #[test]
    fn testing_only_normalises() {
        let pipeline = Pipeline::new(1, Policy::Cifar10, MEAN, STD);
        let mut out = [0.0; 3];
        pipeline.test(&Image { height: 1, width: 1, pixels: vec![0, 128, 255].into() }, &mut out);
        // (128 / 255 − .4867) / .2565 = .05949, and so on.
        for (found, expected) in out.iter().zip([-1.895_70, 0.059_49, 2.025_35]) {
            assert!((found - expected).abs() < 1e-4, "{out:?}");
        }
    }

    #[test]
    fn without_chance_training_is_testing() {
        let mut pipeline = Pipeline::new(8, Policy::None, MEAN, STD);
        (pipeline.padding, pipeline.flip) = (0, false);
        let image = image(8);
        let mut expected = vec![0.0; image.pixels.len()];
        pipeline.test(&image, &mut expected);
        assert_eq!(train(&pipeline, &image, &mut Random::named(1, "augmentation")), expected);
    }

    #[test]
    fn padding_is_an_eighth_of_the_side() {
        assert_eq!(Pipeline::new(32, Policy::Cifar10, MEAN, STD).padding, 4);
        assert_eq!(Pipeline::new(224, Policy::Imagenet, MEAN, STD).padding, 28);
    }

    #[test]
    fn every_crop_and_both_directions_occur_equally_often() {
        let pipeline = Pipeline::new(8, Policy::None, MEAN, STD);
        let image = image(8);
        let mut random = Random::named(2, "augmentation");
        let mut seen = std::collections::HashMap::<Vec<u32>, usize>::new();
        for _ in 0..18_000 {
            let bits = train(&pipeline, &image, &mut random).into_iter().map(f32::to_bits).collect();
            *seen.entry(bits).or_default() += 1;
        }
        // Padding 1: nine places, two directions.
        assert_eq!(seen.len(), 18);
        assert!(seen.values().all(|count| (850..1_150).contains(count)), "{:?}", seen.values());
    }

    #[test]
    fn the_same_generator_gives_the_same_image_whatever_came_before() {
        let pipeline = Pipeline::new(32, Policy::Cifar10, MEAN, STD);
        let fresh: Vec<_> =
            (0..20).map(|seed| train(&pipeline, &image(32), &mut Random::named(seed, "a"))).collect();
        train(&Pipeline::new(16, Policy::Imagenet, MEAN, STD), &image(16), &mut Random::named(9, "b"));
        for (seed, expected) in fresh.iter().enumerate().rev() {
            assert_eq!(&train(&pipeline, &image(32), &mut Random::named(seed as u64, "a")), expected);
        }
        assert!(fresh.iter().flatten().all(|value| value.is_finite()));
    }
}
