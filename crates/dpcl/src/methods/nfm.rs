//! Noisy feature mixup as a way to rehearse: activations are mixed at a random depth, then disturbed by noise of a strength
//! that chance sets anew for each batch. The authors of DPCL publish it in the place of their PFI.
//!
//! Paper: Noisy Feature Mixup (Lim et al., ICLR 2022).
//!
//! Loss: λ·CE(z, y) + (1 − λ)·CE(z, y_{s}), z the logits of (1 + σₘB₁u) ⊙ (λh + (1 − λ)h_{s}) + σₐB₂ξ, u uniform in ±1,
//! ξ normal, B₁ and B₂ from Beta(2, 5), λ from Beta(α, α), one depth, pairing, λ, B₁ and B₂ a batch. Memory: reservoir.
//! Rate: constant.
//!
//! Departures from the paper, all those of DPCL's public code: it learns whole data sets and rehearses nothing, where this
//! is replay without a schedule and CutMix; depths are 0 to 2, where NFM's own code has 0 to 3.

use super::{MethodInfo, REHEARSAL};
use crate::{
    batch::Batch,
    config::{OwnKeys, Setup, keys},
    error::Result,
    method::Method,
    perturb::{NoiseKind, PfiConfig, some_depth},
    rehearsal::{
        Rehearsal, Rehearse, Replay, Training,
        double::{DoubleKeys, DoublePerturbation},
    },
    state::Persist,
};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "nfm",
    about: "replay with activations that are mixed and then disturbed at a random depth",
    departures: &[
        "the paper learns whole data sets; replay is as in DPCL's public code, without a schedule and CutMix",
        "`nfm.layers` are 0 to 2 as in that code, where NFM's own has 0 to 3",
    ],
    section: "nfm",
    rate: "constant",
    cutmix: 0.0,
    keys: OwnKeys::of::<NfmKeys>(),
    build: Nfm::build,
    ..REHEARSAL
};

keys! {
    /// Own keys of `nfm`.
    struct NfmKeys {
        /// Additive noise level.
        sigma_a: f64 = 0.4, at_least(0);
        /// Multiplicative noise level.
        sigma_m: f64 = 0.2, at_least(0);
        /// Both parameters of the mixing coefficient's Beta distribution.
        alpha: f64 = 1.0, above(0);
        /// Depths to mix at, one chosen a step: 0 is the image, 1 to 4 the output of that residual group.
        layers: Vec<usize> = vec![0, 1, 2], at_least(0), at_most(4);
    }
    also refuse_no_depth;
}

fn refuse_no_depth(keys: &NfmKeys) -> Result<()> {
    some_depth(&keys.layers)
}

/// Replay of mixed and disturbed activations.
pub struct Nfm {
    double: DoublePerturbation,
}

impl Nfm {
    fn build(setup: &Setup) -> Result<Box<dyn Method>> {
        let NfmKeys { sigma_a, sigma_m, alpha, layers } = setup.own();
        let interpolation = PfiConfig {
            sigma_a,
            sigma_m,
            alpha,
            beta: alpha,
            layers,
            noise: NoiseKind::Nfm,
            ..PfiConfig::default()
        };
        let keys = DoubleKeys { pfi: true, interpolation, ..DoubleKeys::default() };
        let double = DoublePerturbation::new(setup, &keys)?;
        Ok(Rehearsal::boxed(Replay::new(setup)?, Self { double }))
    }
}

impl Rehearse for Nfm {
    fn step(&mut self, training: &mut Training<'_>, batch: Batch) -> Result<f64> {
        self.double.step(training, &batch)
    }

    fn double(&self) -> Option<&DoublePerturbation> {
        Some(&self.double)
    }

    fn double_mut(&mut self) -> Option<&mut DoublePerturbation> {
        Some(&mut self.double)
    }
}

impl Persist for Nfm {}
