//! The gradient of DPCL's loss against difference quotients of the loss, weight matrix by weight matrix, with the
//! disturbance frozen at each depth; and that this comparison notices what can be wrong with a gradient.

use super::quotients::{Quotients, norm};
use crate::model::{Architecture, Growth, Model, Pass, Weight, floats, matrix, mixed_cross_entropy};
use crate::perturb::{DEEPEST, Disturbance, NoiseKind, Pfi, PfiConfig};
use crate::random::Random;
use burn::tensor::{Device, Tensor, TensorData};

const SIZE: usize = 16;

/// A network of two heads and three classes on small images, and a frozen disturbance at one depth.
struct Frozen {
    model: Model,
    images: Tensor<4>,
    labels: Vec<usize>,
    partners: Vec<usize>,
    disturbance: Disturbance,
}

impl Frozen {
    fn new(depth: usize, noise: NoiseKind, place: u64) -> Self {
        let architecture = Architecture::named("slim", Some(4), 1e-6, 0.1).unwrap();
        let mut model = Model::new(architecture, 2, 4, &Device::flex());
        for _ in 0..3 {
            model.grow(Growth { keep_bias: true, keep_moments: true });
        }
        let mut random = Random::named(place, "frozen");
        let images = (0..6 * SIZE * SIZE * 3).map(|_| random.normal() as f32).collect();
        let images = model.images(images, SIZE);
        let config = PfiConfig { layers: vec![depth], noise, ..PfiConfig::default() };
        let factors = [1.0, 0.4, 1.2, 0.0, 0.9, 1.3];
        let disturbance = Pfi::new(config, 3).draw(&factors);
        let labels = vec![0, 1, 2, 2, 1, 0];
        let partners = disturbance.mixing.partners.iter().map(|&row| labels[row]).collect();
        Self { model, images, labels, partners, disturbance }
    }

    fn logits(&self, pass: &mut Pass) -> Tensor<3> {
        let mut change = |depth, activations| self.disturbance.apply(depth, activations);
        let features = pass.features_with(self.images.clone(), &mut change);
        pass.logits(features)
    }

    /// The loss from its formula, in double precision from the logits on: what single precision leaves unsure of a loss
    /// would be most of what is unsure of a difference quotient.
    fn value(&self) -> f64 {
        let logits = self.logits(&mut self.model.pass());
        let [_, rows, classes] = logits.dims();
        let logits: Vec<f64> = floats(logits).into_iter().map(f64::from).collect();
        let coefficient = self.disturbance.mixing.coefficient;
        let losses = logits.chunks_exact(classes).enumerate().map(|(index, logits)| {
            let row = index % rows;
            let whole = logits.iter().map(|logit| logit.exp()).sum::<f64>().ln();
            let [own, partner] = [&self.labels, &self.partners].map(|labels| logits[labels[row]]);
            whole - coefficient * own - (1.0 - coefficient) * partner
        });
        losses.sum::<f64>() / (logits.len() / classes) as f64
    }

    /// Gradients of all weight matrices, of the whole loss or of the part a row's own label has in it.
    fn gradients(&self, with_partners: bool) -> Vec<Vec<f64>> {
        let mut pass = self.model.pass();
        let logits = self.logits(&mut pass);
        let coefficient = self.disturbance.mixing.coefficient;
        let partners = if with_partners { &self.partners } else { &self.labels };
        let loss = mixed_cross_entropy(logits, &self.labels, partners, coefficient);
        let outcome = pass.backward(&loss);
        let gradients = outcome.encoder.into_iter().chain(outcome.heads);
        gradients
            .map(|gradient| floats(gradient.expect("every weight has one")))
            .map(|gradient| gradient.into_iter().map(f64::from).collect())
            .collect()
    }

    /// A weight matrix by its number; those of the heads follow those of the encoder.
    fn weight(&mut self, number: usize) -> &mut Weight {
        let encoder = self.model.encoder().weights().iter().count();
        match number.checked_sub(encoder) {
            None => self.model.encoder_mut().weights_mut().iter_mut().nth(number).unwrap(),
            Some(number) => self.model.heads_mut().weights_mut().iter_mut().nth(number).unwrap(),
        }
    }

    /// The loss with a matrix moved.
    fn value_at(&mut self, number: usize, offset: Vec<f32>) -> f64 {
        let old = self.weight(number).value.clone();
        self.weight(number).value = old.clone() + matrix(offset, old.dims(), &old.device());
        let value = self.value();
        self.weight(number).value = old;
        value
    }

