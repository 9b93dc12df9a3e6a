//! Heads that answer from distributions of their weights, and how far they disagree.

use dpcl_report::record::Parameters;

use burn::tensor::Tensor;

use crate::{
    answers::{Between, Votes},
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
    /// The means of the heads' distributions, without any draw.
    Mean,
}

choices!(Voters: Variational = "variational", Current = "current", Mean = "mean");

impl Voters {
    /// Whether such classifiers give several answers.
    pub fn can_disagree(self, classifiers: &BscConfig) -> bool {
        classifiers.heads > 1 || (classifiers.draws_to_measure() > 1 && self == Self::Variational)
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

    /// Between whose answers disagreement is.
    pub fn between(&self) -> Between {
        self.classifiers.between
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
        let between = self.between();
        let answers = match (&self.bsc, voters) {
            (Some(bsc), Voters::Variational) => {
                let mut normals = Normals::new(self.logit_draws.bits());
                let votes = bsc.logit_moments(features, logits).votes(&mut || normals.next_one());
                votes.scores_between(between)
            }
            (Some(bsc), Voters::Mean) => bsc.logit_moments(features, logits).mean_votes().scores(),
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

    /// What the heads say to the features that answers come from [rows, features]: drawn after that many training steps,
    /// whichever weights answer. `None` where there are no several answers to compare.
    pub(super) fn asked(&self, model: &Model, features: &Tensor<2>, steps: u64) -> Option<Asked> {
        let bsc = self.bsc.as_ref().filter(|_| self.can_disagree(Voters::Variational))?;
        let votes = |drawn: DrawnHeads| {
            let (logits, shape) = drawn.logits(features.clone());
            Votes::from_logits(logits, shape)
        };
        let drawn =
            ["evaluation-draws", "further-draws"].map(|name| votes(self.draw(bsc, model, name, steps)));
        let mean = votes(bsc.mean_weights(middle(model)));
        let present = model.answering().heads().logits(features.clone());
        let variance = bsc.logit_moments(features.clone(), present).variance;
        let count = variance.len() as f64;
        let deviation = variance.into_iter().map(|variance| f64::from(variance).sqrt()).sum::<f64>() / count;
        Some(Asked { drawn, mean, deviation })
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
        self.draw(bsc, &core.model, "evaluation-draws", steps)
    }

    /// Weights drawn after that many training steps by the chance of that name.
    fn draw(&self, bsc: &Bsc, model: &Model, name: &str, steps: u64) -> DrawnHeads {
        let mut normals = Normals::new(Random::named(self.seed, &format!("{name}-{steps}")).bits());
        bsc.draw_weights(middle(model), &mut || f64::from(normals.next_one()))
    }
}

/// What heads say to some images.
pub(super) struct Asked {
    /// Drawn twice, independently; first as they answer.
    pub drawn: [Votes; 2],
    /// By the means of their distributions.
    pub mean: Votes,
    /// Standard deviation of a logit between the draws of one head, on average.
    pub deviation: f64,
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

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::model::{Architecture, Growth, matrix};

    /// Heads whose distributions were gathered from two networks.
    fn gathered(config: BscConfig) -> (StochasticHeads, Heads, Tensor<2>) {
        let mut gathered = StochasticHeads::new(Some(config), 3);
        let network = |seed| {
            let architecture = Architecture::named("slim", Some(4), 1e-6, 0.1).unwrap();
            let mut model = Model::new(architecture, config.heads, seed, &Device::flex());
            (0..3).for_each(|_| model.grow(Growth { keep_bias: true, keep_moments: true }));
            model.heads().clone()
        };
        let [first, last] = [4, 9].map(network);
        for heads in [&first, &last] {
            assert!(gathered.collect_if_due(config.period, heads));
        }
        let mut random = Random::named(5, "features");
        let numbers = (0..4 * 32).map(|_| 5.0 * random.normal() as f32).collect();
        (gathered, last, matrix(numbers, [4, 32], &Device::flex()))
    }

    #[test]
    fn disagreement_can_be_between_draws_or_of_the_means_alone() {
        let plain = BscConfig { heads: 2, ..BscConfig::default() };
        let measured = |config: BscConfig, voters| {
            let (mut heads, present, features) = gathered(config);
            heads.disagreement(voters, features.clone(), present.logits(features))
        };
        let between_heads = measured(plain, Voters::Variational);
        let between_draws = measured(BscConfig { between: Between::Draws, ..plain }, Voters::Variational);
        // The same draws, which disagree among themselves as well.
        assert!(between_heads.iter().zip(&between_draws).all(|(heads, draws)| heads < draws));

        // Mean weights are the means of both snapshots; no draw moves them.
        let means = measured(plain, Voters::Mean);
        assert_eq!(means, measured(BscConfig { draws: 1, between: Between::Draws, ..plain }, Voters::Mean));
        let (heads, present, features) = gathered(plain);
        let drawn = heads.bsc.as_ref().unwrap().mean_weights(Middle::Snapshots(&present));
        let (logits, shape) = drawn.logits(features);
        for (found, answer) in means.iter().zip(Votes::from_logits(logits, shape).scores()) {
            assert!((found - answer.disagreement).abs() < 1e-6, "{found} for {}", answer.disagreement);
        }

        // With many draws the mean of a head is nearly always the same.
        let many = BscConfig { measuring_draws: 2000, ..plain };
        let (mut heads, present, features) = gathered(many);
        let mut twice =
            || heads.disagreement(Voters::Variational, features.clone(), present.logits(features.clone()));
        let [first, again] = [twice(), twice()];
        assert!(
            first.iter().zip(&again).all(|(first, again)| first != again && (first - again).abs() < 0.02)
        );
        assert_eq!(heads.classifiers.draws, 5, "answers are drawn as often as before");
    }
}
