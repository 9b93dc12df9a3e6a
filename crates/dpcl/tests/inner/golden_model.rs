//! The network, its optimiser and its growing head against an independent implementation.

use std::collections::BTreeMap;

use super::reference::{Case, cases, close, tensors};
use crate::model::{
    Adam, Architecture, FileLayout, Growth, Heads, Model, Weights, cross_entropy, floats, matrix,
};
use crate::state::{Array, Persist, State};
use burn::tensor::{Device, Tensor, TensorData};
use serde_json::{Value, json};

fn relative_norm(found: &[f32], expected: &[f32]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let difference: f64 =
        found.iter().zip(expected).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt();
    difference / expected.iter().map(|b| f64::from(*b).powi(2)).sum::<f64>().sqrt().max(1e-12)
}

/// Entries of a safetensors file under a prefix, as a state of the model's own names.
fn part(file: &BTreeMap<String, super::reference::Tensor>, prefix: &str) -> State {
    let mut state = State::default();
    for (name, tensor) in file {
        if let Some(name) = name.strip_prefix(prefix) {
            state.put_array(name, Array::floats(tensor.shape.clone(), tensor.floats()));
        }
    }
    state
}

fn heads_part(state: &State, classes: usize) -> State {
    let mut heads = state.part("head");
    heads.put("classes", &classes);
    heads.put("count", &1);
    heads
}

#[test]
fn golden_resnet_step() {
    let case = &cases("resnet_step.json")[0];
    let tolerance = |key: &str| case.tolerance[key].as_f64().unwrap();
    let file = tensors("resnet_step.safetensors");
    let device = Device::flex();
    let architecture = Architecture::named("resnet18", Some(8), 1e-6, 0.1).unwrap();
    let mut model = Model::new(architecture, 1, 1, &device);
    let init = part(&file, "init.");
    model.encoder_mut().load(&init).unwrap();
    model.heads_mut().load(&heads_part(&init, 10)).unwrap();
    let count = model.encoder().weights().count() + model.heads().weights().count();
    assert_eq!(count, case.expected::<usize>("parameter_count"));

    let images = Tensor::<4>::from_data(TensorData::new(file["input"].floats(), [4, 3, 32, 32]), &device)
        .permute([0, 2, 3, 1]);
    let labels: Vec<usize> = case.input("label_values");
    let losses = ["loss_step1", "loss_step2", "loss_step3"];
    for (step, loss_name) in losses.into_iter().enumerate() {
        let mut pass = model.pass();
        let input = images.clone().autodiff().require_grad();
        let features = pass.features(input.clone());
        let logits = pass.logits(features);
        let values = floats(logits.clone());
        let loss = cross_entropy(logits, &labels);
        let found = f64::from(floats(loss.clone())[0]);
        assert!((found - case.expected::<f64>(loss_name)).abs() < tolerance("loss_abs"), "{found}");
        if step == 0 {
            let expected = file["expected.logits_train"].floats();
            close(values, expected, &case.tolerance["logits_train_abs"], "logits_train");
            let gradients = loss.backward();
            let gradient = floats(input.grad(&gradients).unwrap().permute([0, 3, 1, 2]));
            let error = relative_norm(&gradient, &file["expected.grad_input"].floats());
            assert!(error < tolerance("gradient_input_relative_norm"), "input gradient: {error}");
            // A graph serves one backward pass only.
            pass = model.pass();
            let features = pass.features(images.clone());
            let loss = cross_entropy(pass.logits(features), &labels);
            let outcome = pass.backward(&loss);
            check_gradients(&model, &outcome, &file, tolerance("gradient_relative_norm_per_tensor"));
            model.update(outcome, 3e-4);
            check_running(&model, case);
        } else {
            let outcome = pass.backward(&loss);
            model.update(outcome, 3e-4);
        }
    }
    check_after(&model, &file, case);
    let logits = floats(model.network().logits(images));
    close(logits, file["expected.logits_eval_after3"].floats(), &case.tolerance["logits_eval_abs"], "eval");
}

