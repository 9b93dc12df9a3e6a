//! Folders that hold runs of other configurations than those asked for: what differs, and the command that keeps both.

use std::path::Path;

use dpcl::{Run, folder::Difference};
use toml::Value;

use crate::{
    failure::{COMMAND, Usage},
    grid::{Grid, Planned},
    invocation,
};

/// Differences that are told of; a grid of another kind may have dozens.
const TOLD: usize = 6;

/// Differences that a proposed name is made of.
const NAMED: usize = 2;

/// Folders of a grid that hold something else.
pub struct Conflict<'a> {
    /// The first run whose folder does.
    first: &'a Planned,
    /// What is where, and what differs.
    problem: String,
    /// A name under which the grid's folder would be free.
    pub name: String,
}

impl Conflict<'_> {
    /// What is wrong and the command that keeps both.
    pub fn told(&self) -> (String, String) {
        let command = invocation::arguments_with("--name", &self.name);
        (
            self.problem.clone(),
            format!("keep both, with a name for these runs:\n{COMMAND}{} {command}", invocation::program()),
        )
    }
}

/// Refuses a grid whose folders hold something else, before anything starts.
pub fn refuse(grid: &Grid) -> anyhow::Result<()> {
    let Some(conflict) = find(grid)? else { return Ok(()) };
    // What cannot be run anywhere is told before where it cannot be run.
    Run::open(&conflict.first.config)?;
    let (problem, hint) = conflict.told();
    Err(Usage::with_hint(problem, hint).into())
}

/// Compares what the grid's folders hold with what they are to hold. Values that only opening the data settles are left
/// to the runs themselves.
pub fn find(grid: &Grid) -> anyhow::Result<Option<Conflict<'_>>> {
    let mut other: Vec<(&Planned, Vec<Difference>)> = Vec::new();
    for run in &grid.runs {
        let differences = run.folder.differences(&run.setup)?;
        if differences.is_empty() {
            run.folder.status(&run.setup)?;
        } else {
            other.push((run, differences));
        }
    }
    let Some(&(first, ref differences)) = other.first() else { return Ok(None) };
    let titles = match other.len() {
        1 => first.title.clone(),
        2 => format!("{} and {}", first.title, other[1].0.title),
        count => format!("{} and {} others", first.title, count - 1),
    };
    let folder = first.folder.path().parent().unwrap_or(first.folder.path());
    let of = if other.len() == 1 { "a run of another configuration" } else { "runs of other configurations" };
    let problem = format!("{} holds {of} ({titles}): {}", folder.display(), told(&other));
    Ok(Some(Conflict { first, problem, name: free_name(folder, differences) }))
}

/// Each differing key once, with its value there and here.
fn told(other: &[(&Planned, Vec<Difference>)]) -> String {
    let mut found: Vec<&Difference> = Vec::new();
    for difference in other.iter().flat_map(|(_, differences)| differences) {
        if found.iter().all(|known| known.key != difference.key) {
            found.push(difference);
        }
    }
    let one = |difference: &&Difference| {
        let show =
            |value: &Option<Value>| value.as_ref().map_or_else(|| "unset".to_owned(), ToString::to_string);
        format!(
            "`{}` is {} there and {} here",
            difference.key,
            show(&difference.recorded),
            show(&difference.wanted)
        )
    };
    let mut parts: Vec<String> = found.iter().take(TOLD).map(one).collect();
    if found.len() > TOLD {
        parts.push(format!("{} more keys differ", found.len() - TOLD));
    }
    parts.join("; ")
}

/// A name that says what is different and that no folder has.
fn free_name(folder: &Path, differences: &[Difference]) -> String {
    let part = |difference: &Difference| {
        let key = difference.key.rsplit('.').next().unwrap_or(&difference.key);
        let value = difference.wanted.as_ref().map(|value| match value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        });
        format!("{key}-{}", value.unwrap_or_else(|| "unset".into()))
    };
    let name = differences.iter().take(NAMED).map(part).collect::<Vec<_>>().join("-");
    let plain = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    let name: String = name.chars().map(|letter| if plain(letter) { letter } else { '-' }).collect();
    let taken = |name: &String| folder.with_file_name(name).exists();
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proposed_name_says_what_is_different_and_is_free() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("default");
        let difference =
            |key: &str, wanted: Value| Difference { key: key.into(), recorded: None, wanted: Some(wanted) };
        let differences = [difference("memory", 50.into()), difference("dpcl.noise", "nfm".into())];
        assert_eq!(free_name(&folder, &differences), "memory-50-noise-nfm");
        std::fs::create_dir(place.path().join("memory-50")).unwrap();
        assert_eq!(free_name(&folder, &differences[..1]), "memory-50-2");
        assert_eq!(free_name(&folder, &[difference("split", "a/b c".into())]), "split-a-b-c");
    }
}
