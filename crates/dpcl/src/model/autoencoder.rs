//! A variational autoencoder of linear layers: how well it can tell an image again, and images like those it learned.
//!
//! Loss of an image x in 0..1: Σ (x − x̂)² + ½ Σ (μ² + σ² − ln(10⁻⁸ + σ²) − 1), with x̂ the sigmoid of the decoded code
//! μ + σ·ξ and σ a softplus. Halfway to the code there is another draw, of which the loss says nothing.

use burn::tensor::{
    Device, Tensor,
    activation::{sigmoid, softplus},
};

use dpcl_kernels::linear;

use super::{
    Adam, FileLayout,
    weights::{Weights, floats, matrix},
};
use crate::{
    error::Result,
    random::Random,
    state::{Persist, State},
};

/// Widths between pixels and code, the code's last.
const WIDTHS: [usize; 6] = [2000, 1500, 1000, 600, 300, 200];

/// What is in a logarithm beside a variance.
const TINY: f64 = 1e-8;

/// Encoder and decoder without biases.
#[derive(Clone)]
pub struct Autoencoder {
    /// Numbers of an image, then widths up to the code.
    sizes: [usize; 7],
    /// In the order of [`NAMES`].
    weights: Weights,
}

/// Names of the weights.
const NAMES: [&str; 14] = [
    "encoder.0",
    "encoder.1",
    "middle.mean",
    "middle.spread",
    "encoder.2",
    "encoder.3",
    "code.mean",
    "code.spread",
    "decoder.0",
    "decoder.1",
    "decoder.2",
    "decoder.3",
    "decoder.4",
    "decoder.5",
];

/// Where the weights of the decoder begin.
const DECODER: usize = 8;

/// What chance has a part in: standard normal numbers for the draw halfway and for the code, [rows, width] each.
pub struct Noise {
    middle: Tensor<2>,
    code: Tensor<2>,
}

/// A drawn or expected code, and what its distribution was.
struct Code {
    code: Tensor<2>,
    mean: Tensor<2>,
    spread: Tensor<2>,
}

impl Autoencoder {
    /// Fresh weights (Glorot, uniform) for images of `pixels` numbers, layers `width` times as wide as the authors'.
    pub fn new(pixels: usize, width: f64, random: &mut Random, device: &Device) -> Self {
        let scaled = WIDTHS.map(|full| ((full as f64 * width).round() as usize).max(1));
        let [a, b, c, d, e, f] = scaled;
        let sizes = [pixels, a, b, c, d, e, f];
        let shapes = [
            [pixels, a],
            [a, b],
            [b, c],
            [b, c],
            [c, d],
            [d, e],
            [e, f],
            [e, f],
            [f, e],
            [e, d],
            [d, c],
            [c, b],
            [b, a],
            [a, pixels],
        ];
        let mut weights = Weights::default();
        for (name, [rows, columns]) in NAMES.into_iter().zip(shapes) {
            let bound = (6.0 / (rows + columns) as f64).sqrt();
            let numbers = (0..rows * columns).map(|_| random.between(-bound, bound) as f32).collect();
            weights.push(name, FileLayout::Linear, matrix(numbers, [rows, columns], device));
        }
        Self { sizes, weights }
    }

    /// Its weights.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Numbers of a code.
    pub fn code(&self) -> usize {
        self.sizes[6]
    }

    /// Takes a step down the mean loss of images [rows, pixels]; returns that loss. One that is not finite changes
    /// nothing.
    pub fn learn(&mut self, images: Tensor<2>, random: &mut Random, optimiser: &mut Adam, rate: f64) -> f64 {
        let [rows, _] = images.dims();
        let noise = self.noise(rows, random);
        let tracked = self.weights.tracked(|_| true);
        let loss = losses(&tracked, images, Some(noise)).mean();

        let value = f64::from(floats(loss.clone())[0]);
        if value.is_finite() {
            let mut gradients = loss.backward();
            let gradients = tracked.iter().map(|weight| weight.grad_remove(&mut gradients)).collect();
            optimiser.step(&mut self.weights, gradients, rate);
        }
        value
    }

    fn noise(&self, rows: usize, random: &mut Random) -> Noise {
        let device = self.weights.value(0).device();
        let mut normal = |width: usize| {
            let numbers = (0..rows * width).map(|_| random.normal() as f32).collect();
            matrix(numbers, [rows, width], &device)
        };
        Noise { middle: normal(self.sizes[3]), code: normal(self.sizes[6]) }
    }

