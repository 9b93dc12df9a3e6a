//! The thread that writes the log. Requests that come while the disk confirms others are written and confirmed together;
//! each is answered once it is safe, and only then given to the learner.

use std::{
    io,
    sync::{Arc, atomic::Ordering, mpsc},
};

use dpcl::Image;
use serde_json::json;
use tokio::sync::oneshot;

use crate::{
    counts::Counts,
    keys::{Kept, Key, Keys, Known},
    log::{Entry, Log},
    metrics::Metrics,
    options::Journal,
    queue::{Queue, Waiting},
};

/// Requests confirmed together, and bytes of their images.
const MOST_TOGETHER: (usize, usize) = (256, 32 << 20);

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its samples are safe; the number of the last one.
    Accepted {
        /// Number of its last sample.
        last: u64,
    },
    /// It was accepted before, with so many samples.
    Before(u32),
    /// Its key came with another request before.
    OtherRequest,
    /// The disk did not take it, and nothing of it is left.
    Refused(String),
}

struct Request {
    key: Option<Key>,
    samples: Vec<(String, Image)>,
    tell: oneshot::Sender<Outcome>,
}

enum Order {
    Write(Request),
    /// Two checkpoints have learned everything up to here.
    Compact(u64),
    /// Nothing more is to be written.
    End,
}

/// Where accepted samples are handed in.
#[derive(Clone)]
pub struct Writer {
    orders: mpsc::Sender<Order>,
}

/// What the thread works with.
pub struct Desk {
    /// The log.
    pub log: Log,
    /// Keys of earlier requests.
    pub keys: Keys,
    /// What was accepted.
    pub counts: Arc<Counts>,
    /// Where safe samples go.
    pub queue: Arc<Queue>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Where to tell of trouble.
    pub journal: Journal,
}

impl Writer {
    /// Starts the thread; it ends when it is told to.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(mut desk: Desk) -> io::Result<(Self, std::thread::JoinHandle<()>)> {
        let (orders, given) = mpsc::channel();
        let work = move || {
            let mut goes_on = true;
            while goes_on && let Ok(order) = given.recv() {
                goes_on = desk.work(order, &given);
            }
        };
        let thread = std::thread::Builder::new().name("dpcl-log".into()).spawn(work)?;
        Ok((Self { orders }, thread))
    }

    /// Writes the samples of a request; they have been reserved in the counts.
    pub async fn write(&self, key: Option<Key>, samples: Vec<(String, Image)>) -> Outcome {
        let (tell, told) = oneshot::channel();
        let gone = || Outcome::Refused("the thread that writes the log has ended".into());
        if self.orders.send(Order::Write(Request { key, samples, tell })).is_err() {
            return gone();
        }
        told.await.unwrap_or_else(|_| gone())
    }

    /// Two checkpoints have learned everything up to this sample.
    pub fn compact(&self, learned: u64) {
        // The thread ends only with the server.
        let _ = self.orders.send(Order::Compact(learned));
    }

    /// The thread is to end when it has done what it was given before.
    pub fn end(&self) {
        // It may have ended already.
        let _ = self.orders.send(Order::End);
    }
}

impl Desk {
    /// Does what was given and what came meanwhile; false when told to end.
    fn work(&mut self, first: Order, given: &mpsc::Receiver<Order>) -> bool {
        let mut requests = Vec::new();
        let mut compact = None;
        let (mut bytes, mut goes_on) = (0, true);
        let mut order = Some(first);
        while let Some(present) = order {
            match present {
                Order::Write(request) => {
                    bytes += request.samples.iter().map(|(_, image)| image.pixels.len()).sum::<usize>();
                    requests.push(request);
                }
                Order::Compact(learned) => compact = Some(learned),
                Order::End => goes_on = false,
            }
            let more = goes_on && requests.len() < MOST_TOGETHER.0 && bytes < MOST_TOGETHER.1;
            order = if more { given.try_recv().ok() } else { None };
        }
        if !requests.is_empty() {
            self.write(requests);
        }
        let tidied = match compact {
            Some(learned) => self.log.compact(learned, &self.keys),
            None => self.log.turn_over_if_long(&self.keys),
        };
        if let Err(error) = tidied {
            (self.journal)(
                &json!({ "level": "warning", "event": "log-not-tidied", "problem": error.to_string() }),
            );
        }
        self.counts.log_bytes.store(self.log.bytes(), Ordering::Relaxed);
        goes_on
    }

    fn write(&mut self, requests: Vec<Request>) {
        let mut next = self.log.next();
        let (mut entries, mut tells, mut early) = (Vec::new(), Vec::new(), Vec::new());
        let mut remembered = 0;
        for Request { key, samples, tell } in requests {
            let known = key.as_ref().map_or(Known::New, |key| self.keys.look_up(key));
            match known {
                Known::New => {
                    if let Some(key) = key {
                        self.keys.remember(Kept { key, samples: samples.len() as u32 });
                        remembered += 1;
                    }
                    let entry = Entry { first: next, key, samples };
                    next = entry.last() + 1;
                    entries.push(entry);
                    tells.push(tell);
                }
                // The request it repeats may be in this very write: it is answered after it.
                Known::Accepted(count) => early.push((tell, Outcome::Before(count), samples.len())),
                Known::Other => early.push((tell, Outcome::OtherRequest, samples.len())),
            }
        }
        let refused = self.confirm(&entries).err().map(|error| error.to_string());
        if refused.is_some() {
            self.keys.forget_last(remembered);
        }
        for (entry, tell) in entries.into_iter().zip(tells) {
            let (count, last) = (entry.samples.len() as u64, entry.last());
            let outcome = match &refused {
                None => {
                    self.counts.accepted.store(last, Ordering::Release);
                    let samples = entry.samples.into_iter();
                    self.queue.push(samples.map(|(label, image)| Waiting { label, image }));
                    Outcome::Accepted { last }
                }
                Some(problem) => {
                    self.counts.release(count);
                    Outcome::Refused(problem.clone())
                }
            };
            // Whoever asked may have gone; what was accepted stays accepted.
            let _ = tell.send(outcome);
        }
        for (tell, outcome, count) in early {
            self.counts.release(count as u64);
            let outcome = match (&refused, outcome) {
                (Some(problem), Outcome::Before(_)) if remembered > 0 => Outcome::Refused(problem.clone()),
                (_, outcome) => outcome,
            };
            let _ = tell.send(outcome);
        }
    }

    fn confirm(&mut self, entries: &[Entry]) -> io::Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        self.metrics.syncs.fetch_add(1, Ordering::Relaxed);
        self.metrics.entries.fetch_add(entries.len() as u64, Ordering::Relaxed);
        self.log.append(entries).inspect_err(|error| {
            let problem = error.to_string();
            (self.journal)(&json!({ "level": "error", "event": "log-not-written", "problem": problem }));
        })
    }
}
