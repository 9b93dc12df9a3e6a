//! Doubly perturbed task-free continual learning: experience replay whose activations and heads are both perturbed,
//! and whose memory and rate follow the disagreement that results.
//!
//! Paper: Doubly Perturbed Task Free Continual Learning (AAAI 2024, arXiv 2312.13027).
//!
//! Loss: (1/N) Σₙ (1/B) Σᵢ ζ·CE(zₙᵢ, yᵢ) + (1 − ζ)·CE(zₙᵢ, y_{s(i)}), zₙᵢ the logits of head n on activations that
//! were perturbed and mixed at one random depth ([`Pfi`]). Predictions average over draws of the heads' weights
//! ([`Bsc`]). Memory: `pim`. Rate: `pima`.
//!
//! Departures from the paper: none in the defaults. What it leaves open has a key each: `period`, `rank`, `draws`,
//! `gamma`, `kappa`, `omega` and `lr_clamp` are in no public source. Disagreement is measured before the step, with the
//! weights the training pass used. A sample offered to the memory without a step since it arrived counts as undisputed.

mod config;

use std::{collections::BTreeMap, sync::OnceLock};

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use self::config::{DpclConfig, LossSource, MiHeads, MiPass, Predict};
use super::{
    Core, Knowledge, Method, MethodInfo, Scores, Step, own_keys, read_keys,
    replay::{Replay, rate_name, refuse_disagreement, scheme_name},
    scores,
};
use crate::{
    batch::Batch,
    config::Config,
    data::Image,
    error::{Error, Result},
    memory::{Memory, Pim, Place, Sample},
    model::{Model, cross_entropy_rows, floats},
    perturb::{Bsc, ClassLosses, DrawnHeads, Mixing, Normals, Pfi, Term},
    random::Random,
    rate::{self, Pima, Rate},
    state::{Persist, State},
    stream::Full,
};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "dpcl",
    about: "perturbed activations and heads; memory and rate follow the heads' disagreement",
    knowledge: Knowledge::None,
    section: "dpcl",
    memory_scheme: "pim",
    rate: "pima",
    keep_adam: true,
    cutmix: 0.0,
    check: |section| own_keys(section, DpclConfig::check),
    build: |config| Ok(Box::new(Dpcl::new(config)?)),
};

/// Doubly perturbed continual learning.
pub struct Dpcl {
    replay: Replay,
    inner: Inner,
    /// Weights that answer until something is learned.
    drawn: OnceLock<DrawnHeads>,
}

/// What a training step works with beside network, memory and rate.
struct Inner {
    config: DpclConfig,
    seed: u64,
    pfi: Option<Pfi>,
    losses: ClassLosses,
    bsc: Option<Bsc>,
    logit_draws: Random,
    /// Whether memory or rate want to hear of disagreement.
    measures: bool,
    counts: Counts,
}

/// Counts for the record.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Counts {
    steps: u64,
    first_met: u64,
    accepts: u64,
    refusals: u64,
}

impl Dpcl {
    fn new(config: &Config) -> Result<Self> {
        let section = config.sections.get(INFO.section).cloned().unwrap_or_default();
        let own: DpclConfig = read_keys(section)?;
        let settings = &config.settings;
        if own.pfi && settings.cutmix_prob.is_some_and(|probability| probability > 0.0) {
            let problem = "cannot be combined with `dpcl.pfi`: a row would have four labels";
            return Err(Error::bad_key("cutmix_prob", problem));
        }

        let slots = settings.memory.unwrap_or(0);
        let memory = match scheme_name(config)? {
            "pim" => {
                Memory::under(Box::new(Pim::new(own.pim_keep, own.pim_admit_new_class)), slots, settings.seed)
            }
            other => Memory::new(other, slots, settings.seed)?,
        };
        let rate: Box<dyn Rate> = match rate_name(config)? {
            "pima" => {
                let bounds = (own.lr_clamp[0] * settings.lr, own.lr_clamp[1] * settings.lr);
                Box::new(Pima::new(settings.lr, own.omega, bounds, own.lr_rule, own.lr_lag))
            }
            other => rate::build(other, settings)?,
        };
        if !own.has_disagreement() {
            refuse_disagreement(config, &memory, &*rate)?;
        }

        let inner = Inner {
            seed: settings.seed,
            pfi: own.pfi.then(|| Pfi::new(own.pfi(), settings.seed)),
            losses: ClassLosses::new(own.kappa),
            bsc: own.bsc.then(|| Bsc::new(own.bsc())),
            logit_draws: Random::named(settings.seed, "logit-draws"),
            measures: memory.needs_disagreement() || rate.needs_disagreement(),
            counts: Counts::default(),
            config: own,
        };
        Ok(Self { replay: Replay::with(config, memory, rate)?, inner, drawn: OnceLock::new() })
    }

