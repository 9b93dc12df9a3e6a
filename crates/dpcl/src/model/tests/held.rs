//! What a pass leaves as it was: batch statistics that are used and not kept, parts that do not learn.

use super::{assert_gradient, entropy, images, loss, network, position, with_moved};
use crate::{
    model::{Model, Outcome, Pass, floats},
    state::{Elements, Persist, State},
};

/// Weights, running statistics and moments by name.
fn state(model: &Model) -> State {
    let mut state = State::default();
    model.save(&mut state);
    state
}

fn numbers<'a>(state: &'a State, name: &str) -> Option<&'a [f32]> {
    let Elements::F32(numbers) = &state.arrays.get(name)?.elements else { panic!("{name}") };
    Some(numbers)
}

fn outcome(mut pass: Pass, model: &Model) -> Outcome {
    let features = pass.features(images(model));
    let loss = loss(pass.logits(features));
    pass.backward(&loss)
}

fn value(model: &Model) -> f64 {
    let mut pass = model.pass();
    let features = pass.features(images(model));
    entropy(pass.logits(features))
}

#[test]
fn statistics_can_be_used_and_not_kept() {
    let [mut kept, mut forgetful] = [(); 2].map(|()| network(""));
    let before = state(&forgetful);
    let expected = outcome(kept.pass(), &kept);

    let mut pass = forgetful.pass();
    let features = pass.features(images(&forgetful));
    pass.forget_statistics();
    let found = loss(pass.logits(features));
    let found = pass.backward(&found);

    // Centred and scaled with the batch's own statistics: a constant in their place would be another gradient.
    let position = position(&forgetful, "group2.block0.conv1.weight");
    assert_gradient("with its own statistics", found.encoder[position].clone().unwrap(), |offset| {
        with_moved(&mut forgetful, position, offset, value)
    });

    kept.update(expected, 1e-3);
    forgetful.update(found, 1e-3);
    let [kept, forgetful] = [kept, forgetful].map(|model| state(&model));
    for name in kept.arrays.keys() {
        let reference = if name.contains(".running_") { &before } else { &kept };
        assert_eq!(numbers(&forgetful, name), numbers(reference, name), "{name}");
    }
    assert_ne!(
        numbers(&kept, "encoder.stem.bn.running_mean"),
        numbers(&before, "encoder.stem.bn.running_mean")
    );
}

#[test]
fn only_the_batches_met_so_far_are_forgotten() {
    let [mut first, mut second] = [(); 2].map(|()| network(""));
    let twice = images(&first).mul_scalar(2.0);
    let expected = outcome(first.pass(), &first);
    first.update(expected, 1e-3);

    let mut pass = second.pass();
    pass.features(twice);
    pass.forget_statistics();
    let found = outcome(pass, &second);
    second.update(found, 1e-3);
    let name = "encoder.group4.block1.bn2.running_var";
    assert_eq!(numbers(&state(&second), name), numbers(&state(&first), name));
}

/// What the parts that learn are called, one choice of them after the other.
const LEARNING: [fn(&str) -> bool; 3] = [
    |name| name.starts_with("heads."),
    |name| name.starts_with("encoder."),
    |name| name.contains(".bn") || name.starts_with("encoder.group3."),
];

#[test]
fn a_part_that_does_not_learn_stays_and_the_others_learn_alike() {
    for learns in LEARNING {
        let [mut whole, mut part] = [(); 2].map(|()| network(""));
        // A step of all, so that there are moments to leave alone.
        for model in [&mut whole, &mut part] {
            let outcome = outcome(model.pass(), model);
            model.update(outcome, 1e-3);
        }
        let before = state(&part);
        let all = outcome(whole.pass(), &whole);
        let some = outcome(part.pass_learning(learns), &part);
        let names = |prefix: &str, weights: &crate::model::Weights| -> Vec<String> {
            weights.iter().map(|weight| format!("{prefix}.{}", weight.name)).collect()
        };
        let names =
            [names("encoder", part.encoder().weights()), names("heads", part.heads().weights())].concat();
        let gradients = some.encoder.iter().chain(&some.heads).zip(all.encoder.iter().chain(&all.heads));
        for (name, (found, expected)) in names.iter().zip(gradients) {
            let expected = learns(name).then(|| floats(expected.clone().unwrap()));
            assert_eq!(found.clone().map(floats), expected, "{name}");
        }

        part.update(some, 1e-3);
        whole.update(all, 1e-3);
        let [whole, part] = [whole, part].map(|model| state(&model));
        for name in &names {
            let reference = if learns(name) { &whole } else { &before };
            let (_, short) = name.split_once('.').unwrap();
            for key in [name.clone(), format!("optimiser.first.{short}"), format!("optimiser.second.{short}")]
            {
                assert_eq!(numbers(&part, &key), numbers(reference, &key), "{key}");
                assert!(numbers(&part, &key).is_some(), "{key}");
            }
        }
    }
}

#[test]
fn what_learns_among_constants_has_the_gradient_of_the_loss() {
    let mut model = network("");
    let found = outcome(model.pass_learning(LEARNING[2]), &model);
    for name in ["group3.block0.conv1.weight", "group1.block0.bn2.bias"] {
        let position = position(&model, name);
        assert_gradient(name, found.encoder[position].clone().unwrap(), |offset| {
            with_moved(&mut model, position, offset, value)
        });
    }
}
