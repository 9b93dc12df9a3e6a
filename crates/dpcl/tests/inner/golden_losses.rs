//! Cross-entropies, loss terms of the baselines and their gradients, against an independent implementation.

use super::reference::cases_named;
use crate::answers::Votes;
use crate::augment::cutmix::{Area, Mix};
use crate::batch::Batch;
use crate::model::{
    cross_entropy, cross_entropy_rows, floats, mean_entropy, mixed_cross_entropy, stored_distance,
};
use burn::tensor::{Device, Tensor, TensorData};

/// Tracked logits of one head, [1, rows, classes].
fn tracked(rows: &[Vec<f32>]) -> Tensor<3> {
    let shape = [1, rows.len(), rows[0].len()];
    let data = TensorData::new(rows.concat(), shape);
    Tensor::<3>::from_data(data, &Device::flex()).autodiff().require_grad()
}

/// The gradient of `loss` at `logits`, row by row.
fn gradient(loss: &Tensor<1>, logits: &Tensor<3>) -> Vec<Vec<f32>> {
    let [_, _, classes] = logits.dims();
    let gradient = logits.grad(&loss.backward()).expect("the loss depends on the logits");
    floats(gradient).chunks(classes).map(<[f32]>::to_vec).collect()
}

fn value(loss: &Tensor<1>) -> f32 {
    floats(loss.clone())[0]
}

#[test]
fn golden_cross_entropy() {
    for case in cases_named("losses.json", "ce.") {
        let rows: Vec<Vec<f32>> = case.input("logits");
        let labels: Vec<usize> = case.input("labels");
        let logits = tracked(&rows);
        case.check("rows", floats(cross_entropy_rows(logits.clone(), &labels)));
        let loss = cross_entropy(logits.clone(), &labels);
        case.check("loss", value(&loss));
        case.check("gradient_logits", gradient(&loss, &logits));

        let answers = Votes::from_logits(rows.concat(), [1, 1, rows[0].len()]).scores();
        let probabilities: Vec<Vec<f32>> = answers.into_iter().map(|answer| answer.probabilities).collect();
        case.check("softmax", probabilities);
    }
}

#[test]
fn golden_mixed_cross_entropy() {
    for case in cases_named("losses.json", "mixed_ce.") {
        let logits = tracked(&case.input::<Vec<Vec<f32>>>("logits"));
        let [labels, partners] = ["labels", "partner_labels"].map(|key| case.input::<Vec<usize>>(key));
        let loss = mixed_cross_entropy(logits.clone(), &labels, &partners, case.input("zeta"));
        case.check("loss", value(&loss));
        case.check("gradient_logits", gradient(&loss, &logits));
    }
}

#[test]
fn golden_cutmix_losses() {
    for case in cases_named("cutmix.json", "loss_") {
        let logits = tracked(&case.input::<Vec<Vec<f32>>>("logits"));
        // Where the images were cut does not matter to the loss, only how much is left of them.
        let area = Area { left: 0, right: 0, top: 0, bottom: 0 };
        let coefficient: f64 = case.input("lambda_corrected");
        let mix = Mix { first: 0, area, coefficient, permutation: case.input("permutation") };
        let batch = Batch { labels: case.input("labels"), mixes: vec![mix.clone()], ..Batch::default() };
        let partners = batch.partners(&mix);
        let loss = mixed_cross_entropy(logits.clone(), &batch.labels, &partners, coefficient);
        case.check("loss", value(&loss));
        case.check("gradient_logits", gradient(&loss, &logits));
    }
}

#[test]
fn golden_cpr() {
    for case in cases_named("losses.json", "cpr.") {
        let rows: Vec<Vec<f32>> = case.input("logits");
        let labels: Vec<usize> = case.input("labels");
        let weight: f64 = case.input("weight");
        for (row, expected) in rows.iter().zip(case.expected::<Vec<f64>>("entropy_rows")) {
            let entropy = value(&mean_entropy(tracked(std::slice::from_ref(row))));
            assert!((f64::from(entropy) - expected).abs() < 1e-6, "{}: {entropy}", case.name);
        }

        let logits = tracked(&rows);
        case.check("ce", value(&cross_entropy(logits.clone(), &labels)));
        let term = mean_entropy(logits.clone()).mul_scalar(-weight);
        case.check("gradient_entropy_term", gradient(&term, &logits));
        let logits = tracked(&rows);
        let loss = cross_entropy(logits.clone(), &labels) - mean_entropy(logits.clone()).mul_scalar(weight);
        case.check("loss", value(&loss));
        case.check("gradient_logits", gradient(&loss, &logits));
    }
}

#[test]
fn golden_derpp() {
    for case in cases_named("losses.json", "derpp.") {
        let [a, b] = ["a", "b"].map(|key| case.input::<f64>(key));
        let [again, stream, draw] =
            ["draw1_logits", "stream_logits", "draw2_logits"].map(|key| case.input::<Vec<Vec<f32>>>(key));
        let stored: Vec<Vec<f32>> = case.input("stored_logits");
        let stored: Vec<&[f32]> = stored.iter().map(Vec::as_slice).collect();
        let [again, stream, draw] = [again, stream, draw].map(|rows| tracked(&rows));

        let distance = stored_distance(again.clone(), &stored).unwrap();
        let own = cross_entropy(stream.clone(), &case.input::<Vec<usize>>("stream_labels"));
        let rehearsed = cross_entropy(draw.clone(), &case.input::<Vec<usize>>("draw2_labels"));
        case.check("mse", value(&distance));
        case.check("ce_stream", value(&own));
        case.check("ce_draw2", value(&rehearsed));

        let (distance, rehearsed) = (distance.mul_scalar(a), rehearsed.mul_scalar(b));
        case.check("loss", value(&(own.clone() + distance.clone() + rehearsed.clone())));
        case.check("gradient_draw1_logits", gradient(&distance, &again));
        case.check("gradient_stream_logits", gradient(&own, &stream));
        case.check("gradient_draw2_logits", gradient(&rehearsed, &draw));
    }
}

#[test]
fn nothing_stored_is_nothing_to_compare() {
    let logits = tracked(&[vec![1.0, 2.0]]);
    assert!(stored_distance(logits, &[&[]]).is_none());
}
