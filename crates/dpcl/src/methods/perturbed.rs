//! Perturbed activations and heads as a method trains and answers with them.
//!
//! A [`Perturbed`] is held by every method that can have them. It disturbs the training pass ([`Pfi`]) by the running
//! loss of each class, follows the heads through training and answers from their distributions ([`Bsc`]); with
//! neither it is a plain pass and a plain head. It tells memory and rate how far the heads disagree, and does not know
//! what they make of it or what else is in a loss.

use std::sync::OnceLock;

use burn::tensor::Tensor;
use dpcl_report::record::Parameters;
use serde::{Deserialize, Serialize};

use super::{
    Core,
    replay::{DISAGREEMENT, unmeasured_rate},
    scores,
};
use crate::{
    batch::Batch,
    config::{Setup, choices},
    data::Image,
    error::{Error, Result},
    memory::Memory,
    model::{Heads, Model, Pass, cross_entropy_rows, floats},
    perturb::{
        Bsc, BscConfig, ClassLosses, Disturbance, DrawnHeads, Mixing, Normals, Pfi, PfiConfig, Predict,
        Scores, Term, Votes,
    },
    random::Random,
    rate::{Pima, PimaConfig, Rate},
    state::{Persist, State},
};

/// Whose disagreement is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Disputants {
    /// Heads drawn from their distribution.
    #[default]
    Variational,
    /// Heads as they are.
    Current,
}

choices!(Disputants: Variational = "variational", Current = "current");

impl Disputants {
    /// Whether such classifiers give several answers.
    pub fn can_disagree(self, classifiers: &BscConfig) -> bool {
        classifiers.heads > 1 || (classifiers.draws > 1 && self == Self::Variational)
    }
}

/// What a method keeps of its perturbations.
pub struct Perturbed {
    seed: u64,
    pfi: Option<Pfi>,
    losses: ClassLosses,
    /// Distributions of the heads, if they have any.
    pub bsc: Option<Bsc>,
    classifiers: BscConfig,
    /// Share of a new measurement in the disagreement history of a stored sample.
    gamma: f64,
    logit_draws: Random,
    counts: Counts,
    /// Weights that answer until something is learned.
    drawn: OnceLock<DrawnHeads>,
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

impl Perturbed {
    /// Either perturbation may be left out; `gamma` is the share of a new measurement in the disagreement history of a
    /// stored sample.
    ///
    /// # Errors
    /// When activations would be mixed as well as images.
    pub fn new(setup: &Setup, pfi: Option<PfiConfig>, bsc: Option<BscConfig>, gamma: f64) -> Result<Self> {
        if pfi.is_some() && setup.cutmix_prob > 0.0 {
            let section = setup.method.section;
            let problem = format!("cannot be combined with `{section}.pfi`: a row would have four labels");
            return Err(Error::bad_key("cutmix_prob", problem));
        }
        let kappa = pfi.as_ref().map_or_else(|| PfiConfig::default().kappa, |pfi| pfi.kappa);
        Ok(Self {
            seed: setup.seed,
            pfi: pfi.map(|pfi| Pfi::new(pfi, setup.seed)),
            losses: ClassLosses::new(kappa),
            bsc: bsc.map(Bsc::new),
            classifiers: bsc.unwrap_or_default(),
            gamma,
            logit_draws: Random::named(setup.seed, "logit-draws"),
            counts: Counts::default(),
            drawn: OnceLock::new(),
        })
    }

    /// How many linear heads the network needs.
    pub fn heads(&self) -> usize {
        if self.bsc.is_some() { self.classifiers.heads } else { 1 }
    }

    /// Begins a training step: activations are perturbed, then mixed, at one depth.
    pub fn forward(&mut self, model: &Model, pass: &mut Pass<'_>, batch: &Batch, size: usize) -> Forward {
        self.counts.steps += 1;
        self.counts.first_met += self.losses.unmet(&batch.labels) as u64;
        let images = model.images(batch.images.clone(), size);
        let disturbance = self.pfi.as_mut().map(|pfi| pfi.draw(&self.losses.factors(&batch.labels)));
        let features =
            pass.features_with(images.clone(), &mut |depth, x| disturbed(disturbance.as_ref(), depth, x));
        let logits = pass.logits(features.clone());
        let mixing = disturbance.as_ref().map(|disturbance| disturbance.mixing.clone());
        let losses = RowLosses::new(logits.clone(), batch, mixing);
        Forward { images, features, logits, losses, disturbance }
    }

