//! The keys of the `[dpcl]` table. What each part makes of them is written where the part is.

use super::newcomers::Offered;
use crate::{
    answers::Between,
    config::{choices, keys},
    error::{Error, Result},
    memory::{Keep, Start},
    perturb::{BscConfig, NoiseKind, PfiConfig},
    rehearsal::double::{DoubleKeys, Voters},
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
    /// Own keys of `dpcl`. The defaults are the paper's values or, where it has none, its nearest relatives'; whether
    /// activations are perturbed, noise and window are as measurements support.
    pub struct DpclKeys {
        /// Perturbed activations and heads.
        double: DoubleKeys = doubly_perturbed();
        /// Whether the running loss is of the mixed batch or of a clean pass.
        loss_source: LossSource = LossSource::Mixed;

        /// Where disagreement is measured.
        disagreement_pass: DisagreementPass = DisagreementPass::Train, once(&["mi_pass"]);
        /// Whose disagreement is measured: draws of the heads, heads as they are, or their means without any draw.
        disagreement_heads: Voters = Voters::Variational, once(&["mi_heads"]);
        /// Which samples `pim` keeps.
        pim_keep: Keep = Keep::High;
        /// Whether `pim` always lets in a class that has no slot.
        pim_admit_new_class: bool = true;
        /// Which of its measurements a stream sample is offered to the memory with: the last, or the mean of its steps.
        offered_disagreement: Offered = Offered::Last, absent_as("last");
        /// What the history of a sample starts with that takes another's place: what it was let in with (`offered`), the
        /// mean of its class or of the memory, or its first measurement there.
        history_start: Start = Start::Offered, absent_as("offered");
    }
    also refuse_a_loss_that_sets_nothing;
}

/// What measurements support: distributions of the heads over their last snapshots, disagreement between all draws, and,
/// if activations are perturbed, damped noise.
fn doubly_perturbed() -> DoubleKeys {
    DoubleKeys {
        pfi: false,
        interpolation: PfiConfig { noise: NoiseKind::Nfm, ..PfiConfig::default() },
        bsc: true,
        classifiers: BscConfig { window: 20, between: Between::Draws, ..BscConfig::default() },
        ..DoubleKeys::default()
    }
}

fn refuse_a_loss_that_sets_nothing(keys: &DpclKeys) -> Result<()> {
    let sets_noise = keys.double.pfi && keys.double.interpolation.noise == NoiseKind::Paper;
    if keys.loss_source == LossSource::Clean && !sets_noise {
        let problem = "`clean` sets the noise of classes, which only `noise = \"paper\"` has, with `pfi`";
        return Err(Error::bad_key("loss_source", problem));
    }
    Ok(())
}
