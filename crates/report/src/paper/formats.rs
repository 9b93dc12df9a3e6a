//! A table beside the paper's as pipe tables and as `booktabs`.

use super::{Beside, Column, Row};

pub fn markdown(beside: &Beside) -> String {
    let mut text = format!("## {}\n", escape(&beside.title));
    for column in &beside.columns {
        text.push_str(&format!(
            "\n### {}\n\n{}",
            escape(&column.name),
            pipes(&column.headings, &column.rows)
        ));
        if !column.paired.is_empty() {
            text.push_str(&format!("\nSeed by seed:\n\n{}", pipes(&column.paired_headings, &column.paired)));
        }
        text.push_str(&list(&column.notes));
    }
    text + &list(&beside.notes)
}

fn list(notes: &[String]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let lines: String = notes.iter().map(|note| format!("- {}\n", escape(note))).collect();
    format!("\n{lines}")
}

fn pipes(headings: &[String], rows: &[Row]) -> String {
    let mut text = format!("| method | {} |\n|:--|{}\n", headings.join(" | "), "--:|".repeat(headings.len()));
    for row in rows {
        text.push_str(&format!("| {} | {} |\n", named(row, "`"), row.cells.join(" | ")));
    }
    text
}

/// The paper's name, and ours where it is another.
fn named(row: &Row, quote: &str) -> String {
    if row.name.to_lowercase() == row.label {
        return escape(&row.name) + row.mark;
    }
    format!("{}{} ({quote}{}{quote})", escape(&row.name), row.mark, row.label)
}

fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        if matches!(letter, '|' | '*' | '_' | '<' | '>' | '[' | ']' | '#') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

pub fn latex(beside: &Beside) -> String {
    let mut text = String::from("% \\usepackage{booktabs} in the preamble\n");
    for column in &beside.columns {
        let notes: Vec<&String> = column.notes.iter().chain(&beside.notes).collect();
        text.push_str(&float(&format!("{}, {}", beside.title, column.name), column, &notes));
    }
    text
}

fn float(title: &str, column: &Column, notes: &[&String]) -> String {
    let mut text = format!(
        "\n\\begin{{table}}\n\\centering\n\\begin{{tabular}}{{l{}}}\n\\toprule\n",
        "r".repeat(column.headings.len())
    );
    text.push_str(&lines(&column.headings, &column.rows));
    text.push_str("\\bottomrule\n\\end{tabular}\n");
    if !column.paired.is_empty() {
        text.push_str(&format!(
            "\n\\begin{{tabular}}{{l{}}}\n\\toprule\n{}\\bottomrule\n\\end{{tabular}}\n",
            "r".repeat(column.paired_headings.len()),
            lines(&column.paired_headings, &column.paired)
        ));
    }
    let notes: Vec<String> = notes.iter().map(|note| tex(note)).collect();
    text.push_str(&format!("\\caption{{{}. {}}}\n\\end{{table}}\n", tex(title), notes.join(" ")));
    text
}

fn lines(headings: &[String], rows: &[Row]) -> String {
    let joined = |cells: &[String]| cells.iter().map(|cell| tex(cell)).collect::<Vec<_>>().join(" & ");
    let mut text = format!("method & {} \\\\\n\\midrule\n", joined(headings));
    for row in rows {
        text.push_str(&format!(
            "{} & {} \\\\\n",
            tex(&format!("{}{}", row.name, row.mark)),
            joined(&row.cells)
        ));
    }
    text
}

fn tex(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            '\\' => escaped.push_str("\\textbackslash{}"),
            '~' => escaped.push_str("\\textasciitilde{}"),
            '^' => escaped.push_str("\\textasciicircum{}"),
            '±' => escaped.push_str("$\\pm$"),
            '×' => escaped.push_str("$\\times$"),
            '−' => escaped.push_str("$-$"),
            '†' => escaped.push_str("$^\\dagger$"),
            '‡' => escaped.push_str("$^\\ddagger$"),
            '§' => escaped.push_str("$^\\S$"),
            '–' => escaped.push_str("--"),
            '`' => {}
            letter => escaped.push(letter),
        }
    }
    escaped
}
