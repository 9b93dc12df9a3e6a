//! A run that is cut off again and again and goes on from its checkpoints.

use std::{path::Path, sync::atomic::AtomicBool};

use dpcl_report::record::{Event, RunResult};

use super::{Kept, Subject, ensure, told};
use crate::{
    checkpoint::{Checkpoint, Moment},
    error::Error,
    run::{Run, Standing, Watch},
};

/// Where the run is cut: in the middle of a batch, around the end of the first task, at an evaluation, at the end. Of
/// several equal moments in one part of the run, the one of the given number.
const CUTS: [(Moment, usize); 9] = [
    (Moment::Sample(1), 0),
    (Moment::Sample(45), 0),
    (Moment::Sample(63), 0),
    (Moment::Sample(64), 0),
    (Moment::Sample(64), 0),
    (Moment::Sample(65), 0),
    (Moment::Sample(96), 0),
    (Moment::Sample(128), 1),
    (Moment::End(128), 0),
];

/// How a part of a run ended.
enum Part {
    Finished(Box<RunResult>),
    /// With a checkpoint.
    Cut(Vec<u8>),
}

impl Subject {
    pub(super) fn survives_cuts(&self) -> Kept {
        let mut config = self.config.clone();
        config.settings.online = true;
        let run = Run::open(&config).map_err(told)?;
        let (mut whole, mut log) = (String::new(), String::new());
        let Part::Finished(expected) = part(&run, None, &mut whole, None)? else {
            return Err("a run that nobody cut did not finish".into());
        };
        let mut checkpoint: Option<Vec<u8>> = None;
        for cut in CUTS {
            match part(&run, checkpoint.as_deref(), &mut log, Some(cut))? {
                Part::Cut(bytes) => checkpoint = Some(bytes),
                Part::Finished(_) => return Err(format!("the run never came to {cut:?}")),
            }
            // What came after the checkpoint and was not written to its end.
            log.push_str("{\"event\":\"progr");
        }
        let Part::Finished(result) = part(&run, checkpoint.as_deref(), &mut log, None)? else {
            return Err("the last part did not finish".into());
        };
        let differs = log.lines().zip(whole.lines()).find(|(one, other)| one != other);
        ensure(log == whole, || format!("the log differs: {differs:?}"))?;
        let timeless = |result: &RunResult| RunResult {
            train_seconds: 0.0,
            eval_seconds: 0.0,
            peak_memory_bytes: 0,
            ..result.clone()
        };
        super::same("the result", &timeless(&result), &timeless(&expected))
    }
}

/// Makes a run up to a moment, or from a checkpoint on; adds to the text of its log.
fn part(
    run: &Run,
    from: Option<&[u8]>,
    log: &mut String,
    until: Option<(Moment, usize)>,
) -> Result<Part, String> {
    let (earlier, mut added) = (log.clone(), String::new());
    let (mut taken, mut met) = (Vec::new(), 0);
    let mut event = |event: &Event| {
        added += &event.line();
        Ok(())
    };
    let mut keep = |moment, _: u64, snapshot: &dyn Fn() -> Checkpoint| {
        let here = until.is_some_and(|(until, _)| until == moment);
        met += usize::from(here);
        if !here || until.is_some_and(|(_, number)| met != number + 1) {
            return Ok(());
        }
        snapshot().write_to(&mut taken).map_err(|source| Error::io("write", "a buffer", source))?;
        Err(Error::Interrupted)
    };
    let stop = AtomicBool::new(false);
    let mut watch = Watch { event: &mut event, progress: &mut |_| {}, keep: &mut keep, stop: &stop };
    let path = Path::new("some.ckpt");
    let result = match from {
        Some(bytes) => {
            let checkpoint = Checkpoint::from_bytes(bytes, path).map_err(told)?;
            let standing = Standing::of(&checkpoint, path).map_err(told)?;
            let resumed = run.resume(checkpoint, path, earlier.as_bytes(), &mut watch);
            log.truncate(standing.log.bytes as usize);
            resumed
        }
        None => run.execute(&mut watch),
    };
    log.push_str(&added);
    match result {
        Err(Error::Interrupted) => Ok(Part::Cut(taken)),
        result => Ok(Part::Finished(Box::new(result.map_err(told)?))),
    }
}
