//! Importance, the rate that follows stored losses and Welch's test against an independent implementation.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod reference;

use std::collections::BTreeSet;

use dpcl::memory::{Chance, Clib, Offer, Place, Scheme, View};
use dpcl::rate::{self, ClibConfig, Rate, Welch, student_upper_tail};
use dpcl::state::{Persist, State};
use reference::{cases_named, close};
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
