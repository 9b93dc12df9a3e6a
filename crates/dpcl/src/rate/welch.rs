//! Welch's t-test: is the mean of one sample above that of another, whatever their variances?

/// What the test found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Welch {
    /// Difference of the means in units of its standard error.
    pub t: f64,
    /// Degrees of freedom by Welch and Satterthwaite.
    pub degrees: f64,
    /// Probability of a `t` at least this high if the means were equal.
    pub p: f64,
}

impl Welch {
    /// Tests for mean(`a`) > mean(`b`); nothing can be said of fewer than two numbers or where neither varies.
    pub fn above(a: &[f64], b: &[f64]) -> Option<Self> {
        let ((mean_a, error_a), (mean_b, error_b)) = (mean_and_error(a)?, mean_and_error(b)?);
        let error = error_a + error_b;
        if error == 0.0 {
            return None;
        }
        let t = (mean_a - mean_b) / error.sqrt();
        let share = |error: f64, count: usize| error * error / (count - 1) as f64;
        let degrees = error * error / (share(error_a, a.len()) + share(error_b, b.len()));
        Some(Self { t, degrees, p: student_upper_tail(t, degrees) })
    }
}

/// Mean of at least two numbers and its squared standard error.
fn mean_and_error(numbers: &[f64]) -> Option<(f64, f64)> {
    if numbers.len() < 2 {
        return None;
    }
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    Some((mean, squares / (count - 1.0) / count))
}

/// Probability that a Student variable with `degrees` of freedom exceeds `t`.
pub fn student_upper_tail(t: f64, degrees: f64) -> f64 {
    let beyond = 0.5 * incomplete_beta(degrees / (degrees + t * t), degrees / 2.0, 0.5);
    if t > 0.0 { beyond } else { 1.0 - beyond }
}

/// Regularised incomplete beta function at `x` in 0..=1, by its continued fraction.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast below the distribution's middle; above it the other tail is computed.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let logarithm = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    logarithm.exp() / (a * fraction(x, a, b))
}

/// 1 + d₁/(1 + d₂/(1 + …)) with the coefficients of the incomplete beta function, from the inside out.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    /// Twenty would do for the arguments of a t-test with tens of degrees of freedom.
    const TERMS: u32 = 200;
    let coefficient = |term: u32| {
        let m = f64::from(term / 2);
        if term.is_multiple_of(2) {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        }
    };
    (1..=TERMS).rev().fold(1.0, |inner, term| 1.0 + coefficient(term) / inner)
}

/// Logarithm of the gamma function of a positive number: Stirling's series after moving up to where it is exact.
fn ln_gamma(x: f64) -> f64 {
    /// From here on the terms left out are below 1e-12.
    const EXACT: f64 = 12.0;
    let (mut x, mut product) = (x, 1.0);
    while x < EXACT {
        product *= x;
        x += 1.0;
    }
    let square = x * x;
    let series =
        (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square) / square) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - f64::ln(product)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hand_worked_tests() {
        let one = Welch::above(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0, 2.0, 3.0, 3.0, 1.0]).unwrap();
        assert!((one.t - 1.0).abs() < 1e-12);
        assert!((one.degrees - 6.077_151_3).abs() < 1e-7);
        assert!((one.p - 0.177_724_8).abs() < 1e-7);
        let a = [0.05, 0.04, 0.06, 0.05, 0.07, 0.05, 0.04, 0.06, 0.05, 0.05];
        let b = [0.03, 0.02, 0.04, 0.03, 0.03, 0.02, 0.05, 0.03, 0.02, 0.03];
        let two = Welch::above(&a, &b).unwrap();
        assert!((two.t - 5.284_229_1).abs() < 1e-7 && (two.degrees - 17.988_173).abs() < 1e-6);
        assert!((two.p - 2.525_08e-5).abs() < 1e-10);
        assert!((student_upper_tail(2.015_048, 5.0) - 0.05).abs() < 1e-7);
    }

    #[test]
    fn tails_with_closed_forms() {
        for t in [-30.0, -1.3, 0.0, 0.3, 2.0, 400.0_f64] {
            // One degree of freedom is Cauchy's distribution; two have an algebraic tail.
            let cauchy = 0.5 - t.atan() / std::f64::consts::PI;
            assert!((student_upper_tail(t, 1.0) - cauchy).abs() < 1e-12, "{t}");
            let algebraic = 0.5 - t / (2.0 * (2.0 + t * t).sqrt());
            assert!((student_upper_tail(t, 2.0) - algebraic).abs() < 1e-12, "{t}");
        }
    }

    #[test]
    fn gamma_of_whole_numbers_is_a_factorial() {
        assert!(ln_gamma(1.0).abs() < 1e-12 && ln_gamma(2.0).abs() < 1e-12);
        assert!((ln_gamma(11.0) - 3_628_800.0_f64.ln()).abs() < 1e-12);
        assert!((ln_gamma(0.5) - 0.5 * std::f64::consts::PI.ln()).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_said_where_nothing_varies() {
        assert_eq!(Welch::above(&[1.0, 1.0], &[1.0, 1.0]), None);
        assert_eq!(Welch::above(&[2.0, 2.0], &[1.0, 1.0]), None);
        assert_eq!(Welch::above(&[2.0], &[1.0, 3.0]), None);
    }

    proptest! {
        #[test]
        fn the_two_tails_make_one(t in -50.0_f64..50.0, degrees in 0.5_f64..60.0) {
            let (upper, lower) = (student_upper_tail(t, degrees), student_upper_tail(-t, degrees));
            prop_assert!((upper + lower - 1.0).abs() < 1e-12);
            prop_assert!((0.0..=1.0).contains(&upper));
        }
    }
}
