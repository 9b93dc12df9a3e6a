//! Memory schemes and learning-rate rules against an independent implementation.

use super::reference::{cases_named, close};
use crate::memory::{Chance, Offer, Place, Reservoir, Scheme, View};
use crate::rate::{ExpReset, Rate};
use serde_json::{Value, json};

/// Hands out given integers in order.
struct Given(Vec<usize>);

impl Chance for Given {
    fn uniform(&mut self) -> f64 {
        unreachable!("the reservoir draws integers only")
    }

    fn below(&mut self, count: usize) -> usize {
        let drawn = self.0.remove(0);
        assert!(drawn < count, "the draw lies outside what was asked for");
        drawn
    }
}

#[test]
fn golden_reservoir() {
    for case in cases_named("memory.json", "reservoir.") {
        let size: usize = case.input("size");
        let offers: Vec<(String, usize)> = case.input("offers");
        let draws: Vec<Option<usize>> = case.input("draws");
        let mut chance = Given(draws.into_iter().flatten().collect());
        let mut scheme = Reservoir::default();
        let mut memory: Vec<(String, usize)> = Vec::new();
        for (step, (name, class)) in offers.into_iter().enumerate() {
            let classes: Vec<usize> = memory.iter().map(|(_, class)| *class).collect();
            let history = vec![0.0; classes.len()];
            let view = View { classes: &classes, history: &history, capacity: size };
            let slot = match scheme.place(view, Offer { class, disagreement: 0.0 }, &mut chance) {
                Place::Append => {
                    memory.push((name, class));
                    Some(memory.len() - 1)
                }
                Place::Replace(slot) => {
                    memory[slot] = (name, class);
                    Some(slot)
                }
                Place::Refuse => None,
            };
            let found = json!({ "slot": slot, "memory": memory });
            let mut expected = case.expected["after_each_offer"][step].clone();
            expected.as_object_mut().unwrap().remove("draw_in_0_to_seen");
            close(found, expected, &case.tolerance, &format!("{} offer {step}", case.name));
        }
        assert!(chance.0.is_empty(), "{}: every given draw is used", case.name);
    }
}

#[test]
fn golden_exp_reset() {
    for case in cases_named("lr_schedules.json", "exp_reset.") {
        let mut rate = ExpReset::new(case.input("eta0"), case.input("factor"), true);
        let events: Vec<Value> = case.input("events");
        let mut found = Vec::new();
        for event in events {
            match event.as_u64() {
                Some(steps) => (0..steps).for_each(|_| rate.stepped()),
                None => rate.new_class(),
            }
            found.push(rate.rate());
        }
        case.check("eta_after_each_event", found);
    }
}
