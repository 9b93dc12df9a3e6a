//! A run and its folder: begins the record or goes on with it, takes checkpoints, ends it.

use std::{fs, io, path::PathBuf, sync::atomic::AtomicBool};

use dpcl_report::record::RunResult;

use super::{Progress, Run, Standing, Watch};
use crate::{
    checkpoint::Checkpoint,
    error::{Error, Result},
    folder::{Claim, EventLog, Every, Keeper, RunFolder},
};

/// What is needed to make a run in its folder.
pub struct Recording<'a> {
    /// The folder.
    pub folder: &'a RunFolder,
    /// The right to write into it.
    pub claim: &'a Claim,
    /// The command that asked for the run, for the record.
    pub command: Option<&'a str>,
    /// How often a checkpoint is written.
    pub every: Every,
    /// Called after every sample and evaluation.
    pub progress: &'a mut dyn FnMut(&Progress),
    /// Called with what a person should know of how the run is taken up again.
    pub notice: &'a mut dyn FnMut(&str),
    /// Set from elsewhere to stop between two samples.
    pub stop: &'a AtomicBool,
}

/// A checkpoint to go on from.
struct Found {
    path: PathBuf,
    checkpoint: Checkpoint,
    standing: Standing,
    log: Vec<u8>,
}

impl Run {
    /// Makes the run in its folder: goes on from the newest good checkpoint there, or begins.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when stopped, after writing a checkpoint; when the run is finished already, the folder is of
    /// another configuration or cannot be written; as for [`Run::execute`].
    pub fn record(&self, recording: Recording<'_>) -> Result<RunResult> {
        let Recording { folder, claim: _, command, every, progress, notice, stop } = recording;
        folder.refuse_finished(&self.setup)?;
        folder.forget_failure()?;
        let found = self.newest_good(folder, notice)?;
        if found.is_none() {
            self.advice().iter().for_each(|advice| notice(advice));
        }
        let mut log = match &found {
            Some(found) => folder.go_on(&found.log[..found.standing.log.bytes as usize])?,
            None => folder.begin(&self.setup, command)?,
        };
        let newest = found.as_ref().map(|found| {
            let updates = found.checkpoint.state.get("updates").unwrap_or(0);
            (found.path.clone(), found.standing.samples, updates)
        });
        let mut keeper = Keeper::new(folder.path(), every, log.handle()?, newest);
        let learned = self.learn(found, &mut log, &mut keeper, progress, stop);
        let kept = keeper.wait();
        let result = learned.map_err(|error| match error {
            Error::RanAway { loss, rate, samples, updates, classes, .. } => {
                let checkpoint = keeper.newest().map(PathBuf::from);
                Error::RanAway { loss, rate, samples, updates, classes, checkpoint }
            }
            // A full disk shows at the log as well: what is safe is told in either case.
            Error::Io { path, source, .. } if path == folder.log_path() => {
                Error::LogNotWritten { path, earlier: keeper.newest().map(PathBuf::from), source }
            }
            Error::Diverged { what, samples, updates, .. } => {
                let checkpoint = keeper.newest().map(PathBuf::from);
                Error::Diverged { what, samples, updates, checkpoint }
            }
            error => error,
        })?;
        kept?;
        folder.finish(&result, &log.close()?)?;
        Ok(result)
    }

    fn learn(
        &self,
        found: Option<Found>,
        log: &mut EventLog,
        keeper: &mut Keeper,
        progress: &mut dyn FnMut(&Progress),
        stop: &AtomicBool,
    ) -> Result<RunResult> {
        let mut event = |event: &_| log.write(event);
        let mut keep =
            |moment, updates, snapshot: &dyn Fn() -> Checkpoint| keeper.keep(moment, updates, snapshot);
        let mut watch = Watch { event: &mut event, progress, keep: &mut keep, stop };
        match found {
            Some(found) => self.resume(found.checkpoint, &found.path, &found.log, &mut watch),
            None => self.execute(&mut watch),
        }
    }

    /// The newest checkpoint that is whole and whose events are on record. Those after it are set aside.
    fn newest_good(&self, folder: &RunFolder, notice: &mut dyn FnMut(&str)) -> Result<Option<Found>> {
        let log_path = folder.log_path();
        let log = match fs::read(&log_path) {
            Err(source) if source.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read.map_err(|source| Error::io("read", &log_path, source))?,
        };
        let mut refused = false;
        for path in folder.checkpoints() {
            let problem = match Checkpoint::read(&path) {
                Ok(checkpoint) => {
                    let standing = self.standing(&checkpoint, &path)?;
                    if standing.events(&log).is_some() {
                        if standing.data.as_ref().is_some_and(|data| data.times != self.print().times) {
                            notice(
                                "files of the data set were written after the run began, and are as long as before: if \
                                 their images are others, begin another run with `--name`",
                            );
                        }
                        return Ok(Some(Found { path, checkpoint, standing, log }));
                    }
                    format!(
                        "{} is damaged before the place where {} was taken",
                        log_path.display(),
                        path.display()
                    )
                }
                Err(error) if matches!(&error, Error::BadCheckpoint { flaw, .. } if flaw.is_passed_over()) => {
                    error.to_string()
                }
                Err(error) => return Err(error),
            };
            refused = true;
            notice(&format!("{problem}; trying the checkpoint before it"));
            folder.set_aside(&path)?;
        }
        if refused {
            notice(
                "no checkpoint is good: the run starts over, and what there was of its record is set aside",
            );
        }
        Ok(None)
    }
}
