//! Taking up a folder: the newest good checkpoint, then the log behind it. An empty folder begins with a checkpoint of what
//! has learned nothing, so that there is one way to take up a server.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use dpcl::{
    Checkpoint, Label, Learner, Shape,
    folder::{Claim, RunFolder},
    method::{Answers, Knowledge},
};
use serde_json::json;

use crate::{
    counts::Counts,
    error::{Error, Result},
    keeper::{self, Keeper, Safe},
    learning::{self, TALLY},
    log::{self, Log, Replay, Scan},
    metrics::Metrics,
    options::{Begin, Journal, Learning, Limits},
    published::Published,
    queue::Queue,
    server::system,
    service::Teaching,
    tally::Tally,
    writer::{Desk, Writer},
};

/// Memory that waiting samples may take.
const WAITING_BYTES: u64 = 512 << 20;

/// A learner that has been taken up, with its thread.
pub struct Started {
    /// What requests share.
    pub teaching: Teaching,
    /// What answers.
    pub published: Arc<Published>,
    /// The threads that learn and that write the log.
    pub threads: [JoinHandle<()>; 2],
    /// The right to the folder.
    pub claim: Claim,
}

/// Takes up a folder and starts to learn.
///
/// # Errors
/// When it cannot be taken up, or another server has it.
pub fn learner(
    options: &Learning,
    limits: &Limits,
    journal: &Journal,
    metrics: &Arc<Metrics>,
) -> Result<Started> {
    let folder = &options.folder;
    let claim = RunFolder::at(folder).claim().map_err(|error| match error {
        dpcl::Error::Claimed { path } => Error::Claimed { path },
        other => other.into(),
    })?;
    for inner in [keeper::FOLDER, log::FOLDER] {
        remove_unfinished(&folder.join(inner));
    }
    let (safe, checkpoint) = begin(options, journal)?;
    let tally = tally(&checkpoint);
    let learner = checkpoint.learner()?;
    let side = learner.shape().height;
    let scan = Scan::of(folder, side)?;
    let learned = learner.samples();
    let log_first = Scan::first(folder)?;
    if let Some(first) = log_first.filter(|first| *first > learned + 1) {
        return Err(Error::Gap { path: folder.clone(), first, learned });
    }
    if scan.torn > 0 {
        journal(&json!({ "level": "warning", "event": "torn-end-cut-off", "bytes": scan.torn }));
    }
    let log = Log::open(folder, side, &scan, learned + 1)?;
    let logged = log.next() - 1;
    if logged < learned {
        return Err(Error::ShortLog { path: folder.clone(), last: logged, learned });
    }
    let waiting = limits.waiting.min((WAITING_BYTES / (side * side * 3) as u64).max(1));
    // A log may hold more than may wait; it is then learned before more is taken.
    let classes = classes(&learner, folder, logged)?;
    let counts = Arc::new(Counts::new(logged.max(learned), learned, waiting, classes));
    let queue = Arc::new(Queue::default());
    let (counted, queued) = (Arc::clone(&counts), Arc::clone(&queue));
    let desk = Desk {
        log,
        keys: scan.keys,
        counts: counted,
        queue: queued,
        metrics: Arc::clone(metrics),
        journal: Arc::clone(journal),
    };
    let (writer, writing) = Writer::start(desk).map_err(|source| system("start threads", source))?;
    let newest = Arc::new(Mutex::new(Some(safe)));
    let published = Arc::new(Published::new(learner.snapshot()?));
    let shown = Arc::new(Mutex::new(tally.clone()));
    let (every, keeps) = (options.checkpoint_every, Arc::clone(journal));
    let learning = learning::Learning {
        learner,
        tally,
        folder: folder.clone(),
        logged,
        queue: Arc::clone(&queue),
        counts: Arc::clone(&counts),
        published: Arc::clone(&published),
        shown: Arc::clone(&shown),
        keeper: Keeper::new(folder, every, Arc::clone(&newest), writer.clone(), keeps),
        journal: Arc::clone(journal),
        threads: threads(options.threads),
        publishing: (Instant::now(), Duration::ZERO),
    };
    let thread = std::thread::Builder::new().name("dpcl-learn".into()).spawn(move || learning.run());
    let thread = thread.map_err(|source| system("start threads", source))?;
    Ok(Started {
        teaching: Teaching { counts, queue, writer, shown, newest },
        published,
        threads: [thread, writing],
        claim,
    })
}

