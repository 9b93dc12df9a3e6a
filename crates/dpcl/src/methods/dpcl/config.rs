//! The keys of the `[dpcl]` table. What each part makes of them is written where the part is.

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    memory::Keep,
    perturb::{BscConfig, NoiseKind, PfiConfig},
    rate::PimaConfig,
    rehearsal::double::Voters,
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

/// Own keys of `dpcl`. The defaults are the paper's values or, where it has none, its nearest relatives'; noise and
/// window are those that measurements support.
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
    pub mi_heads: Voters,
    /// Which samples `pim` keeps.
    pub pim_keep: Keep,
    /// Whether `pim` always lets in a class that has no slot.
    pub pim_admit_new_class: bool,
    /// How disagreement is remembered, and how the rate `pima` follows it.
    #[serde(flatten)]
    pub pima: PimaConfig,
}

impl Default for DpclConfig {
    fn default() -> Self {
        Self {
            pfi: true,
            interpolation: PfiConfig { noise: NoiseKind::Nfm, ..PfiConfig::default() },
            loss_source: LossSource::default(),
            bsc: true,
            classifiers: BscConfig { window: 20, ..BscConfig::default() },
            mi_pass: MiPass::default(),
            mi_heads: Voters::default(),
            pim_keep: Keep::default(),
            pim_admit_new_class: true,
            pima: PimaConfig::default(),
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

    /// Refuses values that cannot be run.
    pub fn check(&self) -> Result<()> {
        if self.loss_source == LossSource::Clean
            && !(self.pfi && self.interpolation.noise == NoiseKind::Paper)
        {
            let problem = "`clean` sets the noise of classes, which only `noise = \"paper\"` has, with `pfi`";
            return Err(Error::bad_key("loss_source", problem));
        }
        self.interpolation.check()?;
        self.classifiers.check()?;
        self.pima.check()
    }
}
