//! Errors in one line, and lists inside of errors.

use std::path::PathBuf;

use super::Error;

impl Error {
    /// The error with everything that caused it, in one line.
    pub fn whole(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(inner) = cause {
            text.push_str(&format!(": {inner}"));
            cause = inner.source();
        }
        text
    }

    /// The same where everybody knows which file is spoken of.
    pub fn whole_without_path(&self) -> String {
        match self {
            Self::BadData { problem, .. } => problem.clone(),
            Self::Io { action, source, .. } => format!("cannot {action} it: {source}"),
            other => other.whole(),
        }
    }
}

/// How many lines of a long list are shown.
const MOST_LISTED: usize = 20;

pub(super) fn count_images(count: usize) -> String {
    if count == 1 { "1 image".into() } else { format!("{count} images") }
}

/// One a line, and how many more there are.
pub(super) fn listed(problems: &[String]) -> String {
    let shown: String = problems.iter().take(MOST_LISTED).map(|problem| format!("\n{problem}")).collect();
    match problems.len().saturating_sub(MOST_LISTED) {
        0 => shown,
        more => format!("{shown}\n… and {more} more"),
    }
}

pub(super) fn list_paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
