//! I-blurry (Koh et al. 2022): N per cent of the classes are disjoint; of the samples of the others, the blurry ones, M
//! per cent stray. Blurry is the case N = 0.
//!
//! Each task gives M per cent of its blurry samples, whatever their class, to one pool, and gets an equal chunk of the
//! shuffled pool back. A chunk may bring samples home, so the share that really changes task is M·(T − 1)/T.
//! Numbers of classes are cut to multiples of the number of tasks; what is left over at the end of the class order is
//! not in the stream. A pool that cannot be cut equally gives the first tasks one sample more.

use super::StreamSettings;
use super::plan::{Plan, arrange, evenly, gather, share};
use crate::random::Random;

/// Deals the first `percent` per cent of `count` classes as disjoint ones, the next as blurry ones. `order` may be
/// shorter than `count` by what the cutting leaves out anyway.
pub(super) fn plan(order: &[usize], count: usize, tasks: usize, percent: f64) -> Vec<Plan> {
    let whole = |classes: usize| classes / tasks * tasks;
    let disjoint = whole(share(count, percent));
    let used = disjoint + whole(count - disjoint);
    let (disjoint, major) = order[..used].split_at(disjoint);
    evenly(disjoint, tasks)
        .into_iter()
        .zip(evenly(major, tasks))
        .map(|(disjoint, major)| Plan { disjoint: disjoint.to_vec(), major: major.to_vec() })
        .collect()
}

/// Lets samples stray and puts every task in order.
pub(super) fn fill(
    plans: &[Plan],
    samples: &[Vec<usize>],
    settings: &StreamSettings,
    seed: u64,
) -> Vec<Vec<usize>> {
    let mut random = Random::named(seed, "blurry-pool");
    let mut pool = Vec::new();
    let mut own = Vec::with_capacity(plans.len());
    for plan in plans {
        let mut blurry = gather(&plan.major, samples);
        random.shuffle(&mut blurry);
        pool.extend(blurry.drain(..share(blurry.len(), settings.m)));
        own.push([gather(&plan.disjoint, samples), blurry].concat());
    }
    random.shuffle(&mut pool);
    let chunks = evenly(&pool, plans.len()).into_iter().map(<[usize]>::to_vec).collect();
    arrange(own, chunks, settings.blurry_order, seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(classes: usize, tasks: usize, percent: f64) -> Vec<(usize, usize)> {
        let order: Vec<usize> = (0..classes).collect();
        let plans = plan(&order, classes, tasks, percent);
        plans.iter().map(|plan| (plan.disjoint.len(), plan.major.len())).collect()
    }

    #[test]
    fn classes_are_dealt_in_multiples_of_the_tasks() {
        assert_eq!(sizes(100, 5, 50.0), [(10, 10); 5]);
        assert_eq!(sizes(100, 5, 25.0), [(5, 15); 5]);
        assert_eq!(sizes(100, 5, 75.0), [(15, 5); 5]);
        assert_eq!(sizes(100, 5, 0.0), [(0, 20); 5]);
        assert_eq!(sizes(100, 5, 100.0), [(20, 0); 5]);
        // 52 per cent of 13 are 6, cut to 4; of the other 9, 8 are used.
        assert_eq!(sizes(13, 4, 52.0), [(1, 2); 4]);
    }

    #[test]
    fn blocks_follow_the_class_order() {
        let plans = plan(&[7, 5, 3, 1, 0, 2, 4, 6], 8, 2, 50.0);
        assert_eq!(plans[0], Plan { disjoint: vec![7, 5], major: vec![0, 2] });
        assert_eq!(plans[1], Plan { disjoint: vec![3, 1], major: vec![4, 6] });
        assert_eq!(super::super::plan::label_order(&plans), [7, 5, 3, 1, 0, 2, 4, 6]);
    }
}
