//! Distributions of head weights and predictions drawn from them, against an independent implementation.

use super::reference::{Case, cases_named, close};
use crate::answers::{Scores, Votes};
use crate::model::{Growth, Heads, matrix};
use crate::perturb::{Bsc, BscConfig, DrawnHeads, Gaussian, Middle};
use crate::random::Random;
use crate::state::{Persist, State};
use burn::tensor::{Device, Tensor};
use serde_json::{Value, json};

fn covariance(gaussian: &Gaussian) -> Vec<Vec<f64>> {
    let variance: Vec<f64> = gaussian.variance().collect();
    let scale = gaussian.column_scale().powi(2);
    let entry = |row: usize, column: usize| {
        let shared: f64 =
            gaussian.deviations().iter().map(|d| f64::from(d[row]) * f64::from(d[column])).sum();
        scale * shared + if row == column { variance[row] / 2.0 } else { 0.0 }
    };
    (0..variance.len()).map(|row| (0..variance.len()).map(|column| entry(row, column)).collect()).collect()
}

#[test]
fn golden_collection_and_draw() {
    for case in cases_named("bsc.json", "collect.") {
        let mut gaussian = Gaussian::new(case.input("rank"), 0);
        for (step, snapshot) in case.input::<Vec<Vec<f32>>>("phi_sequence").iter().enumerate() {
            gaussian.collect(snapshot);
            let found = json!({
                "wm": gaussian.mean(),
                "s": gaussian.squares(),
                "v": gaussian.variance().collect::<Vec<_>>(),
                "deviation_columns_oldest_first": gaussian.deviations(),
                "sigma": covariance(&gaussian),
            });
            let expected = &case.expected["after_each"][step];
            close(found, expected, &case.tolerance, &format!("{} snapshot {step}", case.name));
        }
        let mut normals = case.input::<Vec<f64>>("z1").into_iter().chain(case.input::<Vec<f64>>("z2"));
        case.check("draw_after_last", gaussian.draw(&mut || normals.next().unwrap()));
    }
}

/// Nested lists of one `predict.` case and what is built from them.
struct Prediction {
    heads: Heads,
    bsc: Bsc,
    fresh: Vec<bool>,
    draws: usize,
}

type Nested<T> = Vec<Vec<T>>;

fn prediction(case: &Case) -> Prediction {
    let mean: Nested<Vec<f64>> = case.input("wm_heads_classes_q");
    let variance: Nested<Vec<f64>> = case.input("v_heads_classes_q");
    let deviations: Nested<Vec<Vec<f32>>> = case.input("deviations_heads_classes_columns_q");
    let present: Nested<Vec<f32>> = case.input("current_phi_heads_classes_q");
    let fresh: Vec<bool> = case.input("class_never_collected");
    let draws = case.input::<Vec<Value>>("z1_draws_heads_classes_q").len();
    let (count, features) = (mean.len(), mean[0][0].len() - 1);

    let mut heads = Heads::new(count, features, &Device::flex());
    for class in 0..fresh.len() {
        let rows = || present.iter().map(|head| head[class].split_at(features));
        let weights: Vec<Vec<f32>> = rows().map(|(weights, _)| weights.to_vec()).collect();
        let biases: Vec<Vec<f32>> = rows().map(|(_, bias)| bias.to_vec()).collect();
        heads.grow_with(&weights, &biases);
    }
    let config = BscConfig { heads: count, rank: case.input("rank"), draws, ..BscConfig::default() };
    let gaussian = |head: usize, class: usize| match fresh[class] {
        true => Gaussian::new(config.rank, 0),
        false => {
            let columns = deviations[head][class].clone();
            Gaussian::known(config.rank, mean[head][class].clone(), &variance[head][class], columns)
        }
    };
    let gaussians: Nested<Gaussian> =
        (0..fresh.len()).map(|class| (0..count).map(|head| gaussian(head, class)).collect()).collect();
    Prediction { heads, bsc: known(config, &gaussians), fresh, draws }
}

/// Distributions given whole, by class, then by head; one without a snapshot stands for a class never collected.
fn known(config: BscConfig, classes: &[Vec<Gaussian>]) -> Bsc {
    let mut state = State::default();
    state.put("collections", &1);
    state.put("classes", &classes.len());
    for (class, heads) in classes.iter().enumerate() {
        for (head, gaussian) in heads.iter().enumerate() {
            gaussian.save(&format!("{class}.{head}"), &mut state);
        }
    }
    let mut bsc = Bsc::new(config);
    bsc.load(&state).unwrap();
    bsc
}

/// Answers of every draw of every head for `features` [rows, features].
fn votes(drawn: &DrawnHeads, features: Tensor<2>) -> Votes {
    let (logits, shape) = drawn.logits(features);
    Votes::from_logits(logits, shape)
}

