//! Perturbed function interpolation: at one random depth of the network, activations are disturbed by noise and mixed
//! with those of another row of the batch.
//!
//! Paper noise, perturb then mix, with ν the noise factor of a row's class:
//! ȟᵢ = (1 + σₘνᵢξₘ) ⊙ hᵢ + σₐνᵢξₐ, h̃ᵢ = ζ ȟᵢ + (1 − ζ) ȟ_{s(i)}, ξ normal.
//! NFM noise (noisy feature mixup), mix then perturb, the same strength for every row:
//! h̄ᵢ = ζ hᵢ + (1 − ζ) h_{s(i)}, h̃ᵢ = (1 + σₘB₁u) ⊙ h̄ᵢ + σₐB₂ξ, u uniform in ±1, B₁ and B₂ from Beta(2, 5).
//!
//! Noise is a constant in the backward pass; gradients reach both rows of a mixture.
//!
//! ζ and 1 − ζ are equally likely if the Beta distribution is symmetric, so max(ζ, 1 − ζ) in place of ζ leaves the rows
//! of a batch as likely as they were, and says otherwise which sample each of them stands for.

use burn::tensor::{Device, Tensor, TensorData};

use dpcl_kernels::{PerturbMix, perturb_mix};

use super::Normals;
use crate::{
    config::{choices, keys},
    error::{Error, Result},
    random::Random,
    state::{Persist, State},
};

/// Which noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NoiseKind {
    /// Gaussian, scaled by the class's noise factor; perturb, then mix.
    #[default]
    Paper,
    /// Gaussian and uniform, scaled by two Beta(2, 5) draws a batch; mix, then perturb.
    Nfm,
}

/// What batch norm's running statistics follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statistics {
    /// The perturbed rows.
    #[default]
    Mixed,
    /// The same rows as they are, in a pass of their own.
    Clean,
}

choices!(NoiseKind: Paper = "paper", Nfm = "nfm");
choices!(Statistics: Mixed = "mixed", Clean = "clean");

keys! {
    /// How strongly, how mixed and where.
    pub struct PfiConfig {
        /// Additive noise level.
        sigma_a: f64 = 0.4, at_least(0);
        /// Multiplicative noise level.
        sigma_m: f64 = 0.2, at_least(0);
        /// First parameter of the mixing coefficient's Beta distribution.
        alpha: f64 = 1.0, above(0);
        /// Second parameter of the mixing coefficient's Beta distribution.
        beta: f64 = 1.0, above(0);
        /// Depths to perturb at, one chosen a step: 0 is the image, 1 to 4 the output of that residual group.
        layers: Vec<usize> = vec![0, 1, 2], at_least(0), at_most(DEEPEST as u32);
        /// `paper` or `nfm` noise.
        noise: NoiseKind = NoiseKind::Paper;
        /// Share of a new batch in a class's running loss (κ), which sets its noise.
        kappa: f64 = 0.1, above(0), at_most(1);
        /// Probability that a step is perturbed at all.
        probability: f64 = 1.0, named("pfi_probability"), at_least(0), at_most(1), absent_as(1.0);
        /// Whether every row keeps the larger share of its mixture, so that what is measured on it is mostly its own.
        larger_share: bool = false, named("pfi_larger_share"), absent_as(false);
        /// What batch norm's running statistics follow: the perturbed rows, or a clean forward pass on top.
        statistics: Statistics = Statistics::Mixed, named("pfi_statistics"), absent_as("mixed");
    }
    also refuse_no_depth;
}

fn refuse_no_depth(keys: &PfiConfig) -> Result<()> {
    some_depth(&keys.layers)
}

/// Refuses a list of depths, the value of a key `layers`, that names none.
///
/// # Errors
/// When it is empty.
pub fn some_depth(layers: &[usize]) -> Result<()> {
    if layers.is_empty() {
        return Err(Error::bad_key(
            "layers",
            format!("must name depths between 0 and {DEEPEST}, and names none"),
        ));
    }
    Ok(())
}

