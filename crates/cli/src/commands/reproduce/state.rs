//! What has become of every run, as its record tells; somebody who knows more, such as a cluster, can say so.

use std::collections::BTreeMap;

use dpcl::folder::Status;
use dpcl_report::record::ERROR_FILE;

use super::title;
use crate::{
    grid::{Grid, Planned},
    invocation,
};

/// A run's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// With a result.
    Done,
    /// A process has its folder.
    Running,
    /// Waiting for its turn on the cluster.
    Queued,
    /// Begun and left.
    Interrupted,
    /// It left a reason.
    Failed,
    /// Nothing is there.
    Missing,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Running => "running",
            Self::Queued => "queued",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Missing => "not begun",
        }
    }

    /// As its record tells.
    pub fn of(run: &Planned) -> anyhow::Result<Self> {
        Ok(match run.folder.status(&run.setup)? {
            Status::Finished(_) => Self::Done,
            Status::Missing if !run.folder.path().exists() => Self::Missing,
            _ if run.folder.claim().is_err() => Self::Running,
            Status::Missing => Self::Missing,
            Status::Begun if run.folder.path().join(ERROR_FILE).exists() => Self::Failed,
            Status::Begun => Self::Interrupted,
        })
    }
}

/// Counts, then every run that is not done. `known` may know better what has become of an unfinished run, by its place
/// in the grid, and why.
pub fn text(grid: &Grid, known: &dyn Fn(usize) -> Option<(State, String)>) -> anyhow::Result<String> {
    let mut counts: BTreeMap<State, usize> = BTreeMap::new();
    let mut lines = String::new();
    for (place, run) in grid.runs.iter().enumerate() {
        let (mut state, mut why) = (State::of(run)?, String::new());
        if !matches!(state, State::Done | State::Running)
            && let Some((better, reason)) = known(place)
        {
            (state, why) = (better, reason);
        }
        *counts.entry(state).or_default() += 1;
        if state == State::Failed && why.is_empty() {
            let reason = std::fs::read_to_string(run.folder.path().join(ERROR_FILE)).unwrap_or_default();
            why = reason.lines().next().unwrap_or_default().to_owned();
        }
        if state != State::Done {
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            lines.push_str(&format!("  {:<11}  {}{why}\n", state.word(), title(run)));
        }
    }
    let counts: Vec<String> =
        counts.iter().map(|(state, count)| format!("{count} {}", state.word())).collect();
    let again = if lines.is_empty() {
        String::new()
    } else {
        format!(
            "the same command without --status goes on with what is not done ({})\n",
            invocation::program()
        )
    };
    Ok(format!("{} runs: {}\n{lines}{again}", grid.runs.len(), counts.join(", ")))
}