    /// What is wrong with a gradient of a matrix, as far as difference quotients tell; nothing if it is right.
    fn fault(&mut self, number: usize, gradient: &[f64]) -> Option<String> {
        let mut value = |offset| self.value_at(number, offset);
        if let Some(fault) = QUOTIENTS.fault(gradient, &mut value) {
            return Some(fault);
        }
        // The slope that a direction by chance has.
        let typical = norm(gradient) / (gradient.len() as f64).sqrt();
        // The largest numbers may be wrong, the smallest may be missing.
        let mut order: Vec<usize> = (0..gradient.len()).collect();
        order.sort_by(|&one, &other| gradient[other].abs().total_cmp(&gradient[one].abs()));
        order[..2].iter().chain(&order[order.len() - 2..]).find_map(|&entry| {
            let direction: Vec<f64> =
                (0..gradient.len()).map(|at| f64::from(u8::from(at == entry))).collect();
            let bound = 0.1 * gradient[entry].abs() + 0.05 * typical;
            let fault = QUOTIENTS.off(gradient, &direction, bound, &mut value);
            fault.map(|fault| format!("number {entry}: {fault}"))
        })
    }
}

/// How closely gradients are looked at here; they are some 0.01 to 2 long.
const QUOTIENTS: Quotients = Quotients { steps: &[1e-4, 2e-4, 4e-4], least_norm: 1e-3, share: 0.1 };

/// A ReLU may turn just where the network stands, so what looks wrong is looked at with other images as well: a wrong
/// gradient is wrong with these, too.
fn gradients_are_right(noise: NoiseKind) {
    for depth in 0..=DEEPEST {
        let mut places = [0, 1].map(|place| {
            let frozen = Frozen::new(depth, noise, place);
            (frozen.gradients(true), frozen)
        });
        for number in 0..places[0].0.len() {
            let faults =
                places.iter_mut().map_while(|(gradients, frozen)| frozen.fault(number, &gradients[number]));
            let faults: Vec<String> = faults.collect();
            let name = places[0].1.weight(number).name.clone();
            assert!(faults.len() < places.len(), "depth {depth} {noise:?} {name}: {faults:#?}");
        }
    }
}

#[test]
fn the_gradient_is_that_of_the_loss_at_every_depth_with_noise_as_in_the_paper() {
    gradients_are_right(NoiseKind::Paper);
}

#[test]
fn the_gradient_is_that_of_the_loss_at_every_depth_with_noise_as_in_the_code() {
    gradients_are_right(NoiseKind::Nfm);
}

#[test]
fn the_comparison_notices_what_is_wrong_with_a_gradient() {
    let mut frozen = Frozen::new(1, NoiseKind::Paper, 0);
    let (right, own_labels) = (frozen.gradients(true), frozen.gradients(false));
    for (number, gradient) in right.into_iter().enumerate() {
        let without = |lacks: &dyn Fn(usize) -> bool| -> Vec<f64> {
            gradient.iter().enumerate().map(|(at, &g)| if lacks(at) { 0.0 } else { g }).collect()
        };
        let half = gradient.len() / 2;
        let mut wrong = vec![
            ("nothing of it", vec![0.0; gradient.len()]),
            ("a tenth too long", gradient.iter().map(|g| 1.1 * g).collect()),
            ("only the first half", without(&|at| at >= half)),
            ("only the second half", without(&|at| at < half)),
            ("only every other number", without(&|at| at % 2 == 1)),
        ];
        let name = frozen.weight(number).name.clone();
        // The heads' bias sums over rows: who is mixed with whom makes no difference to it.
        if name != "bias" {
            wrong.push(("partners left out", own_labels[number].clone()));
        }
        for (what, gradient) in wrong {
            assert!(frozen.fault(number, &gradient).is_some(), "{name}: {what}");
        }
    }
}

#[test]
fn a_frozen_disturbance_acts_at_its_depth_only_and_always_alike() {
    let frozen = Frozen::new(2, NoiseKind::Paper, 0);
    let activations =
        Tensor::<4>::from_data(TensorData::new(vec![0.5_f32; 6 * 4], [6, 2, 2, 1]), &Device::flex());
    let untouched = floats(frozen.disturbance.apply(1, activations.clone()));
    assert_eq!(untouched, floats(activations.clone()));
    let once = floats(frozen.disturbance.apply(2, activations.clone()));
    assert_ne!(once, untouched);
    assert_eq!(once, floats(frozen.disturbance.apply(2, activations)));
}
