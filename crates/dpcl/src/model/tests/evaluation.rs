//! Evaluation refuses to be differentiated; which weights a network starts from.

use burn::tensor::{Device, Tensor};

use super::{images, network};
use crate::{
    model::{Architecture, Encoder, Model, floats},
    random::Random,
};

fn tracked(model: &Model) -> Tensor<4> {
    model.pass().track_images(images(model))
}

#[test]
#[should_panic(expected = "evaluation is not differentiable: use a training pass, or `.inner()`")]
fn features_in_evaluation_have_no_gradient() {
    let model = network("");
    let _ = model.network().features(tracked(&model));
}

#[test]
#[should_panic(expected = "evaluation is not differentiable")]
fn logits_in_evaluation_have_no_gradient() {
    let model = network("");
    let _ = model.network().logits(tracked(&model));
}

#[test]
#[should_panic(expected = "evaluation is not differentiable")]
fn a_frozen_network_has_no_gradient() {
    let model = network("");
    let _ = model.network().logits_with(tracked(&model), &mut |_, x| x);
}

#[test]
#[should_panic(expected = "evaluation is not differentiable")]
fn a_tracked_change_in_evaluation_is_refused_as_well() {
    let model = network("");
    let _ = model
        .network()
        .features_with(images(&model), &mut |depth, x| if depth == 2 { x.autodiff() } else { x });
}

#[test]
fn what_is_cut_off_on_purpose_can_be_evaluated() {
    let model = network("");
    let found = floats(model.network().features(tracked(&model).inner()));
    assert_eq!(found, floats(model.network().features(images(&model))));
}

#[test]
fn a_network_without_a_name_is_drawn_from_the_first_streams() {
    let architecture = Architecture::named("slim", Some(4), 1e-6, 0.1).unwrap();
    let device = Device::flex();
    let weight = |encoder: &Encoder| floats(encoder.weights().value(0).clone());
    let expected = Encoder::new(architecture, &mut Random::named(3, "encoder-weights"), &device);
    assert_eq!(weight(Model::new(architecture, 1, 3, &device).encoder()), weight(&expected));
    let named = |name: &str| weight(Model::named(architecture, 1, 3, name, &device).encoder());
    assert_ne!(named("controller"), weight(&expected));
    assert_ne!(named("controller"), named("component"));
    assert_eq!(named("controller"), named("controller"));
}
