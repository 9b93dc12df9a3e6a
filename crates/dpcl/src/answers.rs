//! Answers of several heads, several draws each: their mean, and how far they disagree.
//!
//! Disagreement is the mutual information I = H(p̄) − (1/N) Σₙ H(pₙ) between a prediction and the head that makes it,
//! in nats; each head's pₙ is the mean over its draws. One head alone cannot disagree with itself, so its draws take
//! the place of heads.

/// An answer for one image.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    /// Probability of each class met so far.
    pub probabilities: Vec<f32>,
    /// How much the heads disagree: mutual information in nats, 0 where only one answer was given.
    pub disagreement: f64,
    /// Total uncertainty: entropy of the probabilities in nats.
    pub entropy: f64,
}

impl Scores {
    /// The most probable class; ties go to the class met first.
    pub fn best(&self) -> usize {
        let mut best = 0;
        for (class, probability) in self.probabilities.iter().enumerate() {
            if *probability > self.probabilities[best] {
                best = class;
            }
        }
        best
    }

    /// The answer of logits that some of `classes` have, each with its class: of several for one class the largest counts,
    /// and a class without any has probability 0.
    pub fn of_columns(classes: usize, columns: impl IntoIterator<Item = (usize, f32)>) -> Self {
        let mut logits = vec![f32::MIN; classes];
        columns.into_iter().for_each(|(class, logit)| logits[class] = logits[class].max(logit));
        softmax(&mut logits);
        Self::of(&[logits.into_iter().map(f64::from).collect()])
    }

    /// Several voters' distributions over the same classes, taken together.
    pub fn of(voters: &[Vec<f64>]) -> Self {
        let mean = mean(voters.iter().map(Vec::as_slice));
        let own = voters.iter().map(|voter| entropy(voter)).sum::<f64>() / voters.len() as f64;
        let total = entropy(&mean);
        Self {
            disagreement: (total - own).max(0.0),
            entropy: total,
            probabilities: mean.into_iter().map(|probability| probability as f32).collect(),
        }
    }
}

/// Shannon entropy in nats.
pub fn entropy(probabilities: &[f64]) -> f64 {
    let terms = probabilities.iter().filter(|&&probability| probability > 0.0);
    terms.map(|probability| -probability * probability.ln()).sum()
}

/// Class probabilities by every draw of every head on every row.
#[derive(Clone, Debug)]
pub struct Votes {
    heads: usize,
    draws: usize,
    classes: usize,
    /// [rows, heads, draws, classes].
    probabilities: Vec<f64>,
}

impl Votes {
    /// From logits [rows, heads, draws, classes].
    pub fn from_logits(mut logits: Vec<f32>, [heads, draws, classes]: [usize; 3]) -> Self {
        logits.chunks_exact_mut(classes).for_each(softmax);
        Self { heads, draws, classes, probabilities: logits.into_iter().map(f64::from).collect() }
    }

    /// Each head's distribution on each row, averaged over its draws: by row, head, class.
    pub fn by_head(&self) -> Vec<Vec<Vec<f64>>> {
        let head = |head: &[f64]| mean(head.chunks_exact(self.classes));
        self.rows().map(|row| row.chunks_exact(self.draws * self.classes).map(head).collect()).collect()
    }

    /// The joint answer on each row.
    pub fn scores(&self) -> Vec<Scores> {
        if self.heads > 1 {
            return self.by_head().iter().map(|voters| Scores::of(voters)).collect();
        }
        (0..self.rows().count()).map(|row| Scores::of(&self.by_draw(row, 0))).collect()
    }

    /// The distribution of each draw of one head on one row: by draw, class.
    pub fn by_draw(&self, row: usize, head: usize) -> Vec<Vec<f64>> {
        let length = self.draws * self.classes;
        let draws = &self.probabilities[(row * self.heads + head) * length..][..length];
        draws.chunks_exact(self.classes).map(<[f64]>::to_vec).collect()
    }

    fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.probabilities.chunks_exact(self.heads * self.draws * self.classes)
    }
}

fn mean<'a>(distributions: impl ExactSizeIterator<Item = &'a [f64]>) -> Vec<f64> {
    let count = distributions.len() as f64;
    let mut sum: Vec<f64> = Vec::new();
    for distribution in distributions {
        sum.resize(distribution.len(), 0.0);
        sum.iter_mut().zip(distribution).for_each(|(sum, probability)| *sum += probability);
    }
    sum.iter_mut().for_each(|sum| *sum /= count);
    sum
}

/// Softmax in place.
fn softmax(logits: &mut [f32]) {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for logit in logits.iter_mut() {
        *logit = (*logit - largest).exp();
        sum += *logit;
    }
    logits.iter_mut().for_each(|logit| *logit /= sum);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_largest_of_several_logits_counts_and_a_class_without_any_is_out() {
        let answer = Scores::of_columns(3, [(2, 1.0), (0, -1.0), (2, -5.0), (0, 3.0_f32.ln() + 1.0)]);
        assert!(
            (answer.probabilities[0] - 0.75).abs() < 1e-6 && (answer.probabilities[2] - 0.25).abs() < 1e-6
        );
        assert_eq!((answer.probabilities[1], answer.best(), answer.disagreement), (0.0, 0, 0.0));
        assert_eq!(Scores::of_columns(2, []).probabilities, [0.5, 0.5], "nothing is known of either");
    }

    #[test]
    fn hand_worked_disagreements() {
        let two = Scores::of(&[vec![0.9, 0.1], vec![0.1, 0.9]]);
        assert!((two.disagreement - 0.368_064_21).abs() < 1e-8);
        let three = Scores::of(&[vec![0.7, 0.2, 0.1], vec![0.5, 0.3, 0.2]]);
        assert!((three.disagreement - 0.021_901_18).abs() < 1e-8);
        assert!((three.entropy - 0.937_636_96).abs() < 1e-8);
        assert_eq!(three.best(), 0);
        let sure = Scores::of(&[vec![1.0, 0.0], vec![0.0, 1.0]]);
        assert!((sure.disagreement - std::f64::consts::LN_2).abs() < 1e-12);
    }

    #[test]
    fn softmax_of_small_whole_numbers() {
        let votes = Votes::from_logits(vec![2.0, 1.0, 0.0], [1, 1, 3]);
        let found = &votes.by_head()[0][0];
        for (found, expected) in found.iter().zip([0.665_240_96, 0.244_728_47, 0.090_030_57]) {
            assert!((found - expected).abs() < 1e-7);
        }
    }

    #[test]
    fn draws_of_a_lone_head_disagree_with_each_other() {
        let logits = vec![3.0, 0.0, 0.0, 3.0];
        let lone = Votes::from_logits(logits.clone(), [1, 2, 2]).scores();
        let pair = Votes::from_logits(logits, [2, 1, 2]).scores();
        assert!(lone[0].disagreement > 0.3);
        assert_eq!(lone, pair);
    }

    proptest! {
        #[test]
        fn disagreement_lies_between_zero_and_its_bound(
            heads in 1_usize..5, draws in 1_usize..4, classes in 1_usize..6,
            numbers in prop::collection::vec(-8.0_f32..8.0, 5 * 4 * 6),
        ) {
            let logits = numbers[..heads * draws * classes].to_vec();
            let scores = &Votes::from_logits(logits, [heads, draws, classes]).scores()[0];
            let voters = if heads == 1 { draws } else { heads };
            let bound = (voters.min(classes) as f64).ln();
            prop_assert!((0.0..=bound + 1e-9).contains(&scores.disagreement), "{}", scores.disagreement);
            prop_assert!(scores.disagreement <= scores.entropy + 1e-9);
            prop_assert!((scores.probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        }
    }
}
