//! Student's t: how far the mean of a few values may lie from the truth, and how many values would tell.
//!
//! Degrees of freedom are whole numbers here. For these the distribution is a finite sum of cosines (Abramowitz and
//! Stegun, 26.7.3 and 26.7.4), exact and without special functions. Knows no records.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

use crate::statistics::Estimate;

/// Share of all intervals that hold the truth.
pub const CONFIDENCE: f64 = 0.95;
/// Share of all comparisons that would see a true difference of the margin.
pub const POWER: f64 = 0.8;
/// More seeds than this nobody runs.
pub const MOST_SEEDS: usize = 1000;

/// Halvings after which an angle is as fine as a number can be.
const HALVINGS: u32 = 60;

/// The value that a Student variable stays below with the given probability, between 0 and 1. Infinite without a
/// degree of freedom.
pub fn quantile(probability: f64, degrees: usize) -> f64 {
    if probability < 0.5 {
        return -quantile(1.0 - probability, degrees);
    }
    if degrees == 0 {
        return f64::INFINITY;
    }
    let wanted = 2.0 * probability - 1.0;
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if within(middle, degrees) < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    (degrees as f64).sqrt() * low.tan()
}

/// Probability that a Student variable lies within ±t, with t = √degrees · tan(angle).
fn within(angle: f64, degrees: usize) -> f64 {
    let (sine, cosine) = angle.sin_cos();
    let odd = degrees % 2 == 1;
    // 1 + ½cos² + (1·3)/(2·4)cos⁴ + … for even degrees, cos + ⅔cos³ + (2·4)/(3·5)cos⁵ + … for odd ones.
    let mut term = if odd { cosine } else { 1.0 };
    let mut sum = if degrees == 1 { 0.0 } else { term };
    for place in (2 + usize::from(odd)..degrees.saturating_sub(1)).step_by(2) {
        term *= (place - 1) as f64 / place as f64 * cosine * cosine;
        sum += term;
    }
    if odd { FRAC_2_PI * (angle + sine * sum) } else { sine * sum }
}

/// The ends of the 95 % interval around a mean: mean ± t₀.₉₇₅;ₙ₋₁ · s/√n. One value has none.
pub fn interval(estimate: &Estimate) -> Option<(f64, f64)> {
    let error = estimate.deviation? / (estimate.count as f64).sqrt();
    let reach = quantile((1.0 + CONFIDENCE) / 2.0, estimate.count - 1) * error;
    Some((estimate.mean - reach, estimate.mean + reach))
}

/// The fewest pairs with which a true difference of `margin` would leave 0 outside the 95 % interval in 80 % of all
/// comparisons, if differences vary by `deviation`: the smallest n with
///
/// n ≥ ((t₀.₉₇₅;ₙ₋₁ + t₀.₈;ₙ₋₁) · s/δ)²,
///
/// the usual formula for paired tests. The noncentral distribution, which it stands for, asks for one or two pairs more
/// or fewer here and there. `None` beyond [`MOST_SEEDS`].
pub fn seeds_to_decide(deviation: f64, margin: f64) -> Option<usize> {
    let ratio = deviation / margin;
    let enough = |count: usize| {
        let reach = quantile((1.0 + CONFIDENCE) / 2.0, count - 1) + quantile(POWER, count - 1);
        count as f64 >= (reach * ratio).powi(2)
    };
    if !enough(MOST_SEEDS) {
        return None;
    }
    // What is asked for falls with the count, so the first that is enough can be found by halving.
    let (mut low, mut high) = (1, MOST_SEEDS);
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_are_those_of_printed_tables() {
        let printed = [
            (1, 12.706_204_736, 1.376_381_920),
            (2, 4.302_652_730, 1.060_660_172),
            (3, 3.182_446_305, 0.978_472_312),
            (4, 2.776_445_105, 0.940_964_577),
            (7, 2.364_624_252, 0.896_029_644),
            (30, 2.042_272_456, 0.853_767_261),
            (999, 1.962_341_461, 0.841_981_182),
        ];
        for (degrees, wide, narrow) in printed {
            let found = [0.975, 0.8].map(|probability| quantile(probability, degrees));
            assert!(
                (found[0] - wide).abs() < 1e-8 && (found[1] - narrow).abs() < 1e-8,
                "{degrees}: {found:?}"
            );
        }
        assert_eq!(quantile(0.5, 3), 0.0);
        assert_eq!(quantile(0.975, 0), f64::INFINITY);
    }

    #[test]
    fn a_hand_worked_interval() {
        // Of 1, 2 and 6 the mean is 3, s² = (4 + 1 + 9)/2 = 7 and s/√3 = √(7/3); t₀.₉₇₅;₂ = 4.302653.
        let estimate = Estimate::of(&[1.0, 2.0, 6.0]).unwrap();
        let (low, high) = interval(&estimate).unwrap();
        let reach = 4.302_652_73 * (7.0_f64 / 3.0).sqrt();
        assert!((low - (3.0 - reach)).abs() < 1e-7 && (high - (3.0 + reach)).abs() < 1e-7);
        assert_eq!(interval(&Estimate::of(&[1.0]).unwrap()), None);
        assert_eq!(interval(&Estimate::of(&[2.0, 2.0]).unwrap()), Some((2.0, 2.0)));
    }

    /// The numbers of pairs that tables of power give for a paired test with 5 % and 80 %.
    #[test]
    fn seeds_are_those_of_power_tables() {
        let known = [(0.2, 199), (0.3, 90), (0.5, 34), (0.8, 15), (1.0, 10), (1.5, 6), (2.0, 5)];
        for (effect, pairs) in known {
            assert_eq!(seeds_to_decide(1.0, effect), Some(pairs), "{effect}");
        }
        assert_eq!(seeds_to_decide(0.0, 3.0), Some(2));
        assert_eq!(seeds_to_decide(1.0, 0.01), None);
        assert_eq!(seeds_to_decide(f64::NAN, 1.0), None);
    }

    proptest! {
        #[test]
        fn an_interval_holds_its_mean(values in prop::collection::vec(-1.0..1.0_f64, 2..30)) {
            let estimate = Estimate::of(&values).unwrap();
            let (low, high) = interval(&estimate).unwrap();
            prop_assert!(low <= estimate.mean && estimate.mean <= high);
        }

        #[test]
        fn a_quantile_leaves_its_probability_below(probability in 0.5..0.999_f64, degrees in 1_usize..60) {
            let angle = (quantile(probability, degrees) / (degrees as f64).sqrt()).atan();
            prop_assert!((within(angle, degrees) - (2.0 * probability - 1.0)).abs() < 1e-12);
            prop_assert!(quantile(probability, degrees + 1) <= quantile(probability, degrees));
            prop_assert_eq!(quantile(1.0 - probability, degrees), -quantile(1.0 - (1.0 - probability), degrees));
        }
    }
}
