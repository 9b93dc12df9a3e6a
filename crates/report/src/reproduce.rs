//! The documents whose tables are measured: text with directives in, the same text with tables of records out.
//!
//! A template holds `<!-- table … -->` where a table goes. A document that is its own template holds
//! `<!-- begin table … -->` and `<!-- end -->`, and what stands between them is replaced. `directive.rs` says what a
//! directive can ask for. Nothing is written here: `examples/reproduce.rs` does that, and `tests/documents.rs` compares.

use std::path::Path;

use crate::error::{Error, Result};

mod column;
mod directive;
mod table;

use directive::{Directive, Problem};

/// A document and the file it is made from.
pub struct Document {
    /// What people edit, from the root of the repository.
    pub template: &'static str,
    /// What people read; the template itself where its tables are replaced in place.
    pub output: &'static str,
}

/// Every document with measured tables.
pub const DOCUMENTS: [Document; 5] = [
    Document { template: "README.md", output: "README.md" },
    Document { template: "docs/reproduce.in.md", output: "REPRODUCE.md" },
    Document { template: "docs/readings.in.md", output: "docs/readings.md" },
    Document { template: "docs/averaging.in.md", output: "docs/averaging.md" },
    Document { template: "docs/disagreement.in.md", output: "docs/disagreement.md" },
];

impl Document {
    /// The whole text it should have, from the template and the records below `root`.
    pub fn text(&self, root: &Path) -> Result<String> {
        let path = root.join(self.template);
        let template = std::fs::read_to_string(&path).map_err(|source| Error::Io { path, source })?;
        let filled = fill(Path::new(self.template), &template, root)?;
        if self.template == self.output {
            return Ok(filled);
        }
        let template = self.template;
        Ok(format!("<!-- Made by `make reproduce` from {template} and results/. Edit those. -->\n\n{filled}"))
    }
}

/// The text with every table that its directives ask for; `path` is for error texts, `root` is what folders start at.
pub fn fill(path: &Path, text: &str, root: &Path) -> Result<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut filled = String::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let Some((opening, in_place)) = opening(line) else {
            filled.push_str(&format!("{line}\n"));
            at += 1;
            continue;
        };
        let located = |problem: Problem| Error::Directive {
            path: path.to_owned(),
            line: at + 1,
            problem: problem.what,
            hint: problem.hint,
        };
        let last = end(&lines, at, |line| line.ends_with("-->")).ok_or_else(|| {
            located(Problem::new("a table that does not end", "end the comment with `-->`"))
        })?;
        let comment = lines[at..=last].join("\n");
        let asked = comment[opening.len()..].trim_end_matches("-->");
        let directive = Directive::parse(asked).map_err(located)?;
        let table = table::markdown(&directive, root, located)?;
        if in_place {
            let close = end(&lines, last, |line| line == END).ok_or_else(|| {
                located(Problem::new("a table without its end", format!("put `{END}` below it")))
            })?;
            filled.push_str(&format!("{comment}\n\n{table}\n{END}\n"));
            at = close + 1;
        } else {
            filled.push_str(&table);
            at = last + 1;
        }
    }
    Ok(filled)
}

const END: &str = "<!-- end -->";

/// The start of a directive and whether the table goes below it instead of in its place.
fn opening(line: &str) -> Option<(&'static str, bool)> {
    [("<!-- table ", false), ("<!-- begin table ", true)]
        .into_iter()
        .find(|(start, _)| line.starts_with(start))
}

fn end(lines: &[&str], from: usize, is_end: impl Fn(&str) -> bool) -> Option<usize> {
    (from..lines.len()).find(|&at| is_end(lines[at].trim_end()))
}
