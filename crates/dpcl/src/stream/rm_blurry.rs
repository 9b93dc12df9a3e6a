//! Blurry as in Rainbow Memory (Bang et al. 2021): disjoint groups first; then every task keeps 100 − M per cent of its
//! samples and the rest is spread over the other tasks.
//!
//! Each of the other tasks gets its own draw of rest/(T − 1) samples, independently, so a sample may arrive twice and
//! another never. The share of strays in a task is the full M per cent.

use super::StreamSettings;
use super::plan::{Plan, arrange, evenly, gather, share};
use crate::random::Random;

/// Deals the classes as in the disjoint scenario; of all of them samples stray.
pub(super) fn plan(order: &[usize], tasks: usize) -> Vec<Plan> {
    let groups = evenly(order, tasks);
    groups.into_iter().map(|group| Plan { disjoint: Vec::new(), major: group.to_vec() }).collect()
}

/// Lets samples stray and puts every task in order. A single task has nowhere to give samples to and keeps them all.
pub(super) fn fill(
    plans: &[Plan],
    samples: &[Vec<usize>],
    settings: &StreamSettings,
    seed: u64,
) -> Vec<Vec<usize>> {
    let mut random = Random::named(seed, "blurry-pool");
    let tasks = plans.len();
    let mut strays = vec![Vec::new(); tasks];
    let mut own = Vec::with_capacity(tasks);
    for (task, plan) in plans.iter().enumerate() {
        let mut kept = gather(&plan.major, samples);
        random.shuffle(&mut kept);
        if tasks > 1 {
            let rest = kept.split_off(share(kept.len(), 100.0 - settings.m));
            for (_, strays) in strays.iter_mut().enumerate().filter(|(other, _)| *other != task) {
                let drawn = random.distinct(rest.len(), rest.len() / (tasks - 1));
                strays.extend(drawn.into_iter().map(|index| rest[index]));
            }
        }
        own.push(kept);
    }
    arrange(own, strays, settings.blurry_order, seed)
}