    fn learn(&mut self, core: &mut Core, full: &Full<Sample>) -> Result<Vec<Step>> {
        let Self { replay, inner, .. } = self;
        let size = core.batcher.size();
        let mut disagreement = vec![0.0; full.items.len()];
        let steps = replay.iterate_with(core, full, |model, batch, memory, rate| {
            let (loss, measured) = inner.step(model, batch, size, memory, rate);
            disagreement = measured;
            loss
        })?;

        for (sample, &disagreement) in full.items.iter().zip(&disagreement) {
            match replay.memory.offer(sample, disagreement) {
                Place::Refuse => inner.counts.refusals += 1,
                Place::Append | Place::Replace(_) => inner.counts.accepts += 1,
            }
        }
        Ok(steps)
    }
}

impl Inner {
    /// One training step; returns its loss and the disagreement on the stream rows.
    fn step(
        &mut self,
        model: &mut Model,
        batch: &Batch,
        size: usize,
        memory: &mut Memory,
        rate: &mut dyn Rate,
    ) -> (f64, Vec<f64>) {
        self.counts.steps += 1;
        self.counts.first_met += self.losses.unmet(&batch.labels) as u64;
        let images = model.images(batch.images.clone(), size);

        // Activations perturbed, then mixed, at one depth.
        let disturbance = self.pfi.as_mut().map(|pfi| pfi.draw(&self.losses.factors(&batch.labels)));
        let mut pass = model.pass();
        let features = pass.features_with(images.clone(), &mut |depth, activations| match &disturbance {
            Some(disturbance) => disturbance.apply(depth, activations),
            None => activations,
        });
        let logits = pass.logits(features.clone());
        let losses = RowLosses::new(logits.clone(), batch, disturbance.map(|disturbance| disturbance.mixing));
        let loss = losses.mean();

        // What the weights before the step make of the rows.
        let clean = self.wants_clean_pass().then(|| {
            let features = model.features(images);
            (features.clone(), model.heads.logits(features))
        });
        let disagreement = match (self.measures, self.config.mi_pass, &clean) {
            (false, ..) => vec![0.0; batch.labels.len()],
            (true, MiPass::Clean, Some((features, logits))) => {
                self.disagreement(features.clone(), logits.clone())
            }
            (true, ..) => self.disagreement(features.inner(), logits.inner()),
        };

        let outcome = pass.backward(&loss);
        let loss = outcome.loss;
        model.update(outcome, rate.rate());
        if !loss.is_finite() {
            // Whoever refuses the step finds class losses and history as they were.
            return (loss, Vec::new());
        }

        match (self.config.loss_source, clean) {
            (LossSource::Clean, Some((_, logits))) => {
                self.losses.absorb(RowLosses::new(logits, batch, None).terms());
            }
            _ => self.losses.absorb(losses.terms()),
        }

        // Memory and rate hear how far the heads disagree.
        let (stream, rehearsed) = disagreement.split_at(batch.labels.len() - batch.slots.len());
        let change = memory.rehearsed(&batch.slots, rehearsed, self.config.gamma);
        rate.rehearsed((!batch.slots.is_empty()).then_some(change));
        if let Some(bsc) = &mut self.bsc
            && self.counts.steps.is_multiple_of(self.config.period)
        {
            bsc.collect(&model.heads);
            rate.collected();
        }
        (loss, stream.to_vec())
    }

    fn wants_clean_pass(&self) -> bool {
        let for_disagreement = self.measures && self.config.mi_pass == MiPass::Clean;
        for_disagreement || self.config.loss_source == LossSource::Clean
    }

    /// Disagreement on every row, from features [rows, features] and present logits [heads, rows, classes].
    fn disagreement(&mut self, features: Tensor<2>, logits: Tensor<3>) -> Vec<f64> {
        let answers = match (&self.bsc, self.config.mi_heads) {
            (Some(bsc), MiHeads::Variational) => {
                let mut normals = Normals::new(self.logit_draws.bits());
                bsc.logit_moments(features, logits).votes(&mut || normals.next_one()).scores()
            }
            _ => scores(logits),
        };
        answers.into_iter().map(|answer| answer.disagreement).collect()
    }

