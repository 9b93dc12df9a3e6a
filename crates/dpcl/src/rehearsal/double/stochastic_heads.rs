//! Heads that answer from distributions of their weights, and how far they disagree.

use dpcl_report::record::Parameters;

use burn::tensor::Tensor;

use crate::{
    cache::Cache,
    config::choices,
    data::Image,
    error::Result,
    method::{Core, scores},
    model::{Heads, Model, floats},
    perturb::{Bsc, BscConfig, DrawnHeads, Middle, Normals, Predict},
    random::Random,
    state::{Persist, State},
};

/// Whose disagreement is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Voters {
    /// Heads drawn from their distributions.
    #[default]
    Variational,
    /// Heads as they are.
    Current,
}

choices!(Voters: Variational = "variational", Current = "current");

impl Voters {
    /// Whether such classifiers give several answers.
    pub fn can_disagree(self, classifiers: &BscConfig) -> bool {
        classifiers.heads > 1 || (classifiers.draws > 1 && self == Self::Variational)
    }
}

/// The heads of a method: several with distributions, or one plain head.
pub struct StochasticHeads {
    seed: u64,
    bsc: Option<Bsc>,
    classifiers: BscConfig,
    logit_draws: Random,
    /// The weights that answer, by the network's revision, whether it is its average that answers, and the training
    /// steps they were drawn after.
    drawn: Cache<(u64, bool, u64), DrawnHeads>,
}

impl StochasticHeads {
    /// Heads with distributions, or one plain head.
    pub fn new(bsc: Option<BscConfig>, seed: u64) -> Self {
        Self {
            seed,
            bsc: bsc.map(Bsc::new),
            classifiers: bsc.unwrap_or_default(),
            logit_draws: Random::named(seed, "logit-draws"),
            drawn: Cache::default(),
        }
    }

    /// How many linear heads the network needs.
    pub fn count(&self) -> usize {
        if self.bsc.is_some() { self.classifiers.heads } else { 1 }
    }

    /// Whether these voters give several answers.
    pub fn can_disagree(&self, voters: Voters) -> bool {
        self.bsc.is_some() && voters.can_disagree(&self.classifiers)
    }

    /// Takes a snapshot of the heads if one is due after that many training steps; says whether it did.
    pub(super) fn collect_if_due(&mut self, steps: u64, heads: &Heads) -> bool {
        match &mut self.bsc {
            Some(bsc) if steps.is_multiple_of(self.classifiers.period) => {
                bsc.collect(heads);
                true
            }
            _ => false,
        }
    }

    /// How far the voters disagree on every row, from features [rows, features] and present logits [heads, rows,
    /// classes].
    pub fn disagreement(&mut self, voters: Voters, features: Tensor<2>, logits: Tensor<3>) -> Vec<f64> {
        let answers = match (&self.bsc, voters) {
            (Some(bsc), Voters::Variational) => {
                let mut normals = Normals::new(self.logit_draws.bits());
                bsc.logit_moments(features, logits).votes(&mut || normals.next_one()).scores()
            }
            _ => scores(logits),
        };
        answers.into_iter().map(|answer| answer.disagreement).collect()
    }

    /// Logits behind the answers for clean images after that many training steps, [rows, heads, draws, classes], with the
    /// last three of these numbers.
    pub(super) fn logits(&self, core: &Core, images: &[Image], steps: u64) -> (Vec<f32>, [usize; 3]) {
        match self.distributions() {
            Some(bsc) => {
                let key = (core.model.revision(), core.model.average().is_some(), steps);
                self.drawn.get(key, || self.answering(bsc, core, steps)).logits(core.features(images))
            }
            None => {
                let logits = core.logits(images);
                let [heads, _, classes] = logits.dims();
                (floats(logits.permute([1, 0, 2])), [heads, 1, classes])
            }
        }
    }

    /// Logits of clean images under mean weights, averaged over heads, from the features that answers come from [rows,
    /// features]: [rows, classes].
    pub fn mean_logits(&self, model: &Model, features: Tensor<2>) -> Vec<f32> {
        let Some(bsc) = self.distributions() else {
            return floats(model.answering().heads().logits(features).mean_dim(0));
        };
        let (logits, [heads, _, classes]) = bsc.mean_weights(middle(model)).logits(features);
        let mean = |row: &[f32]| -> Vec<f32> {
            let sum = |class: usize| (0..heads).map(|head| row[head * classes + class]).sum::<f32>();
            (0..classes).map(|class| sum(class) / heads as f32).collect()
        };
        logits.chunks_exact(heads * classes).flat_map(mean).collect()
    }

    /// Whether the distributions are of these heads; loaded ones may not be.
    ///
    /// # Errors
    /// When they have another shape.
    pub fn check_loaded(&self, heads: &Heads) -> Result<()> {
        self.bsc.as_ref().map_or(Ok(()), |bsc| bsc.check_loaded(heads))
    }

    /// Numbers the distributions hold.
    pub fn parameters(&self) -> Parameters {
        self.bsc.as_ref().map(Bsc::parameters).unwrap_or_default()
    }

    /// Snapshots taken so far, where any are taken.
    pub fn collections(&self) -> Option<u64> {
        self.bsc.as_ref().map(Bsc::collections)
    }

    /// The distributions, if it is they that answer.
    fn distributions(&self) -> Option<&Bsc> {
        self.bsc.as_ref().filter(|_| self.classifiers.predict != Predict::Current)
    }

    /// The weights that answer: drawn anew after every step, the same for all images until the next.
    fn answering(&self, bsc: &Bsc, core: &Core, steps: u64) -> DrawnHeads {
        if self.classifiers.predict == Predict::Mean {
            return bsc.mean_weights(middle(&core.model));
        }
        let name = format!("evaluation-draws-{steps}");
        let mut normals = Normals::new(Random::named(self.seed, &name).bits());
        bsc.draw_weights(middle(&core.model), &mut || f64::from(normals.next_one()))
    }
}

/// What the heads that answer for a model are drawn around.
fn middle(model: &Model) -> Middle<'_> {
    match model.average() {
        Some(average) => Middle::Heads(average.network().heads()),
        None => Middle::Snapshots(model.heads()),
    }
}

impl Persist for StochasticHeads {
    fn save(&self, state: &mut State) {
        state.put("logit_draws", &self.logit_draws);
        if let Some(bsc) = &self.bsc {
            state.save_part("bsc", bsc);
        }
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.logit_draws = state.get("logit_draws")?;
        match &mut self.bsc {
            Some(bsc) => state.load_part("bsc", bsc),
            None => Ok(()),
        }
    }
}
