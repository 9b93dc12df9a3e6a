//! What every scenario is made of: which classes start in which task, and the small rules of dealing and shuffling.

use super::BlurryOrder;
use crate::random::Random;

/// The classes a task starts with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Those whose samples all stay here.
    pub disjoint: Vec<usize>,
    /// Those of which some samples stray.
    pub major: Vec<usize>,
}

impl Plan {
    /// Both kinds: the task's test classes.
    pub(super) fn classes(&self) -> Vec<usize> {
        [self.disjoint.as_slice(), &self.major].concat()
    }
}

/// Classes by published label id: the disjoint ones task by task, then the others task by task.
pub(super) fn label_order(plans: &[Plan]) -> Vec<usize> {
    let disjoint = plans.iter().flat_map(|plan| &plan.disjoint);
    disjoint.chain(plans.iter().flat_map(|plan| &plan.major)).copied().collect()
}

/// Consecutive groups as equal as can be; the first ones take one more each until the remainder is used up.
pub(super) fn evenly<T>(items: &[T], groups: usize) -> Vec<&[T]> {
    let (least, remainder) = (items.len() / groups, items.len() % groups);
    let mut rest = items;
    (0..groups)
        .map(|group| {
            let (taken, left) = rest.split_at(least + usize::from(group < remainder));
            rest = left;
            taken
        })
        .collect()
}

/// Whole things in `percent` per cent of `count`, cut.
pub(super) fn share(count: usize, percent: f64) -> usize {
    // The allowance keeps 28.999…96 things, which binary floats make of 29, at 29.
    ((count as f64 * percent / 100.0 + 1e-9) as usize).min(count)
}

/// All samples of some classes.
pub(super) fn gather(classes: &[usize], samples: &[Vec<usize>]) -> Vec<usize> {
    classes.iter().flat_map(|&class| &samples[class]).copied().collect()
}

/// Puts each task's own samples and those that came from elsewhere in order of arrival.
pub(super) fn arrange(
    own: Vec<Vec<usize>>,
    strays: Vec<Vec<usize>>,
    order: BlurryOrder,
    seed: u64,
) -> Vec<Vec<usize>> {
    let mut random = Random::named(seed, "in-task-shuffle");
    let merge = |(mut own, mut strays): (Vec<usize>, Vec<usize>)| {
        match order {
            BlurryOrder::Shuffled => {
                own.append(&mut strays);
                random.shuffle(&mut own);
            }
            BlurryOrder::ChunkLast => {
                random.shuffle(&mut own);
                random.shuffle(&mut strays);
                own.append(&mut strays);
            }
        }
        own
    };
    own.into_iter().zip(strays).map(merge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_groups_take_the_remainder() {
        let items = [0, 1, 2, 3, 4, 5, 6, 7];
        assert_eq!(evenly(&items, 3), [&[0, 1, 2][..], &[3, 4, 5], &[6, 7]]);
        assert_eq!(evenly(&items[..2], 3), [&[0][..], &[1], &[]]);
    }

    #[test]
    fn shares_are_cut_but_decimals_are_decimals() {
        assert_eq!(share(10_000, 10.0), 1_000);
        assert_eq!(share(99, 10.0), 9);
        assert_eq!(share(1_000, 0.7), 7);
        assert_eq!(share(3, 100.0), 3);
        assert_eq!(share(0, 50.0), 0);
    }
}
