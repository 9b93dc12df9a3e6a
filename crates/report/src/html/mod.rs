//! The report as one page: style, drawings and pictures inside it, no script, nothing fetched. A content policy in its
//! head makes browsers hold it to that. Each figure has its own file; this one puts them in order.

mod choose;
mod classes;
mod compared;
mod cost;
pub mod figures;
mod forgetting;
mod heatmap;
mod lines;
mod markup;
mod memory;
pub mod paper;
mod plot;
mod runs;
mod scale;
mod summary;
mod uncertainty;

use lines::{Horizontal, Lines, MOST_NAMES, MOST_POINTS, Series, Vertical};
use markup::{Element, tag};
use plot::both_sizes;

use crate::Report;
use crate::curves;
use crate::group::{Group, Setting};
use crate::statistics::{Band, Curve, average, thin};

const STYLE: &str = include_str!("style.css");
/// What only a page with a comparison needs.
const COMPARED_STYLE: &str = include_str!("compared.css");
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
/// Colours in the style sheet; further groups repeat them with dashed lines.
const COLOURS: usize = 8;

pub fn export(report: &Report) -> String {
    let mut page = String::from("<!DOCTYPE html>\n");
    tag("html").with("lang", "en").child(head(report)).child(body(report)).write(&mut page);
    page.push('\n');
    page
}

fn head(report: &Report) -> Element {
    let style = tag("style").own(STYLE);
    let meta = |name: &'static str, content: &str| tag("meta").with("name", name).with("content", content);
    tag("head")
        .child(tag("meta").with("charset", "utf-8"))
        .child(tag("meta").with("http-equiv", "Content-Security-Policy").with("content", POLICY))
        .child(meta("viewport", "width=device-width, initial-scale=1"))
        .child(meta("color-scheme", "light dark"))
        .child(tag("title").text(title(report)))
        .child(if report.compared().is_some() { style.own(COMPARED_STYLE) } else { style })
        .children(
            Some(choose::rules(report))
                .filter(|rules| !rules.is_empty())
                .map(|rules| tag("style").text(rules)),
        )
}

fn title(report: &Report) -> String {
    match report.settings.as_slice() {
        [one] => format!("{}: continual learning report", one.name),
        _ => "Continual learning report".into(),
    }
}

fn body(report: &Report) -> Element {
    let mut header = tag("header").child(tag("p").class("overline").text("Continual learning report"));
    header = match report.settings.as_slice() {
        [] => header.child(tag("h1").text("No run has finished yet")),
        [one] => header
            .child(tag("h1").text(summary::headline(one)))
            .child(tag("p").class("soft").text(format!("{}: {}", one.name, one.description()))),
        many => header.child(tag("h1").text(format!("{} settings", many.len()))).child(contents(many)),
    };
    let sections = report.settings.iter().enumerate().map(|(place, setting)| section(report, setting, place));
    let footer = tag("footer").child(runs::glossary()).child(
        tag("p").text(format!("Made from the records of the runs by dpcl {}.", env!("CARGO_PKG_VERSION"))),
    );
    let main = tag("main")
        .child(header)
        .children(runs::remarks(report))
        .children(choose::boxes(report))
        .children(sections)
        .child(footer);
    tag("body").child(main)
}

fn contents(settings: &[Setting]) -> Element {
    let link = |(place, setting): (usize, &Setting)| {
        tag("li").child(tag("a").with("href", format!("#setting-{place}")).text(&setting.name))
    };
    tag("nav").with("aria-label", "settings").child(tag("ul").children(settings.iter().enumerate().map(link)))
}

fn section(report: &Report, setting: &Setting, place: usize) -> Element {
    let mut section = tag("section").with("id", format!("setting-{place}"));
    if report.settings.len() > 1 {
        section = section
            .child(tag("h2").text(&setting.name))
            .child(tag("p").class("lead").text(summary::headline(setting)))
            .child(tag("p").class("soft").text(setting.description()));
    }
    let training = [
        line_figure(setting, curves::loss, Vertical::FromZero, "Training loss", "loss"),
        line_figure(setting, curves::rate, Vertical::Rate, "Learning rate", "learning rate"),
    ];
    section
        .child(summary::figure(setting))
        .children(report.comparison(setting).as_ref().map(compared::figure))
        .children(any_time(setting))
        .children(heatmap::figure(setting).map(|figure| choose::fold(setting, "Accuracy by task", figure)))
        .child(pair(forgetting::figure(setting).into_iter().chain([cost::figure(setting)]).collect()))
        .child(cost::table(setting))
        .children(classes::figure(setting))
        .children(uncertainty::figures(setting))
        .child(pair(training.into_iter().flatten().collect()))
        .children(memory::figure(setting).map(|figure| choose::fold(setting, "Memory", figure)))
        .child(runs::configurations(setting))
        .child(runs::table(setting))
}

