//! Progress as plain lines, for logs and pipes: few enough to read, often enough to see that it lives.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use dpcl::Progress;

use super::{tally::Tally, words};
use crate::{
    conductor::{Audience, Outcome},
    output,
};

/// A line of a run comes when both have passed since its last one.
const PAUSE: Duration = Duration::from_secs(10);
const SHARE: f64 = 0.05;

/// The runs are counted when one ends, and when this has passed without.
const COUNTED: Duration = Duration::from_secs(60);

/// One line now and then for each run, and how many have ended.
pub struct Lines {
    runs: Vec<Line>,
    tally: Tally,
    counted: Instant,
    /// Notices that were told.
    noticed: BTreeSet<String>,
}

struct Line {
    title: String,
    begun: Instant,
    told: Instant,
    share: f64,
}

impl Lines {
    /// For runs with these titles.
    pub fn new(titles: Vec<String>) -> Self {
        let now = Instant::now();
        let line = |title| Line { title, begun: now, told: now, share: 0.0 };
        let runs: Vec<Line> = titles.into_iter().map(line).collect();
        Self { tally: Tally::new(runs.len()), runs, counted: now, noticed: BTreeSet::new() }
    }

    /// How many runs have ended, where there are several.
    fn count(&mut self) -> Option<String> {
        self.counted = Instant::now();
        (self.runs.len() > 1).then(|| self.tally.words())
    }
}

impl Audience for Lines {
    fn begun(&mut self, run: usize) {
        let now = Instant::now();
        self.runs[run].begun = now;
        self.runs[run].told = now;
    }

    fn progress(&mut self, run: usize, progress: &Progress) {
        self.tally.progress(run, progress);
        if self.counted.elapsed() >= COUNTED
            && let Some(count) = self.count()
        {
            output::talk(count);
        }
        let line = &mut self.runs[run];
        // Some methods learn while no samples come, others look at samples without learning.
        let share = (progress.share() + progress.samples as f64 / progress.total.max(1) as f64) / 2.0;
        if line.told.elapsed() < PAUSE || share - line.share < SHARE {
            return;
        }
        line.told = Instant::now();
        line.share = share;
        let standing = words::standing(progress, line.begun.elapsed());
        output::talk(format!("{}: {}/{} {standing}", line.title, progress.samples, progress.total));
    }

    fn notice(&mut self, run: usize, text: &str) {
        // What is found in the data is the same for every run on them.
        if self.noticed.insert(text.to_owned()) {
            let lines = words::notice(&self.runs[run].title, text, output::talk_width());
            lines.iter().for_each(output::talk);
        }
    }

    fn ended(&mut self, run: usize, outcome: &Outcome) {
        self.tally.ended(run);
        let count = self.count().map(|count| format!("; {count}")).unwrap_or_default();
        output::talk(format!("{}: {}{count}", self.runs[run].title, words::ending(outcome)));
    }

    fn stopping(&mut self) {
        output::talk("stopping: waiting for the runs to close their records");
    }
}
