//! Importance, the rate that follows stored losses, Welch's test, distillation and bias correction against an independent
//! implementation.

use std::collections::BTreeSet;

use super::reference::{Case, cases_named, close};
use crate::memory::{Chance, Clib, Offer, Place, Scheme, View};
use crate::model::{Correction, distillation, floats};
use crate::rate::{self, ClibConfig, Rate, Welch, student_upper_tail};
use crate::state::{Persist, State};
use burn::tensor::{Device, Tensor, TensorData};
use serde_json::{Value, json};

/// For rules that leave nothing to chance.
struct Unused;

impl Chance for Unused {
    fn uniform(&mut self) -> f64 {
        unreachable!("nothing is drawn")
    }
}

fn moving(part: &dyn Persist) -> Value {
    let mut state = State::default();
    part.save(&mut state);
    state.values["moving"].clone()
}

#[test]
fn golden_importance() {
    for case in cases_named("memory.json", "clib.") {
        let mut scheme = Clib::new(case.input("ema_keep"));
        let mut memory: Vec<(String, usize)> = Vec::new();
        let mut changed = BTreeSet::new();
        for (step, event) in case.input::<Vec<Value>>("events").into_iter().enumerate() {
            let found = match event["kind"].as_str().unwrap() {
                "offer" => {
                    let newcomer: (String, usize) = serde_json::from_value(event["sample"].clone()).unwrap();
                    let classes: Vec<usize> = memory.iter().map(|(_, class)| *class).collect();
                    let history = vec![0.0; classes.len()];
                    let view = View { classes: &classes, history: &history, capacity: case.input("size") };
                    let offer = Offer { class: newcomer.1, disagreement: 0.0 };
                    let slot = match scheme.place(view, offer, &mut Unused) {
                        Place::Append => {
                            memory.push(newcomer);
                            memory.len() - 1
                        }
                        Place::Replace(slot) => {
                            memory[slot] = newcomer;
                            slot
                        }
                        Place::Refuse => panic!("{}: nothing is refused", case.name),
                    };
                    changed.insert(slot);
                    json!({ "slot": slot, "memory": memory, "score": scheme.scores() })
                }
                "train" => {
                    scheme.trained(&serde_json::from_value::<Vec<usize>>(event["slots"].clone()).unwrap());
                    json!({ "drawn": moving(&scheme)["drawn"] })
                }
                _ => {
                    let losses: Vec<f64> = serde_json::from_value(event["losses"].clone()).unwrap();
                    scheme.refreshed(&losses, &std::mem::take(&mut changed));
                    json!({ "score": scheme.scores() })
                }
            };
            let mut expected = case.expected["after_each_event"][step].clone();
            for inner in ["loss_change", "error"] {
                expected.as_object_mut().unwrap().remove(inner);
            }
            close(found, expected, &case.tolerance, &format!("{} event {step}", case.name));
        }
    }
}

#[test]
fn golden_importance_refresh() {
    let case = cases_named("memory.json", "clib_refresh.").remove(0);
    let mut state = State::default();
    let before = json!({
        "scores": case.input["score"], "losses": case.input["previous_losses"], "drawn": case.input["drawn"],
    });
    state.put("moving", &before);
    let mut scheme = Clib::default();
    scheme.load(&state).unwrap();
    scheme.refreshed(&case.input::<Vec<f64>>("losses"), &case.input("changed"));
    case.check("score", scheme.scores());
}

#[test]
fn golden_welch() {
    for case in cases_named("lr_schedules.json", "welch.") {
        let found = Welch::above(&case.input::<Vec<f64>>("a"), &case.input::<Vec<f64>>("b"));
        case.check("t", found.map(|found| found.t));
        case.check("df", found.map(|found| found.degrees));
        case.check("p", found.map(|found| found.p));
    }
    for case in cases_named("lr_schedules.json", "student_tail.") {
        case.check("upper_tail", student_upper_tail(case.input("t"), case.input("df")));
    }
}

#[test]
fn golden_clib_rate() {
    for case in cases_named("lr_schedules.json", "clib.") {
        let config = ClibConfig {
            step: case.input("step"),
            period: case.input("period"),
            window: case.input("window"),
            significance: case.input("significance"),
        };
        let mut rate = rate::Clib::new(case.input("eta0"), config);
        let losses: Vec<Vec<f64>> = case.input("losses_at_every_tenth_call");
        let dropped: Vec<BTreeSet<usize>> = case.input("dropped_slots");
        for (turn, (losses, dropped)) in losses.iter().zip(&dropped).enumerate() {
            (0..config.period).for_each(|_| rate.refreshed(losses, dropped));
            let state = moving(&rate);
            let found = json!({
                "calls": state["measurements"], "eta": rate.rate(), "is_high": state["is_high"],
                "hi": state["high"], "lo": state["low"],
                "n_gain_hi": state["gains_high"].as_array().unwrap().len(),
                "n_gain_lo": state["gains_low"].as_array().unwrap().len(),
            });
            let mut expected = case.expected["after_each"][turn].clone();
            for inner in ["gain", "p"] {
                expected.as_object_mut().unwrap().remove(inner);
            }
            close(found, expected, &case.tolerance, &format!("{} turn {turn}", case.name));
        }
    }
}

/// One head's logits, [1, rows, classes].
fn logits(case: &Case, key: &str, device: &Device) -> Tensor<3> {
    let rows: Vec<Vec<f32>> = case.input(key);
    let shape = [1, rows.len(), rows[0].len()];
    Tensor::from_data(TensorData::new(rows.concat(), shape), device)
}

#[test]
fn golden_distillation() {
    let device = Device::flex();
    for case in cases_named("losses.json", "kd.") {
        let student = logits(&case, "student_logits", &device).autodiff().require_grad();
        let mut teacher = logits(&case, "teacher_logits", &device);
        if let Some(pair) = case.input["bias_correction"].as_object() {
            let classes = serde_json::from_value(pair["classes"].clone()).unwrap();
            let [scale, shift] = ["alpha", "beta"].map(|key| pair[key].as_f64().unwrap());
            let (shape, mut numbers) = (teacher.dims(), floats(teacher));
            Correction { classes, scale, shift }.apply(&mut numbers, shape[2]);
            teacher = Tensor::from_data(TensorData::new(numbers, shape), &device);
        }
        let loss = distillation(student.clone(), teacher, case.input("temperature"));
        case.check("loss", floats(loss.clone())[0]);
        let gradient = floats(student.grad(&loss.backward()).unwrap());
        let expected: Vec<Vec<f32>> = case.expected("gradient_student_logits");
        close(gradient, expected.concat(), &case.tolerance, &case.name);
    }
}

#[test]
fn golden_bias_correction() {
    for case in cases_named("losses.json", "bic_bias_layer") {
        let correction = Correction {
            classes: case.input("new_classes"),
            scale: case.input("alpha"),
            shift: case.input("beta"),
        };
        let rows: Vec<Vec<f32>> = case.input("logits");
        let (loss, [by_scale, by_shift]) =
            correction.loss_and_gradient(&rows.concat(), &case.input::<Vec<usize>>("labels"));
        case.check("loss", loss);
        case.check("gradient_alpha", by_scale);
        case.check("gradient_beta", by_shift);
        let mut corrected = rows.concat();
        correction.apply(&mut corrected, rows[0].len());
        let expected: Vec<Vec<f32>> = case.expected("corrected_logits");
        close(corrected, expected.concat(), &case.tolerance, &case.name);
    }
}
