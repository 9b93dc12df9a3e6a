//! The rows of a setting against one of them: for each metric a dot and an interval a row, and the numbers below.

use super::markup::{Element, fit, px, tag, text_width};
use super::plot::{Size, TEXT, both_sizes, line, svg, text};
use super::scale::Scale;
use super::summary::{header, row, scrolled};
use super::{card, series_class};
use crate::against::{Comparison, Difference, Outcome, Rival, lower_is_better};
use crate::table::Table;

/// Where the rows begin, below the title and the numbers of the axis.
const TOP: f64 = 44.0;
const ROW: f64 = 28.0;
/// Narrow screens have the name above its interval.
const TALL_ROW: f64 = 42.0;
/// Room for the longest outcome at the end of a row.
const OUTCOME: f64 = 76.0;
/// Half the height of the ends of an interval.
const END: f64 = 4.5;
/// Intervals of two pairs can be longer than all else; the axis ends at this many times the farthest mean or the margin.
const REACH: f64 = 4.0;

pub fn figure(comparison: &Comparison) -> Element {
    let (opponent, tables) = (&comparison.opponent.name, comparison.tables());
    let caption = if tables.is_empty() {
        format!("No method has a seed in common with {opponent}.")
    } else {
        format!(
            "Each method minus {opponent}, over the seeds both have: mean and 95 % interval, in points of percent. Where \
             the interval leaves out 0, the method is ahead or behind. A hollow dot is a single seed, a line without ends goes on \
             beyond the axis. Dashed: a difference of {}.",
            comparison.margin
        )
    };
    let place = |table: &Table| comparison.metrics.iter().position(|metric| *metric == table.columns[0]);
    let mut drawings = tables
        .iter()
        .filter_map(place)
        .enumerate()
        .map(|(nth, place)| plot(comparison, place, if nth == 0 { 940.0 } else { 440.0 }));
    let first = drawings.next();
    let others = tag("div").class("pair").children(drawings);
    let notes = comparison.notes().into_iter().map(|note| tag("p").class("note").text(note));
    card(&comparison.heading(), &caption)
        .class("compared")
        .children(first)
        .child(others)
        .children((!tables.is_empty()).then(|| numbers(comparison, &tables)))
        .children(notes)
}

fn numbers(comparison: &Comparison, tables: &[Table]) -> Element {
    let table = |table: &Table| {
        let rows = comparison.rivals.iter().zip(&table.rows).map(|(rival, found)| row(rival.group, found));
        scrolled(header(&table.columns), rows)
    };
    tag("details").child(tag("summary").text("The numbers")).children(tables.iter().map(table))
}

fn plot(comparison: &Comparison, place: usize, wide: f64) -> Element {
    tag("div").children(both_sizes(wide, |size| draw(comparison, place, size)))
}

/// Where the parts of a row are.
struct Layout {
    left: f64,
    right: f64,
    row: f64,
    /// Of the name and the outcome, below the row's top.
    words: f64,
    /// Of the interval, below the row's top.
    middle: f64,
    /// Room for the numbers between interval and outcome; 0 for none.
    numbers: f64,
}

impl Layout {
    fn of(size: Size, comparison: &Comparison, place: usize) -> Self {
        if size.narrow {
            return Self {
                left: 8.0,
                right: size.width - 8.0,
                row: TALL_ROW,
                words: 14.0,
                middle: 28.0,
                numbers: 0.0,
            };
        }
        let spacious = size.width > 600.0;
        let widest = |texts: &mut dyn Iterator<Item = String>| {
            texts.map(|text| text_width(&text, TEXT)).fold(0.0, f64::max)
        };
        let names = widest(
            &mut comparison.rivals.iter().map(|rival| format!("{}{}", rival.group.name, rival.group.mark())),
        );
        let numbers = if spacious {
            widest(&mut comparison.rivals.iter().map(|rival| summary(&rival.differences[place]))) + 24.0
        } else {
            0.0
        };
        Self {
            left: (names + 14.0).min(size.width * if spacious { 0.3 } else { 0.36 }),
            right: size.width - OUTCOME - numbers,
            row: ROW,
            words: 18.0,
            middle: 14.0,
            numbers,
        }
    }
}

