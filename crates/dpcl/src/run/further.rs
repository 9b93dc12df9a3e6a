//! Where a run's learner comes from: nowhere, another run's checkpoint, or an earlier part of the same run.

use std::path::Path;

use super::{Run, Standing};
use crate::{
    checkpoint::{Checkpoint, Flaw},
    config::Settings,
    error::{Error, Result},
    folder,
    learner::{Label, Learner},
};

/// Notes which file `from` means, unless that is on record: the file may be gone when the run goes on.
///
/// # Errors
/// When the file cannot be read.
pub fn name_checksum(settings: &mut Settings) -> Result<()> {
    match &settings.from {
        Some(path) if settings.from_checksum.is_none() => {
            settings.from_checksum = Some(Checkpoint::checksum_of(path)?);
        }
        None if settings.from_checksum.is_some() => {
            return Err(Error::bad_key("from_checksum", "says nothing without `from`"));
        }
        _ => {}
    }
    Ok(())
}

impl Run {
    /// The learner that the run begins with.
    pub(super) fn first_learner(&self) -> Result<Learner> {
        match &self.setup.from {
            Some(path) => self.learner_from(path),
            None => Learner::of(&self.setup, self.shape()),
        }
    }

    /// The learner of another run. Classes with the name of a class of this data set are that class; the others stay
    /// known and keep their place in the memory, but there is nothing to test them on.
    fn learner_from(&self, path: &Path) -> Result<Learner> {
        let checkpoint = Checkpoint::read(path)?;
        if checkpoint.checksum != self.setup.from_checksum {
            let hint = "restore the file, or begin another run with `--name`";
            return Err(Error::bad_data(path, "is not the checkpoint that this run was to begin with", hint));
        }
        let rename = |label: &Label| {
            let name = checkpoint.class_name(label);
            let number = self.dataset.classes.iter().position(|class| *class == name);
            number.map_or(Label::Name(name), Label::from)
        };
        let learner = Learner::taken_further(&checkpoint, &self.setup, self.shape(), rename);
        learner.map_err(|error| match error {
            Error::BadState { .. } => {
                let hint = "leave the keys of method, network and memory as they were: without them, those of the \
                            checkpoint hold";
                Error::bad_data(path, format!("does not fit the configuration: {error}"), hint)
            }
            error => error,
        })
    }

    /// Where this run stood when it took a checkpoint.
    ///
    /// # Errors
    /// When the checkpoint, read from `path`, is of another run or of a program that would go on differently.
    pub(super) fn standing(&self, checkpoint: &Checkpoint, path: &Path) -> Result<Standing> {
        let differences = folder::differences(checkpoint.config.to_table()?, &self.setup);
        if let Some(key) = differences.into_iter().next().map(|difference| difference.key) {
            return Err(Error::OtherConfig { path: path.to_owned(), key });
        }
        let (here, here_isa) = (env!("CARGO_PKG_VERSION"), dpcl_kernels::isa_name());
        if checkpoint.program != here || checkpoint.isa != here_isa {
            let flaw = Flaw::OtherProgram {
                made: checkpoint.program.clone(),
                made_isa: checkpoint.isa.clone(),
                here: here.to_owned(),
                here_isa: here_isa.to_owned(),
            };
            return Err(Error::bad_checkpoint(path, flaw));
        }
        let standing = Standing::of(checkpoint, path)?;
        if standing.data.as_ref().is_some_and(|data| data.content != self.print().content) {
            let problem =
                "is not what the run began with: images, or names or lengths of their files, have changed";
            return Err(Error::bad_key("dataset", problem));
        }
        let tasks = &self.schedule.tasks;
        let total: usize = tasks.iter().map(|task| task.samples.len()).sum();
        if standing.samples > total as u64 || standing.tasks > tasks.len() {
            let problem = format!("it stands at sample {} of a stream of {total}", standing.samples);
            return Err(Error::bad_checkpoint(path, Flaw::Misfit(problem)));
        }
        Ok(standing)
    }
}
