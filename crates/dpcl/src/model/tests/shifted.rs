//! Passes at θ + δ.

use burn::tensor::Tensor;

use super::{assert_gradient, entropy, images, loss, moved_first, network, position, row, with_moved};
use crate::model::{Gradients, Model, Pass, Shift, Weights, floats};

/// A shift of some weights of both parts, far enough to make other gradients.
fn shift(model: &Model) -> Shift {
    let shifted = |weights: &Weights| -> Gradients {
        let shifted =
            |(at, value): (usize, &Tensor<2>)| (at % 2 == 0).then(|| value.clone().mul_scalar(-0.5));
        weights.iter().map(|weight| &weight.value).enumerate().map(shifted).collect()
    };
    Shift { encoder: shifted(model.encoder().weights()), heads: shifted(model.heads().weights()) }
}

fn logits(pass: &mut Pass, model: &Model) -> Tensor<3> {
    let features = pass.features(images(model));
    pass.logits(features)
}

#[test]
fn gradients_are_those_at_the_shifted_weights() {
    let mut model = network("");
    let shift = shift(&model);
    let mut pass = model.pass_at(&shift);
    let logits_there = logits(&mut pass, &model);
    let outcome = pass.backward(&loss(logits_there));

    // Of a weight that is shifted, and of one that is not.
    for name in ["group2.block0.conv1.weight", "group1.block1.bn1.weight"] {
        let position = position(&model, name);
        let gradient = outcome.encoder[position].clone().unwrap();
        assert_gradient(name, gradient, |offset| {
            with_moved(&mut model, position, offset, |model| {
                entropy(logits(&mut model.pass_at(&shift), model))
            })
        });
    }
}

#[test]
fn a_shifted_pass_is_that_of_a_network_with_these_weights() {
    let model = network("");
    let shift = shift(&model);
    let mut there = network("");
    for (at, shift) in shift.encoder.iter().enumerate() {
        let Some(shift) = shift else { continue };
        let weights = there.encoder_mut().weights_mut();
        weights.set(at, weights.value(at).clone() + shift.clone());
    }
    for (at, shift) in shift.heads.iter().enumerate() {
        let Some(shift) = shift else { continue };
        let weights = there.heads_mut().weights_mut();
        weights.set(at, weights.value(at).clone() + shift.clone());
    }
    let gradients = |mut pass: Pass| -> Vec<Vec<f32>> {
        let logits = logits(&mut pass, &model);
        let outcome = pass.backward(&loss(logits));
        outcome.encoder.into_iter().chain(outcome.heads).flatten().map(floats).collect()
    };
    let found = gradients(model.pass_at(&shift));
    assert_eq!(found, gradients(there.pass()));
    assert_ne!(found, gradients(model.pass()));
    assert_eq!(gradients(model.pass_at(&Shift::default())), gradients(model.pass()));
}

#[test]
fn an_update_moves_the_weights_and_not_the_shifted_ones() {
    let rate = 1e-3;
    let mut model = network("");
    let shift = shift(&model);
    let before: Vec<Vec<f32>> = model.encoder().weights().iter().map(|w| floats(w.value.clone())).collect();
    let mut pass = model.pass_at(&shift);
    let logits = logits(&mut pass, &model);
    model.step(pass, &loss(logits), rate);

    let mut farthest = 0.0_f32;
    for (before, after) in before.iter().zip(model.encoder().weights().iter()) {
        let after = floats(after.value.clone());
        farthest = before.iter().zip(after).map(|(a, b)| (a - b).abs()).fold(farthest, f32::max);
    }
    // The first step of Adam is as long as the rate, whatever the gradient.
    assert!((f64::from(farthest) - rate).abs() < 1e-2 * rate, "{farthest}");
}

/// Two places on the way of a shift that goes `length` times along a direction, each of its columns by a share of its own:
/// the mean cross-entropy of both.
fn on_the_way<T>(
    pass: &mut Pass,
    model: &Model,
    share: &Tensor<2>,
    entropy: impl Fn(Tensor<3>) -> T,
) -> [T; 2] {
    let position = position(model, "group2.block0.conv1.weight");
    [0.5, 1.0].map(|length| {
        // The weight upside down: along itself a batch norm would take every step back.
        let direction = model.encoder().weights().value(position).clone().flip([0]).mul_scalar(length);
        let mut encoder: Gradients = model.encoder().weights().iter().map(|_| None).collect();
        encoder[position] = Some(direction * share.clone());
        pass.shift(&Shift { encoder, heads: Gradients::new() });
        entropy(logits(pass, model))
    })
}

#[test]
fn gradients_of_several_shifts_add_up_and_reach_what_the_shifts_depend_on() {
    let mut model = network("");
    let share = row("share", 8);
    let mut pass = model.pass();
    let tracked = pass.track(&share);
    let [first, second] = on_the_way(&mut pass, &model, &tracked[0], loss);
    let outcome = pass.backward(&(first + second).div_scalar(2.0));

    let value = |model: &Model, share: &Weights| {
        let values = on_the_way(&mut model.pass(), model, share.value(0), entropy);
        values.iter().sum::<f64>() / 2.0
    };
    assert_gradient("share", outcome.further[0][0].clone().unwrap(), |offset| {
        value(&model, &moved_first(&share, offset))
    });
    // Not that weight whose numbers the direction is made of.
    let position = position(&model, "group1.block0.conv2.weight");
    assert_gradient("weight", outcome.encoder[position].clone().unwrap(), |offset| {
        with_moved(&mut model, position, offset, |model| value(model, &share))
    });
}