impl PfiConfig {
    /// Multiplicative and additive noise scale (μₘ, μₐ) of rows with the given noise factors.
    pub fn scales(&self, factors: &[f64]) -> Vec<(f32, f32)> {
        let scale = |factor: &f64| ((self.sigma_m * factor) as f32, (self.sigma_a * factor) as f32);
        factors.iter().map(scale).collect()
    }
}

/// The deepest place where a network can be disturbed.
pub const DEEPEST: usize = 4;

/// Draws one disturbance a training step.
#[derive(Clone, Debug)]
pub struct Pfi {
    config: PfiConfig,
    random: Random,
    used: [u64; DEEPEST + 1],
}

/// Which other row each row is mixed with, and how much of itself it keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixing {
    /// Share of the row itself (ζ), 0..=1.
    pub coefficient: f64,
    /// The other row.
    pub partners: Vec<usize>,
}

/// One step's disturbance; applying it twice gives the same numbers.
#[derive(Clone, Debug)]
pub struct Disturbance {
    /// Where it acts.
    pub depth: usize,
    /// Who is mixed with whom.
    pub mixing: Mixing,
    kind: NoiseKind,
    /// Multiplicative and additive scale of each row.
    scales: Vec<(f32, f32)>,
    key: u64,
}

impl Pfi {
    /// A source of disturbances for the run seeded with `seed`; the configuration has passed its check.
    pub fn new(config: PfiConfig, seed: u64) -> Self {
        Self { config, random: Random::named(seed, "pfi"), used: [0; DEEPEST + 1] }
    }

    /// What batch norm's running statistics follow in a step that is perturbed.
    pub fn statistics(&self) -> Statistics {
        self.config.statistics
    }

    /// The disturbance of the next step's batch, whose rows have the noise factors `factors`, if that step has one.
    pub fn step(&mut self, factors: &[f64]) -> Option<Disturbance> {
        // Where every step is perturbed, no chance is asked.
        let due = self.config.probability >= 1.0 || self.random.chance(self.config.probability);
        due.then(|| self.draw(factors))
    }

    /// The disturbance of a batch whose rows have the noise factors `factors`.
    pub fn draw(&mut self, factors: &[f64]) -> Disturbance {
        let Self { config, random, used } = self;
        let depth = config.layers[random.below(config.layers.len())];
        used[depth] += 1;
        let partners = random.permutation(factors.len());
        let drawn = random.beta(config.alpha, config.beta);
        let coefficient = if config.larger_share { drawn.max(1.0 - drawn) } else { drawn };
        let scales = match config.noise {
            NoiseKind::Paper => config.scales(factors),
            NoiseKind::Nfm => {
                let scale = (config.sigma_m * random.beta(2.0, 5.0), config.sigma_a * random.beta(2.0, 5.0));
                vec![(scale.0 as f32, scale.1 as f32); factors.len()]
            }
        };
        let mixing = Mixing { coefficient, partners };
        Disturbance { depth, mixing, kind: config.noise, scales, key: random.bits() }
    }

    /// How often each depth was chosen.
    pub fn used(&self) -> [u64; DEEPEST + 1] {
        self.used
    }
}

impl Persist for Pfi {
    fn save(&self, state: &mut State) {
        state.put("random", &self.random);
        state.put("used", &self.used);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.random = state.get("random")?;
        self.used = state.get_counted("used")?;
        Ok(())
    }
}

impl Disturbance {
    /// Disturbs `activations` [rows, height, width, channels] if `depth` is where this acts.
    pub fn apply(&self, depth: usize, activations: Tensor<4>) -> Tensor<4> {
        if depth != self.depth {
            return activations;
        }
        match self.kind {
            NoiseKind::Paper => {
                let (multiplicative, additive) = self.scales.iter().copied().unzip();
                let Mixing { coefficient, partners } = &self.mixing;
                let (share, partner) = (*coefficient as f32, partners.clone());
                perturb_mix(
                    activations,
                    PerturbMix { multiplicative, additive, partner, share, key: self.key },
                )
            }
            NoiseKind::Nfm => {
                let (factor, shift) = self.nfm_noise(activations.dims(), &activations.device().inner());
                perturb(mix(activations, &self.mixing), factor, shift)
            }
        }
    }