fn pair(figures: Vec<Element>) -> Element {
    tag("div").class(if figures.len() > 1 { "pair" } else { "single" }).children(figures)
}

fn any_time_lines(setting: &Setting) -> Option<Lines<'_>> {
    Some(Lines {
        y_title: "accuracy on the classes met so far, %",
        describe: "Accuracy of each method over the stream".into(),
        names: true,
        height: 380.0,
        ..lines(setting, curves::any_time, Vertical::Percent)?
    })
}

fn any_time(setting: &Setting) -> Option<Element> {
    let lines = any_time_lines(setting)?;
    let band = if setting.groups.iter().any(|group| group.runs.len() > 1) {
        " Bands are one standard deviation over seeds."
    } else {
        ""
    };
    let caption =
        format!("Measured during the stream on all test images of the classes met up to then.{band}");
    let names_fit = setting.groups.len() <= MOST_NAMES;
    let key = legend(&setting.groups);
    let key = if names_fit { tag("div").class("narrow").child(key) } else { key };
    Some(card("Any-time accuracy", &caption).child(key).children(both_sizes(940.0, |size| lines.draw(size))))
}

fn line_figure(
    setting: &Setting,
    curve: fn(&[crate::record::Event]) -> Curve,
    vertical: Vertical,
    title: &str,
    y_title: &'static str,
) -> Option<Element> {
    let lines = Lines {
        y_title,
        describe: format!("{title} of each method over the stream"),
        ..lines(setting, curve, vertical)?
    };
    let caption = match vertical {
        Vertical::Rate if lines.leaves_out_zero() => {
            "After the last training step of each point. The axis does not begin at 0."
        }
        Vertical::Rate => "After the last training step of each point.",
        _ => "Mean over the training steps since the previous point.",
    };
    Some(
        card(title, caption)
            .child(legend(&setting.groups))
            .children(both_sizes(500.0, |size| lines.draw(size))),
    )
}

fn lines(setting: &Setting, curve: fn(&[crate::record::Event]) -> Curve, y: Vertical) -> Option<Lines<'_>> {
    let band = |group: &Group| -> Band {
        let curves: Vec<Curve> =
            group.runs.iter().map(|run| thin(&curve(&run.record.events), MOST_POINTS)).collect();
        average(&curves)
    };
    let series = setting.groups.iter().map(|group| Series { group, band: band(group), dotted: false });
    let series: Vec<Series> = series.filter(|series| !series.band.is_empty()).collect();
    let end = series.iter().filter_map(|series| series.band.last()).map(|(x, _)| *x).reduce(f64::max)?;
    let borders = curves::task_borders(setting.groups[0].first().task_samples());
    let borders = borders.into_iter().filter(|border| *border < end).collect();
    let x = Horizontal::Samples { borders, end };
    Some(Lines { series, x, y, y_title: "", describe: String::new(), names: false, height: 300.0 })
}

/// A figure's box with its title and what it shows.
fn card(title: &str, caption: &str) -> Element {
    let mut about = tag("figcaption").child(tag("h3").text(title));
    if !caption.is_empty() {
        about = about.child(tag("p").text(caption));
    }
    tag("figure").class("card").child(about)
}

fn legend(groups: &[Group]) -> Element {
    key(groups.iter().map(|group| (series_class(group), format!("{}{}", group.name, group.mark()))))
}

/// Colours with what they stand for.
fn key(entries: impl Iterator<Item = (String, String)>) -> Element {
    let entry = |(class, text): (String, String)| {
        tag("li").class(class).child(swatch()).child(tag("span").text(text))
    };
    tag("ul").class("legend").children(entries.map(entry))
}

fn swatch() -> Element {
    tag("span").class("swatch")
}

fn group_heading(group: &Group) -> Element {
    let name = format!("{}{}", group.name, group.mark());
    tag("h4").with("title", &name).child(swatch()).text(name)
}

/// The class that gives an element and what is inside it the group's colour.
fn series_class(group: &Group) -> String {
    format!("{} m{}", tier(group.colour), group.colour)
}

/// The class of a colour; those that have to be used again differ in their lines.
fn tier(colour: usize) -> String {
    let dash = match colour / COLOURS {
        0 => "",
        1 => " dashed",
        2 => " dashed long",
        _ => " dashed short",
    };
    format!("s{}{dash}", colour % COLOURS)
}
