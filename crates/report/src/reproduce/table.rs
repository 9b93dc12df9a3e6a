//! A directive and the records it names to a pipe table.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::column::{Column, NOTHING};
use super::directive::{Directive, Key, Problem, Row, Seeds};
use crate::Report;
use crate::against::partner;
use crate::error::{Error, Result};
use crate::group::{Group, Run};
use crate::read;
use crate::statistics::Estimate;

/// The table as text. `located` makes an error of a problem in the directive.
pub fn markdown(directive: &Directive, root: &Path, located: impl Fn(Problem) -> Error) -> Result<String> {
    let base = root.join(&directive.folder);
    if !base.is_dir() {
        let what = format!("no folder `{}`", directive.folder.display());
        return Err(located(Problem::new(what, "check the path's spelling; it starts at the root")));
    }
    let paths = read::find_paths(std::slice::from_ref(&base))?;
    let keys: Vec<&Key> = directive.rows.iter().map(|row| &row.key).chain(&directive.against).collect();
    let records = paths
        .iter()
        .filter(|path| keys.iter().any(|key| belongs(path, &base, key)) && wanted(path, &directive.only))
        .map(|path| read::read(path))
        .collect::<Result<Vec<_>>>()?;
    let unaveraged = keys.iter().any(|key| key.unaveraged);
    let report = if unaveraged { Report::with_unaveraged(records) } else { Report::new(records) };
    table(directive, &report, &base).map_err(located)
}

/// Whether a run is one of the row's: in the folder of that name, or named by that label.
fn belongs(path: &Path, base: &Path, key: &Key) -> bool {
    let inside = path.strip_prefix(base).unwrap_or(path);
    let label = inside.with_file_name(read::name_and_seed(inside).0);
    let above: PathBuf = inside.parent().map(Path::to_owned).unwrap_or_default();
    [label, above].iter().any(|name| name == Path::new(&key.folder))
}

fn wanted(path: &Path, only: &[u64]) -> bool {
    only.is_empty() || read::name_and_seed(path).1.is_some_and(|seed| only.contains(&seed))
}

fn table(directive: &Directive, report: &Report, base: &Path) -> Result<String, Problem> {
    check(report)?;
    let mut rows = directive
        .rows
        .iter()
        .map(|row| Ok((row, group(report, base, &row.key)?)))
        .collect::<Result<Vec<_>, Problem>>()?;
    let against = directive.against.as_ref().map(|key| group(report, base, key)).transpose()?;
    measured(directive, &rows)?;
    if let Some(column) = &directive.sort {
        let mean = |group: &Group| estimate(column, &group.runs, None).map_or(f64::NEG_INFINITY, |e| e.mean);
        rows.sort_by(|(_, a), (_, b)| mean(b).total_cmp(&mean(a)));
    }
    let mut text = heading(directive);
    for (row, group) in rows {
        text.push_str(&lines(directive, row, group, against)?);
    }
    Ok(text)
}

/// Only whole records of one stream make a table.
fn check(report: &Report) -> Result<(), Problem> {
    if let Some(run) = report.unfinished.first() {
        let what = format!("{} has no result", run.path.display());
        return Err(Problem::new(what, "finish the run, or move it elsewhere"));
    }
    if let Some(note) = report.notes.first() {
        return Err(Problem::new(note, "restore the record, or move it elsewhere"));
    }
    if report.settings.len() > 1 {
        let names: Vec<&str> = report.settings.iter().map(|setting| setting.name.as_str()).collect();
        let what = format!("rows of different streams: {}", names.join("; "));
        return Err(Problem::new(what, "make a table a stream"));
    }
    Ok(())
}

/// The runs of a row, which must differ in their seed only.
fn group<'a>(report: &'a Report, base: &Path, key: &Key) -> Result<&'a Group, Problem> {
    let one_of_them = |run: &Run| run.is_unaveraged == key.unaveraged && belongs(&run.record.path, base, key);
    let mut found = report
        .settings
        .iter()
        .flat_map(|setting| &setting.groups)
        .filter(|group| group.runs.iter().any(one_of_them));
    let first = found.next().ok_or_else(|| {
        let hint = if key.unaveraged {
            "only runs whose average answers have such a row; check its spelling"
        } else {
            "check its spelling, or copy the record into the folder"
        };
        Problem::new(format!("no record of `{key}`"), hint)
    })?;
    match found.next() {
        None => Ok(first),
        Some(second) => {
            let what = format!("`{key}` is more than one thing: {}; {}", first.name, second.name);
            Err(Problem::new(what, "give each a row of its own"))
        }
    }
}

