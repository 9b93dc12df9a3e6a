//! Every reader of files that a stranger may give, on altered files: no panic, no memory beyond what the input can
//! justify, nothing written by an archive.
//!
//! Each reader is a target with good inputs, *seeds*; [`mutate`] alters them by chance, and half of the altered inputs
//! get their checksums put right, so that what lies behind a checksum is reached too. Inputs that once broke a reader
//! are kept in `tests/fixtures/fuzz/<target>` and tried first. A few cases are tried as an ordinary test; `make fuzz`
//! tries many. `DPCL_FUZZ_CASES` is the number of cases a target, `DPCL_FUZZ_SEED` chooses others. Counts are added to
//! `target/tmp/fuzz.txt`, and an input that breaks a reader is left beside it.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod archives;
mod checkpoints;
mod images;
mod mutate;
mod records;
mod seal;
mod sets;
mod texts;

use std::{
    fs,
    io::Write as _,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use mutate::Mutator;
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The allocator's peak belongs to one target at a time.
static TURN: Mutex<()> = Mutex::new(());

const MIB: usize = 1 << 20;

/// A reader under test.
struct Target {
    /// Name of its folder of kept inputs.
    name: &'static str,
    /// Good inputs, or nearly.
    seeds: Vec<Vec<u8>>,
    /// Puts checksums inside an altered input right, where the format has them.
    seal: Option<fn(&mut [u8])>,
    /// Bytes that reading may take whatever the input; 64 times the input's length comes on top.
    memory: usize,
    /// One case in this number is tried, for readers that are slow.
    every: usize,
}

impl Target {
    fn new(name: &'static str, seeds: Vec<Vec<u8>>) -> Self {
        Self { name, seeds, seal: None, memory: 64 * MIB, every: 1 }
    }

    /// Tries kept, good and altered inputs; `read` says whether it took the input.
    fn run(mut self, mut read: impl FnMut(&[u8]) -> bool) {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let good = self.seeds.len();
        self.seeds.extend(kept(self.name));
        let mut taken = 0;
        for (number, seed) in self.seeds.iter().enumerate() {
            let accepted = self.case(&format!("seed-{number}"), seed, &mut read);
            assert!(accepted || number > 0, "{}: the first seed must be good", self.name);
            taken += u64::from(accepted && number < good);
        }
        let cases = setting("DPCL_FUZZ_CASES", 300) / self.every as u64;
        let mut mutator = Mutator::new(setting("DPCL_FUZZ_SEED", 1), self.name);
        let mut accepted = 0;
        for number in 0..cases {
            let mut input = mutator.alter(&self.seeds);
            if let Some(seal) = self.seal.filter(|_| number % 2 == 0) {
                seal(&mut input);
            }
            accepted += u64::from(self.case(&format!("case-{number}"), &input, &mut read));
        }
        let counts = format!(
            "{}: {} seeds ({taken} taken), {cases} altered inputs: {accepted} taken, {} refused\n",
            self.name,
            self.seeds.len(),
            cases - accepted
        );
        let path = left_behind("fuzz.txt");
        let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(counts.as_bytes()).unwrap();
    }

    fn case(&self, title: &str, input: &[u8], read: &mut impl FnMut(&[u8]) -> bool) -> bool {
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let outcome = catch_unwind(AssertUnwindSafe(|| read(input)));
        let used = MEMORY.peak_usage().saturating_sub(before);
        let allowed = self.memory + 64 * input.len();
        match outcome {
            Ok(accepted) if used <= allowed => accepted,
            broken => {
                let path = left_behind(&format!("fuzz-{}-{title}.bin", self.name));
                fs::write(&path, input).unwrap();
                let what = if broken.is_err() { "panicked".to_owned() } else { format!("took {used} bytes") };
                panic!("{} {what} on {}", self.name, path.display());
            }
        }
    }
}

/// Bytes that something takes at its peak beyond what was there before, and what it gives.
fn measured<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let given = work();
    (MEMORY.peak_usage().saturating_sub(before), given)
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

fn left_behind(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Inputs that once broke the reader, in the order of their names.
fn kept(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fuzz").join(target);
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}
