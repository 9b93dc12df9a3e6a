//! The keys of the `[dpcl]` table. What each part makes of them is written where the part is.

use crate::{
    config::{choices, keys},
    error::{Error, Result},
    memory::Keep,
    methods::perturbed::Disputants,
    perturb::{BscConfig, NoiseKind, PfiConfig},
    rate::PimaConfig,
};

/// Where disagreement is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DisagreementPass {
    /// On the perturbed training pass.
    #[default]
    Train,
    /// On a pass of its own, in evaluation mode, without perturbation.
    Clean,
}

/// Which loss sets a class's noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossSource {
    /// That of the mixed training batch.
    #[default]
    Mixed,
    /// That of a pass of its own, in evaluation mode, without perturbation.
    Clean,
}

choices!(DisagreementPass: Train = "train", Clean = "clean");
choices!(LossSource: Mixed = "mixed", Clean = "clean");

keys! {
    /// Own keys of `dpcl`. The defaults are the paper's values or, where it has none, its nearest relatives'; noise and
    /// window are those that measurements support.
    pub struct DpclKeys {
        /// Whether training activations are perturbed and mixed.
        pfi: bool = true;
        /// How they are perturbed and mixed.
        interpolation: PfiConfig = PfiConfig { noise: NoiseKind::Nfm, ..PfiConfig::default() };
        /// Whether the running loss is of the mixed batch or of a clean pass.
        loss_source: LossSource = LossSource::Mixed;

        /// Whether there are several heads with distributions; otherwise one plain head.
        bsc: bool = true;
        /// How many heads, and how their distributions are followed.
        classifiers: BscConfig = BscConfig { window: 20, ..BscConfig::default() };

        /// Where disagreement is measured.
        disagreement_pass: DisagreementPass = DisagreementPass::Train, once(&["mi_pass"]);
        /// Whose disagreement is measured.
        disagreement_heads: Disputants = Disputants::Variational, once(&["mi_heads"]);
        /// Which samples `pim` keeps.
        pim_keep: Keep = Keep::High;
        /// Whether `pim` always lets in a class that has no slot.
        pim_admit_new_class: bool = true;
        /// How disagreement is remembered, and how the rate `pima` follows it.
        pima: PimaConfig = PimaConfig::default();
    }
    also refuse_a_loss_that_sets_nothing;
}

fn refuse_a_loss_that_sets_nothing(keys: &DpclKeys) -> Result<()> {
    let sets_noise = keys.pfi && keys.interpolation.noise == NoiseKind::Paper;
    if keys.loss_source == LossSource::Clean && !sets_noise {
        let problem = "`clean` sets the noise of classes, which only `noise = \"paper\"` has, with `pfi`";
        return Err(Error::bad_key("loss_source", problem));
    }
    Ok(())
}

impl DpclKeys {
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
        self.bsc && self.disagreement_heads.can_disagree(&self.classifiers)
    }
}
