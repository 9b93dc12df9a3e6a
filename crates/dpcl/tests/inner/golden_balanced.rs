//! Memory schemes that balance the classes, against an independent implementation.

use super::reference::{Case, cases_named, close};
use crate::memory::{Balanced, Cbrs, Chance, Offer, Place, Scheme, View, spread, uncertainty};
use serde_json::{Value, json};

/// Hands out given uniform numbers in order.
struct Given(Vec<f64>);

impl Chance for Given {
    fn uniform(&mut self) -> f64 {
        self.0.remove(0)
    }
}

/// Makes the offers of a case and compares the memory after each; `more` says what else the scheme shows.
pub(super) fn offers<S: Scheme>(
    case: &Case,
    mut scheme: S,
    chance: &mut dyn Chance,
    more: impl Fn(&S) -> Value,
) {
    let size: usize = case.input("size");
    let mut memory: Vec<(String, usize)> = Vec::new();
    for (step, (name, class)) in case.input::<Vec<(String, usize)>>("offers").into_iter().enumerate() {
        let classes: Vec<usize> = memory.iter().map(|(_, class)| *class).collect();
        let history = vec![0.0; classes.len()];
        let view = View { classes: &classes, history: &history, capacity: size };
        let slot = match scheme.place(view, Offer { class, disagreement: 0.0 }, chance) {
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
        let expected = &case.expected["after_each_offer"][step];
        let context = format!("{} offer {step}", case.name);
        close(json!(slot), &expected["slot"], &case.tolerance, &context);
        close(json!(memory), &expected["memory"], &case.tolerance, &context);
        if let Some(expected) = expected.get("full_classes") {
            close(more(&scheme), expected, &case.tolerance, &context);
        }
    }
}

#[test]
fn golden_rm_online() {
    for case in cases_named("memory.json", "rm_online.") {
        let uniforms: Vec<Option<f64>> = case.input("uniforms");
        let mut chance = Given(uniforms.into_iter().flatten().collect());
        offers(&case, Balanced, &mut chance, |_| Value::Null);
        assert!(chance.0.is_empty(), "{}: every given number is used", case.name);
    }
}

#[test]
fn golden_cbrs() {
    for case in cases_named("memory.json", "cbrs.") {
        let mut chance = Given(case.input("uniforms_in_order_of_use"));
        offers(&case, Cbrs::default(), &mut chance, |scheme| json!(scheme.full_classes()));
        assert!(chance.0.is_empty(), "{}: every given number is used", case.name);
    }
}

#[test]
fn golden_rm_uncertainty() {
    for case in cases_named("memory.json", "rm_uncertainty.positions") {
        case.check("sorted_positions", spread(case.input("candidates"), case.input("keep")));
    }
    for case in cases_named("memory.json", "rm_uncertainty.votes") {
        case.check("uncertainty", uncertainty(&case.input::<Vec<usize>>("votes")));
    }
}