    /// Moves the running losses of the classes in a batch.
    pub fn absorb(&mut self, losses: &RowLosses) {
        self.losses.absorb(losses.terms());
    }

    /// The rate `pima` if it is the configured one, for a method that learns by [`Perturbed::learned`]: that measures
    /// what is rehearsed, not what is offered to the memory.
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
        let heads = self.bsc.is_some() && Disputants::default().can_disagree(&self.classifiers);
        if follows && !heads {
            return Err(unmeasured_rate(setup, DISAGREEMENT));
        }
        Ok(follows.then(|| pima.start(setup.lr)))
    }

    /// How far the heads disagree on every row, from features [rows, features] and present logits [heads, rows,
    /// classes].
    pub fn disagreement(&mut self, whose: Disputants, features: Tensor<2>, logits: Tensor<3>) -> Vec<f64> {
        let answers = match (&self.bsc, whose) {
            (Some(bsc), Disputants::Variational) => {
                let mut normals = Normals::new(self.logit_draws.bits());
                bsc.logit_moments(features, logits).votes(&mut || normals.next_one()).scores()
            }
            _ => scores(logits),
        };
        answers.into_iter().map(|answer| answer.disagreement).collect()
    }

    /// A step was taken on rows with this disagreement: memory and rate hear of it if it was measured, and a snapshot of
    /// the heads is taken if one is due.
    pub fn after_step(
        &mut self,
        heads: &Heads,
        batch: &Batch,
        disagreement: Option<&[f64]>,
        memory: &mut Memory,
        rate: &mut dyn Rate,
    ) {
        if let Some(rows) = disagreement {
            let rehearsed = &rows[rows.len() - batch.slots.len()..];
            rate.rehearsed(memory.rehearsed(&batch.slots, rehearsed, self.gamma));
        }
        let due = self.counts.steps.is_multiple_of(self.classifiers.period);
        if let Some(bsc) = self.bsc.as_mut().filter(|_| due) {
            bsc.collect(heads);
            rate.collected();
        }
    }

    /// A step of this loss was taken: running losses move, and memory and rate hear of it. Training that has run away
    /// leaves everything as it was.
    pub fn learned(
        &mut self,
        model: &Model,
        batch: &Batch,
        forward: Forward,
        loss: f64,
        memory: &mut Memory,
        rate: &mut dyn Rate,
    ) {
        if !loss.is_finite() {
            return;
        }
        self.absorb(&forward.losses);
        let disagreement = rate.needs_disagreement().then(|| {
            self.disagreement(Disputants::default(), forward.features.inner(), forward.logits.inner())
        });
        self.after_step(&model.heads, batch, disagreement.as_deref(), memory, rate);
    }

    /// Something is about to be learned: the weights that answered are forgotten.
    pub fn learning(&mut self) {
        self.drawn.take();
    }

    /// Answers for clean images.
    pub fn answer(&self, core: &Core, images: &[Image]) -> Vec<Scores> {
        let (logits, shape) = self.logits(core, images);
        Votes::from_logits(logits, shape).scores()
    }

    /// Logits behind the answers for clean images, [rows, heads, draws, classes], with the last three of these numbers.
    pub fn logits(&self, core: &Core, images: &[Image]) -> (Vec<f32>, [usize; 3]) {
        match self.distributions() {
            Some(bsc) => {
                let drawn = self.drawn.get_or_init(|| self.answering(bsc, core));
                drawn.logits(core.features(images))
            }
            None => {
                let logits = core.logits(images);
                let [heads, _, classes] = logits.dims();
                (floats(logits.permute([1, 0, 2])), [heads, 1, classes])
            }
        }
    }

    /// Logits of clean images under mean weights, averaged over heads, [rows, classes].
    pub fn mean_logits(&self, core: &Core, images: &[Image]) -> Vec<f32> {
        let Some(bsc) = self.distributions() else { return floats(core.logits(images).mean_dim(0)) };
        let (logits, [heads, _, classes]) = bsc.mean_weights(&core.model.heads).logits(core.features(images));
        let mean = |row: &[f32]| -> Vec<f32> {
            let sum = |class: usize| (0..heads).map(|head| row[head * classes + class]).sum::<f32>();
            (0..classes).map(|class| sum(class) / heads as f32).collect()
        };
        logits.chunks_exact(heads * classes).flat_map(mean).collect()
    }

    /// Whether the heads' distributions are of these heads; loaded ones may not be.
    ///
    /// # Errors
    /// When they have another shape.
    pub fn fit(&self, heads: &Heads) -> Result<()> {
        self.bsc.as_ref().map_or(Ok(()), |bsc| bsc.fit(heads))
    }

