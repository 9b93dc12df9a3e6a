//! The last group's output before its means are taken, with and without the ReLUs that end its blocks; plain steps.

use burn::tensor::{Device, Tensor, activation::relu};

use super::{
    along_channels, assert_gradient, entropy, images, loss, moved_first, network, position, row, with_moved,
};
use crate::{
    model::{Architecture, Growth, Model, Pass, floats, pooled},
    state::{Persist as _, State},
};

/// The small network with a last group whose blocks end without ReLU.
fn open() -> Model {
    let architecture = Architecture::named("slim", Some(4), 1e-6, 0.1).unwrap().open_ended();
    let mut model = Model::new(architecture, 2, 4, &Device::flex());
    (0..3).for_each(|_| model.grow(Growth { keep_bias: true, keep_moments: true }));
    model
}

fn state(model: &Model) -> State {
    let mut state = State::default();
    model.save(&mut state);
    state
}

#[test]
fn features_are_the_means_of_maps() {
    for model in [network(""), open()] {
        let images = images(&model);
        let expected = floats(model.pass().features(images.clone()));
        assert_eq!(floats(pooled(model.pass().maps(images.clone()))), expected);
        let maps = model.network().maps(images.clone());
        assert_eq!(maps.dims(), [6, 2, 2, 32]);
        assert_eq!(floats(pooled(maps)), floats(model.network().features(images)));
    }
}

#[test]
fn an_open_end_has_maps_of_both_signs_and_the_same_weights() {
    let smallest = |model: &Model| {
        [model.pass().maps(images(model)), model.network().maps(images(model))]
            .map(|maps| floats(maps).into_iter().fold(f32::INFINITY, f32::min))
    };
    assert!(smallest(&network("")).iter().all(|&smallest| smallest >= 0.0));
    assert!(smallest(&open()).iter().all(|&smallest| smallest < -0.1));
    let names = |model: &Model| state(model).arrays.into_keys().collect::<Vec<String>>();
    assert_eq!(names(&open()), names(&network("")));
    // Of seventeen layers and three projections those that end the last group's two blocks are without.
    for name in ["slim", "resnet18-imagenet"] {
        let (layers, _) = Architecture::named(name, None, 1e-6, 0.1).unwrap().open_ended().layers();
        let open: Vec<&str> = layers
            .iter()
            .filter(|layer| !layer.spec.relu && !layer.spec.relu_after_sum)
            .map(|layer| layer.convolution.as_str())
            .collect();
        assert_eq!(open, ["group4.block0.conv2", "group4.block0.shortcut.conv", "group4.block1.conv2"]);
        assert_eq!(layers.iter().filter(|layer| layer.spec.relu).count(), 17);
    }
}

/// ReLU(h ⊙ (1 + g)) of the maps h before their means are taken.
fn modulated(pass: &mut Pass, model: &Model, factor: Tensor<2>) -> Tensor<3> {
    let maps = pass.maps(images(model));
    pass.logits(pooled(relu(maps * along_channels(factor.add_scalar(1.0)))))
}

#[test]
fn what_is_made_of_maps_has_a_gradient() {
    let mut model = open();
    let factor = row("factor", 32);
    let mut pass = model.pass();
    let tracked = pass.track(&factor);
    let logits = modulated(&mut pass, &model, tracked[0].clone());
    let outcome = pass.backward(&loss(logits));
    assert_gradient("factor", outcome.further[0][0].clone().unwrap(), |offset| {
        entropy(modulated(&mut model.pass(), &model, moved_first(&factor, offset).value(0).clone()))
    });
    for name in
        ["group4.block1.conv2.weight", "group4.block0.shortcut.bn.weight", "group2.block0.conv1.weight"]
    {
        let position = position(&model, name);
        assert_gradient(name, outcome.encoder[position].clone().unwrap(), |offset| {
            with_moved(&mut model, position, offset, |model| {
                entropy(modulated(&mut model.pass(), model, factor.value(0).clone()))
            })
        });
    }
}

fn outcome(model: &Model) -> crate::model::Outcome {
    let mut pass = model.pass();
    let features = pass.features(images(model));
    let total = loss(pass.logits(features));
    pass.backward(&total)
}

#[test]
fn a_plain_step_goes_against_the_gradient_and_keeps_the_statistics() {
    let [mut model, mut other] = [(); 2].map(|()| network(""));
    let before = state(&model);
    let outcome = outcome(&model);
    let moved = model.moved(&outcome, 0.5);
    other.update(outcome.clone(), 1e-3);
    model.descend(&outcome, 0.5);
    let [after, moved, adam] = [&model, &moved, &other].map(state);
    for (name, array) in &after.arrays {
        let reference = if name.contains(".running_") { &adam } else { &moved };
        assert_eq!(Some(array), reference.arrays.get(name), "{name}");
        assert_ne!(Some(array), before.arrays.get(name), "{name}");
    }
    let (weight, position) = ("group3.block0.conv1.weight", position(&model, "group3.block0.conv1.weight"));
    let start = network("").encoder().weights().value(position).clone();
    let expected = floats(start - outcome.encoder[position].clone().unwrap().mul_scalar(0.5));
    assert_eq!(floats(model.encoder().weights().value(position).clone()), expected, "{weight}");

    let unsound = crate::model::Outcome { loss: f64::NAN, ..outcome };
    let before = state(&model);
    model.descend(&unsound, 0.5);
    assert!(state(&model) == before);
}

#[test]
fn joined_outcomes_are_one_step_and_their_statistics_can_be_dropped() {
    let [mut together, mut apart] = [(); 2].map(|()| network(""));
    let one = outcome(&together);
    let mut both = one.clone();
    both.join(one.clone());
    assert!((both.loss - 2.0 * one.loss).abs() < 1e-12);
    let mut twice = one.clone();
    twice.forget_statistics();
    together.descend(&both, 0.25);
    // Twice the same gradient is a step twice as long; the statistics are absorbed once for each.
    apart.descend(&one, 0.25);
    apart.descend(&twice, 0.25);
    let mut statistics = network("");
    (0..2).for_each(|_| statistics.descend(&one, 0.0));
    let [together, apart, statistics] = [&together, &apart, &statistics].map(state);
    let running = |state: &State| {
        let mut state = state.clone();
        state.arrays.retain(|name, _| name.contains(".running_"));
        state.arrays
    };
    assert!(running(&together) == running(&statistics));
    assert!(running(&together) != running(&apart));
    let place = |state: &State| state.floats("heads.bias", &[6]).unwrap().to_vec();
    for (one, other) in place(&together).into_iter().zip(place(&apart)) {
        assert!((one - other).abs() < 1e-6, "{one} and {other}");
    }
}

#[test]
fn an_average_follows_plain_steps() {
    let mut model = network("").averaged(1000);
    let numbers = |network: &crate::model::Network| {
        let mut state = State::default();
        network.save(&mut state);
        state.floats("encoder.stem.conv.weight", &[4, 3, 3, 3]).unwrap().to_vec()
    };
    let first = outcome(&model);
    model.descend(&first, 0.1);
    assert_eq!(numbers(model.answering()), numbers(model.network()), "the first step moves it all the way");
    let old = numbers(model.network());
    let second = outcome(&model);
    model.descend(&second, 0.1);
    let expected = old.iter().zip(numbers(model.network())).map(|(old, new)| old + 0.8 * (new - old));
    for (found, expected) in numbers(model.answering()).into_iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{found} for {expected}");
    }
}
