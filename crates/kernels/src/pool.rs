//! A small pool of persistent worker threads.
//!
//! Work is a number of chunks and a body called once per chunk. How work is cut into chunks is the caller's business and never
//! depends on the number of threads, so the same bits come out of one thread and of many. A worker spins for a moment after a
//! job, since the next one of a training step follows within microseconds, and then parks.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};
use std::thread::{self, Thread};

/// Rounds of spinning before a worker parks: about a hundred microseconds.
const SPINS: usize = if cfg!(miri) { 1 } else { 3000 };

/// Rounds of spinning between two yields while the submitter waits for the last chunks.
const SPINS_BEFORE_YIELD: usize = if cfg!(miri) { 1 } else { 2000 };

/// What the workers are asked to do; lives on the submitter's stack until every worker has let go of it.
struct Job<'a> {
    body: &'a (dyn Fn(usize) + Sync),
    chunks: usize,
    next: AtomicUsize,
    panicked: AtomicBool,
}

impl Job<'_> {
    fn work(&self) {
        loop {
            let chunk = self.next.fetch_add(1, Ordering::Relaxed);
            if chunk >= self.chunks {
                return;
            }
            (self.body)(chunk);
        }
    }
}

/// Where one worker finds its next job: null when idle, [`TAKEN`] while it works, otherwise a job on offer.
struct Mailbox {
    job: AtomicPtr<Job<'static>>,
    parked: AtomicBool,
}

/// The mark of a job that a worker has taken and not finished; never dereferenced.
const TAKEN: *mut Job<'static> = ptr::without_provenance_mut(1);

struct Worker {
    mailbox: Arc<Mailbox>,
    thread: Thread,
}

static WORKERS: Mutex<Vec<Worker>> = Mutex::new(Vec::new());
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    static OVERRIDE: Cell<usize> = const { Cell::new(0) };
}

fn available() -> usize {
    static AVAILABLE: OnceLock<usize> = OnceLock::new();
    *AVAILABLE.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

/// Sets the number of threads kernels use, the calling one included; zero means as many as there are cores.
pub fn set_threads(count: usize) {
    THREADS.store(count, Ordering::Relaxed);
}

/// The number of threads kernels use, the calling one included.
pub fn threads() -> usize {
    [OVERRIDE.get(), THREADS.load(Ordering::Relaxed)]
        .into_iter()
        .find(|&count| count > 0)
        .unwrap_or_else(available)
}

/// Sets the number of threads that kernels called from this thread use, itself included; zero goes by [`set_threads`].
pub fn set_threads_here(count: usize) {
    OVERRIDE.set(count);
}

/// Runs `body` with kernels called from this thread using `count` threads; meant for tests and benchmarks.
#[cfg(test)]
pub fn scope_threads<T>(count: usize, body: impl FnOnce() -> T) -> T {
    let before = OVERRIDE.replace(count);
    let result = body();
    OVERRIDE.set(before);
    result
}

fn worker_loop(mailbox: &Mailbox) {
    INSIDE.set(true);
    loop {
        let mut spins = 0;
        let job = loop {
            let job = mailbox.job.load(Ordering::Acquire);
            if !job.is_null() {
                break job;
            }
            if spins < SPINS {
                spins += 1;
                std::hint::spin_loop();
                continue;
            }
            mailbox.parked.store(true, Ordering::SeqCst);
            if mailbox.job.load(Ordering::SeqCst).is_null() {
                thread::park();
            }
            mailbox.parked.store(false, Ordering::SeqCst);
            spins = 0;
        };
        if mailbox.job.compare_exchange(job, TAKEN, Ordering::AcqRel, Ordering::Acquire).is_err() {
            continue;
        }
        // SAFETY: having swapped the job for `TAKEN`, the submitter waits for this mailbox to be null before its job ends.
        let job = unsafe { &*job };
        if catch_unwind(AssertUnwindSafe(|| job.work())).is_err() {
            job.panicked.store(true, Ordering::Relaxed);
        }
        mailbox.job.store(ptr::null_mut(), Ordering::Release);
    }
}

fn spawn() -> Option<Worker> {
    let mailbox = Arc::new(Mailbox { job: AtomicPtr::new(ptr::null_mut()), parked: AtomicBool::new(false) });
    let own = Arc::clone(&mailbox);
    let handle =
        thread::Builder::new().name("dpcl-kernel".to_owned()).spawn(move || worker_loop(&own)).ok()?;
    Some(Worker { mailbox, thread: handle.thread().clone() })
}

/// Takes back jobs on offer and waits for those taken, so that the job may end; also when a chunk panics.
struct Recall<'a> {
    workers: &'a [Worker],
    job: *mut Job<'static>,
}

