//! Moments of drawn numbers, and activations to disturb.

#![allow(dead_code, reason = "each test file uses some of it")]

use burn::tensor::{Device, Tensor, TensorData};

/// The mean.
pub fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = numbers.fold((0.0, 0.0), |(count, sum), number| (count + 1.0, sum + number));
    sum / count
}

/// The standard deviation.
pub fn deviation(numbers: &[f64]) -> f64 {
    let middle = mean(numbers.iter().copied());
    mean(numbers.iter().map(|number| (number - middle).powi(2))).sqrt()
}

/// The correlation of pairs of numbers.
pub fn correlation(one: &[f64], other: &[f64]) -> f64 {
    let middles = [one, other].map(|numbers| mean(numbers.iter().copied()));
    let product = one.iter().zip(other).map(|(one, other)| (one - middles[0]) * (other - middles[1]));
    mean(product) / (deviation(one) * deviation(other))
}

/// The largest distance from 0.
pub fn largest(numbers: &[f64]) -> f64 {
    numbers.iter().fold(0.0, |largest, number| number.abs().max(largest))
}

/// Activations that are all different.
pub fn waves(shape: [usize; 4]) -> Tensor<4> {
    let numbers: Vec<f32> =
        (0..shape.iter().product()).map(|index: usize| (index as f32 * 0.7).sin()).collect();
    Tensor::from_data(TensorData::new(numbers, shape), &Device::flex())
}
