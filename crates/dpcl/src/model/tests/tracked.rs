//! Gradients with respect to images, further tables of weights and a second network.

use burn::tensor::Tensor;

use super::{
    SIZE, along_channels, assert_gradient, entropy, images, loss, mean_square, moved, moved_first, network,
    position, row, with_moved,
};
use crate::model::{Model, Pass, Weights, floats};

/// Weight of the distance from where the images were.
const DISTANCE: f64 = 3.0;

#[test]
fn images_have_the_gradient_of_all_they_are_used_for() {
    let model = network("");
    let origin = images(&model);
    // Away from where they were, so that the distance has a slope as well.
    let evolved = origin.clone().mul_scalar(0.9);

    let mut pass = model.pass();
    let tracked = pass.track_images(evolved.clone());
    let features = pass.features(tracked.clone());
    let distance = (tracked - origin.clone()).square().mean();
    let total = loss(pass.logits(features)) + distance.mul_scalar(DISTANCE);
    let outcome = pass.backward(&total);
    assert!(outcome.further.is_empty() && outcome.encoder.iter().all(Option::is_some));

    let [gradient] = outcome.images.try_into().unwrap();
    let gradient = gradient.unwrap().reshape([1, 6 * SIZE * SIZE * 3]);
    assert_gradient("images", gradient, |offset| {
        let images = moved(&evolved, offset);
        let mut pass = model.pass();
        let features = pass.features(images.clone());
        entropy(pass.logits(features)) + DISTANCE * mean_square(images - origin.clone())
    });
}

#[test]
fn images_can_evolve_from_their_own_gradient() {
    let model = network("");
    let gradient = |images: Tensor<4>| {
        let mut pass = model.pass();
        let images = pass.track_images(images);
        let features = pass.features(images.clone());
        let loss = loss(pass.logits(features));
        let outcome = pass.backward(&loss);
        let [gradient] = outcome.images.try_into().unwrap();
        (outcome.loss, images + gradient.unwrap().mul_scalar(20.0))
    };
    let (first, evolved) = gradient(images(&model));
    // What is given is on the autodiff device, and still a leaf of the next graph.
    let (second, _) = gradient(evolved);
    assert!(second > first, "the loss fell from {first} to {second} against its gradient");
}

/// A modulation of the last group's output, h·(1 + g) + b.
fn modulated(pass: &mut Pass, model: &Model, scale: Tensor<2>, shift: Tensor<2>) -> Tensor<3> {
    let [scale, shift] = [scale, shift].map(along_channels);
    let features = pass.features_with(images(model), &mut |depth, x| match depth {
        4 => x * scale.clone().add_scalar(1.0) + shift.clone(),
        _ => x,
    });
    pass.logits(features)
}

#[test]
fn further_tables_have_gradients_in_the_order_tracked() {
    let model = network("");
    let (scale, shift) = (row("scale", 32), row("shift", 32));

    let mut pass = model.pass();
    let scales = pass.track(&scale);
    let shifts = pass.track(&shift);
    let logits = modulated(&mut pass, &model, scales[0].clone(), shifts[0].clone());
    let outcome = pass.backward(&loss(logits));
    assert!(outcome.encoder.iter().chain(&outcome.heads).all(Option::is_some));

    let [scales, shifts] = outcome.further.try_into().unwrap();
    let value = |scale: &Weights, shift: &Weights| {
        let [scale, shift] = [scale, shift].map(|table| table.value(0).clone());
        entropy(modulated(&mut model.pass(), &model, scale, shift))
    };
    assert_gradient("scale", scales[0].clone().unwrap(), |offset| {
        value(&moved_first(&scale, offset), &shift)
    });
    assert_gradient("shift", shifts[0].clone().unwrap(), |offset| {
        value(&scale, &moved_first(&shift, offset))
    });
}

#[test]
fn a_table_the_loss_does_not_reach_has_no_gradient() {
    let model = network("");
    let mut pass = model.pass();
    pass.track(&row("unused", 3));
    pass.track_images(images(&model));
    let features = pass.features(images(&model));
    let loss = loss(pass.logits(features));
    let outcome = pass.backward(&loss);
    assert!(outcome.further[0][0].is_none() && outcome.images[0].is_none());
}

/// Features of both networks that are to agree, and logits of the first.
fn both(passes: [&mut Pass; 2], images: &Tensor<4>) -> (Tensor<2>, Tensor<3>) {
    let [first, second] = passes;
    let one = first.features(images.clone());
    let other = second.features(images.clone());
    (one.clone() - other, first.logits(one))
}

#[test]
fn two_networks_of_one_seed_differ_and_learn_from_one_loss() {
    let [mut first, mut second] = ["first", "second"].map(network);
    let images = images(&first);
    let stem = position(&first, "stem.conv.weight");
    let block = position(&first, "group3.block0.conv2.weight");
    assert_ne!(
        floats(first.encoder().weights().value(stem).clone()),
        floats(second.encoder().weights().value(stem).clone())
    );
    assert_ne!(
        floats(first.heads().weights().value(0).clone()),
        floats(second.heads().weights().value(0).clone())
    );

    let [mut one, mut other] = [first.pass(), second.pass()];
    let (difference, logits) = both([&mut one, &mut other], &images);
    let total = loss(logits) + difference.square().mean();
    let [outcome, outcome_of_second] = Pass::backward_together([one, other], &total);
    assert_eq!(outcome.loss.to_bits(), outcome_of_second.loss.to_bits());
    assert!(outcome_of_second.heads.iter().all(Option::is_none), "its logits are in no loss");

    let value = |first: &Model, second: &Model| {
        let (difference, logits) = both([&mut first.pass(), &mut second.pass()], &images);
        entropy(logits) + mean_square(difference)
    };
    for position in [stem, block] {
        let gradient = outcome.encoder[position].clone().unwrap();
        assert_gradient("the first network", gradient, |offset| {
            with_moved(&mut first, position, offset, |first| value(first, &second))
        });
        let gradient = outcome_of_second.encoder[position].clone().unwrap();
        assert_gradient("the second network", gradient, |offset| {
            with_moved(&mut second, position, offset, |second| value(&first, second))
        });
    }

    let before = value(&first, &second);
    first.update(outcome, 1e-3);
    second.update(outcome_of_second, 1e-3);
    assert!(value(&first, &second) < before, "both took a step down");
}
