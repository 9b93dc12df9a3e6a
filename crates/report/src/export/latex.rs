//! `booktabs` tables to paste into a paper.

use crate::Report;
use crate::against::Comparison;
use crate::group::Setting;
use crate::table::{Cell, Table, method_notes};

pub fn export(report: &Report) -> String {
    let mut text = String::from("% \\usepackage{booktabs} in the preamble\n");
    for setting in &report.settings {
        let table = Table::of(setting);
        let title = format!("{}: {}", setting.name, setting.description());
        text.push_str(&float(std::slice::from_ref(&table), &title, &table.footnotes));
        if let Some(comparison) = report.comparison(setting) {
            text.push_str(&compared(&comparison, setting));
        }
    }
    for run in &report.unfinished {
        text.push_str(&comment(&format!("{}: {}", run.name(), run.state())));
    }
    for note in &report.notes {
        text.push_str(&comment(note));
    }
    text
}

/// The tables of all metrics below each other: they have the same columns.
fn compared(comparison: &Comparison, setting: &Setting) -> String {
    let mut notes = comparison.notes();
    // The float may end up on another page than the table of the setting.
    notes.extend(method_notes(setting));
    let tables = comparison.tables();
    if tables.is_empty() {
        return notes.iter().map(|note| comment(note)).collect();
    }
    float(&tables, &format!("{}: {}", setting.name, comparison.heading()), &notes)
}

/// Tables of equally many columns as one, with a caption of a title and notes.
fn float(tables: &[Table], title: &str, notes: &[String]) -> String {
    let columns = tables.first().map_or(0, |table| table.columns.len());
    let mut text = String::from("\n\\begin{table}\n\\centering\n");
    text.push_str(&format!("\\begin{{tabular}}{{l{}}}\n\\toprule\n", "r".repeat(columns)));
    let parts: Vec<String> = tables.iter().map(lines).collect();
    text.push_str(&parts.join("\\midrule\n"));
    text.push_str("\\bottomrule\n\\end{tabular}\n");
    let notes: Vec<String> = notes.iter().map(|note| escape(note)).collect();
    text.push_str(&format!("\\caption{{{}. {}.}}\n", escape(title), notes.join("; ")));
    text.push_str("\\end{table}\n");
    text
}

fn lines(table: &Table) -> String {
    let columns: Vec<String> = table.columns.iter().map(|name| escape(name)).collect();
    let mut text = format!(" & {} \\\\\n\\midrule\n", columns.join(" & "));
    for row in &table.rows {
        let cells: Vec<String> = row.cells.iter().map(cell).collect();
        text.push_str(&format!("{}{} & {} \\\\\n", escape(&row.name), escape(row.mark), cells.join(" & ")));
    }
    text
}

fn cell(cell: &Cell) -> String {
    match (&cell.deviation, cell.best) {
        (None, false) => escape(&cell.mean),
        (None, true) => format!("\\textbf{{{}}}", escape(&cell.mean)),
        (Some(deviation), false) => format!("${} \\pm {deviation}$", cell.mean),
        (Some(deviation), true) => format!("$\\mathbf{{{}}} \\pm {deviation}$", cell.mean),
    }
}

fn comment(text: &str) -> String {
    let line: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    format!("% {line}\n")
}

fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '\\' => escaped.push_str("\\textbackslash{}"),
            '~' => escaped.push_str("\\textasciitilde{}"),
            '^' => escaped.push_str("\\textasciicircum{}"),
            '<' => escaped.push_str("\\textless{}"),
            '>' => escaped.push_str("\\textgreater{}"),
            '|' => escaped.push_str("\\textbar{}"),
            '±' => escaped.push_str("$\\pm$"),
            '†' => escaped.push_str("$^\\dagger$"),
            '‡' => escaped.push_str("$^\\ddagger$"),
            '§' => escaped.push_str("$^\\S$"),
            '–' => escaped.push_str("--"),
            '−' => escaped.push_str("$-$"),
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_latex_would_read_as_commands_is_escaped() {
        assert_eq!(escape("a_b & 50% {x} \\y"), "a\\_b \\& 50\\% \\{x\\} \\textbackslash{}y");
        assert_eq!(escape("$#^~"), "\\$\\#\\textasciicircum{}\\textasciitilde{}");
        assert_eq!(escape("two\nlines"), "two lines");
    }
}