    /// Factor and shift of every activation.
    fn nfm_noise(&self, shape: [usize; 4], device: &Device) -> (Tensor<4>, Tensor<4>) {
        let (multiplicative, additive): (Vec<f32>, Vec<f32>) = self.scales.iter().copied().unzip();
        let rows = additive.len();
        let change = PerturbMix {
            multiplicative: vec![0.0; rows],
            additive,
            partner: (0..rows).collect(),
            share: 1.0,
            key: self.key,
        };
        let shift = perturb_mix(Tensor::zeros(shape, device), change);
        let mut uniform = Normals::new(self.key);
        let length: usize = shape.iter().skip(1).product();
        // Row by row into one vector: a flattened iterator is not unrolled and shows in the profile.
        let mut factor = Vec::with_capacity(rows * length);
        for level in multiplicative {
            factor.extend((0..length).map(|_| 1.0 + level * uniform.symmetric()));
        }
        (Tensor::from_data(TensorData::new(factor, shape), device), shift)
    }
}

/// Disturbs activations [rows, height, width, channels] number by number: factor ⊙ h + shift.
pub fn perturb(activations: Tensor<4>, factor: Tensor<4>, shift: Tensor<4>) -> Tensor<4> {
    activations * factor + shift
}

/// Mixes every row of activations [rows, height, width, channels] with its partner.
pub fn mix(activations: Tensor<4>, mixing: &Mixing) -> Tensor<4> {
    let none = vec![0.0; mixing.partners.len()];
    let change = PerturbMix {
        multiplicative: none.clone(),
        additive: none,
        partner: mixing.partners.clone(),
        share: mixing.coefficient as f32,
        key: 0,
    };
    perturb_mix(activations, change)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pfi(config: PfiConfig) -> Pfi {
        Pfi::new(config, 7)
    }

    #[test]
    fn the_larger_share_is_the_rows_own_and_nothing_else_is_drawn_otherwise() {
        let mut plain = pfi(PfiConfig::default());
        let mut larger = pfi(PfiConfig { larger_share: true, ..PfiConfig::default() });
        let mut turned = 0;
        for _ in 0..200 {
            let [plain, larger] = [&mut plain, &mut larger].map(|pfi| pfi.draw(&[0.5; 6]));
            let share = plain.mixing.coefficient;
            turned += usize::from(share < 0.5);
            assert_eq!(larger.mixing.coefficient, if share < 0.5 { 1.0 - share } else { share });
            assert_eq!((larger.depth, larger.key), (plain.depth, plain.key));
            assert_eq!(larger.mixing.partners, plain.mixing.partners);
        }
        assert!((60..140).contains(&turned), "{turned} of 200 rows were mostly their partner");
    }

    #[test]
    fn steps_are_perturbed_as_often_as_they_should() {
        let factors = [1.0; 4];
        let mut half = pfi(PfiConfig { probability: 0.5, ..PfiConfig::default() });
        let count = (0..1000).filter(|_| half.step(&factors).is_some()).count();
        assert!((450..550).contains(&count), "{count} of 1000");
        assert_eq!(half.used().iter().sum::<u64>(), count as u64, "only these count");
        let mut never = pfi(PfiConfig { probability: 0.0, ..PfiConfig::default() });
        assert!((0..100).all(|_| never.step(&factors).is_none()));

        // Where all are, the random numbers are those of the perturbations alone.
        let (mut always, mut alone) = (pfi(PfiConfig::default()), pfi(PfiConfig::default()));
        for _ in 0..20 {
            assert_eq!(always.step(&factors).unwrap().key, alone.draw(&factors).key);
        }
    }
}
