//! Standard normal numbers from a key: the same key gives the same numbers, so that only the key needs saving.
//!
//! Made for the millions of numbers a training step may ask for; [`crate::random::Random`] hands out the keys.

/// An endless sequence of standard normal numbers.
#[derive(Clone, Debug)]
pub struct Normals {
    state: u64,
    spare: Option<f32>,
}

impl Normals {
    /// The sequence that belongs to `key`.
    pub fn new(key: u64) -> Self {
        Self { state: key, spare: None }
    }

    /// Two independent numbers (Box–Muller).
    pub fn pair(&mut self) -> (f32, f32) {
        let bits = self.bits();
        let scale = 2.0_f32.powi(-32);
        // In (0, 1], so that the logarithm is finite.
        let first = ((bits >> 32) as f32 + 0.5) * scale;
        let second = (bits as u32) as f32 * scale;
        let radius = (-2.0 * first.ln()).max(0.0).sqrt();
        let (sine, cosine) = (std::f32::consts::TAU * second).sin_cos();
        (radius * cosine, radius * sine)
    }

    /// The next number.
    pub fn next_one(&mut self) -> f32 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let (first, second) = self.pair();
        self.spare = Some(second);
        first
    }

    /// Uniform in [−1, 1).
    pub fn symmetric(&mut self) -> f32 {
        // 24 bits, as many as a float between 0.5 and 1 can tell apart.
        (self.bits() >> 40) as f32 * 2.0_f32.powi(-23) - 1.0
    }

    /// SplitMix64: a counter and a mixer.
    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_moments_of_a_standard_normal() {
        let mut normals = Normals::new(42);
        let count = 400_000;
        let drawn: Vec<f64> = (0..count).map(|_| f64::from(normals.next_one())).collect();
        let moment =
            |power: i32| drawn.iter().map(|number| number.powi(power)).sum::<f64>() / f64::from(count);
        assert!(moment(1).abs() < 5e-3, "{}", moment(1));
        assert!((moment(2) - 1.0).abs() < 1e-2, "{}", moment(2));
        assert!(moment(3).abs() < 3e-2, "{}", moment(3));
        assert!((moment(4) - 3.0).abs() < 0.1, "{}", moment(4));
        let lagged: f64 = drawn.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / f64::from(count);
        assert!(lagged.abs() < 5e-3, "neighbours are uncorrelated: {lagged}");
    }

    #[test]
    fn symmetric_numbers_fill_their_interval_evenly() {
        let mut normals = Normals::new(7);
        let drawn: Vec<f64> = (0..100_000).map(|_| f64::from(normals.symmetric())).collect();
        assert!(drawn.iter().all(|number| (-1.0..1.0).contains(number)));
        let variance = drawn.iter().map(|number| number * number).sum::<f64>() / 1e5;
        assert!((variance - 1.0 / 3.0).abs() < 5e-3, "{variance}");
    }

    #[test]
    fn a_key_names_its_sequence() {
        let sequence = |key| {
            let mut normals = Normals::new(key);
            [(); 4].map(|()| normals.next_one())
        };
        assert_eq!(sequence(3), sequence(3));
        assert_ne!(sequence(3), sequence(4));
    }
}
