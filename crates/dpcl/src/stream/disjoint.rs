//! Disjoint: the classes in the seed's order, cut into equal consecutive groups, one a task; the samples of a task are
//! shuffled.
//!
//! Where the groups cannot be equal the first tasks have one class more.

use super::BlurryOrder;
use super::plan::{Plan, arrange, evenly, gather};

/// Deals whole units (a class, or the classes of a superclass) to the tasks.
pub(super) fn plan(units: &[Vec<usize>], tasks: usize) -> Vec<Plan> {
    let groups = evenly(units, tasks);
    groups.into_iter().map(|group| Plan { disjoint: group.concat(), major: Vec::new() }).collect()
}

/// Every sample goes where its class is.
pub(super) fn fill(plans: &[Plan], samples: &[Vec<usize>], seed: u64) -> Vec<Vec<usize>> {
    let own = plans.iter().map(|plan| gather(&plan.disjoint, samples)).collect();
    arrange(own, vec![Vec::new(); plans.len()], BlurryOrder::Shuffled, seed)
}
