//! Inputs and outputs of every layer, seen and replaced, in training and in evaluation.

use burn::tensor::{Device, Tensor};

use super::{along_channels, assert_gradient, entropy, images, loss, moved_first, network, position, row};
use crate::model::{Architecture, Growth, LayerView, Model, Outcome, Pass, Weights, floats};

/// Calibrated layers: one inside a block, one that ends a block, a projection.
const CALIBRATED: [&str; 3] = ["group1.block0.conv1", "group2.block1.conv2", "group3.block0.shortcut.conv"];
const WIDTHS: [usize; 3] = [4, 8, 16];

fn calibrated(gates: &[Tensor<2>], view: LayerView<'_>) -> Tensor<4> {
    match CALIBRATED.iter().position(|name| *name == view.layer.convolution) {
        Some(at) => view.output * along_channels(gates[at].clone().add_scalar(1.0)),
        None => view.output,
    }
}

fn gates() -> [Weights; 3] {
    WIDTHS.map(|width| row("gate", width))
}

fn logits(pass: &mut Pass, model: &Model, gates: &[Tensor<2>]) -> Tensor<3> {
    let features = pass.features_watching(images(model), &mut |view| calibrated(gates, view));
    pass.logits(features)
}

#[test]
fn what_replaces_a_layers_output_has_a_gradient() {
    let model = network("");
    let tables = gates();
    let mut pass = model.pass();
    let tracked: Vec<Tensor<2>> = tables.iter().flat_map(|table| pass.track(table)).collect();
    let logits_here = logits(&mut pass, &model, &tracked);
    let outcome = pass.backward(&loss(logits_here));
    for (at, gradients) in outcome.further.iter().enumerate() {
        assert_gradient(CALIBRATED[at], gradients[0].clone().unwrap(), |offset| {
            let mut tables = tables.clone();
            tables[at] = moved_first(&tables[at], offset);
            let gates = tables.map(|table| table.value(0).clone());
            entropy(logits(&mut model.pass(), &model, &gates))
        });
    }
}

#[test]
fn in_evaluation_a_gate_acts_as_in_the_batch_norm() {
    let gates = gates().map(|table| table.value(0).clone());
    let mut model = network("");
    // Statistics that are not those of the start.
    let mut pass = model.pass();
    let features = pass.features(images(&model));
    let total = loss(pass.logits(features));
    model.step(pass, &total, 1e-3);
    let found = model.network().features_watching(images(&model), &mut |view| calibrated(&gates, view));

    // A ReLU lets a positive factor through, and these gates are positive.
    for (name, gate) in CALIBRATED.iter().zip(&gates) {
        let norm = position(&model, &format!("{name}.weight")) + 1;
        for position in [norm, norm + 1] {
            let weights = model.encoder_mut().weights_mut();
            weights.set(position, weights.value(position).clone() * gate.clone().add_scalar(1.0));
        }
    }
    let expected = floats(model.network().features(images(&model)));
    for (found, expected) in floats(found).into_iter().zip(expected) {
        assert!((found - expected).abs() < 1e-4 * expected.abs().max(1.0), "{found} for {expected}");
    }
}

