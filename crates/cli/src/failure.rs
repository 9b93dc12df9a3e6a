//! How a failure is told and which exit code it gives. Collects the chain of causes and every hint that a cause
//! knows; decides nothing about what to try again.

use std::fmt;

use crate::{meant, output};

/// Done.
pub const DONE: u8 = 0;
/// Something failed that was asked for rightly.
pub const FAILED: u8 = 1;
/// Asked for wrongly.
pub const USAGE: u8 = 2;
/// Stopped from outside.
pub const INTERRUPTED: u8 = 130;

/// What a line of a hint begins with that is a command.
pub const COMMAND: &str = "  ";

/// A request that cannot be right, with a way out.
#[derive(Debug)]
pub struct Usage {
    problem: String,
    hint: Option<String>,
}

impl Usage {
    /// A wrong request without advice.
    pub fn new(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), hint: None }
    }

    /// A wrong request and what to do instead.
    pub fn with_hint(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { problem: problem.into(), hint: Some(hint.into()) }
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(formatter)
    }
}

impl std::error::Error for Usage {}

/// A failure as text: it crosses process borders.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Failure {
    /// What failed, then each cause.
    pub chain: Vec<String>,
    /// Ways out.
    pub hints: Vec<String>,
    /// The exit code it deserves.
    pub code: u8,
}

impl Failure {
    /// A failure with one line and no advice.
    pub fn plain(problem: impl Into<String>) -> Self {
        Self { chain: vec![problem.into()], hints: Vec::new(), code: FAILED }
    }

    /// Tells it on stderr: `error:` with the chain, then each `hint:`.
    pub fn tell(&self) {
        let width = output::talk_width();
        let error = console::style("error:").red().bold().for_stderr();
        let hint = console::style("hint:").cyan().bold().for_stderr();
        labelled(&error.to_string(), "error:".len(), &self.chain.join(": "), width);
        for advice in &self.hints {
            labelled(&hint.to_string(), "hint:".len(), advice, width);
        }
    }

    /// The same as plain text, for records.
    pub fn text(&self) -> String {
        let mut lines = vec![format!("error: {}", self.chain.join(": "))];
        lines.extend(self.hints.iter().map(|hint| format!("hint: {hint}")));
        lines.join("\n") + "\n"
    }
}

impl From<&anyhow::Error> for Failure {
    fn from(error: &anyhow::Error) -> Self {
        let mut hints: Vec<String> = error.chain().filter_map(hint).collect();
        hints.dedup();
        Self { chain: error.chain().map(ToString::to_string).collect(), hints, code: code(error) }
    }
}

/// Later lines of a long text are set under its first word. A line that is set in is a command, which is left whole so that
/// it can be copied.
fn labelled(label: &str, indent: usize, text: &str, width: usize) {
    let mut label = label.to_owned();
    for paragraph in text.lines() {
        let lines = match paragraph.starts_with(COMMAND) {
            true => vec![paragraph.to_owned()],
            false => output::wrap(paragraph, width.saturating_sub(indent + 1).max(20)),
        };
        for line in lines {
            output::styled_talk(format!("{label} {}", output::harmless(&line)));
            label = " ".repeat(indent);
        }
    }
}

fn hint(cause: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(error) = cause.downcast_ref::<dpcl::Error>() {
        let meant = match error {
            dpcl::Error::UnknownName { name, known, .. } | dpcl::Error::UnknownValue { name, known, .. } => {
                meant::closest(name, known)
            }
            _ => None,
        };
        return meant::asked(meant, error.hint());
    }
    if let Some(error) = cause.downcast_ref::<dpcl_report::Error>() {
        let meant = match error {
            dpcl_report::Error::UnknownName { name, known, .. } => meant::closest(name, known),
            _ => None,
        };
        return meant::asked(meant, error.hint());
    }
    cause.downcast_ref::<Usage>().and_then(|usage| usage.hint.clone())
}

fn code(error: &anyhow::Error) -> u8 {
    use dpcl::Error as E;
    use dpcl_report::Error as R;
    for cause in error.chain() {
        if cause.is::<Usage>() {
            return USAGE;
        }
        if let Some(R::UnknownName { .. } | R::Ambiguous { .. }) = cause.downcast_ref() {
            return USAGE;
        }
        match cause.downcast_ref::<E>() {
            Some(
                E::BadKey { .. }
                | E::UnknownValue { .. }
                | E::BadConfig { .. }
                | E::UnknownKey { .. }
                | E::UnknownName { .. }
                | E::OtherConfig { .. }
                | E::FromWithTasks { .. }
                | E::BadInstructionSet(_),
            ) => return USAGE,
            Some(E::Interrupted) => return INTERRUPTED,
            _ => {}
        }
    }
    FAILED
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_hint_is_found_anywhere_in_the_chain() {
        let cause = dpcl::Error::UnknownName {
            kind: "method",
            name: "err".into(),
            known: vec!["er".into(), "finetune".into()],
        };
        let error = Err::<(), _>(cause).context("run err-seed1").unwrap_err();
        let failure = Failure::from(&error);
        assert_eq!(failure.chain, ["run err-seed1", "there is no method called `err`"]);
        assert_eq!(failure.hints, ["did you mean `er`? known names: er, finetune"]);
        assert_eq!(failure.code, USAGE);
    }

    #[test]
    fn codes_tell_wrong_usage_from_failure_and_interruption() {
        assert_eq!(Failure::from(&anyhow::Error::new(Usage::new("no"))).code, USAGE);
        assert_eq!(Failure::from(&anyhow::Error::new(dpcl::Error::Interrupted)).code, INTERRUPTED);
        assert_eq!(Failure::from(&anyhow::anyhow!("disk full")).code, FAILED);
    }

    #[test]
    fn text_for_records_is_one_line_a_fact() {
        let failure = Failure { chain: vec!["a".into(), "b".into()], hints: vec!["c".into()], code: 1 };
        assert_eq!(failure.text(), "error: a: b\nhint: c\n");
    }
}
