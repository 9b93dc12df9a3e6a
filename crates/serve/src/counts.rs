//! How far the server is: samples accepted, learned, and on their way. Also which classes there are to be.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// How far the server is.
pub struct Counts {
    /// Number of the last sample that is safe.
    pub accepted: AtomicU64,
    /// Number of the last sample that was learned.
    pub learned: AtomicU64,
    /// Training steps taken.
    pub updates: AtomicU64,
    /// Bytes of the log.
    pub log_bytes: AtomicU64,
    /// Whether the server is being stopped.
    pub stopping: AtomicBool,
    /// Samples that were taken on and not learned yet, those not yet safe counted.
    on_their_way: AtomicU64,
    most: u64,
    failure: Mutex<Option<String>>,
    classes: Mutex<BTreeSet<String>>,
    pace: Mutex<Pace>,
}

/// How fast samples are learned.
struct Pace {
    since: Instant,
    learned: u64,
    per_second: f64,
}

/// Time over which the pace is taken.
const PACE: Duration = Duration::from_secs(5);

impl Counts {
    /// Counts of a server that has accepted and learned so many, and lets at most so many wait.
    pub fn new(accepted: u64, learned: u64, most: u64, classes: BTreeSet<String>) -> Self {
        Self {
            accepted: AtomicU64::new(accepted),
            learned: AtomicU64::new(learned),
            updates: AtomicU64::new(0),
            log_bytes: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            on_their_way: AtomicU64::new(accepted - learned),
            most,
            failure: Mutex::default(),
            classes: Mutex::new(classes),
            pace: Mutex::new(Pace { since: Instant::now(), learned, per_second: 0.0 }),
        }
    }

    /// Makes room for samples; false when too many are on their way.
    pub fn reserve(&self, count: u64) -> bool {
        let room = |waiting| (waiting + count <= self.most).then_some(waiting + count);
        self.on_their_way.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).is_ok()
    }

    /// Gives room back for samples that were not accepted after all.
    pub fn release(&self, count: u64) {
        self.on_their_way.fetch_sub(count, Ordering::AcqRel);
    }

    /// A sample was learned.
    pub fn learned(&self, number: u64, updates: u64) {
        self.learned.store(number, Ordering::Release);
        self.updates.store(updates, Ordering::Relaxed);
        self.release(1);
        let mut pace = lock(&self.pace);
        let passed = pace.since.elapsed();
        if passed >= PACE {
            pace.per_second = (number - pace.learned) as f64 / passed.as_secs_f64();
            (pace.since, pace.learned) = (Instant::now(), number);
        }
    }

    /// Samples that are safe and not learned yet.
    pub fn waiting(&self) -> u64 {
        let learned = self.learned.load(Ordering::Acquire);
        self.accepted.load(Ordering::Acquire).saturating_sub(learned)
    }

    /// Samples learned a second, of late.
    pub fn pace(&self) -> f64 {
        lock(&self.pace).per_second
    }

    /// Seconds after which there should be room for so many samples: a guess by the pace, from 1 to 60.
    pub fn seconds_until_room(&self, count: u64) -> u64 {
        let pace = self.pace();
        let wait = if pace > 0.0 { count as f64 / pace } else { 1.0 };
        (wait.ceil() as u64).clamp(1, 60)
    }

    /// Why learning has ended, if it has.
    pub fn failure(&self) -> Option<String> {
        lock(&self.failure).clone()
    }

    /// Learning has ended.
    pub fn fail(&self, problem: String) {
        lock(&self.failure).get_or_insert(problem);
    }

    /// Takes on the classes of a request if there are at most so many then; gives back those that are new.
    ///
    /// # Errors
    /// When there would be more.
    pub fn take_on<'a>(
        &self,
        labels: impl Iterator<Item = &'a str>,
        most: usize,
    ) -> Result<Vec<String>, TooManyClasses> {
        let mut classes = lock(&self.classes);
        let new: BTreeSet<&str> = labels.filter(|label| !classes.contains(*label)).collect();
        if classes.len() + new.len() > most {
            return Err(TooManyClasses);
        }
        let new: Vec<String> = new.into_iter().map(str::to_owned).collect();
        classes.extend(new.iter().cloned());
        Ok(new)
    }

    /// Forgets classes of a request that was not accepted after all.
    pub fn give_up(&self, new: &[String]) {
        let mut classes = lock(&self.classes);
        new.iter().for_each(|label| _ = classes.remove(label));
    }
}

/// There would be more classes than allowed.
#[derive(Debug)]
pub struct TooManyClasses;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_so_many_are_on_their_way() {
        let counts = Counts::new(5, 3, 4, BTreeSet::new());
        assert!(counts.reserve(2) && !counts.reserve(1));
        counts.learned(4, 12);
        assert!(counts.reserve(1) && !counts.reserve(1));
        assert_eq!(counts.waiting(), 1);
        assert_eq!(counts.seconds_until_room(7), 1);
    }

    #[test]
    fn classes_are_limited_and_given_up() {
        let counts = Counts::new(0, 0, 4, BTreeSet::from(["cat".to_owned()]));
        let new = counts.take_on(["cat", "dog", "dog"].into_iter(), 2).unwrap();
        assert_eq!(new, ["dog"]);
        assert!(counts.take_on(["eel"].into_iter(), 2).is_err());
        counts.give_up(&new);
        assert!(counts.take_on(["eel"].into_iter(), 2).is_ok());
    }
}
