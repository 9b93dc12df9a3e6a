//! The learning thread: takes accepted samples in the order of the log, answers each before it learns it, publishes what
//! answers, and has checkpoints written. None of the last three changes what is learned.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, atomic::Ordering},
    time::{Duration, Instant},
};

use dpcl::{Checkpoint, Learner};
use serde_json::json;

use crate::{
    counts::Counts,
    error::Result,
    keeper::{Keeper, chain, lock},
    log::Replay,
    options::Journal,
    published::Published,
    queue::{Queue, Waiting, Work},
    tally::Tally,
};

/// How long the thread sleeps when nothing comes.
const PATIENCE: Duration = Duration::from_millis(500);

/// Publishing takes at most this share of the time, whatever it costs.
const PUBLISHING_SHARE: u32 = 10;

/// Name of the tally in a checkpoint's part for whoever wrote it.
pub const TALLY: &str = "tally";

/// Everything the thread works with.
pub struct Learning {
    /// The learner.
    pub learner: Learner,
    /// What is counted with it.
    pub tally: Tally,
    /// The server's folder.
    pub folder: PathBuf,
    /// Number of the last sample that was in the log when the server started.
    pub logged: u64,
    /// Accepted samples.
    pub queue: Arc<Queue>,
    /// How far the server is.
    pub counts: Arc<Counts>,
    /// What answers.
    pub published: Arc<Published>,
    /// A copy of the tally for others to look at.
    pub shown: Arc<Mutex<Tally>>,
    /// Writes checkpoints.
    pub keeper: Keeper,
    /// Where to tell of trouble.
    pub journal: Journal,
    /// Threads of the kernels; 0 goes by the configuration.
    pub threads: usize,
    /// When a snapshot was published last, and what that cost.
    pub publishing: (Instant, Duration),
}

impl Learning {
    /// Learns until it is stopped. What waits then stays in the log.
    pub fn run(mut self) {
        dpcl::device::use_threads_here(self.threads);
        let _end = End { counts: Arc::clone(&self.counts), queue: Arc::clone(&self.queue) };
        let learned = self.replay().and_then(|goes_on| if goes_on { self.follow_queue() } else { Ok(()) });
        match learned {
            Ok(()) => self.keep(Vec::new()),
            Err(error) => {
                let problem = chain(&error);
                let event = json!({
                    "level": "error", "event": "learning-failed", "sample": self.learner.samples() + 1, "problem": problem
                });
                (self.journal)(&event);
                self.counts.fail(problem);
            }
        }
    }

    /// Learns what the log holds beyond the checkpoint; false when asked to stop meanwhile.
    fn replay(&mut self) -> Result<bool> {
        let after = self.learner.samples();
        let mut replay = Replay::new(&self.folder, self.learner.shape().height, after, self.logged)?;
        while let Some(entry) = replay.next()? {
            for (label, image) in entry.samples {
                self.learn(&Waiting { label, image })?;
                while let Some(urgent) = self.queue.urgent() {
                    match urgent {
                        Work::Checkpoint(tell) => self.keep(vec![tell]),
                        _ => return Ok(false),
                    }
                }
            }
        }
        Ok(true)
    }

    fn follow_queue(&mut self) -> Result<()> {
        loop {
            match self.queue.next(PATIENCE) {
                Work::Sample(sample) => self.learn(&sample)?,
                Work::Checkpoint(tell) => self.keep(vec![tell]),
                Work::Idle => self.keep_if_due(),
                Work::Stop => return Ok(()),
            }
        }
    }

    fn learn(&mut self, Waiting { label, image }: &Waiting) -> Result<()> {
        let answer = match self.learner.predict(image) {
            Ok(answer) => Some(answer),
            Err(dpcl::Error::NoClassYet) => None,
            Err(error) => return Err(error.into()),
        };
        self.tally.met(label, answer.as_ref());
        let observation = self.learner.observe(image, label.as_str())?;
        let number = self.learner.samples();
        self.tally.learned(number, &observation);
        self.counts.learned(number, self.learner.updates());
        self.publish_if_due()?;
        self.keep_if_due();
        Ok(())
    }

    /// Publishes when nothing else waits, and otherwise as often as it takes a small share of the time.
    fn publish_if_due(&mut self) -> Result<()> {
        let (since, cost) = self.publishing;
        if self.counts.waiting() == 0 || since.elapsed() >= cost * PUBLISHING_SHARE {
            let begun = Instant::now();
            self.published.swap(self.learner.snapshot()?);
            lock(&self.shown).clone_from(&self.tally);
            self.publishing = (Instant::now(), begun.elapsed());
        }
        Ok(())
    }

    fn keep_if_due(&mut self) {
        if self.keeper.is_due(self.learner.samples()) {
            self.keep(Vec::new());
        }
    }

    fn keep(&mut self, tell: Vec<tokio::sync::oneshot::Sender<crate::queue::Written>>) {
        let checkpoint = checkpoint(&self.learner, &self.tally);
        self.keeper.keep(self.learner.samples(), checkpoint, tell);
    }
}

/// The checkpoint of a learner and what is counted with it.
pub fn checkpoint(learner: &Learner, tally: &Tally) -> Checkpoint {
    let mut checkpoint = Checkpoint::of(learner);
    checkpoint.run = Some(json!({ TALLY: tally }));
    checkpoint
}

/// Tells that learning has ended, however it ended.
struct End {
    counts: Arc<Counts>,
    queue: Arc<Queue>,
}

impl Drop for End {
    fn drop(&mut self) {
        if !self.counts.stopping.load(Ordering::Acquire) {
            self.counts.fail("the learning thread has ended".into());
        }
        self.queue.close();
    }
}
