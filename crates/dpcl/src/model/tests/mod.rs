//! What can be asked of a network, each held against central difference quotients of the loss.
//!
//! The network is small (base width 4, images of 16 × 16 pixels) and computes in single precision, losses are worked out
//! in double precision from its logits: what single precision leaves unsure of a loss would be most of what is unsure
//! of a difference.

mod average;
mod evaluation;
mod exchanged;
mod held;
mod shifted;
mod tracked;
mod watched;

use burn::tensor::{Device, Tensor};

use super::{Architecture, FileLayout, Growth, Model, Weights, cross_entropy, floats, matrix};
use crate::{inner::quotients::Quotients, random::Random};

const SIZE: usize = 16;
const LABELS: [usize; 6] = [0, 1, 2, 2, 1, 0];

/// A network of two heads and three classes; another name gives other weights.
fn network(name: &str) -> Model {
    let architecture = Architecture::named("slim", Some(4), 1e-6, 0.1).unwrap();
    let mut model = Model::named(architecture, 2, 4, name, &Device::flex());
    (0..3).for_each(|_| model.grow(Growth { keep_bias: true, keep_moments: true }));
    model
}

/// One image a label, [6, 16, 16, 3].
fn images(model: &Model) -> Tensor<4> {
    let mut random = Random::named(7, "images");
    model.images((0..LABELS.len() * SIZE * SIZE * 3).map(|_| random.normal() as f32).collect(), SIZE)
}

/// A table of one row of numbers near zero.
fn row(name: &str, length: usize) -> Weights {
    let mut random = Random::named(7, name);
    let numbers = (0..length).map(|_| (0.2 * random.normal()) as f32).collect();
    let mut weights = Weights::default();
    weights.push(name, FileLayout::Vector, matrix(numbers, [1, length], &Device::flex()));
    weights
}

/// [1, channels] to be multiplied with activations [rows, height, width, channels].
fn along_channels(vector: Tensor<2>) -> Tensor<4> {
    let [_, channels] = vector.dims();
    vector.reshape([1, 1, 1, channels])
}

/// Mean cross-entropy of logits [heads, rows, classes] in double precision.
fn entropy(logits: Tensor<3>) -> f64 {
    let [_, rows, classes] = logits.dims();
    let logits: Vec<f64> = floats(logits).into_iter().map(f64::from).collect();
    let losses = logits.chunks_exact(classes).enumerate().map(|(index, logits)| {
        logits.iter().map(|logit| logit.exp()).sum::<f64>().ln() - logits[LABELS[index % rows]]
    });
    losses.sum::<f64>() / (logits.len() / classes) as f64
}

/// Mean square in double precision.
fn mean_square<const D: usize>(tensor: Tensor<D>) -> f64 {
    let numbers = floats(tensor);
    numbers.iter().map(|&number| f64::from(number).powi(2)).sum::<f64>() / numbers.len() as f64
}

/// A tensor moved by as many numbers as it holds.
fn moved<const D: usize>(tensor: &Tensor<D>, offset: Vec<f32>) -> Tensor<D> {
    let length = offset.len();
    tensor.clone() + matrix(offset, [1, length], &Device::flex()).reshape(tensor.dims())
}

/// A table with its first weight moved.
fn moved_first(weights: &Weights, offset: Vec<f32>) -> Weights {
    let mut copy = weights.clone();
    copy.set(0, moved(weights.value(0), offset));
    copy
}

/// Position of an encoder's weight.
fn position(model: &Model, name: &str) -> usize {
    model.encoder().weights().iter().position(|weight| weight.name == name).unwrap()
}

/// Runs `value` with an encoder's weight moved, and moves it back.
fn with_moved<T>(model: &mut Model, position: usize, offset: Vec<f32>, value: impl FnOnce(&Model) -> T) -> T {
    let old = model.encoder().weights().value(position).clone();
    model.encoder_mut().weights_mut().set(position, moved(&old, offset));
    let found = value(model);
    model.encoder_mut().weights_mut().set(position, old);
    found
}

/// How closely gradients are looked at here.
const QUOTIENTS: Quotients = Quotients { steps: &[3e-4, 1e-3, 3e-3, 1e-2], least_norm: 1e-4, share: 0.2 };

/// Asserts that a gradient is that of `value`, and that the comparison would notice a factor or a missing half.
fn assert_gradient(what: &str, gradient: Tensor<2>, mut value: impl FnMut(Vec<f32>) -> f64) {
    let gradient: Vec<f64> = floats(gradient).into_iter().map(f64::from).collect();
    assert_eq!(QUOTIENTS.fault(&gradient, &mut value), None, "{what}");
    let half = gradient.len() / 2;
    let wrong = [
        gradient.iter().map(|g| 1.2 * g).collect(),
        gradient.iter().enumerate().map(|(at, &g)| if at < half { 0.0 } else { g }).collect(),
        gradient.iter().enumerate().map(|(at, &g)| if at < half { g } else { 0.0 }).collect(),
    ];
    for (number, wrong) in wrong.iter().map(Vec::as_slice).enumerate() {
        assert!(
            QUOTIENTS.fault(wrong, &mut value).is_some(),
            "{what}: wrong gradient {number} goes unnoticed"
        );
    }
}

/// The loss most tests use: the cross-entropy of the labels.
fn loss(logits: Tensor<3>) -> Tensor<1> {
    cross_entropy(logits, &LABELS)
}
