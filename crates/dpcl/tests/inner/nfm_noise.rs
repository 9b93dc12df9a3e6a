//! The noise of noisy feature mixup as a training step applies it: to what, how spread and how strong.
//!
//! Draws are seeded and every bound is five standard errors or more, so that a failure is no accident.

use super::moments::{correlation, deviation, largest, mean, waves};
use crate::model::floats;
use crate::perturb::{Disturbance, NoiseKind, Pfi, PfiConfig, mix};
use burn::tensor::{Device, Tensor};

const DEPTH: usize = 1;
const ROWS: usize = 4;

/// Activations of a batch: twenty thousand numbers a row.
const SHAPE: [usize; 4] = [ROWS, 50, 50, 8];
const LENGTH: usize = 50 * 50 * 8;

const SIGMA_A: f64 = 0.4;
const SIGMA_M: f64 = 0.2;

fn pfi(sigma_a: f64, sigma_m: f64) -> Pfi {
    let noise = NoiseKind::Nfm;
    Pfi::new(PfiConfig { sigma_a, sigma_m, layers: vec![DEPTH], noise, ..PfiConfig::default() }, 7)
}

fn draw(pfi: &mut Pfi) -> Disturbance {
    pfi.draw(&[1.0; ROWS])
}

/// What the activations are multiplied by, less 1, and what is added to them.
fn noise(disturbance: &Disturbance, shape: [usize; 4]) -> (Vec<f64>, Vec<f64>) {
    let device = Device::flex();
    let on = |activations: Tensor<4>| -> Vec<f64> {
        floats(disturbance.apply(DEPTH, activations)).into_iter().map(f64::from).collect()
    };
    // Mixed with each other, zeros stay zeros and ones stay ones.
    let shift = on(Tensor::zeros(shape, &device));
    let sum = on(Tensor::ones(shape, &device));
    let factor = sum.iter().zip(&shift).map(|(sum, shift)| sum - shift - 1.0).collect();
    (factor, shift)
}

#[test]
fn without_levels_only_mixing_is_left() {
    let mut pfi = pfi(0.0, 0.0);
    for _ in 0..5 {
        let disturbance = draw(&mut pfi);
        let mixed = floats(mix(waves(SHAPE), &disturbance.mixing));
        assert!(floats(disturbance.apply(DEPTH, waves(SHAPE))) == mixed, "{:?}", disturbance.mixing);
    }
}

#[test]
fn activations_are_mixed_before_they_are_disturbed() {
    let mut pfi = pfi(SIGMA_A, SIGMA_M);
    for _ in 0..5 {
        let disturbance = draw(&mut pfi);
        let (factor, shift) = noise(&disturbance, SHAPE);
        let mixed = floats(mix(waves(SHAPE), &disturbance.mixing));
        let found = floats(disturbance.apply(DEPTH, waves(SHAPE)));
        for (index, (found, mixed)) in found.into_iter().zip(mixed).enumerate() {
            let expected = (1.0 + factor[index]) * f64::from(mixed) + shift[index];
            assert!((f64::from(found) - expected).abs() < 1e-5, "{found} for {expected} at {index}");
        }
    }
}

#[test]
fn what_is_added_is_normal_and_as_strong_on_every_row() {
    let (factor, shift) = noise(&draw(&mut pfi(SIGMA_A, 0.0)), SHAPE);
    assert!(largest(&factor) < 1e-6, "nothing is multiplied");
    let strength = deviation(&shift);
    assert!(strength > 0.0 && strength < SIGMA_A, "{strength}");
    for row in shift.chunks_exact(LENGTH) {
        let off = mean(row.iter().copied()) / strength;
        assert!(off.abs() < 0.04, "the mean is off by {off} deviations");
        assert!((deviation(row) / strength - 1.0).abs() < 0.03, "{} for {strength}", deviation(row));
    }
    let share = |limit: f64| mean(shift.iter().map(|x| f64::from(u8::from(x.abs() > limit * strength))));
    for (limit, expected) in [(0.5, 0.617_075), (1.0, 0.317_311), (2.0, 0.045_500)] {
        assert!((share(limit) - expected).abs() < 0.015, "{} beyond {limit} deviations", share(limit));
    }
    assert!(correlation(&shift[..LENGTH], &shift[LENGTH..2 * LENGTH]).abs() < 0.04, "rows are independent");
}

