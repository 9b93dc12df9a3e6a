//! Whether two lists of numbers put things in the same order.

/// Spearman's rank correlation: 1 for the same order, −1 for the opposite one, equal values sharing their ranks. `None`
/// for fewer than three pairs or where all of one list are equal.
pub fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.len() < 3 {
        return None;
    }
    let (one, other): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (one, other) = (ranks(&one), ranks(&other));
    let mean = (pairs.len() + 1) as f64 / 2.0;
    let sum = |of: &dyn Fn(usize) -> f64| (0..pairs.len()).map(of).sum::<f64>();
    let together = sum(&|at| (one[at] - mean) * (other[at] - mean));
    let apart = (sum(&|at| (one[at] - mean).powi(2)) * sum(&|at| (other[at] - mean).powi(2))).sqrt();
    (apart > 0.0).then(|| together / apart)
}

/// The place of each value among all, from 1; equal values get the mean of their places.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal + 1) as f64 / 2.0
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_worked_correlations() {
        assert_eq!(correlation(&[(1.0, 10.0), (2.0, 20.0), (3.0, 90.0)]), Some(1.0));
        assert_eq!(correlation(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]), Some(-1.0));
        // Places 1 2 3 4 against 2 1 4 3: 1 − 6·4/(4·15) = 0.6.
        let found = correlation(&[(1.0, 2.0), (2.0, 1.0), (3.0, 4.0), (4.0, 3.0)]).unwrap();
        assert!((found - 0.6).abs() < 1e-12);
        assert_eq!(ranks(&[5.0, 1.0, 5.0]), [2.5, 1.0, 2.5]);
    }

    #[test]
    fn two_pairs_or_equal_values_say_nothing() {
        assert_eq!(correlation(&[(1.0, 2.0), (2.0, 3.0)]), None);
        assert_eq!(correlation(&[(1.0, 2.0), (1.0, 3.0), (1.0, 4.0)]), None);
    }
}