fn draw(comparison: &Comparison, place: usize, size: Size) -> Element {
    let layout = Layout::of(size, comparison, place);
    let metric = comparison.metrics[place];
    let found = || comparison.rivals.iter().map(|rival| &rival.differences[place]);
    let x = axis(found(), comparison.margin / 100.0, &layout);
    let bottom = TOP + comparison.rivals.len() as f64 * layout.row;
    let upright = |value: f64| line(x.at(value), TOP - 6.0, x.at(value), bottom);
    // Room for the widest number of the axis and some more beside it.
    let ticks = x.ticks(((layout.right - layout.left) / 44.0).clamp(2.0, 8.0) as usize);
    let grid = ticks.iter().flat_map(|&tick| {
        let points = (tick * 1e4).round() / 1e2 + 0.0;
        let label = if points < 0.0 { format!("−{}", points.abs()) } else { points.to_string() };
        [upright(tick), text(x.at(tick), TOP - 12.0, "middle", &label)]
    });
    let side = if lower_is_better(metric) { ", lower is better" } else { "" };
    let title = format!("{metric} − {}’s, points{side}", comparison.opponent.name);
    let margins = [-1.0, 1.0].map(|side| side * comparison.margin / 100.0);
    let margins = margins.into_iter().filter(|margin| x.holds(*margin));
    let rows =
        comparison.rivals.iter().enumerate().map(|(nth, rival)| {
            drawn_row(rival, place, &x, &layout, TOP + nth as f64 * layout.row, size.width)
        });
    let described = format!("{metric} of each method minus that of {}", comparison.opponent.name);
    svg(size.width, bottom + 4.0, &described)
        .class("dots")
        .child(
            tag("g")
                .class("axis")
                .children(grid)
                .child(text(0.0, 12.0, "start", &fit(&title, "", TEXT, size.width)).class("title")),
        )
        .children(margins.map(|margin| upright(margin).class("margin")))
        .child(upright(0.0).class("nought"))
        .children(rows)
}

/// Zero, every mean, the margin, and the intervals as far as they are of that order.
fn axis<'a>(found: impl Iterator<Item = &'a Difference> + Clone, margin: f64, layout: &Layout) -> Scale {
    let means = found.clone().filter_map(|found| found.estimate).map(|estimate| estimate.mean);
    let farthest = means.clone().map(f64::abs).fold(margin, f64::max);
    let most = REACH * farthest;
    let ends = found.filter_map(|found| found.interval).flat_map(|(low, high)| [low, high]);
    let all = || means.clone().chain(ends.clone().map(|end| end.clamp(-most, most))).chain([-margin, margin]);
    let (low, high) = (all().fold(0.0, f64::min), all().fold(0.0, f64::max));
    let edge = 0.04 * (high - low);
    Scale::linear(low - edge, high + edge, layout.left, layout.right)
}

fn drawn_row(rival: &Rival, place: usize, x: &Scale, layout: &Layout, top: f64, width: f64) -> Element {
    let (group, found) = (rival.group, &rival.differences[place]);
    let above = layout.middle > layout.words;
    let room = if above { width - OUTCOME } else { layout.left - 12.0 };
    let name = text(
        if above { 0.0 } else { layout.left - 12.0 },
        top + layout.words,
        if above { "start" } else { "end" },
        &fit(&group.name, group.mark(), TEXT, room),
    );
    let decided = if found.outcome == Outcome::Undecided { "undecided" } else { "decided" };
    let outcome = text(width, top + layout.words, "end", found.outcome_text()).class(decided);
    let numbers = (layout.numbers > 0.0)
        .then(|| text(width - OUTCOME - 8.0, top + layout.words, "end", &summary(found)).class(decided));
    let y = top + layout.middle;
    tag("g")
        .class(series_class(group))
        .tooltip(format!("{}: {}, {}", group.name, summary(found), found.outcome_text()))
        .child(name)
        .children(found.interval.into_iter().flat_map(|(low, high)| interval(low, high, x, y)))
        .children(found.estimate.map(|estimate| {
            tag("circle")
                .class(if found.interval.is_some() { "dot" } else { "hollow" })
                .with("cx", px(x.at(estimate.mean)))
                .with("cy", px(y))
                .with("r", 5)
        }))
        .children(numbers)
        .child(outcome)
}

/// A line with an upright end where the interval ends; without one it goes on beyond the axis.
fn interval(low: f64, high: f64, x: &Scale, y: f64) -> impl Iterator<Item = Element> {
    let end = |value: f64| {
        let at = x.at(value);
        x.holds(value).then(|| line(at, y - END, at, y + END).class("interval"))
    };
    let ends = [end(low), end(high)];
    std::iter::once(line(x.at(low), y, x.at(high), y).class("interval")).chain(ends.into_iter().flatten())
}

fn summary(found: &Difference) -> String {
    let count = match found.pairs() {
        0 => return "no seed in common".to_owned(),
        1 => "1 seed".to_owned(),
        pairs => format!("{pairs} seeds"),
    };
    match found.interval {
        Some(_) => format!("{} {}, {count}", found.mean_text(), found.interval_text()),
        None => format!("{}, {count}", found.mean_text()),
    }
}
