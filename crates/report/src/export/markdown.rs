//! Pipe tables under headings, for notes and pull requests.

use crate::table::{Cell, Table};
use crate::{Report, costs};

pub fn export(report: &Report) -> String {
    let mut blocks: Vec<String> = report
        .settings
        .iter()
        .map(|setting| {
            let heading = format!("### {}\n\n{}\n", escape(&setting.name), escape(&setting.description()));
            let costs = format!("Costs, means over seeds:\n\n{}", pipes(&costs::table(setting)));
            [heading, pipes(&Table::full(setting)), costs].join("\n")
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

fn pipes(table: &Table) -> String {
    let mut text = format!("| | {} |\n", table.columns.join(" | "));
    text.push_str(&format!("|:--|{}\n", "--:|".repeat(table.columns.len())));
    for row in &table.rows {
        let cells: Vec<String> = row.cells.iter().map(cell).collect();
        text.push_str(&format!("| {}{} | {} |\n", escape(&row.name), row.mark, cells.join(" | ")));
    }
    // Notes can name groups, and a label may hold anything.
    let notes: Vec<String> = table.footnotes.iter().map(|note| escape(note)).collect();
    text + &format!("\n{}\n", notes.join("  \n"))
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