fn check_gradients(
    model: &Model,
    outcome: &crate::model::Outcome,
    file: &BTreeMap<String, super::reference::Tensor>,
    tolerance: f64,
) {
    // Gradients are turned into file layout by the same road as weights.
    let turned = |weights: &Weights, gradients: &[Option<Tensor<2>>], prefix: &str| {
        let mut copy = weights.clone();
        for (position, gradient) in gradients.iter().enumerate() {
            copy.set(position, gradient.clone().expect("every weight has a gradient"));
        }
        let mut state = State::default();
        copy.save(&mut state);
        for (name, array) in &state.arrays {
            let crate::state::Elements::F32(found) = &array.elements else { panic!("{name}") };
            let error = relative_norm(found, &file[&format!("grad.{prefix}{name}")].floats());
            assert!(error < tolerance, "{prefix}{name}: {error}");
        }
    };
    turned(model.encoder().weights(), &outcome.encoder, "");
    turned(model.heads().weights(), &outcome.heads, "head.");
}

fn check_running(model: &Model, case: &Case) {
    let mut state = State::default();
    model.encoder().save(&mut state);
    for (key, name) in [
        ("stem_bn_running_mean_after_step1", "stem.bn.running_mean"),
        ("stem_bn_running_var_after_step1", "stem.bn.running_var"),
    ] {
        let found = state.floats(name, &[8]).unwrap();
        close(found, &case.expected[key], &case.tolerance["running_abs"], key);
    }
}

fn check_after(model: &Model, file: &BTreeMap<String, super::reference::Tensor>, case: &Case) {
    let tolerance = |key: &str| case.tolerance[key].as_f64().unwrap();
    let mut state = State::default();
    model.encoder().save(&mut state);
    state.save_part("head", model.heads());
    let (mut above, mut count) = (0, 0);
    for (name, array) in &state.arrays {
        let crate::state::Elements::F32(found) = &array.elements else { panic!("{name}") };
        for (found, expected) in found.iter().zip(file[&format!("after3.{name}")].floats()) {
            let error = f64::from((found - expected).abs());
            assert!(error < tolerance("after3_abs_hard"), "{name}: {error}");
            above += usize::from(error > tolerance("after3_abs"));
            count += 1;
        }
    }
    assert!((above as f64) < tolerance("after3_share_allowed_above") * count as f64, "{above} of {count}");
}

#[test]
fn golden_adam() {
    for case in cases("adam.json") {
        let device = Device::flex();
        let start: Vec<f32> = case.input("parameters");
        let gradients: Vec<Vec<f32>> = case.input("gradients");
        let width = start.len();
        let mut weights = Weights::default();
        weights.push("p", FileLayout::Vector, matrix(start, [1, width], &device));
        let mut adam = Adam::new(&Device::flex());
        let discard = case.input.get("discard_before_step").and_then(Value::as_u64);
        for (step, gradient) in gradients.into_iter().enumerate() {
            if discard == Some(step as u64 + 1) {
                adam.forget(["p", ""]);
            }
            let rate = match &case.input["lr"] {
                Value::Array(rates) => rates[step].as_f64().unwrap(),
                rate => rate.as_f64().unwrap(),
            };
            adam.step(&mut weights, vec![Some(matrix(gradient, [1, width], &device))], rate);
            let mut state = State::default();
            adam.save(&mut state);
            let expected = &case.expected["after_each_step"][step];
            let found = json!({
                "parameters": floats(weights.value(0).clone()),
                "m": state.floats("first.p", &[1, width]).unwrap(),
                "v": state.floats("second.p", &[1, width]).unwrap(),
                "step": state.get::<BTreeMap<String, u64>>("counts").unwrap()["p"],
            });
            close(found, expected, &case.tolerance, &format!("{} step {step}", case.name));
        }
    }
}

fn transposed(rows: &[Vec<f32>]) -> Vec<f32> {
    (0..rows[0].len()).flat_map(|column| rows.iter().map(move |row| row[column])).collect()
}

#[test]
fn golden_head_growth() {
    for case in cases("head_growth.json") {
        for keep in [true, false] {
            check_growth(&case, keep);
        }
    }
}

