//! EWC++: experience replay whose encoder is tied to where it stood at the last task end, each weight as firmly as it
//! mattered.
//!
//! Papers: Riemannian Walk for Incremental Learning (ECCV 2018, arXiv 1801.10112); the form with replay is that of
//! Online Continual Learning on Class Incremental Blurry Task Configuration (ICLR 2022, arXiv 2110.10031).
//!
//! Loss: CE + λ·Σ Ω·(θ − θ*)² over the encoder, heads excluded. After every step, with g the gradient of that whole loss:
//! F ← (1 − α)·F + α·g². At a task end Ω ← F and θ* ← θ, replacing what was there. Memory and rate: as experience replay;
//! the memory `balanced` can be rebuilt at task ends.
//!
//! Departures from the paper: the Fisher information follows every step, and is neither averaged over fifty of them
//! nor normalised; a matrix whose F is still all zero takes g² whole; one whose g is not finite is passed over. The
//! second paper's code also skips the first step of all, by an accident of its framework, which is not repeated here.

use super::{Method, MethodInfo, REHEARSAL};
use crate::{
    batch::Batch,
    config::{OwnKeys, Setup, keys},
    device,
    error::{Error, Result},
    memory::Memory,
    method::{Core, Knowledge},
    model::{Gradients, Weights, floats, matrix},
    rehearsal::{Rehearsal, Rehearse, Replay, Training, forward},
    state::{Array, Persist, State},
};
use burn::tensor::{Device, Tensor};
use dpcl_report::record::Parameters;

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "ewc++",
    about: "experience replay with weights anchored at the last task end by their importance",
    departures: &["importance follows every step, neither averaged over fifty nor normalised"],
    knowledge: Knowledge::TaskEnds,
    section: "ewc",
    keys: OwnKeys::of::<EwcPlusPlusKeys>(),
    build: EwcPlusPlus::build,
    ..REHEARSAL
};

keys! {
    /// Own keys of `ewc++`.
    #[derive(Copy)]
    pub struct EwcPlusPlusKeys {
        /// Weight of the anchor (λ); 0 is experience replay.
        lambda: f64 = 100.0, at_least(0);
        /// Share of a new squared gradient in the Fisher information (α).
        alpha: f64 = 0.5, above(0), at_most(1);
    }
}

/// More weights than any encoder has: a table of so many was not saved by this program.
const MOST_MATRICES: usize = 1 << 16;

/// One matrix for each encoder weight, in table order; `None` stands for zeros.
type Table = Vec<Option<Tensor<2>>>;

/// How much each encoder weight matters, and where it is tied to.
pub struct EwcPlusPlus {
    keys: EwcPlusPlusKeys,
    /// F.
    fisher: Table,
    /// Ω.
    importance: Table,
    /// θ*.
    place: Table,
    device: Device,
}

impl EwcPlusPlus {
    fn new(keys: EwcPlusPlusKeys, device: Device) -> Self {
        Self { keys, fisher: Vec::new(), importance: Vec::new(), place: Vec::new(), device }
    }

    fn build(setup: &Setup) -> Result<Box<dyn Method>> {
        let own = Self::new(setup.own(), device::named(&setup.device)?);
        Ok(Rehearsal::boxed(Replay::new(setup)?, own))
    }
}

impl Rehearse for EwcPlusPlus {
    fn step(&mut self, training: &mut Training<'_>, batch: Batch) -> Result<f64> {
        let mut pass = training.model.pass();
        let logits = forward(&mut pass, &batch);
        let loss = training.loss(logits, &batch);

        let mut outcome = pass.backward(&loss);
        outcome.loss += self.penalise(training.model.encoder().weights(), &mut outcome.encoder);
        if outcome.loss.is_finite() {
            self.absorb(&outcome.encoder);
        }
        training.apply(outcome, &batch)
    }

    fn task_end(&mut self, core: &Core, _memory: &Memory) {
        self.settle(core.model.encoder().weights());
    }

    fn check_loaded(&self, core: &Core, _memory: &Memory) -> Result<()> {
        self.check_tables(core.model.encoder().weights())
    }

    fn extra_parameters(&self) -> Parameters {
        Parameters { state: self.parameters(), ..Parameters::default() }
    }
}

