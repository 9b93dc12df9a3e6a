//! The paper's tables with ours beside them as a page, and every figure as a drawing of its own.

use super::{
    POLICY, STYLE, any_time_lines, card, legend,
    markup::{Element, tag},
    plot::{Size, both_sizes},
};
use crate::{
    figures::Figure,
    paper::{Beside, Column, Row},
};

/// What tables with many columns need beyond the common style.
const DENSE_STYLE: &str = include_str!("paper.css");

/// A drawing by itself inherits no letters.
const FONT: &str =
    "text { font-family: system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif; }";

/// One page of tables and figures that needs nothing but itself.
pub fn page(tables: &[Beside], figures: &[Figure]) -> String {
    let title = match tables {
        [one] => format!("{}: the paper and ours", one.title),
        _ => "The paper and ours".into(),
    };
    let meta = |name: &'static str, content: &str| tag("meta").with("name", name).with("content", content);
    let head = tag("head")
        .child(tag("meta").with("charset", "utf-8"))
        .child(tag("meta").with("http-equiv", "Content-Security-Policy").with("content", POLICY))
        .child(meta("viewport", "width=device-width, initial-scale=1"))
        .child(meta("color-scheme", "light dark"))
        .child(tag("title").text(&title))
        .child(tag("style").own(STYLE).own(DENSE_STYLE));
    let header = tag("header")
        .child(tag("p").class("overline").text("Doubly Perturbed Task-Free Continual Learning, reproduced"))
        .child(tag("h1").text(&title));
    let footer = tag("footer").child(
        tag("p").text(format!("Made from the records of the runs by dpcl {}.", env!("CARGO_PKG_VERSION"))),
    );
    let main = tag("main")
        .child(header)
        .children(tables.iter().map(|table| section(table, tables.len() > 1)))
        .children(figures.iter().map(Figure::card))
        .child(footer);
    let mut page = String::from("<!DOCTYPE html>\n");
    tag("html").with("lang", "en").child(head).child(tag("body").child(main)).write(&mut page);
    page.push('\n');
    page
}

fn section(beside: &Beside, titled: bool) -> Element {
    let mut section = tag("section").with("id", &beside.id);
    if titled {
        section = section.child(tag("h2").text(&beside.title));
    }
    let note = |note: &String| tag("p").class("soft").text(note);
    let curves = beside.settings.iter().filter_map(|(name, setting)| {
        let lines = any_time_lines(setting)?;
        let drawn = both_sizes(940.0, |size| lines.draw(size));
        let caption = "Accuracy on the classes met so far, on all their test images.";
        Some(
            card(&format!("{name}: accuracy over the stream"), caption)
                .child(legend(&setting.groups))
                .children(drawn),
        )
    });
    section
        .children(beside.notes.iter().map(note))
        .children(beside.columns.iter().map(column))
        .children(curves)
}

fn column(column: &Column) -> Element {
    let note = |note: &String| tag("p").class("note").text(note);
    let mut figure = card(&column.name, "").child(table(&column.headings, &column.rows));
    if !column.paired.is_empty() {
        figure = figure.child(
            tag("details")
                .with("open", "")
                .child(tag("summary").text("Seed by seed against DPCL"))
                .child(table(&column.paired_headings, &column.paired)),
        );
    }
    figure.children(column.notes.iter().map(note))
}

fn table(headings: &[String], rows: &[Row]) -> Element {
    let heading = |text: &str| tag("th").with("scope", "col").text(text);
    let head = tag("tr").child(heading("method")).children(headings.iter().map(|text| heading(text)));
    let row = |row: &Row| {
        tag("tr")
            .child(
                tag("th")
                    .with("scope", "row")
                    .with("title", &row.label)
                    .text(format!("{}{}", row.name, row.mark)),
            )
            .children(row.cells.iter().map(|cell| tag("td").text(cell)))
    };
    let body = tag("tbody").children(rows.iter().map(row));
    tag("div").class("scroll").child(tag("table").class("dense").child(tag("thead").child(head)).child(body))
}

/// The any-time curves of every stream of a table, each as a file of its own: a name and an SVG text.
pub fn curves(beside: &Beside) -> Vec<(String, String)> {
    let drawn = |(name, setting): &(String, crate::group::Setting)| {
        let svg = any_time_lines(setting)?.draw(Size { width: 940.0, narrow: false });
        Some((name.clone(), standalone(svg)))
    };
    beside.settings.iter().filter_map(drawn).collect()
}

/// A drawing that carries its style.
pub fn standalone(svg: Element) -> String {
    let mut text = String::new();
    svg.with("xmlns", "http://www.w3.org/2000/svg").child(tag("style").own(STYLE).own(FONT)).write(&mut text);
    text + "\n"
}
