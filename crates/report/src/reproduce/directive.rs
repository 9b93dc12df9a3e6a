//! What a table directive asks for, from its text. Knows no records.
//!
//! ```text
//! <!-- table results/small columns=acc,fm,isa seeds=mean rows=er,dpcl -->
//! <!-- table results/small columns=acc,fm seeds=both only=1,2,3 against=er sort=acc name=reading
//! dpcl: `dpcl`, the default
//! dpcl-pim-memory: `dpcl`, memory `pim`
//! -->
//! ```
//!
//! A row's key is the label of runs that lie in the folder itself, or the name of a folder below it; `er@unaveraged` is
//! what the weights that learn would have answered, of runs whose average does. A row of its own line has its text after
//! the colon; one from `rows=` is shown by its key. With `against` every number is the difference to the run of the same
//! seed; over several seeds the mean difference with its 95 % interval and the number of pairs.

use std::fmt;
use std::path::PathBuf;

use super::column::Column;

/// A problem in a directive and what to do about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// What is wrong.
    pub what: String,
    /// The way out.
    pub hint: String,
}

impl Problem {
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into() }
    }
}

/// Which lines a row of the directive becomes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Seeds {
    /// One a seed.
    Each,
    /// One, with mean and deviation over the seeds.
    Mean,
    /// One a seed and, where there are several, the mean below them.
    Both,
}

/// What follows a key that names the answers of the weights that learn.
const UNAVERAGED: &str = "@unaveraged";

/// Which runs are meant.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Their label or folder.
    pub folder: String,
    /// Whether the weights that learn are to answer in place of their average.
    pub unaveraged: bool,
}

impl Key {
    /// A label or folder, `@unaveraged` behind it or not.
    pub fn parse(text: &str) -> Self {
        let folder = text.strip_suffix(UNAVERAGED);
        Self { folder: folder.unwrap_or(text).to_owned(), unaveraged: folder.is_some() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.folder, if self.unaveraged { UNAVERAGED } else { "" })
    }
}

/// One line of the directive's list.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Which runs it is of.
    pub key: Key,
    /// Markdown for the first cell.
    pub name: String,
}

/// A table to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Directive {
    /// Where its records are, from the root of the repository.
    pub folder: PathBuf,
    /// What is shown of each run.
    pub columns: Vec<Column>,
    /// How seeds are shown.
    pub seeds: Seeds,
    /// The seeds that count; empty for all.
    pub only: Vec<u64>,
    /// Key of the runs that each number is a difference to, seed by seed.
    pub against: Option<Key>,
    /// The column that orders the rows, highest first; else they stay as listed.
    pub sort: Option<Column>,
    /// What stands above the first column.
    pub name: String,
    /// In the order of the directive.
    pub rows: Vec<Row>,
}

impl Directive {
    /// Reads the text between `table` and the end of the comment.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let (head, list) = text.split_once('\n').unwrap_or((text, ""));
        let mut words = head.split_whitespace();
        let folder = words.next().filter(|word| !word.contains('=')).ok_or_else(|| {
            Problem::new("a table without a folder", "write the folder of its records after `table`")
        })?;
        let mut directive = Self {
            folder: folder.into(),
            columns: Vec::new(),
            seeds: Seeds::Each,
            only: Vec::new(),
            against: None,
            sort: None,
            name: "method".to_owned(),
            rows: Vec::new(),
        };
        words.try_for_each(|word| directive.set(word))?;
        for line in list.lines().map(str::trim).filter(|line| !line.is_empty()) {
            directive.rows.push(row(line)?);
        }
        if directive.columns.is_empty() {
            return Err(Problem::new("a table without columns", "name them: `columns=acc,fm`"));
        }
        if directive.rows.iter().any(|row| row.key.folder.is_empty()) {
            return Err(Problem::new("a row without a key", "write the label or the folder of its runs"));
        }
        if directive.rows.is_empty() {
            return Err(Problem::new("a table without rows", "name them: `rows=er,dpcl`, or one a line"));
        }
        Ok(directive)
    }

    fn set(&mut self, word: &str) -> Result<(), Problem> {
        let (option, value) = word.split_once('=').unwrap_or((word, ""));
        match option {
            "columns" => self.columns = value.split(',').map(column).collect::<Result<_, _>>()?,
            "rows" => self.rows.extend(value.split(',').map(plain_row)),
            "seeds" => self.seeds = seeds(value)?,
            "only" => self.only = value.split(',').map(seed).collect::<Result<_, _>>()?,
            "against" => self.against = Some(Key::parse(value)),
            "sort" => self.sort = Some(column(value)?),
            "name" => self.name = value.to_owned(),
            _ => {
                let known = "columns, rows, seeds, only, against, sort, name";
                return Err(Problem::new(format!("no option `{option}`"), format!("there are {known}")));
            }
        }
        Ok(())
    }
}

