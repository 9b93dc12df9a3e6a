//! Batch norms and heads that take the place of others.

use super::{images, loss, network};
use crate::{
    model::{Growth, Heads, Model, Norms, floats},
    state::{Persist as _, State},
};

fn train(model: &mut Model) {
    let mut pass = model.pass();
    let features = pass.features(images(model));
    let loss = loss(pass.logits(features));
    model.step(pass, &loss, 1e-2);
}

fn answers(model: &Model) -> Vec<f32> {
    floats(model.answering().logits(images(model)))
}

fn state(model: &Model) -> State {
    let mut state = State::default();
    model.save(&mut state);
    state
}

/// Heads of two columns like those of the network.
fn other_heads(model: &Model) -> Heads {
    let features = model.encoder().architecture().features();
    let mut heads = Heads::new(2, features, &model.device());
    heads.grow_with(&vec![vec![0.5; features]; 2], &[vec![0.25], vec![-0.25]]);
    heads
}

#[test]
fn what_was_exchanged_comes_back_bit_for_bit() {
    let mut model = network("");
    train(&mut model);
    let (before, convolutions) = (answers(&model), |model: &Model| {
        let weights = model.encoder().weights().iter().filter(|weight| !Norms::have(&weight.name));
        weights.map(|weight| floats(weight.value.clone())).collect::<Vec<_>>()
    });
    let fixed = convolutions(&model);
    let fresh = network("").encoder().norms();
    let heads = other_heads(&model);
    let (norms, own) = model.exchange(&fresh, heads.clone());
    assert_eq!((model.heads().classes(), own.classes()), (1, 3));

    let fitted = model.network().fitted(&norms, &own);
    assert_eq!(floats(fitted.logits(images(&model))), before, "without touching the network");

    // The others learn and go, and nothing of that is left.
    let mut pass = model.pass_learning(|name| Norms::have(name) || name.starts_with("heads."));
    let features = pass.features(images(&model));
    let total = pass.logits(features).square().mean();
    model.step(pass, &total, 1e-2);
    assert_eq!(convolutions(&model), fixed);
    let (learned, _) = model.exchange(&norms, own);
    assert_eq!(answers(&model), before);
    let [mut one, mut other] = [State::default(), State::default()];
    learned.save(&mut one);
    fresh.save(&mut other);
    assert!(one != other, "scales, shifts and statistics have moved");
}

#[test]
fn moments_of_those_before_are_forgotten() {
    let mut model = network("");
    train(&mut model);
    let heads = other_heads(&model);
    let norms = model.encoder().norms();
    let kept = |model: &Model| -> Vec<String> {
        let state = state(model);
        let moments = state.arrays.keys().filter_map(|key| key.strip_prefix("optimiser.first."));
        moments.map(str::to_owned).collect()
    };
    assert!(kept(&model).iter().any(|name| Norms::have(name)));
    model.exchange(&norms, heads);
    let kept = kept(&model);
    assert!(!kept.is_empty() && kept.iter().all(|name| name.ends_with(".weight") && name.contains(".conv")));
    model.grow(Growth { keep_bias: true, keep_moments: true });
}

#[test]
fn an_average_begins_with_what_came() {
    let mut model = network("").averaged(50);
    (0..4).for_each(|_| train(&mut model));
    let (norms, heads) = (network("").encoder().norms(), other_heads(&model));
    model.exchange(&norms, heads);
    let average = model.average().unwrap().network();
    assert_eq!(average.heads().classes(), 1);
    let numbers = |norms: &Norms| {
        let mut state = State::default();
        norms.save(&mut state);
        state
    };
    assert!(numbers(&average.encoder().norms()) == numbers(&norms));
}

#[test]
fn norms_are_saved_and_loaded_into_a_blank() {
    let mut model = network("");
    train(&mut model);
    let norms = model.encoder().norms();
    let mut saved = State::default();
    norms.save(&mut saved);
    let mut blank = Norms::blank(model.encoder().architecture(), &model.device());
    blank.load(&saved).unwrap();
    let mut again = State::default();
    blank.save(&mut again);
    assert!(again == saved);
    assert_eq!(norms.parameters(), 2 * 300, "of 300 channels");
    saved.arrays.remove("stem.bn.running_var");
    assert!(blank.load(&saved).unwrap_err().to_string().contains("running_var"));
}
