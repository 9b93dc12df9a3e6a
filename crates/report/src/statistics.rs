//! Many seeds to one number with its spread, and many curves to one curve with a band.
//!
//! Plain arithmetic on `f64`; knows neither records nor how a number is shown.

use serde::Serialize;

/// A mean over seeds, together with how far single seeds lie from it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation (divisor n − 1); one value has none.
    pub deviation: Option<f64>,
    /// How many values went in.
    pub count: usize,
}

impl Estimate {
    /// `None` for no values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len();
        if count == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (count > 1).then(|| (squares / (count - 1) as f64).sqrt());
        Some(Self { mean, deviation, count })
    }

    /// The end of the band below the mean; the mean itself for one value.
    pub fn low(&self) -> f64 {
        self.mean - self.deviation.unwrap_or(0.0)
    }

    /// The end of the band above the mean; the mean itself for one value.
    pub fn high(&self) -> f64 {
        self.mean + self.deviation.unwrap_or(0.0)
    }
}

/// One curve, as (x, y) with x not decreasing.
pub type Curve = Vec<(f64, f64)>;

/// A curve over seeds: at each x the estimate there.
pub type Band = Vec<(f64, Estimate)>;

/// Averages curves at every x that occurs in any of them. Between its points a curve is taken as straight, beyond
/// its ends as level, so seeds whose points differ slightly (unequal task sizes) still average; points that are
/// equal in all curves average exactly. Points that are not finite are left out, and empty curves with them.
pub fn average(curves: &[Curve]) -> Band {
    let finite = |curve: &Curve| -> Curve {
        curve.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite()).collect()
    };
    let curves: Vec<Curve> = curves.iter().map(finite).filter(|curve| !curve.is_empty()).collect();
    let mut grid: Vec<f64> = curves.iter().flatten().map(|&(x, _)| x).collect();
    grid.sort_by(f64::total_cmp);
    grid.dedup();
    let at = |x: f64| {
        let values: Vec<f64> = curves.iter().map(|curve| value_at(curve, x)).collect();
        Estimate::of(&values).map(|estimate| (x, estimate))
    };
    grid.into_iter().filter_map(at).collect()
}

/// At most `most` points of a curve, each the mean of its neighbours, with the x of the last of them.
pub fn thin(curve: &Curve, most: usize) -> Curve {
    let size = curve.len().div_ceil(most.max(1)).max(1);
    let mean = |points: &[(f64, f64)]| points.iter().map(|(_, y)| y).sum::<f64>() / points.len() as f64;
    curve.chunks(size).map(|points| (points[points.len() - 1].0, mean(points))).collect()
}

/// The value of a curve that is not empty. Of several points at one x the last counts.
fn value_at(curve: &[(f64, f64)], x: f64) -> f64 {
    let after = curve.partition_point(|&(point, _)| point <= x);
    let Some(before) = after.checked_sub(1) else { return curve[0].1 };
    let (left, low) = curve[before];
    match curve.get(after) {
        Some(&(right, high)) => low + (high - low) * (x - left) / (right - left),
        None => low,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn deviation_divides_by_one_less_than_the_count() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(estimate.mean, 2.5);
        assert!((estimate.deviation.unwrap() - (5.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(estimate.count, 4);
    }

    #[test]
    fn one_value_has_no_deviation_and_no_value_no_estimate() {
        assert_eq!(Estimate::of(&[0.5]), Some(Estimate { mean: 0.5, deviation: None, count: 1 }));
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn curves_with_the_same_points_average_pointwise() {
        let band = average(&[vec![(1.0, 0.2), (2.0, 0.4)], vec![(1.0, 0.4), (2.0, 0.8)]]);
        let means: Vec<(f64, f64)> = band.iter().map(|(x, estimate)| (*x, estimate.mean)).collect();
        assert_eq!(means, [(1.0, 0.30000000000000004), (2.0, 0.6000000000000001)]);
    }

    #[test]
    fn between_points_straight_and_beyond_the_ends_level() {
        let band = average(&[vec![(0.0, 0.0), (10.0, 1.0)], vec![(5.0, 0.0)]]);
        let found: Vec<(f64, f64)> = band.iter().map(|(x, estimate)| (*x, estimate.mean)).collect();
        assert_eq!(found, [(0.0, 0.0), (5.0, 0.25), (10.0, 0.5)]);
    }

    #[test]
    fn a_diverged_point_is_left_out() {
        let band = average(&[vec![(1.0, f64::NAN), (2.0, 3.0)], vec![]]);
        assert_eq!(band, [(2.0, Estimate { mean: 3.0, deviation: None, count: 1 })]);
    }

    #[test]
    fn thinning_averages_neighbours() {
        let curve: Curve = (1..=5).map(|x| (f64::from(x), f64::from(x * 10))).collect();
        assert_eq!(thin(&curve, 2), [(3.0, 20.0), (5.0, 45.0)]);
        assert_eq!(thin(&curve, 9), curve);
        assert_eq!(thin(&Vec::new(), 3), []);
    }

    proptest! {
        #[test]
        fn a_mean_lies_among_its_values(values in prop::collection::vec(-1e6..1e6_f64, 1..20)) {
            let estimate = Estimate::of(&values).unwrap();
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            prop_assert!(low - 1e-6 <= estimate.mean && estimate.mean <= high + 1e-6);
            prop_assert!(estimate.deviation.unwrap_or(0.0) >= 0.0);
        }

        #[test]
        fn averaging_copies_of_a_curve_gives_it_back(ys in prop::collection::vec(0.0..1.0_f64, 1..30)) {
            let curve: Curve = ys.iter().enumerate().map(|(x, &y)| (x as f64, y)).collect();
            let band = average(&[curve.clone(), curve.clone()]);
            prop_assert_eq!(band.len(), curve.len());
            for ((x, estimate), (expected_x, expected)) in band.iter().zip(&curve) {
                prop_assert_eq!(x, expected_x);
                prop_assert!((estimate.mean - expected).abs() < 1e-12);
            }
        }
    }
}