fn column(name: &str) -> Result<Column, Problem> {
    Column::parse(name)
        .ok_or_else(|| Problem::new(format!("no column `{name}`"), format!("there are {}", Column::known())))
}

fn seeds(value: &str) -> Result<Seeds, Problem> {
    match value {
        "each" => Ok(Seeds::Each),
        "mean" => Ok(Seeds::Mean),
        "both" => Ok(Seeds::Both),
        _ => Err(Problem::new(format!("seeds cannot be `{value}`"), "write each, mean or both")),
    }
}

fn seed(value: &str) -> Result<u64, Problem> {
    value.parse().map_err(|_| Problem::new(format!("`{value}` is no seed"), "write `only=1` or `only=1,2,3`"))
}

fn plain_row(key: &str) -> Row {
    let key = Key::parse(key);
    let name = if key.unaveraged { format!("`{}`, unaveraged", key.folder) } else { format!("`{key}`") };
    Row { key, name }
}

fn row(line: &str) -> Result<Row, Problem> {
    let (key, name) = line
        .split_once(':')
        .ok_or_else(|| Problem::new(format!("`{line}` is no row"), "write `key: text of the first cell`"))?;
    Ok(Row { key: Key::parse(key.trim()), name: name.trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_a_directive_can_say() {
        let text = "results/small columns=acc,after_2,isa seeds=both only=1,3 against=er@unaveraged sort=acc \
                    name=reading rows=dpcl,er@unaveraged\nbic: `bic`: the teacher\n";
        let expected = Directive {
            folder: "results/small".into(),
            columns: vec![Column::Metric("acc"), Column::After(2), Column::InstructionSet],
            seeds: Seeds::Both,
            only: vec![1, 3],
            against: Some(Key { folder: "er".into(), unaveraged: true }),
            sort: Some(Column::Metric("acc")),
            name: "reading".into(),
            rows: vec![
                plain_row("dpcl"),
                Row { key: Key::parse("er@unaveraged"), name: "`er`, unaveraged".into() },
                Row { key: Key::parse("bic"), name: "`bic`: the teacher".into() },
            ],
        };
        assert_eq!(Directive::parse(text), Ok(expected));
    }

    #[test]
    fn each_problem_names_what_is_wrong() {
        let found = |text: &str| Directive::parse(text).unwrap_err().what;
        assert_eq!(found(""), "a table without a folder");
        assert_eq!(found("columns=acc rows=er"), "a table without a folder");
        assert_eq!(found("results rows=er"), "a table without columns");
        assert_eq!(found("results columns=acc"), "a table without rows");
        assert_eq!(found("results columns=acc,speed rows=er"), "no column `speed`");
        assert_eq!(found("results column=acc rows=er"), "no option `column`");
        assert_eq!(found("results columns=acc rows=er seeds=all"), "seeds cannot be `all`");
        assert_eq!(found("results columns=acc rows=er only=1..3"), "`1..3` is no seed");
        assert_eq!(found("results columns=acc rows=er,"), "a row without a key");
        assert_eq!(found("results columns=acc\ner"), "`er` is no row");
    }
}