impl Drop for Recall<'_> {
    fn drop(&mut self) {
        for worker in self.workers {
            let job = &worker.mailbox.job;
            if job.compare_exchange(self.job, ptr::null_mut(), Ordering::AcqRel, Ordering::Acquire).is_ok() {
                continue;
            }
            let mut spins = 0;
            while !job.load(Ordering::Acquire).is_null() {
                spins += 1;
                if spins % SPINS_BEFORE_YIELD == 0 {
                    thread::yield_now();
                }
                std::hint::spin_loop();
            }
        }
    }
}

fn run_on(
    workers: &mut MutexGuard<'_, Vec<Worker>>,
    helpers: usize,
    chunks: usize,
    body: &(dyn Fn(usize) + Sync),
) {
    while workers.len() < helpers {
        match spawn() {
            Some(worker) => workers.push(worker),
            None => break,
        }
    }
    let workers = &workers[..helpers.min(workers.len())];
    let job = Job { body, chunks, next: AtomicUsize::new(0), panicked: AtomicBool::new(false) };
    let offer = (&raw const job).cast_mut().cast::<Job<'static>>();
    {
        let _recall = Recall { workers, job: offer };
        for worker in workers {
            worker.mailbox.job.store(offer, Ordering::SeqCst);
            if worker.mailbox.parked.load(Ordering::SeqCst) {
                worker.thread.unpark();
            }
        }
        job.work();
    }
    assert!(!job.panicked.load(Ordering::Relaxed), "a kernel panicked on a worker thread");
}

/// Calls `body` once for every chunk in `0..chunks`, spread over [`threads`] threads, and returns when all are done.
///
/// Runs on the calling thread alone when called from inside a chunk, or while another thread is using the workers.
pub fn parallel_for(chunks: usize, body: impl Fn(usize) + Sync) {
    let helpers = threads().min(chunks).saturating_sub(1);
    if helpers > 0 && !INSIDE.get() {
        let guard = match WORKERS.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut workers) = guard {
            let _inside = Inside::enter();
            run_on(&mut workers, helpers, chunks, &body);
            return;
        }
    }
    (0..chunks).for_each(body);
}

/// Marks the thread as working on a chunk until dropped.
struct Inside;

impl Inside {
    fn enter() -> Self {
        INSIDE.set(true);
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// A slice that chunks running at the same time write to in disjoint places.
#[derive(Clone, Copy)]
pub(crate) struct SharedSlice<'a, T> {
    start: *mut T,
    length: usize,
    slice: std::marker::PhantomData<&'a mut [T]>,
}

// SAFETY: access goes through `range`, whose contract forbids overlap.
unsafe impl<T: Send> Send for SharedSlice<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for SharedSlice<'_, T> {}

impl<'a, T> SharedSlice<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Self { start: slice.as_mut_ptr(), length: slice.len(), slice: std::marker::PhantomData }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// The first element's address, for kernels that compute their own disjoint places.
    pub(crate) fn pointer(&self) -> *mut T {
        self.start
    }

    /// The elements `start..start + length`.
    ///
    /// # Safety
    /// No other chunk may access any of them while the returned slice lives.
    pub(crate) unsafe fn range(&self, start: usize, length: usize) -> &'a mut [T] {
        assert!(start <= self.length && length <= self.length - start, "range outside the shared slice");
        // SAFETY: in bounds by the assertion; exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chunk_runs_once_for_any_number_of_threads() {
        for count in [1, 2, 4, 7] {
            scope_threads(count, || {
                for chunks in [0, 1, 2, 5, 64] {
                    let hits: Vec<AtomicUsize> = (0..chunks).map(|_| AtomicUsize::new(0)).collect();
                    parallel_for(chunks, |i| {
                        hits[i].fetch_add(1, Ordering::Relaxed);
                    });
                    assert!(hits.iter().all(|hit| hit.load(Ordering::Relaxed) == 1));
                }
            });
        }
    }

    #[test]
    fn nested_and_concurrent_calls_finish() {
        let total = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    scope_threads(2, || {
                        for _ in 0..if cfg!(miri) { 2 } else { 200 } {
                            parallel_for(4, |_| {
                                parallel_for(3, |_| _ = total.fetch_add(1, Ordering::Relaxed));
                            });
                        }
                    });
                });
            }
        });
        assert_eq!(total.into_inner(), 3 * 12 * if cfg!(miri) { 2 } else { 200 });
    }

    #[test]
    fn a_panic_in_a_chunk_reaches_the_caller_and_leaves_the_pool_usable() {
        scope_threads(2, || {
            let result = catch_unwind(|| parallel_for(8, |i| assert!(i != 5, "chunk five")));
            assert!(result.is_err());
            let sum = AtomicUsize::new(0);
            parallel_for(8, |i| _ = sum.fetch_add(i, Ordering::Relaxed));
            assert_eq!(sum.into_inner(), 28);
        });
    }
}
