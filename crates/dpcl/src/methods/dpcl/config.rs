//! The keys of the `[dpcl]` table. What each part makes of them is written where the part is.

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    memory::Keep,
    perturb::{BscConfig, PfiConfig},
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

/// Own keys of `dpcl`; the defaults are the paper's values or, where it has none, its nearest relatives'.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DpclConfig {
    /// Whether training activations are perturbed and mixed.
    pub pfi: bool,
    /// How they are perturbed and mixed.
    #[serde(flatten)]
    pub interpolation: PfiConfig,
    /// Whether the running loss is of the mixed batch or of a clean pass.
    pub loss_source: LossSource,

    /// Whether there are several heads with distributions; otherwise one plain head.
    pub bsc: bool,
    /// How many heads, and how their distributions are followed.
    #[serde(flatten)]
    pub classifiers: BscConfig,

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
        Self {
            pfi: true,
            interpolation: PfiConfig::default(),
            loss_source: LossSource::default(),
            bsc: true,
            classifiers: BscConfig::default(),
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
    /// The part that perturbs activations, unless switched off.
    pub fn pfi(&self) -> Option<PfiConfig> {
        self.pfi.then(|| self.interpolation.clone())
    }

    /// The part that perturbs heads, unless switched off.
    pub fn bsc(&self) -> Option<BscConfig> {
        self.bsc.then_some(self.classifiers)
    }

    /// Whether there are several answers to disagree.
    pub fn has_disagreement(&self) -> bool {
        let BscConfig { heads, draws, .. } = self.classifiers;
        let by_draws = draws > 1 && self.mi_heads == MiHeads::Variational;
        self.bsc && (heads > 1 || by_draws)
    }

    /// Refuses values that cannot be run.
    pub fn check(&self) -> Result<()> {
        self.interpolation.check()?;
        self.classifiers.check()?;
        if !(self.gamma > 0.0 && self.gamma <= 1.0) {
            return Err(Error::bad_key(
                "gamma",
                format!("must be above 0 and at most 1, not {}", self.gamma),
            ));
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
