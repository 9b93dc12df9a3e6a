//! Pipe tables under headings, for notes and pull requests.

use crate::against::Comparison;
use crate::table::{Cell, Table};
use crate::{Report, costs};

pub fn export(report: &Report) -> String {
    let mut blocks: Vec<String> = report
        .settings
        .iter()
        .map(|setting| {
            let heading = format!("### {}\n\n{}\n", escape(&setting.name), escape(&setting.description()));
            let costs = format!("Costs, means over seeds:\n\n{}", pipes(&costs::table(setting)));
            let compared = report.comparison(setting).map(|comparison| compared(&comparison));
            let parts = [heading, pipes(&Table::full(setting))].into_iter().chain(compared).chain([costs]);
            parts.collect::<Vec<_>>().join("\n")
        })
        .collect();
    let runs: Vec<String> = report
        .unfinished
        .iter()
        .map(|run| format!("- {}: {}\n", escape(&run.name()), escape(&run.state())))
        .collect();
    if !runs.is_empty() {
        blocks.push(format!("### Runs without a result\n\n{}", runs.concat()));
    }
    if !report.notes.is_empty() {
        let notes: String = report.notes.iter().map(|note| format!("- {}\n", escape(note))).collect();
        blocks.push(format!("### Notes\n\n{notes}"));
    }
    blocks.join("\n")
}

fn compared(comparison: &Comparison) -> String {
    let mut text = format!("{}:\n\n", escape(&comparison.heading()));
    for table in comparison.tables() {
        text.push_str(&lines(&table));
        text.push('\n');
    }
    let notes: Vec<String> = comparison.notes().iter().map(|note| escape(note)).collect();
    text + &format!("{}\n", notes.join("  \n"))
}

fn pipes(table: &Table) -> String {
    // Notes can name groups, and a label may hold anything.
    let notes: Vec<String> = table.footnotes.iter().map(|note| escape(note)).collect();
    lines(table) + &format!("\n{}\n", notes.join("  \n"))
}

fn lines(table: &Table) -> String {
    let mut text = format!("| | {} |\n", table.columns.join(" | "));
    text.push_str(&format!("|:--|{}\n", "--:|".repeat(table.columns.len())));
    for row in &table.rows {
        let cells: Vec<String> = row.cells.iter().map(cell).collect();
        text.push_str(&format!("| {}{} | {} |\n", escape(&row.name), row.mark, cells.join(" | ")));
    }
    text
}

fn cell(cell: &Cell) -> String {
    let text = cell.text(" ± ");
    if cell.best { format!("**{text}**") } else { text }
}

fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '\n' | '\r' => escaped.push(' '),
            '\\' | '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '#' | '&' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            _ => escaped.push(letter),
        }
    }
    escaped
}
