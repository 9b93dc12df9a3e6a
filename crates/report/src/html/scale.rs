//! From values to pixels, and the round values an axis names.

/// A straight or logarithmic map from an interval of values to an interval of pixels.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    logarithmic: bool,
}

impl Scale {
    /// Values `low..high` to pixels `from..to` (which may fall, as the vertical axis does).
    pub fn linear(low: f64, high: f64, from: f64, to: f64) -> Self {
        // An empty interval would divide by zero; one unit around it shows a flat line in its place.
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high, from, to, logarithmic: false }
    }

    /// The same with equal ratios equally far apart; `low` must be above zero.
    pub fn logarithmic(low: f64, high: f64, from: f64, to: f64) -> Self {
        let high = if high > low { high } else { low * 10.0 };
        Self { low: low.log10(), high: high.log10(), from, to, logarithmic: true }
    }

    /// The pixel of a value; values outside the interval are drawn at its ends.
    pub fn at(&self, value: f64) -> f64 {
        let value = if self.logarithmic { value.max(f64::MIN_POSITIVE).log10() } else { value };
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.from + share * (self.to - self.from)
    }

    /// Whether a value is on the axis.
    pub fn holds(&self, value: f64) -> bool {
        let value = if self.logarithmic { value.max(f64::MIN_POSITIVE).log10() } else { value };
        (self.low..=self.high).contains(&value)
    }

    /// Round values inside the interval, about `count` of them.
    pub fn ticks(&self, count: usize) -> Vec<f64> {
        if self.logarithmic {
            return self.decades(count);
        }
        let step = step((self.high - self.low) / count.max(1) as f64);
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        // A step lost in the precision of its ends would never reach the last tick.
        if last.saturating_sub(first) > 50 {
            return Vec::new();
        }
        (first..=last).map(|index| index as f64 * step).collect()
    }

    fn decades(&self, count: usize) -> Vec<f64> {
        let (first, last) = (self.low.floor() as i32, self.high.ceil() as i32);
        let inside = |value: &f64| {
            let position = value.log10();
            position >= self.low - 1e-9 && position <= self.high + 1e-9
        };
        let with = |factors: &[f64]| -> Vec<f64> {
            let powers = (first..=last)
                .flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power)));
            powers.filter(inside).collect()
        };
        let fine = with(&[1.0, 2.0, 5.0]);
        if fine.len() <= count + 1 {
            return fine;
        }
        let powers = with(&[1.0]);
        let stride = powers.len().div_ceil(count.max(1)).max(1);
        powers.into_iter().step_by(stride).collect()
    }
}

/// The smallest of 1, 2, 2.5, 5 times a power of ten that is at least the given distance.
fn step(distance: f64) -> f64 {
    if !distance.is_finite() || distance <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(distance.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= distance * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

/// The value rounded up to where an axis may end.
pub fn ceiling(value: f64) -> f64 {
    let step = step(value.abs() / 5.0);
    let rounded = (value / step - 1e-9).ceil() * step;
    if rounded.is_finite() { rounded } else { value }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(Scale::linear(0.0, 100.0, 0.0, 1.0).ticks(5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(Scale::linear(0.0, 5000.0, 0.0, 1.0).ticks(4), [0.0, 2000.0, 4000.0]);
        assert_eq!(Scale::linear(-12.0, 31.0, 0.0, 1.0).ticks(5), [-10.0, 0.0, 10.0, 20.0, 30.0]);
    }

    #[test]
    fn logarithmic_ticks_are_powers_of_ten_or_between() {
        assert_eq!(Scale::logarithmic(1e-3, 1.0, 0.0, 1.0).ticks(4), [1e-3, 1e-2, 1e-1, 1.0]);
        assert_eq!(Scale::logarithmic(1.0, 9.0, 0.0, 1.0).ticks(4), [1.0, 2.0, 5.0]);
        assert_eq!(Scale::logarithmic(1.0, 1e6, 0.0, 1.0).ticks(4), [1.0, 100.0, 1e4, 1e6]);
    }

    #[test]
    fn positions_run_between_the_ends() {
        let scale = Scale::linear(0.0, 10.0, 100.0, 0.0);
        assert_eq!([-5.0, 0.0, 5.0, 10.0, 99.0].map(|value| scale.at(value)), [100.0, 100.0, 50.0, 0.0, 0.0]);
        assert_eq!([-0.1, 0.0, 10.0, 10.1].map(|value| scale.holds(value)), [false, true, true, false]);
        let logarithmic = Scale::logarithmic(1.0, 100.0, 0.0, 10.0);
        assert_eq!(logarithmic.at(10.0), 5.0);
        assert!(logarithmic.holds(100.0) && !logarithmic.holds(0.0));
    }

    #[test]
    fn axes_end_on_round_values() {
        assert_eq!([0.83, 57.3, 412.0].map(ceiling), [1.0, 60.0, 500.0]);
    }

    proptest! {
        #[test]
        fn ticks_stay_inside_and_few(low in -1e9..1e9_f64, width in 1e-6..1e9_f64, count in 1_usize..12) {
            let ticks = Scale::linear(low, low + width, 0.0, 1.0).ticks(count);
            prop_assert!(ticks.len() <= count + 2);
            let slack = width * 1e-6 + 1e-6;
            prop_assert!(ticks.iter().all(|tick| (low - slack..=low + width + slack).contains(tick)));
        }
    }
}
