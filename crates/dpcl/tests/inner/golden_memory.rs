//! Memory schemes and learning-rate rules against an independent implementation.

use super::{golden_balanced::offers, reference::cases_named};
use crate::memory::{Chance, Reservoir};
use crate::rate::{ExpReset, Rate};
use serde_json::Value;

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
        let draws: Vec<Option<usize>> = case.input("draws");
        let mut chance = Given(draws.into_iter().flatten().collect());
        offers(&case, Reservoir::default(), &mut chance, |_| Value::Null);
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