impl EwcPlusPlus {
    /// All three tables by the names they are saved under.
    fn tables(&self) -> [(&'static str, &Table); 3] {
        [
            ("anchor.fisher", &self.fisher),
            ("anchor.importance", &self.importance),
            ("anchor.place", &self.place),
        ]
    }

    /// Numbers of all three tables.
    fn parameters(&self) -> u64 {
        let tensors = self.tables().into_iter().flat_map(|(_, table)| table).flatten();
        tensors.map(|tensor| tensor.dims().iter().product::<usize>() as u64).sum()
    }

    /// Adds the gradient of the penalty, 2λ·Ω·(θ − θ*), and returns the penalty.
    fn penalise(&self, weights: &Weights, gradients: &mut Gradients) -> f64 {
        let mut penalty = 0.0;
        let tied = self.importance.iter().zip(&self.place);
        for ((weight, gradient), (importance, place)) in weights.iter().zip(gradients).zip(tied) {
            let (Some(importance), Some(place)) = (importance, place) else { continue };
            let away = weight.value.clone() - place.clone();
            let pull = importance.clone() * away.clone();
            penalty += f64::from(floats((pull.clone() * away).sum())[0]);
            let pull = pull.mul_scalar(2.0 * self.keys.lambda);
            *gradient = Some(match gradient.take() {
                Some(gradient) => gradient + pull,
                None => pull,
            });
        }
        self.keys.lambda * penalty
    }

    /// Moves the Fisher information towards the squared gradients.
    fn absorb(&mut self, gradients: &Gradients) {
        self.fisher.resize(gradients.len(), None);
        for (fisher, gradient) in self.fisher.iter_mut().zip(gradients) {
            let Some(gradient) = gradient else { continue };
            let squared = gradient.clone() * gradient.clone();
            let total = floats(squared.clone().sum())[0];
            if !total.is_finite() {
                continue;
            }
            *fisher = match fisher.take() {
                Some(old) => {
                    let kept = old.mul_scalar(1.0 - self.keys.alpha);
                    Some(kept + squared.mul_scalar(self.keys.alpha))
                }
                None => (total > 0.0).then_some(squared),
            };
        }
    }

    /// Refuses tables that are not of the weights' shapes.
    fn check_tables(&self, weights: &Weights) -> Result<()> {
        let shapes: Vec<[usize; 2]> = weights.iter().map(|weight| weight.value.dims()).collect();
        for (name, table) in self.tables() {
            let fits = |(tensor, shape): (&Option<Tensor<2>>, &[usize; 2])| {
                tensor.as_ref().is_none_or(|tensor| tensor.dims() == *shape)
            };
            if !(table.is_empty() || table.len() == shapes.len() && table.iter().zip(&shapes).all(fits)) {
                let problem = "is not of the shapes of the encoder's weights".into();
                return Err(Error::BadState { key: name.into(), problem });
            }
        }
        Ok(())
    }

    /// Ties the weights to where they are.
    fn settle(&mut self, weights: &Weights) {
        self.importance.clone_from(&self.fisher);
        self.place = weights.iter().map(|weight| Some(weight.value.clone())).collect();
    }
}

impl Persist for EwcPlusPlus {
    fn save(&self, state: &mut State) {
        for (name, table) in self.tables() {
            state.put(name, &table.len());
            for (position, tensor) in table.iter().enumerate() {
                if let Some(tensor) = tensor {
                    let array = Array::floats(tensor.dims(), floats(tensor.clone()));
                    state.put_array(&format!("{name}.{position}"), array);
                }
            }
        }
    }