/// Of a fresh network, whose batch norms only divide by √(1 + ε).
#[test]
fn a_layer_makes_its_output_of_the_windows_of_its_input() {
    for model in variants() {
        let weights: Vec<(String, Vec<f32>)> = model
            .encoder()
            .weights()
            .iter()
            .map(|weight| (weight.name.clone(), floats(weight.value.clone())))
            .collect();
        let mut seen = 0;
        let mut look = |view: LayerView<'_>| {
            let name = format!("{}.weight", view.layer.convolution);
            let (_, weight) = weights.iter().find(|(known, _)| *known == name).unwrap();
            let output = floats(view.output.clone());
            let width = view.layer.channels_out;
            assert_eq!(view.places() * width, output.len());
            // Corners, edges and the inside of several rows, in no order.
            let places: Vec<usize> = (0..60).map(|step| step * 7919 % view.places()).collect();
            let windows = view.windows(&places);
            let length = windows.len() / places.len();
            assert_eq!(length * width, weight.len());
            for (window, place) in windows.chunks(length).zip(places) {
                for channel in [0, width / 2, width - 1] {
                    let sum: f32 =
                        window.iter().enumerate().map(|(at, x)| x * weight[at * width + channel]).sum();
                    let (found, expected) = (sum.max(0.0), output[place * width + channel]);
                    assert!(
                        (found - expected).abs() < 1e-3 * expected.abs().max(1.0),
                        "{name}: {found} for {expected}"
                    );
                }
            }
            seen += 1;
            view.output
        };
        model.network().features_watching(images(&model), &mut look);
        assert_eq!(seen, 20);
    }
}

/// Both block variants: with and without a ReLU after the sum.
fn variants() -> [Model; 2] {
    ["slim", "resnet18-imagenet"].map(|name| {
        let architecture = Architecture::named(name, Some(16), 1e-6, 0.1).unwrap();
        let mut model = Model::new(architecture, 1, 4, &Device::flex());
        (0..3).for_each(|_| model.grow(Growth { keep_bias: true, keep_moments: true }));
        model
    })
}

#[test]
fn to_look_changes_no_bit() {
    let bits = |outcome: Outcome| -> Vec<Vec<f32>> {
        outcome.encoder.into_iter().chain(outcome.heads).map(|gradient| floats(gradient.unwrap())).collect()
    };
    for model in variants() {
        let images = images(&model);
        let mut seen = [Vec::new(), Vec::new()];

        let mut pass = model.pass();
        let mut look = |view: LayerView<'_>| {
            seen[0].push(view.layer.convolution.clone());
            view.output
        };
        let features = pass.features_watching(images.clone(), &mut look);
        let mut plain = model.pass();
        let expected = plain.features(images.clone());
        assert_eq!(floats(features.clone()), floats(expected.clone()));
        let watched = loss(pass.logits(features));
        let unwatched = loss(plain.logits(expected));
        assert_eq!(bits(pass.backward(&watched)), bits(plain.backward(&unwatched)));

        let mut look = |view: LayerView<'_>| {
            seen[1].push(view.layer.convolution.clone());
            view.output
        };
        let features = model.network().features_watching(images.clone(), &mut look);
        assert_eq!(floats(features), floats(model.network().features(images)));

        assert_eq!(seen[0].len(), 20, "the stem, two layers in each of eight blocks, three projections");
        assert_eq!(seen[0], seen[1], "evaluation passes the layers that training does");
    }
}

#[test]
fn inputs_and_outputs_are_those_of_the_layer() {
    let model = network("");
    let mut seen = Vec::new();
    let mut look = |view: LayerView<'_>| {
        let [_, _, _, channels_in] = view.input.dims();
        let [_, _, _, channels_out] = view.output.dims();
        assert_eq!([channels_in, channels_out], [view.layer.channels_in, view.layer.channels_out]);
        seen.push((view.layer.convolution.clone(), floats(view.input.clone()), floats(view.output.clone())));
        view.output
    };
    model.pass().features_watching(images(&model), &mut look);
    let layer = |name: &str| seen.iter().find(|(layer, ..)| layer == name).unwrap();
    let (_, stem_in, stem_out) = layer("stem.conv");
    let (_, first_in, first_out) = layer("group1.block0.conv1");
    let (_, second_in, second_out) = layer("group1.block0.conv2");
    let (_, next_in, _) = layer("group1.block1.conv1");
    assert_eq!(stem_in, &floats(images(&model)));
    assert_eq!(first_in, stem_out);
    assert_eq!(second_in, first_out);
    let sum: Vec<f32> = second_out.iter().zip(stem_out).map(|(own, around)| own + around).collect();
    assert_eq!(next_in, &sum, "a layer's output is its own, before the residual");
}
