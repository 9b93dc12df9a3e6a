//! What a task has to itself: columns, calibration, and batch norms with their running statistics.

use burn::tensor::Tensor;

use super::calibration::Calibration;
use crate::{
    error::Result,
    method::Core,
    model::{Heads, Norms, floats},
    state::{Persist, State},
};

/// One task.
pub struct Task {
    /// What it was called.
    pub number: usize,
    /// The class of each of its columns, in the order met.
    pub classes: Vec<usize>,
    /// Of the network's layers; the first task has none.
    pub calibration: Option<Calibration>,
    /// Its batch norms and columns while the network has those of another.
    pub aside: Option<(Norms, Heads)>,
}

impl Task {
    /// Notes a class; says whether it is one that needs a column.
    pub fn meet(&mut self, class: usize) -> bool {
        let new = !self.classes.contains(&class);
        if new {
            self.classes.push(class);
        }
        new
    }

    /// Replaces classes by the columns they have here; gives the classes back.
    pub fn columns(&self, labels: &mut Vec<usize>) -> Vec<usize> {
        let column = |class: &usize| self.classes.iter().position(|own| own == class);
        let columns = labels.iter().map(|class| column(class).expect("a class is met before it is learned"));
        let columns = columns.collect();
        std::mem::replace(labels, columns)
    }

    /// Logits of its columns for clean images in evaluation mode, row after row.
    pub fn logits(&self, core: &Core, images: Tensor<4>) -> Vec<f32> {
        let own = core.model.network();
        let fitted = self.aside.as_ref().map(|(norms, heads)| own.fitted(norms, heads));
        let network = fitted.as_ref().unwrap_or(own);
        let features = match &self.calibration {
            Some(calibration) => calibration.evaluate(network, images),
            None => network.features(images),
        };
        floats(network.heads().logits(features))
    }

    /// What does not go together in a loaded task with these columns.
    pub fn problem(&self, heads: &Heads) -> Option<String> {
        if self.classes.is_empty() || heads.classes() != self.classes.len() {
            return Some(format!("are {} for {} columns", self.classes.len(), heads.classes()));
        }
        let twice = (1..self.classes.len()).any(|at| self.classes[..at].contains(&self.classes[at]));
        twice.then(|| "names a class twice".into())
    }

    /// Learnable numbers beside the network's.
    pub fn parameters(&self) -> u64 {
        let calibration = self.calibration.as_ref().map_or(0, |calibration| calibration.weights().count());
        let aside = self.aside.as_ref();
        calibration as u64
            + aside.map_or(0, |(norms, heads)| norms.parameters() + heads.weights().count() as u64)
    }
}

impl Persist for Task {
    fn save(&self, state: &mut State) {
        state.put("number", &self.number);
        state.put("classes", &self.classes);
        if let Some(calibration) = &self.calibration {
            state.save_part("calibration", calibration);
        }
        if let Some((norms, heads)) = &self.aside {
            state.save_part("norms", norms);
            state.save_part("heads", heads);
        }
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.number = state.get("number")?;
        self.classes = state.get("classes")?;
        if let Some(calibration) = &mut self.calibration {
            state.load_part("calibration", calibration)?;
        }
        if let Some((norms, heads)) = &mut self.aside {
            state.load_part("norms", norms)?;
            state.load_part("heads", heads)?;
        }
        Ok(())
    }
}