    fn load(&mut self, state: &State) -> Result<()> {
        let read = |name: &str| -> Result<Table> {
            let one = |position: usize| -> Result<Option<Tensor<2>>> {
                let key = format!("{name}.{position}");
                let Some(array) = state.arrays.get(&key) else { return Ok(None) };
                let not_matrix = |_| Error::BadState { key: key.clone(), problem: "is not a matrix".into() };
                let shape: [usize; 2] = array.shape.clone().try_into().map_err(not_matrix)?;
                Ok(Some(matrix(state.floats(&key, &shape)?.to_vec(), shape, &self.device)))
            };
            let length: usize = state.get(name)?;
            if length > MOST_MATRICES {
                let problem = format!("has {length} matrices, more than any network");
                return Err(Error::BadState { key: name.into(), problem });
            }
            (0..length).map(one).collect()
        };
        let tables = [read("anchor.fisher")?, read("anchor.importance")?, read("anchor.place")?];
        [self.fisher, self.importance, self.place] = tables;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{inner::reference, model::FileLayout};

    fn row(values: &[f64]) -> Tensor<2> {
        let values: Vec<f32> = values.iter().map(|value| *value as f32).collect();
        let width = values.len();
        matrix(values, [1, width], &Device::flex())
    }

    fn anchor(lambda: f64, alpha: f64) -> EwcPlusPlus {
        EwcPlusPlus::new(EwcPlusPlusKeys { lambda, alpha }, Device::flex())
    }

    fn weights(values: &[f64]) -> Weights {
        let mut weights = Weights::default();
        weights.push("weight", FileLayout::Vector, row(values));
        weights
    }

    #[test]
    fn golden_ewc_fisher() {
        for case in reference::cases_named("losses.json", "ewc.fisher") {
            let mut anchor = anchor(1.0, case.input("alpha"));
            let mut found = Vec::new();
            for gradient in case.input::<Vec<Vec<f64>>>("gradients") {
                anchor.absorb(&vec![Some(row(&gradient))]);
                let fisher = anchor.fisher[0].clone();
                found.push(fisher.map_or_else(|| vec![0.0; gradient.len()], floats));
            }
            // The file's tolerance is for doubles.
            let expected: Vec<Vec<f64>> = case.expected("fisher_after_each");
            reference::close(found, expected, &1e-6.into(), &case.name);
        }
    }

    #[test]
    fn golden_ewc_penalty() {
        for case in reference::cases_named("losses.json", "ewc.penalty") {
            let mut anchor = anchor(case.input("lambda"), 0.5);
            anchor.fisher = vec![Some(row(&case.input::<Vec<f64>>("importance")))];
            anchor.settle(&weights(&case.input::<Vec<f64>>("anchor")));
            let mut gradients = vec![None];
            let penalty = anchor.penalise(&weights(&case.input::<Vec<f64>>("theta")), &mut gradients);
            case.check("penalty", penalty);
            case.check("gradient", floats(gradients.remove(0).unwrap()));
        }
    }

    #[test]
    fn the_gradient_of_the_penalty_is_its_slope() {
        let mut anchor = anchor(3.0, 0.5);
        anchor.fisher = vec![Some(row(&[0.5, 2.0, 0.0]))];
        anchor.settle(&weights(&[0.1, -0.4, 0.9]));
        let place = [0.6, 0.3, -0.2];
        let mut gradients = vec![Some(row(&[1.0, 1.0, 1.0]))];
        anchor.penalise(&weights(&place), &mut gradients);
        let gradient = floats(gradients.remove(0).unwrap());
        for position in 0..3 {
            let at = |step: f64| {
                let mut moved = place;
                moved[position] += step;
                anchor.penalise(&weights(&moved), &mut vec![None])
            };
            let slope = (at(0.01) - at(-0.01)) / 0.02;
            // The loss below the penalty brought a slope of 1.
            assert!((f64::from(gradient[position]) - 1.0 - slope).abs() < 1e-3, "{slope} and {gradient:?}");
        }
    }

    #[test]
    fn a_gradient_that_is_not_finite_is_passed_over() {
        let mut anchor = anchor(1.0, 0.5);
        anchor.absorb(&vec![Some(row(&[2.0, 1.0]))]);
        anchor.absorb(&vec![Some(row(&[f64::NAN, 1.0]))]);
        anchor.absorb(&vec![Some(row(&[f64::INFINITY, 1.0]))]);
        assert_eq!(floats(anchor.fisher[0].clone().unwrap()), [4.0, 1.0]);
    }

    #[test]
    fn tables_of_more_matrices_than_any_network_has_are_refused() {
        let mut state = State::default();
        anchor(1.0, 0.5).save(&mut state);
        state.put("anchor.fisher", &u64::MAX);
        assert!(anchor(1.0, 0.5).load(&state).unwrap_err().to_string().contains("`anchor.fisher`"));
    }

    #[test]
    fn the_anchor_survives_saving() {
        let mut whole = anchor(1.0, 0.5);
        whole.absorb(&vec![Some(row(&[2.0, 1.0])), None]);
        whole.settle(&weights(&[0.5, 0.25]));
        whole.absorb(&vec![Some(row(&[0.0, 1.0])), None]);
        let mut state = State::default();
        whole.save(&mut state);
        let mut restored = anchor(1.0, 0.5);
        restored.load(&state).unwrap();
        let mut again = State::default();
        restored.save(&mut again);
        assert_eq!(state, again);
        assert_eq!(floats(restored.importance[0].clone().unwrap()), [4.0, 1.0]);
        assert!(restored.fisher[1].is_none());
    }
}
