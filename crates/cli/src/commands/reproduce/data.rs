//! What a plan needs of the machine: the data sets, and memory for the runs side by side.

use std::fs;

use dpcl::Run;

use crate::{
    estimate::Estimate,
    failure::{Failure, Usage},
    grid::Grid,
    matrix,
};

/// Opens the data of every stream once, so that what is missing is told before anything runs.
pub fn check(grid: &Grid) -> anyhow::Result<()> {
    for (folder, run) in matrix::streams(grid) {
        let Err(error) = Run::open(&run.config) else { continue };
        let stream = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let cause = Failure::from(&anyhow::Error::new(error));
        let mut hint = cause.hints.join("; ");
        if !hint.is_empty() {
            hint.push_str("; ");
        }
        hint.push_str(
            "or leave this column out with `--columns`, or try `--scale smoke`, which needs no data",
        );
        return Err(Usage::with_hint(format!("stream {stream}: {}", cause.chain.join(": ")), hint).into());
    }
    Ok(())
}

/// How many of the largest of these runs fit in the memory that is free; `None` where the system does not tell.
pub fn jobs_in_memory(estimate: &Estimate) -> Option<usize> {
    let free = fs::read_to_string("/proc/meminfo").ok()?;
    let line = free.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    let largest = estimate.runs.iter().map(|run| run.outlook.resident).max()?;
    Some(usize::try_from(kibibytes * 1024 / largest.max(1)).unwrap_or(usize::MAX).max(1))
}