    /// The loss of each of some images [rows, pixels], at the means of what else is drawn.
    pub fn losses(&self, images: Tensor<2>) -> Vec<f32> {
        floats(losses(&self.values(), images, None))
    }

    /// The images of codes [rows, width] → [rows, pixels], in 0..1.
    pub fn decoded(&self, codes: Tensor<2>) -> Tensor<2> {
        decode(&self.values(), codes)
    }

    fn values(&self) -> Vec<Tensor<2>> {
        self.weights.iter().map(|weight| weight.value.clone()).collect()
    }
}

/// The loss of each image [rows, pixels] → `[rows]` under given weights, in table order.
fn losses(weights: &[Tensor<2>], images: Tensor<2>, noise: Option<Noise>) -> Tensor<1> {
    let [rows, _] = images.dims();
    let Code { code, mean, spread } = encode(weights, images.clone(), noise);
    let told = (decode(weights, code) - images).square().sum_dim(1);
    let variance = spread.square();
    let divergence = mean.square() + variance.clone() - variance.add_scalar(TINY).log() - 1.0;
    (told + divergence.sum_dim(1).mul_scalar(0.5)).reshape([rows])
}

fn encode(weights: &[Tensor<2>], images: Tensor<2>, noise: Option<Noise>) -> Code {
    let (middle_noise, code_noise) = match noise {
        Some(Noise { middle, code }) => (Some(middle), Some(code)),
        None => (None, None),
    };
    let inner = through(&weights[..2], images);
    let middle = drawn(&weights[2..4], inner, middle_noise).code;
    let inner = through(&weights[4..6], middle);
    drawn(&weights[6..8], inner, code_noise)
}

fn decode(weights: &[Tensor<2>], codes: Tensor<2>) -> Tensor<2> {
    sigmoid(through(&weights[DECODER..], codes))
}

/// A draw with the mean and spread that two weights give; the mean itself without noise.
fn drawn(weights: &[Tensor<2>], x: Tensor<2>, noise: Option<Tensor<2>>) -> Code {
    let mean = product(x.clone(), weights[0].clone());
    let spread = softplus(product(x, weights[1].clone()), 1.0);
    let code = match noise {
        Some(noise) => mean.clone() + spread.clone() * noise,
        None => mean.clone(),
    };
    Code { code, mean, spread }
}

/// One weight after the other.
fn through(weights: &[Tensor<2>], x: Tensor<2>) -> Tensor<2> {
    weights.iter().fold(x, |x, weight| product(x, weight.clone()))
}

fn product(x: Tensor<2>, weight: Tensor<2>) -> Tensor<2> {
    let [_, outputs] = weight.dims();
    let bias = Tensor::zeros([1, outputs], &weight.device());
    linear(x, weight, bias)
}

