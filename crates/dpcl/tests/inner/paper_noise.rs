//! The noise of the paper as a training step applies it: how strong on the rows of each class, and mixed with what.
//!
//! Draws are seeded and every bound is five standard errors or more, so that a failure is no accident.

use super::moments::{correlation, deviation, largest, mean, waves};
use crate::model::floats;
use crate::perturb::{Disturbance, Mixing, NoiseKind, Pfi, PfiConfig};
use burn::tensor::{Device, Tensor, TensorData};

const DEPTH: usize = 2;

/// How hard the classes of the rows are: no two rows alike, one of them undisturbed.
const FACTORS: [f64; 4] = [1.2, 0.0, 0.3, 0.7];
const ROWS: usize = FACTORS.len();

/// Activations of a batch: twenty thousand numbers a row.
const SHAPE: [usize; 4] = [ROWS, 50, 50, 8];
const LENGTH: usize = 50 * 50 * 8;

const SIGMA_A: f64 = 0.4;
const SIGMA_M: f64 = 0.1;

/// A second Beta parameter with which rows keep all of themselves.
const ALONE: f64 = 1e-300;

fn pfi(beta: f64) -> Pfi {
    let (layers, noise) = (vec![DEPTH], NoiseKind::Paper);
    let config =
        PfiConfig { sigma_a: SIGMA_A, sigma_m: SIGMA_M, beta, layers, noise, ..PfiConfig::default() };
    Pfi::new(config, 7)
}

fn on(disturbance: &Disturbance, activations: Tensor<4>) -> Vec<f64> {
    floats(disturbance.apply(DEPTH, activations)).into_iter().map(f64::from).collect()
}

/// What is added to the activations, mixed.
fn shifts(disturbance: &Disturbance) -> Vec<f64> {
    on(disturbance, Tensor::zeros(SHAPE, &Device::flex()))
}

/// What a row of ones among zeros brings into each row.
fn brought(disturbance: &Disturbance, row: usize, shifts: &[f64]) -> Vec<f64> {
    let ones = (0..ROWS * LENGTH).map(|index| f32::from(u8::from(index / LENGTH == row))).collect::<Vec<_>>();
    let ones = Tensor::from_data(TensorData::new(ones, SHAPE), &Device::flex());
    on(disturbance, ones).iter().zip(shifts).map(|(sum, shift)| sum - shift).collect()
}

fn row(numbers: &[f64], row: usize) -> &[f64] {
    &numbers[row * LENGTH..][..LENGTH]
}

/// Asserts that numbers are normal around 0 with the given deviation.
fn is_normal(numbers: &[f64], expected: f64, what: &str) {
    let off = mean(numbers.iter().copied()) / expected;
    assert!(off.abs() < 0.04, "{what}: the mean is off by {off} deviations");
    let found = deviation(numbers);
    assert!((found / expected - 1.0).abs() < 0.03, "{what}: {found} for {expected}");
    let share = |limit: f64| mean(numbers.iter().map(|x| f64::from(u8::from(x.abs() > limit * expected))));
    for (limit, expected) in [(0.5, 0.617_075), (1.0, 0.317_311), (2.0, 0.045_500)] {
        assert!((share(limit) - expected).abs() < 0.02, "{what}: {} beyond {limit} deviations", share(limit));
    }
}

#[test]
fn both_noises_are_as_strong_as_the_class_of_the_row_is_hard() {
    let disturbance = pfi(ALONE).draw(&FACTORS);
    assert_eq!(disturbance.mixing.coefficient, 1.0);
    let shifts = shifts(&disturbance);
    for (own, factor) in FACTORS.into_iter().enumerate() {
        let products = brought(&disturbance, own, &shifts);
        let others = (0..ROWS).filter(|&other| other != own);
        assert!(others.into_iter().all(|other| largest(row(&products, other)) == 0.0), "nothing is mixed in");
        let product: Vec<f64> = row(&products, own).iter().map(|product| product - 1.0).collect();
        if factor == 0.0 {
            assert_eq!((largest(&product), largest(row(&shifts, own))), (0.0, 0.0), "a class without loss");
            continue;
        }
        is_normal(&product, SIGMA_M * factor, "multiplied by");
        is_normal(row(&shifts, own), SIGMA_A * factor, "added");
        assert!(correlation(&product, row(&shifts, own)).abs() < 0.04, "both noises are independent");
    }
    assert!(correlation(row(&shifts, 0), row(&shifts, 2)).abs() < 0.04, "rows are independent");
}

/// What the activations of each row are multiplied by, from what the row brings into itself.
fn factors(disturbance: &Disturbance, shifts: &[f64]) -> Vec<Vec<f64>> {
    let Mixing { coefficient, partners } = &disturbance.mixing;
    let factors = |own: usize| {
        let share = if partners[own] == own { 1.0 } else { *coefficient };
        let products = brought(disturbance, own, shifts);
        row(&products, own).iter().map(|product| product / share).collect()
    };
    (0..ROWS).map(factors).collect()
}

#[test]
fn rows_are_mixed_with_what_their_partners_have_become() {
    let (mut pfi, mut paired) = (pfi(1.0), 0);
    let before: Vec<f64> = floats(waves(SHAPE)).into_iter().map(f64::from).collect();
    for _ in 0..5 {
        let disturbance = pfi.draw(&FACTORS);
        let Mixing { coefficient, partners } = &disturbance.mixing;
        let shifts = shifts(&disturbance);
        let factors = factors(&disturbance, &shifts);
        for (own, &partner) in partners.iter().enumerate() {
            paired += usize::from(partner != own);
            let strength = deviation(&factors[own]);
            let expected = SIGMA_M * FACTORS[own];
            assert!((strength - expected).abs() < 0.03 * expected + 1e-6, "{strength} for {expected}");

            // Shifts of two rows are independent, those of a row that is its own partner are the same.
            let [mine, other] = [coefficient * FACTORS[own], (1.0 - coefficient) * FACTORS[partner]];
            let expected = SIGMA_A * if partner == own { FACTORS[own] } else { mine.hypot(other) };
            let strength = deviation(row(&shifts, own));
            assert!((strength - expected).abs() < 0.03 * expected + 1e-9, "{strength} for {expected}");
        }

        for (index, found) in on(&disturbance, waves(SHAPE)).into_iter().enumerate() {
            let (own, place) = (index / LENGTH, index % LENGTH);
            let become_of = |row: usize| factors[row][place] * before[row * LENGTH + place];
            let mixed = coefficient * become_of(own) + (1.0 - coefficient) * become_of(partners[own]);
            let expected = mixed + shifts[index];
            assert!((found - expected).abs() < 1e-4, "{found} for {expected} in row {own}");
        }
    }
    assert!(paired >= ROWS, "some rows have partners");
}
