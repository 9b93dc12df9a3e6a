//! How two classifiers' labels differ, and what follows from it: whether what is stored is something new to a
//! component, and which samples are new to most.

use crate::{config::choices, random::Random};

/// How far two labels are apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discrepancy {
    /// 1 where they differ.
    Indicator,
    /// The difference of their numbers.
    Index,
}

choices!(Discrepancy: Indicator = "indicator", Index = "index");

/// Images that go into one mean.
const ROWS: usize = 64;

impl Discrepancy {
    /// How far two labels are apart.
    fn of(self, one: usize, other: usize) -> f64 {
        match self {
            Self::Indicator => f64::from(u8::from(one != other)),
            Self::Index => one.abs_diff(other) as f64,
        }
    }

    /// Of each image, given the labels of two classifiers.
    pub fn each(self, one: &[usize], other: &[usize]) -> Vec<f64> {
        one.iter().zip(other).map(|(&one, &other)| self.of(one, other)).collect()
    }
}

/// The mean over batches of how far the means of these differences are apart, of stored images and of generated ones.
pub(super) fn apart(stored: &[f64], generated: &[f64]) -> f64 {
    let mean = |batch: &[f64]| batch.iter().sum::<f64>() / batch.len() as f64;
    let batches = stored.chunks(ROWS).zip(generated.chunks(ROWS));
    let apart: Vec<f64> = batches.map(|(stored, generated)| (mean(stored) - mean(generated)).abs()).collect();
    mean(&apart)
}

/// Positions of the `count` largest scores, ascending; among equal ones chance decides.
pub(super) fn largest(scores: &[f64], count: usize, random: &mut Random) -> Vec<usize> {
    let mut order = random.permutation(scores.len());
    order.sort_by(|&one, &other| scores[other].total_cmp(&scores[one]));
    order.truncate(count);
    order.sort_unstable();
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_compared_by_name_or_by_number() {
        let labels = ([1, 5, 2, 0], [1, 2, 9, 0]);
        assert_eq!(Discrepancy::Indicator.each(&labels.0, &labels.1), [0.0, 1.0, 1.0, 0.0]);
        assert_eq!(Discrepancy::Index.each(&labels.0, &labels.1), [0.0, 3.0, 7.0, 0.0]);
    }

    #[test]
    fn means_are_compared_batch_by_batch() {
        assert_eq!(apart(&[1.0, 0.0, 1.0, 1.0], &[0.0, 0.0, 1.0, 0.0]), 0.5);
        // Of 64 and 2: 1 and 0.5 apart, in opposite directions.
        let mut stored = vec![1.0; 64];
        stored.extend([0.0, 0.0]);
        let mut generated = vec![0.0; 64];
        generated.extend([0.0, 1.0]);
        assert_eq!(apart(&stored, &generated), 0.75);
        assert_eq!(apart(&stored, &stored), 0.0);
    }

    #[test]
    fn the_largest_scores_win_and_chance_decides_among_equal_ones() {
        let mut random = Random::named(1, "ties");
        assert_eq!(largest(&[0.1, 0.5, 0.0, 0.9], 2, &mut random), [1, 3]);
        assert_eq!(largest(&[0.5, 0.5], 5, &mut random), [0, 1]);
        let mut kept = [0; 4];
        for _ in 0..400 {
            let found = largest(&[0.0, 0.0, 1.0, 0.0], 2, &mut random);
            assert!(found.len() == 2 && found.contains(&2) && found.is_sorted());
            found.into_iter().for_each(|position| kept[position] += 1);
        }
        assert!([0, 1, 3].iter().all(|&position| (90..180).contains(&kept[position])), "{kept:?}");
    }
}
