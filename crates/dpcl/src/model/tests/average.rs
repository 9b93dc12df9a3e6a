//! The averaged network: two steps by hand, growth, the shortest horizon, saving, and that training never sees it.

use std::sync::Arc;

use burn::tensor::Tensor;

use super::{images, loss, network};
use crate::{
    model::{Growth, Model, Network, floats},
    state::{Array, Elements, Persist as _, State},
};

const GROWTH: Growth = Growth { keep_bias: true, keep_moments: true };

fn train(model: &mut Model, rate: f64) {
    let mut pass = model.pass();
    let features = pass.features(images(model));
    let loss = loss(pass.logits(features));
    model.step(pass, &loss, rate);
}

/// Weights and running statistics, all in a row.
fn numbers(network: &Network) -> Vec<f32> {
    let mut state = State::default();
    network.save(&mut state);
    let floats = |array: &Arc<Array>| match &array.elements {
        Elements::F32(numbers) => numbers.clone(),
        Elements::U8(_) => panic!("networks are floats"),
    };
    state.arrays.values().flat_map(floats).collect()
}

/// Whether numbers are the same but for rounding.
fn near(found: &[f32], expected: &[f32]) -> bool {
    found
        .iter()
        .zip(expected)
        .all(|(found, expected)| (found - expected).abs() <= 1e-6 * expected.abs().max(1.0))
}

fn state(model: &Model) -> State {
    let mut state = State::default();
    model.save(&mut state);
    state
}

#[test]
fn two_steps_by_hand() {
    let mut model = network("").averaged(1000);
    assert_eq!(
        numbers(model.answering()),
        numbers(model.network()),
        "before the first step it is the network"
    );
    train(&mut model, 1e-2);
    // The first step moves it all the way, the second by 1 / (1 + 1/4).
    let first = numbers(model.network());
    assert!(near(&numbers(model.answering()), &first));
    train(&mut model, 1e-2);
    let second = numbers(model.network());
    assert!(first != second);
    let between = first.iter().zip(&second).map(|(old, new)| old + 0.8 * (new - old));
    assert!(near(&numbers(model.answering()), &between.collect::<Vec<f32>>()));
}

#[test]
fn an_average_of_one_step_is_the_network() {
    let mut model = network("").averaged(1);
    for _ in 0..6 {
        train(&mut model, 1e-2);
    }
    assert!(near(&numbers(model.answering()), &numbers(model.network())));
}

#[test]
fn constant_weights_stay() {
    let mut model = network("").averaged(10);
    let before = numbers(model.network());
    for _ in 0..3 {
        let pass = model.pass_learning(|_| false);
        let logits = pass.logits(
            Tensor::zeros([6, model.encoder().architecture().features()], &model.device())
                .autodiff()
                .require_grad(),
        );
        let loss = loss(logits);
        model.step(pass, &loss, 1e-2);
    }
    assert!(numbers(model.answering()) == before);
}

#[test]
fn training_never_sees_it() {
    let (mut plain, mut averaged) = (network(""), network("").averaged(50));
    for _ in 0..3 {
        train(&mut plain, 1e-2);
        train(&mut averaged, 1e-2);
    }
    let own = state(&averaged).arrays.into_iter().filter(|(key, _)| !key.starts_with("average."));
    assert!(state(&plain).arrays == own.collect());
}

#[test]
fn a_loss_that_is_not_finite_leaves_it_as_it_was() {
    let mut model = network("").averaged(10);
    train(&mut model, 1e-2);
    let before = state(&model);
    let mut pass = model.pass();
    let features = pass.features(images(&model));
    let loss = loss(pass.logits(features)).mul_scalar(f32::INFINITY);
    model.step(pass, &loss, 1e-2);
    assert!(state(&model) == before);
}

#[test]
fn a_new_class_enters_with_its_present_row_and_the_others_keep_their_average() {
    let mut model = network("").averaged(1000);
    (0..3).for_each(|_| train(&mut model, 1e-2));
    let rows = |network: &Network, position: usize| {
        let value = network.heads().weights().value(position).clone();
        let [height, width] = value.dims();
        let numbers = floats(value);
        move |head: usize, class: usize| -> Vec<f32> {
            let classes = width / 2;
            (0..height).map(|row| numbers[row * width + head * classes + class]).collect()
        }
    };
    let before = [0, 1].map(|position| rows(model.answering(), position));
    model.grow(GROWTH);
    for (position, before) in before.iter().enumerate() {
        let (average, present) = (rows(model.answering(), position), rows(model.network(), position));
        for head in 0..2 {
            assert_eq!(average(head, 3), present(head, 3), "the new row");
            for class in 0..3 {
                assert_eq!(average(head, class), before(head, class), "an old row");
            }
        }
    }
    train(&mut model, 1e-2);
}

#[test]
fn it_is_saved_and_goes_on_bit_for_bit() {
    let mut model = network("").averaged(20);
    (0..3).for_each(|_| train(&mut model, 1e-2));
    let saved = state(&model);
    let mut loaded = network("another").averaged(20);
    loaded.load(&saved).unwrap();
    for model in [&mut model, &mut loaded] {
        train(model, 1e-2);
    }
    assert!(state(&model) == state(&loaded));
}

#[test]
fn a_network_saved_without_one_begins_its_average_and_one_of_other_heads_is_refused() {
    let mut plain = network("");
    (0..3).for_each(|_| train(&mut plain, 1e-2));
    let mut model = network("another").averaged(20);
    train(&mut model, 1e-2);
    model.load(&state(&plain)).unwrap();
    assert!(numbers(model.answering()) == numbers(plain.network()));

    let mut smaller = network("").averaged(20);
    train(&mut smaller, 1e-2);
    let mut strange = state(&smaller);
    smaller.grow(GROWTH);
    let grown = state(&smaller);
    for key in ["average.heads.weight", "average.heads.bias"] {
        strange.arrays.insert(key.into(), grown.arrays[key].clone());
    }
    strange.put("average.heads.classes", &4);
    let error = network("").averaged(20).load(&strange).unwrap_err().to_string();
    assert!(error.contains("average.heads.classes"), "{error}");
}

#[test]
fn statistics_met_anew_are_the_mean_of_the_batches_and_weights_stay() {
    let mut model = network("").averaged(20);
    (0..3).for_each(|_| train(&mut model, 1e-2));
    let first = images(&model);
    let second = first.clone().mul_scalar(0.5);
    let statistics = |model: &Model| {
        let running = &model.answering().encoder().running;
        [0, 1].map(|position| floats(running.value(position).clone()))
    };
    let met = |batches: Vec<Tensor<4>>| model.with_statistics_of(batches.into_iter());
    let [one, other] = [&first, &second].map(|batch| statistics(&met(vec![batch.clone()])));
    let both = statistics(&met(vec![first.clone(), second.clone()]));
    for position in 0..2 {
        let mean = one[position].iter().zip(&other[position]).map(|(one, other)| f32::midpoint(*one, *other));
        assert!(near(&both[position], &mean.collect::<Vec<f32>>()));
        assert!(!near(&one[position], &other[position]));
    }
    assert!(statistics(&met(Vec::new())) == statistics(&model), "without a batch they stay");

    let copy = met(vec![first]);
    let weights =
        |model: &Model| model.answering().encoder().weights().tracked(|_| false).into_iter().map(floats);
    assert!(weights(&copy).eq(weights(&model)));
    assert!(numbers(copy.network()) == numbers(model.network()), "the weights that learn keep theirs");
}
