//! One seed, many named random streams.
//!
//! Every consumer of chance (class order, augmentation, memory draws, …) asks for its own generator by
//! name, so that drawing more often in one place never changes what another place draws.

use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// A generator whose whole state can be saved and restored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ChaCha8Rng")]
pub struct Random(ChaCha8Rng);

/// Numbers that a saved generator may have drawn. Nobody lived to draw more, and a position beyond 64 bits could not
/// be saved again.
const MOST_DRAWN: u128 = 1 << 53;

impl TryFrom<ChaCha8Rng> for Random {
    type Error = String;

    fn try_from(generator: ChaCha8Rng) -> Result<Self, String> {
        let drawn = generator.get_word_pos();
        let problem = || format!("{drawn} numbers were drawn, which nobody lived to see");
        (drawn <= MOST_DRAWN).then_some(Self(generator)).ok_or_else(problem)
    }
}

impl Random {
    /// The stream called `name` of the run seeded with `seed`.
    pub fn named(seed: u64, name: &str) -> Self {
        // FNV-1a keeps the mapping from names to streams fixed across toolchains.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut key = [0_u8; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&hash.to_le_bytes());
        Self(ChaCha8Rng::from_seed(key))
    }

    /// Any 64 bits, for seeding a generator that lives elsewhere.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.0.random::<f64>()
    }

    /// Uniform in [low, high).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Uniform integer below `count`, which must be positive.
    pub fn below(&mut self, count: usize) -> usize {
        self.0.random_range(0..count)
    }

    /// A standard normal number (Box–Muller, one of the pair).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// A draw from Beta(`alpha`, `beta`); Beta(1, 1) is the plain uniform.
    pub fn beta(&mut self, alpha: f64, beta: f64) -> f64 {
        if alpha == 1.0 && beta == 1.0 {
            return self.uniform();
        }
        let first = self.gamma(alpha);
        let second = self.gamma(beta);
        let sum = first + second;
        if sum > 0.0 {
            return first / sum;
        }
        // Both were too small for a float, which only happens where the distribution is nearly that of a coin.
        if self.chance(alpha / (alpha + beta)) { 1.0 } else { 0.0 }
    }

    /// Shuffles in place (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }

    /// A uniformly random permutation of 0..count.
    pub fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        self.shuffle(&mut order);
        order
    }

    /// `chosen` distinct indices below `count`, in random order.
    pub fn distinct(&mut self, count: usize, chosen: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        let chosen = chosen.min(count);
        for position in 0..chosen {
            let other = position + self.below(count - position);
            order.swap(position, other);
        }
        order.truncate(chosen);
        order
    }

    /// Gamma(`shape`, 1) by Marsaglia and Tsang's squeeze, boosted below shape 1.
    fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let boost = (1.0 - self.uniform()).powf(1.0 / shape);
            return self.gamma(shape + 1.0) * boost;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && (1.0 - self.uniform()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_independent_of_each_other_and_repeatable() {
        let mut one = Random::named(7, "augmentation");
        let mut again = Random::named(7, "augmentation");
        let mut other = Random::named(7, "memory");
        let first: Vec<u64> = (0..4).map(|_| one.bits()).collect();
        let second: Vec<u64> = (0..4).map(|_| again.bits()).collect();
        let third: Vec<u64> = (0..4).map(|_| other.bits()).collect();
        assert_eq!(first, second);
        assert_ne!(first, third);
    }

    #[test]
    fn state_survives_serialisation() {
        let mut random = Random::named(1, "x");
        random.uniform();
        let text = serde_json::to_string(&random).unwrap();
        let mut restored: Random = serde_json::from_str(&text).unwrap();
        assert_eq!(random.bits(), restored.bits());
        let at = |position: u64| text.replace("\"word_pos\":2", &format!("\"word_pos\":{position}"));
        assert!(serde_json::from_str::<Random>(&at(1 << 53)).is_ok());
        for position in [(1 << 53) + 1, u64::MAX] {
            let refused = serde_json::from_str::<Random>(&at(position)).unwrap_err().to_string();
            assert!(refused.contains("nobody lived to see"), "{refused}");
        }
    }

    #[test]
    fn beta_two_five_has_its_moments() {
        let mut random = Random::named(3, "beta");
        let draws: Vec<f64> = (0..200_000).map(|_| random.beta(2.0, 5.0)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let second = draws.iter().map(|x| x * x).sum::<f64>() / draws.len() as f64;
        assert!((mean - 0.285_714_3).abs() < 2e-3, "{mean}");
        assert!((second - 0.107_142_9).abs() < 2e-3, "{second}");
    }

    #[test]
    fn beta_of_tiny_parameters_is_a_coin() {
        let mut random = Random::named(3, "beta");
        let draws: Vec<f64> = (0..10_000).map(|_| random.beta(1e-4, 1e-4)).collect();
        assert!(draws.iter().all(|draw| (0.0..=1.0).contains(draw)));
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        assert!((mean - 0.5).abs() < 0.03, "{mean}");
    }

    #[test]
    fn distinct_never_repeats_and_is_uniform() {
        let mut random = Random::named(5, "distinct");
        let mut hits = [0_usize; 10];
        for _ in 0..20_000 {
            let mut chosen = random.distinct(10, 3);
            for &index in &chosen {
                hits[index] += 1;
            }
            chosen.sort_unstable();
            chosen.dedup();
            assert_eq!(chosen.len(), 3);
        }
        assert!(hits.iter().all(|&count| (5_600..6_400).contains(&count)), "{hits:?}");
        assert_eq!(random.distinct(2, 5).len(), 2);
    }
}
