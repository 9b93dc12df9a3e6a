//! The words and the table a report opens with.

use super::markup::{Element, tag};
use super::{card, series_class, swatch};
use crate::format::percent;
use crate::group::{Group, Run, Setting};
use crate::statistics::Estimate;
use crate::table::{COLUMNS, Cell, Row, Table};
use crate::values;

/// The outcome in one sentence: the best group, and how far the next and the last are.
pub fn headline(setting: &Setting) -> String {
    let best = &setting.groups[0];
    let Some(accuracy) = mean_accuracy(best) else {
        return "No task ended with an evaluation, so there is no accuracy to report.".into();
    };
    let tasks = best.first().matrix.rows.len();
    let over = if tasks == 1 { "one task".to_owned() } else { format!("{tasks} tasks") };
    let reached =
        format!("{}{} ends at {} accuracy over {over}", best.name, best.mark(), with_spread(accuracy));
    let others = &setting.groups[1..];
    let compared: Vec<&Group> = match others {
        [] => return format!("{reached}{}.", forgotten(best)),
        [next] => vec![next],
        [next, .., last] => vec![next, last],
    };
    let compared: Vec<String> =
        compared.into_iter().filter_map(|other| comparison(accuracy, other)).collect();
    if compared.is_empty() {
        format!("{reached}.")
    } else {
        format!("{reached}: {}.", compared.join(" and "))
    }
}

fn comparison(best: Estimate, other: &Group) -> Option<String> {
    let accuracy = mean_accuracy(other)?;
    let ahead = best.mean - accuracy.mean;
    let name = format!("{}{}", other.name, other.mark());
    let spread = best.deviation.zip(accuracy.deviation).map(|(a, b)| a.hypot(b));
    Some(match spread {
        Some(spread) if ahead <= spread => {
            format!("{} points above {name}, within the spread over seeds", percent(ahead))
        }
        _ => format!("{} points above {name}", percent(ahead)),
    })
}

fn forgotten(group: &Group) -> String {
    let values: Vec<f64> = group.runs.iter().filter_map(|run| run.metrics.fm).collect();
    match Estimate::of(&values) {
        Some(fm) if group.first().matrix.rows.len() > 1 => format!(", with {} forgetting", with_spread(fm)),
        _ => String::new(),
    }
}

fn mean_accuracy(group: &Group) -> Option<Estimate> {
    let values: Vec<f64> = group.runs.iter().filter_map(|run| run.metrics.acc).collect();
    Estimate::of(&values)
}

/// With spaces at which no line may break.
fn with_spread(estimate: Estimate) -> String {
    match estimate.deviation {
        Some(deviation) => {
            format!("{}\u{a0}±\u{a0}{}\u{a0}%", percent(estimate.mean), percent(deviation))
        }
        None => format!("{}\u{a0}%", percent(estimate.mean)),
    }
}

/// The table every format shows, with the remaining metrics folded below it.
pub fn figure(setting: &Setting) -> Element {
    let table = Table::with_budget(setting);
    let heading = |name: &str| {
        let meaning = COLUMNS.iter().find(|column| column.name == name).map_or("", |column| column.meaning);
        tag("th").with("scope", "col").with("title", meaning).text(name)
    };
    let head = tag("tr")
        .child(tag("th").with("scope", "col").text("method"))
        .children(table.columns.iter().map(|name| heading(name)));
    let notes = table.footnotes.iter().map(|note| tag("p").class("note").text(note));
    card("Summary", "")
        .child(scrolled(head, rows_of(setting, &table)))
        .children(notes)
        .child(all_metrics(setting))
}

/// The lines of a setting's table.
pub fn rows_of(setting: &Setting, table: &Table) -> impl Iterator<Item = Element> {
    setting.groups.iter().zip(&table.rows).map(|(group, found)| row(group, found))
}

/// One line of a table.
pub fn row(group: &Group, row: &Row) -> Element {
    tag("tr").class(series_class(group)).child(name_cell(group)).children(row.cells.iter().map(cell))
}

/// The headings of a table of methods.
pub fn header(names: &[&str]) -> Element {
    tag("tr")
        .child(tag("th").with("scope", "col").text("method"))
        .children(names.iter().map(|name| tag("th").with("scope", "col").text(name)))
}

fn all_metrics(setting: &Setting) -> Element {
    let names: Vec<&str> = values(&Default::default()).iter().map(|(name, _)| *name).collect();
    let head = header(&names);
    let rows = setting.groups.iter().map(|group| {
        let cells = (0..names.len()).map(|index| {
            let measured: Vec<f64> =
                group.runs.iter().filter_map(|run: &Run| values(&run.metrics)[index].1).collect();
            let Some(estimate) = Estimate::of(&measured) else { return tag("td").text("–") };
            cell(&Cell {
                mean: percent(estimate.mean),
                deviation: estimate.deviation.map(percent),
                best: false,
            })
        });
        tag("tr").class(series_class(group)).child(name_cell(group)).children(cells)
    });
    tag("details").child(tag("summary").text("All metrics, in percent")).child(scrolled(head, rows))
}

fn name_cell(group: &Group) -> Element {
    let name = tag("span").text(&group.name);
    let cell = tag("th").with("scope", "row").child(swatch()).child(name);
    if group.mark().is_empty() { cell } else { cell.child(tag("span").class("mark").text(group.mark())) }
}

fn cell(cell: &Cell) -> Element {
    let mean = tag(if cell.best { "b" } else { "span" }).text(&cell.mean);
    let element = tag("td").child(mean);
    match &cell.deviation {
        Some(deviation) => element.child(tag("span").class("spread").text(format!(" ± {deviation}"))),
        None => element,
    }
}

/// A table in a box of its own, which scrolls sideways so that the page does not.
pub fn scrolled(head: Element, rows: impl Iterator<Item = Element>) -> Element {
    let table = tag("table").child(tag("thead").child(head)).child(tag("tbody").children(rows));
    tag("div")
        .class("scroll")
        .with("tabindex", 0)
        .with("role", "region")
        .with("aria-label", "table")
        .child(table)
}