#[test]
fn what_is_multiplied_by_is_uniform_and_as_wide_on_every_row() {
    let (factor, shift) = noise(&draw(&mut pfi(0.0, SIGMA_M)), SHAPE);
    assert!(shift.iter().all(|&shift| shift == 0.0), "nothing is added");
    let width = largest(&factor);
    assert!(width > 0.0 && width < SIGMA_M, "{width}");
    for row in factor.chunks_exact(LENGTH) {
        let off = mean(row.iter().copied()) / width;
        assert!(off.abs() < 0.025, "the mean is off by {off} of the width");
        assert!((largest(row) / width - 1.0).abs() < 2e-3, "{} for {width}", largest(row));
    }
    let share = |limit: f64| mean(factor.iter().map(|x| f64::from(u8::from(x.abs() > limit * width))));
    for limit in [0.25, 0.5, 0.75] {
        assert!((share(limit) - (1.0 - limit)).abs() < 0.015, "{} beyond {limit} of the width", share(limit));
    }
    assert!(correlation(&factor[..LENGTH], &factor[LENGTH..2 * LENGTH]).abs() < 0.04, "rows are independent");
}

#[test]
fn levels_are_damped_by_two_independent_draws_from_beta_two_five_a_batch() {
    let mut pfi = pfi(SIGMA_A, SIGMA_M);
    let (mut damp_m, mut damp_a) = (Vec::new(), Vec::new());
    for _ in 0..400 {
        let (factor, shift) = noise(&draw(&mut pfi), [ROWS, 10, 10, 5]);
        // A uniform number in ±1 deviates by 1/√3.
        damp_m.push(deviation(&factor) * 3.0_f64.sqrt() / SIGMA_M);
        damp_a.push(deviation(&shift) / SIGMA_A);
        assert!(correlation(&factor, &shift).abs() < 0.13, "both noises are independent");
    }
    for damp in [&damp_m, &damp_a] {
        let first = mean(damp.iter().copied());
        let second = mean(damp.iter().map(|number| number.powi(2)));
        assert!((first - 2.0 / 7.0).abs() < 0.04, "the mean is {first}");
        assert!((second - 3.0 / 28.0).abs() < 0.03, "the second moment is {second}");
        assert!(largest(damp) < 1.0, "{}", largest(damp));
    }
    assert!(correlation(&damp_m, &damp_a).abs() < 0.25, "{}", correlation(&damp_m, &damp_a));
}

#[test]
fn every_batch_has_noise_of_its_own_and_keeps_it() {
    let mut pfi = pfi(SIGMA_A, SIGMA_M);
    let [one, other] = [(); 2].map(|()| draw(&mut pfi));
    let (one_noise, other_noise) = (noise(&one, SHAPE), noise(&other, SHAPE));
    assert!(one_noise == noise(&one, SHAPE), "the same numbers every time");
    assert!(correlation(&one_noise.0, &other_noise.0).abs() < 0.02, "factors of two batches");
    assert!(correlation(&one_noise.1, &other_noise.1).abs() < 0.02, "shifts of two batches");
}

#[test]
fn how_hard_classes_are_does_not_matter() {
    let alike = draw(&mut pfi(SIGMA_A, SIGMA_M));
    let unlike = pfi(SIGMA_A, SIGMA_M).draw(&[0.0, 0.3, 1.0, 1.5]);
    assert!(floats(alike.apply(DEPTH, waves(SHAPE))) == floats(unlike.apply(DEPTH, waves(SHAPE))));
}
