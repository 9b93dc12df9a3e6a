//! The double perturbation of DPCL as a method trains and answers with it: disturbed activations and stochastic heads.
//!
//! A [`DoublePerturbation`] is held by every method that can have either. Activations are disturbed while training
//! ([`Pfi`]), by the running loss of each class; several heads are followed through training and answer from their
//! distributions ([`StochasticHeads`]); with neither it is a plain pass and a plain head. Memory and rate are told how far
//! the heads disagree; what they make of it, and what else is in a loss, is not known here.

mod history_check;
mod keys;
mod row_losses;
mod stochastic_heads;
#[cfg(test)]
mod tests;

pub use history_check::{Correlation, HistoryCheck, Way};
pub use keys::DoubleKeys;
pub use row_losses::RowLosses;
pub use stochastic_heads::{StochasticHeads, Voters};

use burn::tensor::Tensor;
use dpcl_report::record::Parameters;
use serde::{Deserialize, Serialize};

use super::{
    Objective, Training,
    replay::{DISAGREEMENT, unmeasured_rate},
};
use crate::{
    answers::{Scores, Votes},
    batch::Batch,
    config::Setup,
    data::Image,
    error::{Error, Result},
    memory::Memory,
    method::Core,
    model::Pass,
    perturb::{ClassLosses, Disturbance, Pfi, PfiConfig, Statistics},
    rate::{Pima, PimaConfig},
    state::{Persist, State},
};

/// What a method keeps of both perturbations.
pub struct DoublePerturbation {
    pfi: Option<Pfi>,
    losses: ClassLosses,
    /// The heads that answer.
    pub heads: StochasticHeads,
    /// Share of a new measurement in the disagreement history of a stored sample.
    gamma: f64,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Counts {
    steps: u64,
    first_met: u64,
}

/// A training pass as far as the loss.
pub struct Forward {
    /// The batch, [rows, height, width, 3].
    pub images: Tensor<4>,
    /// Their features, [rows, features].
    pub features: Tensor<2>,
    /// Logits of every head, [heads, rows, classes].
    pub logits: Tensor<3>,
    /// Losses of the rows.
    pub losses: RowLosses,
    disturbance: Option<Disturbance>,
}

impl DoublePerturbation {
    /// As the keys say; either perturbation may be left out.
    ///
    /// # Errors
    /// When the loss would be asymmetric.
    pub fn new(setup: &Setup, keys: &DoubleKeys) -> Result<Self> {
        let pfi = keys.pfi.then(|| keys.interpolation.clone());
        Objective::refuse_asymmetric(setup)?;
        let kappa = pfi.as_ref().map_or_else(|| PfiConfig::default().kappa, |pfi| pfi.kappa);
        Ok(Self {
            pfi: pfi.map(|pfi| Pfi::new(pfi, setup.seed)),
            losses: ClassLosses::new(kappa),
            heads: StochasticHeads::new(keys.bsc.then_some(keys.classifiers), setup.seed),
            gamma: keys.pima.gamma,
            counts: Counts::default(),
        })
    }

    /// The rate `pima` if it is the configured one, for a method that learns by [`DoublePerturbation::learned`]: that
    /// measures what is rehearsed, not what is offered to the memory.
    ///
    /// # Errors
    /// When there are no heads to disagree, or the memory compares newcomers by it.
    pub fn pima(&self, setup: &Setup, memory: &Memory, pima: &PimaConfig) -> Result<Option<Pima>> {
        if memory.needs_disagreement() {
            let (scheme, method) = (&setup.memory_scheme, setup.method.name);
            let problem = format!(
                "`{scheme}` compares the disagreement on newcomers, which `{method}` does not measure; try `balanced`"
            );
            return Err(Error::bad_key("memory_scheme", problem));
        }
        let follows = setup.rate == "pima";
        if follows && !self.heads.can_disagree(Voters::default()) {
            return Err(unmeasured_rate(setup, DISAGREEMENT));
        }
        Ok(follows.then(|| pima.start(setup.lr)))
    }

    /// Begins a training step: activations are disturbed, then mixed, at one depth. A batch whose images are mixed
    /// already is left as it is: a row would have four labels.
    pub fn forward(&mut self, pass: &mut Pass, batch: &Batch) -> Forward {
        self.counts.steps += 1;
        self.counts.first_met += self.losses.unmet(&batch.labels) as u64;
        let images = pass.images(batch.images.clone(), batch.size);
        let pfi = self.pfi.as_mut().filter(|_| batch.mixes.is_empty());
        let disturbance = pfi.and_then(|pfi| pfi.step(&self.losses.factors(&batch.labels)));
        let features =
            pass.features_with(images.clone(), &mut |depth, x| disturbed(disturbance.as_ref(), depth, x));
        if disturbance.is_some() && self.keeps_clean_statistics() {
            pass.forget_statistics();
            pass.meet_statistics(images.clone());
        }
        let logits = pass.logits(features.clone());
        let mixing = disturbance.as_ref().map(|disturbance| disturbance.mixing.clone());
        let losses = RowLosses::new(logits.clone(), batch, mixing);
        Forward { images, features, logits, losses, disturbance }
    }