fn features(case: &Case) -> Tensor<2> {
    let rows: Vec<Vec<f32>> = case.input("features");
    matrix(rows.concat(), [rows.len(), rows[0].len()], &Device::flex())
}

/// Compares votes with the expected part `space`.
fn check(case: &Case, space: &str, votes: &Votes) {
    let by_head = votes.by_head();
    let scores: Vec<Scores> = by_head.iter().map(|heads| Scores::of(heads)).collect();
    let found = json!({
        "p_rows_heads_classes": by_head,
        "pbar": scores.iter().map(|scores| &scores.probabilities).collect::<Vec<_>>(),
        "class": scores.iter().map(Scores::best).collect::<Vec<_>>(),
        "information": scores.iter().map(|scores| scores.disagreement).collect::<Vec<_>>(),
    });
    close(found, &case.expected[space], &case.tolerance, &format!("{} {space}", case.name));
}

#[test]
fn golden_prediction_in_weight_space() {
    for case in cases_named("bsc.json", "predict.") {
        let Prediction { heads, bsc, fresh, draws } = prediction(&case);
        let z1: Value = case.input("z1_draws_heads_classes_q");
        let z2: Value = case.input("z2_draws_heads_classes_columns");
        let mut normals = Vec::new();
        for head in 0..heads.count() {
            for draw in 0..draws {
                for class in (0..fresh.len()).filter(|&class| !fresh[class]) {
                    for given in [&z1, &z2] {
                        let list = given[draw][head][class].as_array().unwrap();
                        normals.extend(list.iter().map(|number| number.as_f64().unwrap()));
                    }
                }
            }
        }
        let mut normals = normals.into_iter();
        let drawn = bsc.draw_weights(Middle::Snapshots(&heads), &mut || normals.next().unwrap());
        assert!(normals.next().is_none(), "{}: every given number is used", case.name);
        check(&case, "weight_space", &votes(&drawn, features(&case)));
    }
}

#[test]
fn golden_prediction_in_logit_space() {
    for case in cases_named("bsc.json", "predict.") {
        let Prediction { heads, bsc, fresh, draws } = prediction(&case);
        let features = features(&case);
        let [rows, _] = features.dims();
        let moments = bsc.logit_moments(features.clone(), heads.logits(features));
        let nested = |numbers: &[f32]| -> Vec<Vec<Vec<f32>>> {
            let rows = numbers.chunks_exact(heads.count() * fresh.len());
            rows.map(|row| row.chunks_exact(fresh.len()).map(<[f32]>::to_vec).collect()).collect()
        };
        case.check("logit_mean_rows_heads_classes", nested(&moments.mean));
        case.check("logit_variance_rows_heads_classes", nested(&moments.variance));

        let given: Vec<Vec<Nested<f32>>> = case.input("logit_space_normals_draws_rows_heads_classes");
        let mut normals = Vec::new();
        for row in 0..rows {
            for head in 0..heads.count() {
                for draw in given.iter().take(draws) {
                    normals.extend(&draw[row][head]);
                }
            }
        }
        let mut normals = normals.into_iter();
        check(&case, "logit_space", &moments.votes(&mut || normals.next().unwrap()));
    }
}

#[test]
fn both_spaces_give_logits_the_same_distribution() {
    let device = Device::flex();
    let mut random = Random::named(2, "spaces");
    let mut heads = Heads::new(1, 3, &device);
    let mut bsc = Bsc::new(BscConfig { heads: 1, rank: 4, draws: 4000, ..BscConfig::default() });
    for _ in 0..6 {
        heads = Heads::new(1, 3, &device);
        for _ in 0..2 {
            heads.grow(Growth { keep_bias: true, keep_moments: true }, &mut random);
        }
        bsc.collect(&heads);
    }
    let feature = matrix(vec![0.5, -1.5, 2.0], [1, 3], &device);
    let moments = bsc.logit_moments(feature.clone(), heads.logits(feature.clone()));
    let drawn = bsc.draw_weights(Middle::Snapshots(&heads), &mut || random.normal());
    // The log-odds of two classes are the difference of their independent logits.
    let mean = f64::from(moments.mean[0] - moments.mean[1]);
    let variance = f64::from(moments.variance[0] + moments.variance[1]);
    let odds = |votes: &Votes| -> (f64, f64) {
        let drawn: Vec<f64> = votes.by_draw(0, 0).iter().map(|p| (p[0] / p[1]).ln()).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        (mean, drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / drawn.len() as f64)
    };
    let by_weights = odds(&votes(&drawn, feature));
    let by_logits = odds(&moments.votes(&mut || random.normal() as f32));
    for (found, spread) in [by_weights, by_logits] {
        assert!((found - mean).abs() < 4.0 * (variance / 4000.0).sqrt(), "{found} for {mean}");
        assert!((spread / variance - 1.0).abs() < 0.1, "{spread} for {variance}");
    }
}