/// Removes what a process that was killed while writing a file left behind.
fn remove_unfinished(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "partial") {
            // It does no harm where it is.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Threads of the learner: one core is left to predictions where there are several.
fn threads(asked: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if asked > 0 { asked } else { cores.saturating_sub(1).max(1) }
}

/// The checkpoint to go on from; an empty folder gets its first.
fn begin(options: &Learning, journal: &Journal) -> Result<(Safe, Checkpoint)> {
    let folder = &options.folder;
    if let Some((safe, checkpoint)) = keeper::newest_good(folder, journal)? {
        if let Begin::Config(config) = &options.begin {
            refuse_other(config, &checkpoint, folder)?;
        }
        refuse_unservable(&checkpoint.learner()?)?;
        return Ok((safe, checkpoint));
    }
    if let Some(first) = Scan::first(folder)? {
        return Err(Error::Gap { path: folder.clone(), first, learned: 0 });
    }
    let checkpoint = match &options.begin {
        Begin::Config(config) | Begin::Anything(config) => {
            let side = config.check()?.size;
            let learner = Learner::new(config, Shape { channels: 3, height: side, width: side })?;
            learning::checkpoint(&learner, &Tally::default())
        }
        Begin::Checkpoint(path) => {
            let mut checkpoint = Checkpoint::read(path)?.with_names()?;
            checkpoint.run = Some(json!({ TALLY: Tally::default() }));
            checkpoint
        }
    };
    let learner = checkpoint.learner()?;
    refuse_unservable(&learner)?;
    Ok((keeper::write(folder, learner.samples(), &checkpoint)?, checkpoint))
}

/// What was counted until a checkpoint; nothing in one that a server did not write.
fn tally(checkpoint: &Checkpoint) -> Tally {
    let saved = checkpoint.run.as_ref().and_then(|run| run.get(TALLY));
    saved.and_then(|tally| serde_json::from_value(tally.clone()).ok()).unwrap_or_default()
}

/// Refuses a configuration that is not the folder's.
fn refuse_other(config: &dpcl::Config, checkpoint: &Checkpoint, folder: &Path) -> Result<()> {
    let [asked, has] = [config.check()?, checkpoint.config.check()?].map(|setup| setup.config().to_table());
    let (asked, has) = (asked?, has?);
    let incidental = ["threads", "data_dir", "size"];
    let differs = asked.iter().find(|(key, value)| {
        !incidental.contains(&key.as_str()) && has.get(*key).is_some_and(|kept| kept != *value)
    });
    match differs {
        None => Ok(()),
        Some((key, _)) => {
            let key = key.clone();
            Err(dpcl::Error::OtherConfig { path: folder.to_owned(), key }.into())
        }
    }
}

fn refuse_unservable(learner: &Learner) -> Result<()> {
    let method = learner.setup().method.name.to_owned();
    if learner.knowledge() == Knowledge::TaskIds {
        return Err(Error::Unservable { method, problem: "must be told the task of every sample" });
    }
    if learner.answers() != Answers::AnyTime {
        return Err(Error::Unservable { method, problem: "does not answer at any time" });
    }
    if learner.labels().iter().any(|label| matches!(label, Label::Number(_))) {
        return Err(Error::Unservable { method, problem: "has classes without names in this checkpoint" });
    }
    Ok(())
}

/// Every class that was accepted.
fn classes(learner: &Learner, folder: &Path, logged: u64) -> Result<BTreeSet<String>> {
    let mut classes: BTreeSet<String> = learner.labels().iter().map(ToString::to_string).collect();
    let mut replay = Replay::new(folder, learner.shape().height, learner.samples(), logged)?;
    while let Some(entry) = replay.next()? {
        classes.extend(entry.samples.into_iter().map(|(label, _)| label));
    }
    Ok(classes)
}