    fn keeps_clean_statistics(&self) -> bool {
        self.pfi.as_ref().is_some_and(|pfi| pfi.statistics() == Statistics::Clean)
    }

    /// Moves the running losses of the classes in a batch.
    pub fn absorb(&mut self, losses: &RowLosses) {
        self.losses.absorb(losses.terms());
    }

    /// A step was taken on rows with this disagreement: memory and rate hear of it if it was measured, and a snapshot of
    /// the heads is taken if one is due.
    pub fn report(&mut self, training: &mut Training<'_>, batch: &Batch, disagreement: Option<&[f64]>) {
        let Training { model, memory, rate, .. } = training;
        if let Some(rows) = disagreement {
            let rehearsed = &rows[rows.len() - batch.slots.len()..];
            rate.rehearsed(memory.rehearsed(&batch.slots, rehearsed, self.gamma));
        }
        if self.heads.collect_if_due(self.counts.steps, model.heads()) {
            rate.collected();
        }
    }

    /// One training step on a batch, perturbed; returns the loss.
    ///
    /// # Errors
    /// When the loss is not finite.
    pub fn step(&mut self, training: &mut Training<'_>, batch: &Batch) -> Result<f64> {
        let mut pass = training.model.pass();
        let forward = self.forward(&mut pass, batch);
        let loss = training.taught_perturbed(forward.losses.mean(), &forward);

        let loss = training.step(pass, &loss, batch)?;

        self.learned(training, batch, forward);
        Ok(loss)
    }

    /// A step was taken: running losses move, and memory and rate hear of it.
    pub fn learned(&mut self, training: &mut Training<'_>, batch: &Batch, forward: Forward) {
        self.absorb(&forward.losses);
        let disagreement = training.rate.needs_disagreement().then(|| {
            self.heads.disagreement(Voters::default(), forward.features.inner(), forward.logits.inner())
        });
        self.report(training, batch, disagreement.as_deref());
    }

    /// Answers for clean images.
    pub fn answer(&self, core: &Core, images: &[Image]) -> Vec<Scores> {
        let (logits, shape) = self.logits(core, images);
        self.scores(logits, shape)
    }

    /// The joint answers that logits [rows, heads, draws, classes] lead to.
    pub fn scores(&self, logits: Vec<f32>, shape: [usize; 3]) -> Vec<Scores> {
        Votes::from_logits(logits, shape).scores_between(self.heads.between())
    }

    /// Logits behind the answers for clean images, [rows, heads, draws, classes], with the last three of these numbers.
    pub fn logits(&self, core: &Core, images: &[Image]) -> (Vec<f32>, [usize; 3]) {
        self.heads.logits(core, images, self.counts.steps)
    }

    /// How well the histories of stored samples tell what the heads disagree on; `None` where they cannot disagree or no
    /// stored sample was measured.
    pub fn check_histories(&self, core: &Core, memory: &Memory) -> Option<HistoryCheck> {
        self.heads.check_histories(core, memory, self.counts.steps)
    }

    /// Numbers the heads' distributions hold.
    pub fn parameters(&self) -> Parameters {
        self.heads.parameters()
    }

    /// Classes in their first training batch so far.
    pub fn first_met(&self) -> u64 {
        self.counts.first_met
    }

    /// Counts of the perturbations there are.
    pub fn counters(&self) -> Vec<(String, u64)> {
        let collections = self.heads.collections().map(|count| ("collections".to_owned(), count));
        let depths = self.pfi.iter().flat_map(|pfi| pfi.used().into_iter().enumerate());
        let depths = depths.map(|(depth, count)| (format!("pfi_depth_{depth}"), count));
        collections.into_iter().chain(depths).collect()
    }
}

impl Forward {
    /// The disturbance of this step on the activations another network has at `depth`.
    pub fn disturb(&self, depth: usize, activations: Tensor<4>) -> Tensor<4> {
        disturbed(self.disturbance.as_ref(), depth, activations)
    }
}

fn disturbed(disturbance: Option<&Disturbance>, depth: usize, activations: Tensor<4>) -> Tensor<4> {
    match disturbance {
        Some(disturbance) => disturbance.apply(depth, activations),
        None => activations,
    }
}

impl Persist for DoublePerturbation {
    fn save(&self, state: &mut State) {
        state.put("counts", &self.counts);
        state.save_part("losses", &self.losses);
        if let Some(pfi) = &self.pfi {
            state.save_part("pfi", pfi);
        }
        self.heads.save(state);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.counts = state.get_counted("counts")?;
        state.load_part("losses", &mut self.losses)?;
        if let Some(pfi) = &mut self.pfi {
            state.load_part("pfi", pfi)?;
        }
        self.heads.load(state)
    }
}