    /// The weights that answer: drawn anew after every step, the same for all images until the next.
    fn answering(&self, bsc: &Bsc, core: &Core) -> DrawnHeads {
        if self.config.predict == Predict::Mean {
            return bsc.mean_weights(&core.model.heads);
        }
        let name = format!("evaluation-draws-{}", self.counts.steps);
        let mut normals = Normals::new(Random::named(self.seed, &name).bits());
        bsc.draw_weights(&core.model.heads, &mut || f64::from(normals.next_one()))
    }
}

impl Method for Dpcl {
    fn observe(&mut self, core: &mut Core, sample: Sample) -> Result<Vec<Step>> {
        self.drawn.take();
        match self.replay.arrive(core, sample) {
            Some(full) => self.learn(core, &full),
            None => Ok(Vec::new()),
        }
    }

    fn flush(&mut self, core: &mut Core) -> Result<Vec<Step>> {
        self.drawn.take();
        match self.replay.flush() {
            Some(full) => self.learn(core, &full),
            None => Ok(Vec::new()),
        }
    }

    fn predict(&self, core: &Core, images: &[Image]) -> Result<Vec<Scores>> {
        match &self.inner.bsc {
            Some(bsc) if self.inner.config.predict != Predict::Current => {
                let heads = self.drawn.get_or_init(|| self.inner.answering(bsc, core));
                Ok(heads.votes(core.features(images)).scores())
            }
            _ => Ok(scores(core.logits(images))),
        }
    }

    fn fit(&self, core: &Core) -> Result<()> {
        self.inner.bsc.as_ref().map_or(Ok(()), |bsc| bsc.fit(&core.model.heads))
    }

    fn heads(&self) -> usize {
        if self.inner.config.bsc { self.inner.config.heads } else { 1 }
    }

    fn memory(&self) -> Option<&Memory> {
        Some(&self.replay.memory)
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        let Counts { first_met, accepts, refusals, .. } = self.inner.counts;
        let mut counters = vec![
            ("first_met".to_owned(), first_met),
            ("memory_accepts".to_owned(), accepts),
            ("memory_refusals".to_owned(), refusals),
        ];
        counters
            .extend(self.replay.rate.counters().into_iter().map(|(name, count)| (name.to_owned(), count)));
        if let Some(bsc) = &self.inner.bsc {
            counters.push(("collections".to_owned(), bsc.collections()));
        }
        if let Some(pfi) = &self.inner.pfi {
            let depths = pfi.used().into_iter().enumerate();
            counters.extend(depths.map(|(depth, count)| (format!("pfi_depth_{depth}"), count)));
        }
        counters.into_iter().map(|(name, count)| (name, count as f64)).collect()
    }
}

impl Persist for Dpcl {
    fn save(&self, state: &mut State) {
        self.replay.save(state);
        state.put("counts", &self.inner.counts);
        state.put("logit_draws", &self.inner.logit_draws);
        state.save_part("losses", &self.inner.losses);
        if let Some(pfi) = &self.inner.pfi {
            state.save_part("pfi", pfi);
        }
        if let Some(bsc) = &self.inner.bsc {
            state.save_part("bsc", bsc);
        }
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.drawn.take();
        self.replay.load(state)?;
        self.inner.counts = state.get("counts")?;
        self.inner.logit_draws = state.get("logit_draws")?;
        state.load_part("losses", &mut self.inner.losses)?;
        if let Some(pfi) = &mut self.inner.pfi {
            state.load_part("pfi", pfi)?;
        }
        if let Some(bsc) = &mut self.inner.bsc {
            state.load_part("bsc", bsc)?;
        }
        Ok(())
    }
}

/// Head-averaged cross-entropy of every row against its label and, where rows are mixed, against its partner's.
struct RowLosses {
    labels: Vec<usize>,
    own: Tensor<1>,
    partner: Option<(Mixing, Tensor<1>)>,
}

impl RowLosses {
    /// `mixing` is that of the activations; a batch that was cut and mixed brings its own.
    fn new(logits: Tensor<3>, batch: &Batch, mixing: Option<Mixing>) -> Self {
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
    fn mean(&self) -> Tensor<1> {
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