impl Persist for Autoencoder {
    fn save(&self, state: &mut State) {
        self.weights.save(state);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.weights.load(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inner::quotients::Quotients;

    fn small() -> Autoencoder {
        Autoencoder::new(12, 0.003, &mut Random::named(1, "autoencoder"), &Device::flex())
    }

    fn pictures(rows: usize, pixels: usize) -> Tensor<2> {
        let mut random = Random::named(2, "pictures");
        let numbers = (0..rows * pixels).map(|_| random.uniform() as f32).collect();
        matrix(numbers, [rows, pixels], &Device::flex())
    }

    #[test]
    fn layers_are_scaled_and_never_empty() {
        let autoencoder = small();
        assert_eq!(autoencoder.sizes, [12, 6, 5, 3, 2, 1, 1]);
        let full = Autoencoder::new(1, 1.0, &mut Random::named(1, "autoencoder"), &Device::flex());
        assert_eq!(full.sizes[1..], WIDTHS);
        // 2000·1500 + 1500·1000 + 1000·600 + 600·300 + 300·200 both ways, the spreads, and a pixel.
        assert_eq!(full.weights.count(), 2 * 5_340_000 + 1_560_000 + 2 * 2000);
    }

    /// One number everywhere: the image is x, every weight of value w is a factor.
    #[test]
    fn the_loss_of_one_pixel_is_that_of_the_formula() {
        let device = Device::flex();
        let values = [0.5, 2.0, 1.0, -1.0, 2.0, 1.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 1.0];
        let weights: Vec<Tensor<2>> =
            values.iter().map(|&value| matrix(vec![value], [1, 1], &device)).collect();
        let x = 0.75_f64;
        // Up to the middle a factor of 1; from there to the code's mean another, and 2 before its spread.
        let softplus = |x: f64| (1.0 + x.exp()).ln();
        let loss = |middle: f64, noise: f64| {
            let (mean, spread) = (middle, softplus(2.0 * middle));
            let told = 1.0 / (1.0 + (-2.0 * (mean + spread * noise)).exp());
            let divergence = mean * mean + spread * spread - (TINY + spread * spread).ln() - 1.0;
            (x - told).powi(2) + 0.5 * divergence
        };
        let one = |value: f64| matrix(vec![value as f32], [1, 1], &device);
        let found = |noise: Option<Noise>| f64::from(floats(losses(&weights, one(x), noise))[0]);
        assert!((found(None) - loss(x, 0.0)).abs() < 1e-6);
        let noise = Noise { middle: one(0.5), code: one(-1.5) };
        let middle = x + 0.5 * softplus(-x);
        assert!((found(Some(noise)) - loss(middle, -1.5)).abs() < 1e-6);
    }

    #[test]
    fn the_loss_has_the_gradient_of_its_differences() {
        let autoencoder = Autoencoder::new(12, 0.01, &mut Random::named(1, "autoencoder"), &Device::flex());
        let images = pictures(5, 12);
        let noise = || autoencoder.noise(5, &mut Random::named(3, "noise"));
        let tracked = autoencoder.weights.tracked(|_| true);
        let mut gradients = losses(&tracked, images.clone(), Some(noise())).mean().backward();
        let quotients = Quotients { steps: &[1e-3, 3e-3, 1e-2], least_norm: 1e-4, share: 0.1 };
        for (position, weight) in tracked.iter().enumerate() {
            let gradient = floats(weight.grad_remove(&mut gradients).unwrap());
            let gradient: Vec<f64> = gradient.into_iter().map(f64::from).collect();
            let mut value = |offset: Vec<f32>| {
                let mut moved = autoencoder.values();
                let shape = moved[position].dims();
                moved[position] = moved[position].clone() + matrix(offset, shape, &Device::flex());
                f64::from(floats(losses(&moved, images.clone(), Some(noise())).mean())[0])
            };
            assert_eq!(quotients.fault(&gradient, &mut value), None, "{}", NAMES[position]);
        }
    }

    #[test]
    fn what_was_learned_is_told_better_than_what_was_not() {
        let device = Device::flex();
        let mut autoencoder = Autoencoder::new(12, 0.02, &mut Random::named(1, "autoencoder"), &device);
        let (mut optimiser, mut random) = (Adam::new(&device), Random::named(3, "noise"));
        let bright = |level: f32| matrix([level, 1.0 - level].repeat(6).repeat(8), [8, 12], &device);
        let first = autoencoder.learn(bright(0.95), &mut random, &mut optimiser, 1e-2);
        let last =
            (0..300).map(|_| autoencoder.learn(bright(0.95), &mut random, &mut optimiser, 1e-2)).last();
        assert!(last.unwrap() < 0.5 * first, "{first} became {last:?}");
        let [known, unknown] = [0.95, 0.05].map(|level| autoencoder.losses(bright(level))[0]);
        assert!(known < unknown, "{known} and {unknown}");
        let codes = matrix(vec![0.1; 2 * autoencoder.code()], [2, autoencoder.code()], &device);
        let told = floats(autoencoder.decoded(codes));
        // Without biases the opposite code gives the opposite image.
        let apart = |pair: &[f32]| (pair[0] - pair[1]) * (told[0] - told[1]) > 0.01;
        assert!(told.len() == 24 && told.chunks(2).all(apart), "{told:?}");
    }

    #[test]
    fn a_loss_that_is_not_finite_changes_nothing() {
        let mut autoencoder = small();
        let before = autoencoder.values().into_iter().map(floats).collect::<Vec<_>>();
        let mut optimiser = Adam::new(&Device::flex());
        let images = matrix(vec![f32::NAN; 12], [1, 12], &Device::flex());
        assert!(autoencoder.learn(images, &mut Random::named(3, "noise"), &mut optimiser, 0.1).is_nan());
        assert_eq!(before, autoencoder.values().into_iter().map(floats).collect::<Vec<_>>());
    }
}
