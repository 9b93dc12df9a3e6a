//! Aligned columns for people at a terminal. Keeps to the given width by setting numbers closer, then by continuing
//! the table below itself; knows nothing of the terminal but its width and whether styles are wanted.

use crate::Report;
use crate::against::Comparison;
use crate::format;
use crate::table::{BOLD as BOLD_NOTE, Cell, Row, Table};

const BOLD: &str = "\x1b[1m";
const FAINT: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";
const GAP: usize = 2;
/// Narrower than this no table is legible; text may then run over.
const LEAST_WIDTH: usize = 24;

pub fn export(report: &Report, width: usize, colour: bool) -> String {
    whole(report, &Page { width: width.max(LEAST_WIDTH), colour, cuts: true })
}

/// The same for a file or another program: without styles, and with names as long as they are.
pub fn plain(report: &Report, width: usize) -> String {
    whole(report, &Page { width: width.max(LEAST_WIDTH), colour: false, cuts: false })
}

fn whole(report: &Report, page: &Page) -> String {
    let mut blocks: Vec<String> = report
        .settings
        .iter()
        .flat_map(|setting| {
            let table = Table::of(setting);
            let mut block = page.paragraph(&format!("{}: {}", setting.name, setting.description()), BOLD);
            block.push_str(&page.table(&table));
            block.extend(page.footnotes(&table));
            let compared = report.comparison(setting).map(|comparison| page.comparison(&comparison));
            std::iter::once(block).chain(compared)
        })
        .collect();
    let mut remarks: Vec<String> =
        report.unfinished.iter().map(|run| format!("{}: {}", run.name(), run.state())).collect();
    remarks.extend(report.notes.iter().map(|note| format!("note: {note}")));
    if !remarks.is_empty() {
        blocks.push(remarks.iter().map(|remark| page.paragraph(remark, "")).collect());
    }
    blocks.join("\n")
}

/// One table with what has to be said below it.
pub fn table(table: &Table, width: usize, colour: bool) -> String {
    let page = Page { width: width.max(LEAST_WIDTH), colour, cuts: true };
    std::iter::once(page.table(table)).chain(page.footnotes(table)).collect()
}

struct Page {
    width: usize,
    colour: bool,
    /// Whether long names of rows are cut to a third of the width.
    cuts: bool,
}

impl Page {
    /// What stands below a table; nothing of bold numbers, as styles are to change nothing but styles.
    fn footnotes(&self, table: &Table) -> Vec<String> {
        let said = table.footnotes.iter().filter(|note| *note != BOLD_NOTE);
        said.map(|note| self.paragraph(note, FAINT)).collect()
    }

    fn style(&self, text: &str, style: &str) -> String {
        if self.colour && !style.is_empty() { format!("{style}{text}{PLAIN}") } else { text.to_owned() }
    }

    /// Text broken at spaces; a single word longer than the width is cut.
    fn paragraph(&self, text: &str, style: &str) -> String {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            match lines.last_mut() {
                Some(line) if length(line) + 1 + length(word) <= self.width => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(cut(word, "", self.width)),
            }
        }
        lines.iter().map(|line| self.style(line, style) + "\n").collect()
    }

    fn comparison(&self, comparison: &Comparison) -> String {
        let mut block = self.paragraph(&comparison.heading(), BOLD);
        block.extend(comparison.tables().iter().map(|table| self.table(table)));
        block.extend(comparison.notes().iter().map(|note| self.paragraph(note, FAINT)));
        block
    }

    fn table(&self, table: &Table) -> String {
        let most = if self.cuts { self.width / 3 } else { usize::MAX };
        let names: Vec<String> = table.rows.iter().map(|row| cut(&row.name, row.mark, most)).collect();
        let name_width = names.iter().map(|name| length(name)).max().unwrap_or(0);
        let fits = |between: &str| {
            let columns = 0..table.columns.len();
            name_width + columns.map(|column| GAP + column_width(table, column, between)).sum::<usize>()
                <= self.width
        };
        let between = if fits(" ± ") { " ± " } else { "±" };

        let mut text = String::new();
        let mut from = 0;
        while from < table.columns.len() {
            let room = self.width.saturating_sub(name_width);
            let until = block_end(table, from, room, between);
            let layout = Layout { table, between, name_width, columns: from..until };
            text.push_str(&self.heading(&layout));
            for (row, name) in table.rows.iter().zip(&names) {
                text.push_str(&self.row(&layout, row, name));
            }
            from = until;
        }
        text
    }

    fn heading(&self, layout: &Layout) -> String {
        let mut line = " ".repeat(layout.name_width);
        for column in layout.columns.clone() {
            let width = column_width(layout.table, column, layout.between) + GAP;
            line.push_str(&format!("{:>width$}", layout.table.columns[column]));
        }
        self.style(&line, FAINT) + "\n"
    }

    fn row(&self, layout: &Layout, row: &Row, name: &str) -> String {
        let mut line = format!("{name:<width$}", width = layout.name_width);
        for column in layout.columns.clone() {
            let width = column_width(layout.table, column, layout.between) + GAP;
            let text = row.cells[column].text(layout.between);
            let style = if row.cells[column].best { BOLD } else { "" };
            line.push_str(&" ".repeat(width.saturating_sub(length(&text))));
            line.push_str(&self.style(&text, style));
        }
        line + "\n"
    }
}

struct Layout<'a> {
    table: &'a Table,
    between: &'a str,
    name_width: usize,
    columns: std::ops::Range<usize>,
}

/// Where to continue a table below itself: after as many columns as fit, but between metrics and costs rather than
/// within the costs, and after one column at least.
fn block_end(table: &Table, from: usize, room: usize, between: &str) -> usize {
    let mut used = 0;
    let fit = (from..table.columns.len())
        .take_while(|&column| {
            used += GAP + column_width(table, column, between);
            used <= room
        })
        .count();
    let end = from + fit.max(1);
    let splits_costs = end > table.metrics && end < table.columns.len();
    if splits_costs && from < table.metrics { table.metrics } else { end }
}

fn column_width(table: &Table, column: usize, between: &str) -> usize {
    let cell = |row: &Row| length(&Cell::text(&row.cells[column], between));
    table.rows.iter().map(cell).chain([length(table.columns[column])]).max().unwrap_or(0)
}

/// At most `most` letters, the mark behind the text among them.
fn cut(text: &str, mark: &str, most: usize) -> String {
    let text: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    format::cut(&text, mark, most as f64, |_| 1.0)
}

fn length(text: &str) -> usize {
    text.chars().count()
}