fn check_growth(case: &Case, keep: bool) {
    let device = Device::flex();
    let weight: Vec<Vec<f32>> = case.input("weight");
    let bias: Vec<f32> = case.input("bias");
    let (classes, features) = (weight.len(), weight[0].len());
    let mut state = State::default();
    state.put("classes", &classes);
    state.put("count", &1);
    state.put_array("weight", Array::floats([classes, features], weight.concat()));
    state.put_array("bias", Array::floats([classes], bias));
    let mut heads = Heads::new(1, features, &device);
    heads.load(&state).unwrap();
    let rows: Vec<Vec<f32>> = case.input("feature");
    let feature = matrix(rows.concat(), [rows.len(), features], &device);
    let nested = |flat: Vec<f32>, width: usize| flat.chunks(width).map(<[f32]>::to_vec).collect::<Vec<_>>();
    case.check("logits_before", nested(floats(heads.logits(feature.clone())), classes));

    let new_bias =
        if keep { vec![case.input::<f32>("new_bias")] } else { case.input("redrawn_biases_when_not_kept") };
    heads.grow_with(&[case.input("new_weight_row")], &[new_bias]);
    let mut grown = State::default();
    heads.save(&mut grown);
    case.check(
        "weight",
        nested(grown.floats("weight", &[classes + 1, features]).unwrap().to_vec(), features),
    );
    let (bias_key, logits_key) = if keep {
        ("bias_keep", "logits_after_keep_bias")
    } else {
        ("bias_not_kept", "logits_after_bias_not_kept")
    };
    case.check(bias_key, grown.floats("bias", &[classes + 1]).unwrap());
    case.check(logits_key, nested(floats(heads.logits(feature)), classes + 1));
    check_moments(case, &heads, keep);
}

fn check_moments(case: &Case, heads: &Heads, keep: bool) {
    let (classes, m_weight): (usize, Vec<Vec<f32>>) = (heads.classes(), case.input("adam_m_weight"));
    let features = m_weight[0].len();
    let v_weight: Vec<Vec<f32>> = case.input("adam_v_weight");
    let mut state = State::default();
    let step: u64 = case.input("adam_step");
    state.put("counts", &BTreeMap::from([("weight", step), ("bias", step)]));
    let shape = [features, classes - 1];
    state.put_array("first.weight", Array::floats(shape, transposed(&m_weight)));
    state.put_array("second.weight", Array::floats(shape, transposed(&v_weight)));
    state.put_array("first.bias", Array::floats([1, classes - 1], case.input("adam_m_bias")));
    state.put_array("second.bias", Array::floats([1, classes - 1], case.input("adam_v_bias")));
    let mut adam = Adam::new(&Device::flex());
    adam.load(&state).unwrap();
    if !keep {
        adam.forget(heads.names());
        let mut after = State::default();
        adam.save(&mut after);
        assert!(after.arrays.is_empty(), "discarded moments leave nothing behind");
        return;
    }
    adam.extend(heads.names(), heads);
    let mut after = State::default();
    adam.save(&mut after);
    let expected = &case.expected["keep_adam"];
    for (kind, letter) in [("first", "m"), ("second", "v")] {
        let found = after.floats(&format!("{kind}.weight"), &[features, classes]).unwrap();
        let rows: Vec<Vec<f32>> =
            serde_json::from_value(expected[format!("{letter}_weight")].clone()).unwrap();
        close(found, transposed(&rows), &case.tolerance, &format!("{} {kind}.weight", case.name));
        let found = after.floats(&format!("{kind}.bias"), &[1, classes]).unwrap();
        close(found, &expected[format!("{letter}_bias")], &case.tolerance, &format!("{} bias", case.name));
    }
}

#[test]
fn growing_keeps_the_logits_of_known_classes() {
    let device = Device::flex();
    let mut random = crate::random::Random::named(1, "heads");
    let mut heads = Heads::new(2, 6, &device);
    let growth = Growth { keep_bias: true, keep_moments: true };
    (0..3).for_each(|_| heads.grow(growth, &mut random));
    let feature = matrix(vec![0.3, -0.2, 0.5, 0.1, -0.7, 0.9], [1, 6], &device);
    let before = floats(heads.logits(feature.clone()));
    heads.grow(growth, &mut random);
    let after = floats(heads.logits(feature));
    assert_eq!(before[..3], after[..3]);
    assert_eq!(before[3..], after[4..7]);
}
