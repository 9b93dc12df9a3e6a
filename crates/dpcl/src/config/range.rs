//! Which numbers a key takes.

/// Bounds of a number, each inclusive or not. Numbers that are not finite lie in no range.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Range {
    low: Option<Bound>,
    high: Option<Bound>,
    /// Above it lies only what nobody means: not part of what the range is called.
    cap: Option<(f64, &'static str)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Bound {
    value: f64,
    inclusive: bool,
}

impl Range {
    pub(super) fn at_least(self, value: f64) -> Self {
        Self { low: Some(Bound { value, inclusive: true }), ..self }
    }

    pub(super) fn above(self, value: f64) -> Self {
        Self { low: Some(Bound { value, inclusive: false }), ..self }
    }

    pub(super) fn at_most(self, value: f64) -> Self {
        Self { high: Some(Bound { value, inclusive: true }), ..self }
    }

    pub(super) fn below(self, value: f64) -> Self {
        Self { high: Some(Bound { value, inclusive: false }), ..self }
    }

    pub(super) fn capped(self, most: f64, reason: &'static str) -> Self {
        Self { cap: Some((most, reason)), ..self }
    }

    /// Whether the number lies in it.
    pub fn holds(&self, number: f64) -> bool {
        let low = self.low.is_none_or(|low| number > low.value || (low.inclusive && number == low.value));
        let high =
            self.high.is_none_or(|high| number < high.value || (high.inclusive && number == high.value));
        number.is_finite() && low && high && self.cap.is_none_or(|(most, _)| number <= most)
    }

    /// In words; none where every finite number lies in it.
    pub fn text(&self) -> Option<String> {
        let low = |low: Bound| {
            let word = if low.inclusive { "at least" } else { "above" };
            format!("{word} {}", low.value)
        };
        let high = |high: Bound| {
            let word = if high.inclusive { "at most" } else { "below" };
            format!("{word} {}", high.value)
        };
        match (self.low, self.high) {
            (Some(Bound { value: from, inclusive: true }), Some(Bound { value: to, inclusive: true })) => {
                Some(format!("between {from} and {to}"))
            }
            (Some(one), Some(other)) => Some(format!("{} and {}", low(one), high(other))),
            (Some(bound), None) => Some(low(bound)),
            (None, Some(bound)) => Some(high(bound)),
            (None, None) => None,
        }
    }

    /// What is wrong with a number outside.
    pub fn problem(&self, number: f64) -> String {
        if let Some((most, reason)) = self.cap.filter(|(most, _)| number > *most) {
            return format!("must be at most {most}, not {number}: {reason}");
        }
        match self.text() {
            Some(range) => format!("must be {range}, not {number}"),
            None => format!("must be a finite number, not {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_belong_to_a_range_or_not() {
        let half_open = Range::default().above(0.0).at_most(1.0);
        assert!(
            half_open.holds(1.0) && half_open.holds(0.5) && !half_open.holds(0.0) && !half_open.holds(1.1)
        );
        let other = Range::default().at_least(0.0).below(1.0);
        assert!(other.holds(0.0) && !other.holds(1.0) && !other.holds(-0.1));
        assert!(!Range::default().holds(f64::NAN) && !Range::default().holds(f64::INFINITY));
    }

    #[test]
    fn a_problem_names_the_range() {
        let problem = |range: Range, number| range.problem(number);
        assert_eq!(problem(Range::default().above(0.0), -1.0), "must be above 0, not -1");
        assert_eq!(
            problem(Range::default().at_least(0.0).at_most(1.0), 2.0),
            "must be between 0 and 1, not 2"
        );
        assert_eq!(
            problem(Range::default().above(0.0).below(0.5), 0.5),
            "must be above 0 and below 0.5, not 0.5"
        );
        assert_eq!(problem(Range::default(), f64::NAN), "must be a finite number, not NaN");
    }
}
