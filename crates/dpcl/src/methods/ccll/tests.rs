//! Modules that change nothing, against the network they stand in.

use burn::tensor::{Device, Tensor};

use super::*;
use crate::{
    model::{Growth, cross_entropy, floats},
    random::Random,
};

const SIZE: usize = 16;

/// A network with statistics of its own, and images.
fn network() -> (Model, Tensor<4>) {
    let architecture = Architecture::named("slim", Some(4), 1e-6, 0.1).unwrap();
    let mut model = Model::new(architecture, 1, 4, &Device::flex());
    (0..3).for_each(|_| model.grow(Growth { keep_bias: true, keep_moments: true }));
    let mut random = Random::named(7, "images");
    let images = model.images((0..6 * SIZE * SIZE * 3).map(|_| random.normal() as f32).collect(), SIZE);
    let mut pass = model.pass();
    let features = pass.features(images.clone());
    let loss = cross_entropy(pass.logits(features), &[0, 1, 2, 2, 1, 0]);
    model.step(pass, &loss, 1e-2);
    (model, images)
}

fn calibration(model: &Model, gate: f64) -> Calibration {
    Calibration::fresh(model.encoder().architecture(), 16, gate, &model.device())
}

#[test]
fn modules_with_gates_wide_open_give_the_networks_bits() {
    let (model, images) = network();
    let neutral = calibration(&model, 17.0);
    let expected = floats(model.network().features(images.clone()));
    assert_eq!(floats(neutral.evaluate(model.network(), images.clone())), expected);
    let expected = floats(model.pass().features(images.clone()));
    assert_eq!(floats(neutral.train(&mut model.pass(), images)), expected);
}

#[test]
fn modules_that_open_as_configured_give_nearly_the_network() {
    let (model, images) = network();
    let fresh = calibration(&model, CcllKeys::default().gate);
    let expected = floats(model.network().features(images.clone()));
    let found = floats(fresh.evaluate(model.network(), images));
    // No more than nine layers lie between an image and a feature, and the gates of all 20 are alike.
    let norm = |numbers: &mut dyn Iterator<Item = f32>| -> f64 {
        numbers.map(|number| f64::from(number).powi(2)).sum::<f64>().sqrt()
    };
    let away = norm(&mut found.iter().zip(&expected).map(|(found, expected)| found - expected));
    let all = norm(&mut expected.iter().copied());
    assert!(away > 0.0 && away < 0.05 * all, "{away} of {all}");
}

#[test]
fn every_module_of_a_fresh_calibration_has_a_gradient() {
    let (model, images) = network();
    let fresh = calibration(&model, CcllKeys::default().gate);
    let mut pass = model.pass_learning(Norms::have);
    let features = fresh.train(&mut pass, images);
    let loss = cross_entropy(pass.logits(features), &[0, 1, 2, 2, 1, 0]);
    let outcome = pass.backward(&loss);
    for (weight, gradient) in fresh.weights().iter().zip(&outcome.further[0]) {
        let gradient = floats(gradient.clone().unwrap());
        let largest = gradient.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
        assert!(largest > 1e-7, "{}: {largest}", weight.name);
    }
    let learned: Vec<bool> = outcome.encoder.iter().map(Option::is_some).collect();
    let norms: Vec<bool> = model.encoder().weights().iter().map(|weight| Norms::have(&weight.name)).collect();
    assert_eq!(learned, norms, "convolutions stay, batch norms learn");
}