/// A column that no row has is a misspelt counter or a task that was not learned.
fn measured(directive: &Directive, rows: &[(&Row, &Group)]) -> Result<(), Problem> {
    let empty = |column: &&Column| {
        let mut runs = rows.iter().flat_map(|(_, group)| &group.runs);
        column.is_number() && runs.all(|run| column.measure(run).is_none())
    };
    directive.columns.iter().find(empty).map_or(Ok(()), |column| {
        let what = format!("no row has a value for `{}`", column.heading());
        Err(Problem::new(what, "check the name of the counter, or the number of the task"))
    })
}

fn heading(directive: &Directive) -> String {
    let seeds = if directive.seeds == Seeds::Mean { "seeds" } else { "seed" };
    let mut columns = vec![directive.name.clone(), seeds.to_owned()];
    columns.extend(counted(directive).then(|| "n".to_owned()));
    columns.extend(directive.columns.iter().map(Column::heading));
    format!("| {} |\n|{}\n", columns.join(" | "), "---|".repeat(columns.len()))
}

/// Whether the table says how many pairs a difference is of.
fn counted(directive: &Directive) -> bool {
    directive.against.is_some() && directive.seeds != Seeds::Each
}

fn lines(
    directive: &Directive,
    row: &Row,
    group: &Group,
    against: Option<&Group>,
) -> Result<String, Problem> {
    let runs = common(group, against);
    if runs.is_empty() {
        let what = format!("`{}` shares no seed with what it is compared with", row.key);
        return Err(Problem::new(what, "leave the row out, or run the seeds that lack"));
    }
    let line = |runs: &[Run], bold: bool| {
        let cell = |column: &Column| {
            let text = cell(column, row, runs, against);
            if bold && column.is_number() && text != NOTHING { format!("**{text}**") } else { text }
        };
        let mut cells = vec![name(row, group), seeds(runs)];
        cells.extend(counted(directive).then(|| runs.len().to_string()));
        cells.extend(directive.columns.iter().map(cell));
        format!("| {} |\n", cells.join(" | "))
    };
    let each = || runs.iter().map(|run| line(std::slice::from_ref(run), false)).collect::<String>();
    Ok(match directive.seeds {
        Seeds::Each => each(),
        Seeds::Both if runs.len() == 1 => each(),
        Seeds::Both => each() + &line(&runs, true),
        Seeds::Mean => line(&runs, false),
    })
}

/// The runs whose seeds the other group has too.
fn common(group: &Group, against: Option<&Group>) -> Vec<Run> {
    let shared = |run: &&Run| against.is_none_or(|other| partner(run, other).is_some());
    group.runs.iter().filter(shared).cloned().collect()
}

fn name(row: &Row, group: &Group) -> String {
    match group.mark() {
        "" => row.name.clone(),
        mark => format!("{} {mark}", row.name),
    }
}

/// `1–3` for three seeds in a row, else all of them.
fn seeds(runs: &[Run]) -> String {
    let seeds: Vec<u64> = runs.iter().map(|run| run.result.seed).collect();
    let in_a_row = seeds.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    match seeds.as_slice() {
        [first, _, .., last] if in_a_row => format!("{first}–{last}"),
        all => all.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}

fn cell(column: &Column, row: &Row, runs: &[Run], against: Option<&Group>) -> String {
    match column {
        Column::Folder => format!("`{}`", row.key.folder),
        Column::InstructionSet => {
            let sets: BTreeSet<String> = runs.iter().map(|run| instruction_sets(run, against)).collect();
            sets.into_iter().collect::<Vec<_>>().join(", ")
        }
        _ => match estimate(column, runs, against) {
            None => NOTHING.into(),
            Some(estimate) => {
                let text = column.show(&estimate, against.is_some());
                // Early records lack some metrics; a mean over fewer seeds than the row names says so.
                let seeds = if estimate.count == 1 { "seed" } else { "seeds" };
                let fewer = estimate.count < runs.len();
                if fewer { format!("{text} ({} {seeds})", estimate.count) } else { text }
            }
        },
    }
}

/// A run's own, and its partner's where that is another.
fn instruction_sets(run: &Run, against: Option<&Group>) -> String {
    let own = &run.result.isa;
    match against.and_then(|other| partner(run, other)).map(|other| &other.result.isa) {
        Some(other) if other != own => format!("{own} against {other}"),
        _ => own.clone(),
    }
}

fn estimate(column: &Column, runs: &[Run], against: Option<&Group>) -> Option<Estimate> {
    let value = |run: &Run| {
        let own = column.measure(run)?;
        match against {
            None => Some(own),
            Some(other) => Some(own - column.measure(partner(run, other)?)?),
        }
    };
    Estimate::of(&runs.iter().filter_map(value).collect::<Vec<_>>())
}