    /// Numbers the heads' distributions hold.
    pub fn parameters(&self) -> Parameters {
        self.bsc.as_ref().map(Bsc::parameters).unwrap_or_default()
    }

    /// Classes in their first training batch so far.
    pub fn first_met(&self) -> u64 {
        self.counts.first_met
    }

    /// Counts of the perturbations there are.
    pub fn counters(&self) -> Vec<(String, u64)> {
        let collections = self.bsc.iter().map(|bsc| ("collections".to_owned(), bsc.collections()));
        let depths = self.pfi.iter().flat_map(|pfi| pfi.used().into_iter().enumerate());
        collections.chain(depths.map(|(depth, count)| (format!("pfi_depth_{depth}"), count))).collect()
    }

    /// The distributions, if it is they that answer.
    fn distributions(&self) -> Option<&Bsc> {
        self.bsc.as_ref().filter(|_| self.classifiers.predict != Predict::Current)
    }

    /// The weights that answer: drawn anew after every step, the same for all images until the next.
    fn answering(&self, bsc: &Bsc, core: &Core) -> DrawnHeads {
        if self.classifiers.predict == Predict::Mean {
            return bsc.mean_weights(&core.model.heads);
        }
        let name = format!("evaluation-draws-{}", self.counts.steps);
        let mut normals = Normals::new(Random::named(self.seed, &name).bits());
        bsc.draw_weights(&core.model.heads, &mut || f64::from(normals.next_one()))
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

impl Persist for Perturbed {
    fn save(&self, state: &mut State) {
        state.put("counts", &self.counts);
        state.put("logit_draws", &self.logit_draws);
        state.save_part("losses", &self.losses);
        if let Some(pfi) = &self.pfi {
            state.save_part("pfi", pfi);
        }
        if let Some(bsc) = &self.bsc {
            state.save_part("bsc", bsc);
        }
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.drawn.take();
        self.counts = state.get("counts")?;
        self.logit_draws = state.get("logit_draws")?;
        state.load_part("losses", &mut self.losses)?;
        if let Some(pfi) = &mut self.pfi {
            state.load_part("pfi", pfi)?;
        }
        if let Some(bsc) = &mut self.bsc {
            state.load_part("bsc", bsc)?;
        }
        Ok(())
    }
}

/// Head-averaged cross-entropy of every row against its label and, where rows are mixed, against its partner's.
pub struct RowLosses {
    labels: Vec<usize>,
    own: Tensor<1>,
    partner: Option<(Mixing, Tensor<1>)>,
}

impl RowLosses {
    /// `mixing` is that of the activations; a batch that was cut and mixed brings its own.
    pub fn new(logits: Tensor<3>, batch: &Batch, mixing: Option<Mixing>) -> Self {
        let labels = batch.labels.clone();
        let own = cross_entropy_rows(logits.clone(), &labels);
        let cut = || {
            batch
                .mix
                .as_ref()
                .map(|mix| Mixing { coefficient: mix.coefficient, partners: mix.permutation.clone() })
        };
        let partner = mixing.or_else(cut).map(|mixing| {
            let partners: Vec<usize> = mixing.partners.iter().map(|&row| labels[row]).collect();
            (mixing, cross_entropy_rows(logits, &partners))
        });
        Self { labels, own, partner }
    }

    /// The training loss.
    pub fn mean(&self) -> Tensor<1> {
        let own = self.own.clone().mean();
        match &self.partner {
            Some((Mixing { coefficient, .. }, partner)) => {
                own.mul_scalar(*coefficient) + partner.clone().mean().mul_scalar(1.0 - coefficient)
            }
            None => own,
        }
    }

    /// The loss taken apart by class.
    fn terms(&self) -> Vec<Term> {
        let weight = self.partner.as_ref().map_or(1.0, |(mixing, _)| mixing.coefficient);
        let own = self.labels.iter().zip(floats(self.own.clone()));
        let mut terms: Vec<Term> =
            own.map(|(&class, loss)| Term { class, weight, loss: f64::from(loss) }).collect();
        if let Some((mixing, partner)) = &self.partner {
            let partners = mixing.partners.iter().map(|&row| self.labels[row]);
            let losses = partners.zip(floats(partner.clone()));
            terms.extend(losses.map(|(class, loss)| Term {
                class,
                weight: 1.0 - weight,
                loss: f64::from(loss),
            }));
        }
        terms
    }
}

#[cfg(test)]
mod tests;
