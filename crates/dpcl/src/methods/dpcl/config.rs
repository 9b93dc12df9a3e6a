//! The keys of the `[dpcl]` table. What each part makes of them is written where the part is.

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    memory::Keep,
    perturb::{BscConfig, NoiseKind, PfiConfig},
    rate::{Lag, Rule},
};

/// Where disagreement is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MiPass {
    /// On the perturbed training pass.
    #[default]
    Train,
    /// On a pass of its own, in evaluation mode, without perturbation.
    Clean,
}

/// Whose disagreement is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MiHeads {
    /// Heads drawn from their distribution.
    #[default]
    Variational,
    /// Heads as they are.
    Current,
}

/// Which loss sets a class's noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossSource {
    /// That of the mixed training batch.
    #[default]
    Mixed,
    /// That of a pass of its own, in evaluation mode, without perturbation.
    Clean,
}

/// Which weights answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Predict {
    /// Draws from the heads' distribution.
    #[default]
    Posterior,
    /// The mean of the heads' distribution.
    Mean,
    /// The heads as they are.
    Current,
}

/// Own keys of `dpcl`; the defaults are the paper's values or, where it has none, its nearest relatives'.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DpclConfig {
    /// Whether training activations are perturbed and mixed.
    pub pfi: bool,
    /// Additive noise level, at least 0.
    pub sigma_a: f64,
    /// Multiplicative noise level, at least 0.
    pub sigma_m: f64,
    /// First parameter of the mixing coefficient's Beta distribution, above 0.
    pub alpha: f64,
    /// Second parameter, above 0.
    pub beta: f64,
    /// Depths to perturb at, one chosen a step: 0 is the image, 1 to 4 the output of that residual group.
    pub layers: Vec<usize>,
    /// `paper` or `nfm` noise.
    pub noise: NoiseKind,
    /// Share of a new batch in a class's running loss (κ), above 0, at most 1.
    pub kappa: f64,
    /// Whether the running loss is of the mixed batch or of a clean pass.
    pub loss_source: LossSource,

    /// Whether there are several heads with distributions; otherwise one plain head.
    pub bsc: bool,
    /// Number of heads (N).
    pub heads: usize,
    /// Training steps between snapshots of the heads (P).
    pub period: u64,
    /// Deviation columns kept of each class (A), 0 or at least 2.
    pub rank: usize,
    /// Draws a prediction averages over (R).
    pub draws: usize,
    /// Snapshots the distributions count, the last so many; 0 counts all.
    pub bsc_window: usize,
    /// Which weights answer.
    pub predict: Predict,

    /// Where disagreement is measured.
    pub mi_pass: MiPass,
    /// Whose disagreement is measured.
    pub mi_heads: MiHeads,
    /// Share of a new measurement in a stored sample's history (γ), above 0, at most 1.
    pub gamma: f64,
    /// Which samples `pim` keeps.
    pub pim_keep: Keep,
    /// Whether `pim` always lets in a class that has no slot.
    pub pim_admit_new_class: bool,
    /// Factor of one move of the rate `pima` (ω), above 1.
    pub omega: f64,
    /// Whether `pima` moves up or down when disagreement rises.
    pub lr_rule: Rule,
    /// Which change of disagreement `pima` looks at.
    pub lr_lag: Lag,
    /// Lowest and highest rate of `pima`, as multiples of `lr`.
    pub lr_clamp: [f64; 2],
}

impl Default for DpclConfig {
    fn default() -> Self {
        let PfiConfig { sigma_a, sigma_m, alpha, beta, layers, noise } = PfiConfig::default();
        Self {
            pfi: true,
            sigma_a,
            sigma_m,
            alpha,
            beta,
            layers,
            noise,
            kappa: 0.1,
            loss_source: LossSource::default(),
            bsc: true,
            heads: 5,
            period: 100,
            rank: 20,
            draws: 5,
            bsc_window: 0,
            predict: Predict::default(),
            mi_pass: MiPass::default(),
            mi_heads: MiHeads::default(),
            gamma: 0.1,
            pim_keep: Keep::default(),
            pim_admit_new_class: true,
            omega: 1.0 / 0.95,
            lr_rule: Rule::default(),
            lr_lag: Lag::default(),
            lr_clamp: [0.05, 2.0],
        }
    }
}

impl DpclConfig {
    /// The part that perturbs activations.
    pub fn pfi(&self) -> PfiConfig {
        let Self { sigma_a, sigma_m, alpha, beta, ref layers, noise, .. } = *self;
        PfiConfig { sigma_a, sigma_m, alpha, beta, layers: layers.clone(), noise }
    }

    /// The part that perturbs heads.
    pub fn bsc(&self) -> BscConfig {
        BscConfig { heads: self.heads, rank: self.rank, draws: self.draws, window: self.bsc_window }
    }

    /// Whether there are several answers to disagree.
    pub fn has_disagreement(&self) -> bool {
        let by_draws = self.draws > 1 && self.mi_heads == MiHeads::Variational;
        self.bsc && (self.heads > 1 || by_draws)
    }

    /// Refuses values that cannot be run.
    pub fn check(&self) -> Result<()> {
        self.pfi().check()?;
        self.bsc().check()?;
        for (key, share) in [("gamma", self.gamma), ("kappa", self.kappa)] {
            if !(share > 0.0 && share <= 1.0) {
                let problem = format!("must be above 0 and at most 1, not {share}");
                return Err(Error::bad_key(key, problem));
            }
        }
        if self.period == 0 {
            return Err(Error::bad_key("period", "must be at least 1"));
        }
        if !(self.omega > 1.0 && self.omega.is_finite()) {
            return Err(Error::bad_key("omega", format!("must be above 1, not {}", self.omega)));
        }
        let [low, high] = self.lr_clamp;
        if !(low > 0.0 && low <= 1.0 && high >= 1.0 && high.is_finite()) {
            let problem =
                format!("must be a multiple of `lr` up to 1 and one from 1 on, not {low} and {high}");
            return Err(Error::bad_key("lr_clamp", problem));
        }
        Ok(())
    }
}
