//! The one error type of this crate. A variant names the file and what is wrong with it; `hint` says what to do.

use std::path::PathBuf;

/// Everything that can go wrong while reading records and making tables of them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },

    /// A file of a record is there but does not say what a record says.
    #[error("{}{}: {problem}", path.display(), line.map(|line| format!(", line {line}")).unwrap_or_default())]
    BadRecord {
        /// The offending file.
        path: PathBuf,
        /// The offending line, from 1, where the file has lines.
        line: Option<usize>,
        /// What is wrong there.
        problem: String,
        /// What to do about it.
        hint: String,
    },

    /// A record written by a later version of the program.
    #[error("{}: record format {found} is newer than {known}, the newest this program reads", path.display())]
    NewerFormat {
        /// The file that says so.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format known here.
        known: u32,
    },

    /// No record lies anywhere under the given folders.
    #[error("no run was recorded in {}", list(folders))]
    NoRecords {
        /// The folders that were searched.
        folders: Vec<PathBuf>,
    },

    /// A row or a metric is asked for by a name that nothing has.
    #[error("there is no {kind} called `{name}`")]
    UnknownName {
        /// What it should be the name of.
        kind: &'static str,
        /// The name.
        name: String,
        /// What there is.
        known: Vec<String>,
    },

    /// A row is asked for by what several names begin with.
    #[error("several rows begin with `{name}`")]
    Ambiguous {
        /// What they begin with.
        name: String,
        /// Their names.
        found: Vec<String>,
    },

    /// A document asks for a table that cannot be made.
    #[error("{}, line {line}: {problem}", path.display())]
    Directive {
        /// The document's template.
        path: PathBuf,
        /// Where the directive starts, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
        /// What to do about it.
        hint: String,
    },
}

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// What the reader can do about it, where we know.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Io { source, .. } => match source.kind() {
                std::io::ErrorKind::NotFound => Some("check the path's spelling".into()),
                std::io::ErrorKind::PermissionDenied => {
                    Some("check who owns the file and its permissions".into())
                }
                _ => None,
            },
            Self::BadRecord { hint, .. } | Self::Directive { hint, .. } => Some(hint.clone()),
            // The names of rows may hold commas.
            Self::UnknownName { kind, known, .. } if known.is_empty() => {
                Some(format!("there is no {kind} at all: no run has finished"))
            }
            Self::UnknownName { kind, known, .. } => Some(format!("known {kind}s: {}", known.join("; "))),
            Self::Ambiguous { found, .. } => Some(format!("give the whole name: {}", found.join("; "))),
            Self::NewerFormat { .. } => Some("update the program, or use the version that wrote it".into()),
            Self::NoRecords { .. } => {
                Some("give the folder a run was told to write to (`--out`), or one inside it".into())
            }
        }
    }
}

/// What a reader of JSON says is wrong, in words of JSON instead of words of the language this is written in.
pub fn plain_words(error: &serde_json::Error) -> String {
    const WORDS: [(&str, &[&str]); 5] = [
        ("a whole number", &["usize", "u64", "u32", "u16", "u8", "i64", "i32"]),
        ("a number", &["f64", "f32"]),
        ("a list", &["a sequence"]),
        ("an object", &["a map"]),
        ("null", &["unit"]),
    ];
    let text = error.to_string();
    let Some((before, expected)) = text.split_once("expected ") else { return text };
    for (word, names) in WORDS {
        for name in names {
            let rest = expected.strip_prefix(name).filter(|rest| !rest.starts_with(char::is_alphanumeric));
            if let Some(rest) = rest {
                return format!("{before}expected {word}{rest}")
                    .replace("sequence,", "list,")
                    .replace("map,", "object,");
            }
        }
    }
    let form = ["struct ", "tuple struct ", "internally tagged enum ", "enum "];
    let after = form.iter().find_map(|form| expected.strip_prefix(form));
    match after.map(|name| name.trim_start_matches(|letter: char| letter.is_alphanumeric() || letter == '_'))
    {
        Some(rest) => format!("{before}expected an object{rest}"),
        None => text,
    }
}

fn list(folders: &[PathBuf]) -> String {
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_explained_in_its_own_words() {
        let told = |text: &str| plain_words(&serde_json::from_str::<Vec<u64>>(text).unwrap_err());
        assert_eq!(told("{}"), "invalid type: object, expected a list at line 1 column 0");
        assert!(told("[-1]").contains("expected a whole number"), "{}", told("[-1]"));
        let missing =
            serde_json::from_str::<std::collections::BTreeMap<String, f64>>("{\"a\": \"b\"}").unwrap_err();
        assert!(plain_words(&missing).contains("expected a number at"), "{missing}");
        let run = serde_json::from_str::<crate::record::RunResult>("3").unwrap_err();
        assert!(plain_words(&run).contains("expected an object at"), "{run}");
    }
}
