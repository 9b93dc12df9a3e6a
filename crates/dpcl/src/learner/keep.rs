//! Putting a learner away and taking it up again. What is in a checkpoint may come from a stranger: what does not fit
//! together is refused here, before anything relies on it.

use std::path::Path;

use super::{Label, Learner, Shape};
use crate::{
    checkpoint::Checkpoint,
    config::Setup,
    error::{Error, Result},
    method::Answers,
    model::Layer,
    state::State,
};

impl Learner {
    /// Writes everything its future depends on to a file, safely: the file is there whole or not at all.
    ///
    /// # Errors
    /// When the disk does not take it; what the file held before is then still there.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        Checkpoint::of(self).write(path.as_ref())?;
        Ok(())
    }

    /// Takes up a learner that was saved. It goes on exactly as the saved one would have.
    ///
    /// # Errors
    /// When the file is not a checkpoint, is damaged, or was made by a newer program.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Checkpoint::read(path)?.learner().map_err(|error| Error::misfit(path, &error))
    }

    /// The learner in a checkpoint.
    pub(crate) fn from_checkpoint(checkpoint: &Checkpoint) -> Result<Self> {
        let setup = Self::setup_for(&checkpoint.config, checkpoint.shape)?;
        refuse_other_network(&setup, &checkpoint.state)?;
        let mut learner = Self::blank(&setup, checkpoint.shape)?;
        learner.restore(&checkpoint.state)?;
        Ok(learner)
    }

    /// The learner in a checkpoint under a new configuration, its classes called by other names.
    pub(crate) fn taken_further(
        checkpoint: &Checkpoint,
        setup: &Setup,
        shape: Shape,
        rename: impl Fn(&Label) -> Label,
    ) -> Result<Self> {
        if shape != checkpoint.shape {
            let (expected, found) = (checkpoint.shape.to_string(), shape.to_string());
            return Err(Error::WrongShape { expected, found });
        }
        refuse_other_network(setup, &checkpoint.state)?;
        let mut learner = Self::blank(setup, shape)?;
        learner.restore(&checkpoint.state)?;
        learner.labels = learner.labels.iter().map(rename).collect();
        learner.numbers = learner.labels.iter().cloned().zip(0..).collect();
        if learner.numbers.len() != learner.labels.len() {
            return Err(bad("labels", "are called the same in the new data"));
        }
        Ok(learner)
    }

    /// Everything its future depends on.
    pub fn state(&self) -> State {
        let mut state = State::default();
        state.put("labels", &self.labels);
        state.put("samples", &self.samples);
        state.put("updates", &self.updates);
        state.save_part("core", &self.core);
        state.save_part("method", &*self.method);
        state
    }

    /// Becomes the learner whose state was taken; both must have been made with one configuration.
    ///
    /// # Errors
    /// When an entry is missing or does not fit; the learner is then unusable.
    pub fn restore(&mut self, state: &State) -> Result<()> {
        self.labels = state.get("labels")?;
        self.numbers = self.labels.iter().cloned().zip(0..).collect();
        if self.numbers.len() != self.labels.len() {
            return Err(bad("labels", "names a class twice"));
        }
        self.samples = state.get_counted("samples")?;
        self.updates = state.get_counted("updates")?;
        refuse_strangers(state, self.labels.len(), self.shape)?;
        state.load_part("core", &mut self.core)?;
        state.load_part("method", &mut *self.method)?;
        // A method that puts its learning off has not met every class yet.
        let met = self.method.classes(&self.core);
        if met > self.labels.len() || (met < self.labels.len() && self.answers() == Answers::AnyTime) {
            return Err(bad("labels", "are not as many as the heads have classes"));
        }
        self.method.check_loaded(&self.core)
    }
}

/// Refuses a configuration whose network is not the one that the state holds, before room is made for it: every array
/// must be there in the size that the architecture says.
fn refuse_other_network(setup: &Setup, state: &State) -> Result<()> {
    let architecture = setup.architecture()?;
    let expect = |name: &str, shape: &[usize]| state.floats(name, shape).map(|_| ());
    for Layer { convolution, channels_in, channels_out, spec, .. } in architecture.layers().0 {
        let shape = [channels_out, channels_in, spec.kernel, spec.kernel];
        expect(&format!("core.model.encoder.{convolution}.weight"), &shape)?;
    }
    let heads = (setup.method.build)(setup)?.heads();
    let classes = state.get::<usize>("core.model.heads.classes")?;
    let outputs = heads.checked_mul(classes.max(1));
    let outputs = outputs.ok_or_else(|| bad("core.model.heads.classes", "is more than can be"))?;
    expect("core.model.heads.weight", &[outputs, architecture.features()])
}

/// Refuses samples of classes never met and images of another size, wherever a method keeps them: lists and numbers of
/// classes are called `classes`, lists of images `images` or `float_images`.
fn refuse_strangers(state: &State, known: usize, shape: Shape) -> Result<()> {
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    for (key, value) in state.values.iter().filter(|(key, _)| last(key) == "classes") {
        if value.as_u64().is_some_and(|count| count > known as u64) {
            return Err(bad(key, "counts classes that were never met"));
        }
        let classes = value.as_array().into_iter().flatten();
        if classes.into_iter().any(|class| class.as_u64().is_some_and(|class| class >= known as u64)) {
            return Err(bad(key, "names a class that was never met"));
        }
    }
    for (key, array) in state.arrays.iter().filter(|(key, _)| last(key).ends_with("images")) {
        let fits = matches!(array.shape[..], [0, ..])
            || array.shape.get(1..) == Some(&[shape.height, shape.width, shape.channels]);
        if !fits {
            return Err(bad(key, "holds images of another size"));
        }
    }
    Ok(())
}

fn bad(key: &str, problem: &str) -> Error {
    Error::BadState { key: key.to_owned(), problem: problem.to_owned() }
}
