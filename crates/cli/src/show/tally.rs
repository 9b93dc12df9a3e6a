//! How far a whole grid is and how long it will take if it goes on as it went. Knows shares of runs, not how they are
//! shown.

use std::time::{Duration, Instant};

use dpcl::Progress;

use super::words;

/// Every run's share, and since when they are made.
pub struct Tally {
    begun: Option<Instant>,
    runs: Vec<Share>,
}

/// A run's share of its work, 0 to 1: what is done, and what was done before it was taken up here.
#[derive(Clone, Copy, Default)]
struct Share {
    done: f64,
    earlier: f64,
    ended: bool,
}

impl Tally {
    /// Of so many runs, none of which has begun.
    pub fn new(runs: usize) -> Self {
        Self { begun: None, runs: vec![Share::default(); runs] }
    }

    /// A run goes on; opening its data said nothing about the speed of learning.
    pub fn progress(&mut self, run: usize, progress: &Progress) {
        self.begun.get_or_insert_with(Instant::now);
        let ended = self.runs[run].ended;
        self.runs[run] = Share { done: progress.share(), earlier: progress.earlier, ended };
    }

    /// A run ended: nothing of it is left, whatever was done.
    pub fn ended(&mut self, run: usize) {
        self.runs[run].ended = true;
    }

    /// Whether every run ended.
    pub fn is_over(&self) -> bool {
        self.runs.iter().all(|run| run.ended)
    }

    /// `3 of 12 runs ended, 12:34 left`; without the time where nothing tells it.
    pub fn words(&self) -> String {
        let ended = self.runs.iter().filter(|run| run.ended).count();
        let text = format!("{ended} of {} runs ended", self.runs.len());
        let left = self.begun.and_then(|begun| self.left(begun.elapsed()));
        match left.filter(|_| ended < self.runs.len()) {
            Some(left) => format!("{text}, {} left", words::duration(left)),
            None => text,
        }
    }

    fn left(&self, elapsed: Duration) -> Option<Duration> {
        let done: f64 = self.runs.iter().map(|run| (run.done - run.earlier).max(0.0)).sum();
        let left: f64 = self.runs.iter().filter(|run| !run.ended).map(|run| 1.0 - run.done).sum();
        Duration::try_from_secs_f64(elapsed.as_secs_f64() * left / done).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(samples: u64, earlier: f64) -> Progress {
        Progress {
            samples,
            total: 100,
            updates: 0,
            planned: 0,
            earlier,
            loss: None,
            rate: None,
            accuracy: None,
        }
    }

    #[test]
    fn time_is_left_for_runs_that_have_not_begun_too() {
        let mut tally = Tally::new(4);
        assert_eq!(tally.words(), "0 of 4 runs ended");
        tally.progress(0, &progress(100, 0.0));
        tally.ended(0);
        tally.progress(1, &progress(75, 0.25));
        // One and a half done in 30 seconds, a quarter and two whole ones are left.
        assert_eq!(tally.left(Duration::from_secs(30)), Some(Duration::from_secs(45)));
        tally.ended(2);
        assert_eq!(
            tally.left(Duration::from_secs(30)),
            Some(Duration::from_secs(25)),
            "kept runs take no time"
        );
        assert!(tally.words().starts_with("2 of 4 runs ended, 0:"), "{}", tally.words());
        tally.ended(1);
        tally.ended(3);
        assert_eq!(tally.words(), "4 of 4 runs ended");
    }
}
