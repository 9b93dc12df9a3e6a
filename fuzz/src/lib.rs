//! One function a reader of files: it takes any bytes, and must neither panic nor take memory without end. The targets
//! in `fuzz_targets` give it what coverage-guided libFuzzer thinks of. The same readers are tried with altered good
//! files by `crates/dpcl/tests/fuzz`, which needs no other toolchain.

#[cfg(feature = "data")]
pub mod data;
pub mod records;

use std::{fs, path::PathBuf};

/// A folder in memory where there is one: a reader that takes a path is given thousands of files a second.
pub fn folder() -> PathBuf {
    let mut place = tempfile::Builder::new();
    place.prefix("dpcl-fuzz");
    let made = if fs::exists("/dev/shm").unwrap_or(false) { place.tempdir_in("/dev/shm") } else { place.tempdir() };
    made.expect("a folder can be made").keep()
}
