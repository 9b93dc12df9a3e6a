//! Line figures: one line a group with a band of one standard deviation, and either names at the lines' ends or a
//! legend above. Any-time accuracy, training loss, learning rate and risk over coverage are drawn by it.

use super::markup::{Element, fit, px, tag, text_width};
use super::plot::{Frame, Size, TEXT, TickLabel, line, spread, svg, text};
use super::scale::{Scale, ceiling};
use super::series_class;
use crate::format::{short, thousands};
use crate::group::Group;
use crate::statistics::{Band, Estimate};

/// More points than this cannot be told apart.
pub const MOST_POINTS: usize = 240;
/// More names than this cannot stand beside the plotting area.
pub const MOST_NAMES: usize = 14;
/// Points a pointer can rest on.
const MOST_TOOLTIPS: usize = 48;

/// What a line figure shows.
pub struct Lines<'a> {
    pub series: Vec<Series<'a>>,
    pub x: Horizontal,
    pub y: Vertical,
    /// Title of the vertical axis, with its unit.
    pub y_title: &'static str,
    /// What a screen reader says.
    pub describe: String,
    /// Names at the lines' ends where the drawing is wide enough.
    pub names: bool,
    pub height: f64,
}

/// One line with its band.
pub struct Series<'a> {
    pub group: &'a Group,
    pub band: Band,
    /// Tells a group's second line from its first.
    pub dotted: bool,
}

impl Series<'_> {
    pub fn class(&self) -> String {
        series_class(self.group) + if self.dotted { " dotted" } else { "" }
    }
}

/// The horizontal axis.
pub enum Horizontal {
    /// Stream samples, with borders between tasks and the samples in the whole stream.
    Samples { borders: Vec<f64>, end: f64 },
    /// Shares of one, shown in percent, under a title.
    Share(&'static str),
}

impl Horizontal {
    fn end(&self) -> f64 {
        match self {
            Self::Samples { end, .. } => *end,
            Self::Share(_) => 1.0,
        }
    }

    /// Room above the plotting area for the vertical axis' title and the names of tasks.
    fn top(&self) -> f64 {
        match self {
            Self::Samples { .. } => 44.0,
            Self::Share(_) => 30.0,
        }
    }

    fn axis(&self, frame: &Frame) -> Element {
        match self {
            Self::Samples { borders, end } => tag("g")
                .child(frame.tasks(borders, *end))
                .child(frame.x_axis("stream samples", |value| thousands(value as u64))),
            Self::Share(title) => frame.x_axis(title, short_percent),
        }
    }

    fn place(&self, x: f64) -> String {
        match self {
            Self::Samples { .. } => format!("sample {}", thousands(x as u64)),
            Self::Share(_) => format!("at {} %", short_percent(x)),
        }
    }
}

/// The vertical axis.
#[derive(Clone, Copy, PartialEq)]
pub enum Vertical {
    /// Shares of one, shown in percent from 0 up to what the data need.
    Percent,
    /// From 0 up to what the data need.
    FromZero,
    /// Logarithmic if the values span far more than a decade, from near the lowest if they span little, else from 0.
    Rate,
}

impl Lines<'_> {
    pub fn draw(&self, size: Size) -> Element {
        let named = self.names && !size.narrow && self.series.len() <= MOST_NAMES;
        let names_room = if named { self.names_width() + 22.0 } else { 10.0 };
        let height = if size.narrow { self.height.min(270.0) } else { self.height };
        let left = if self.y == Vertical::Rate { 66.0 } else { 46.0 };
        let (left, right, top, bottom) = (left, size.width - names_room, self.x.top(), height - 42.0);
        let frame = Frame {
            left,
            right,
            top,
            bottom,
            x: Scale::linear(0.0, self.x.end(), left, right),
            y: self.vertical(bottom, top),
        };
        let label: TickLabel = match self.y {
            Vertical::Percent => short_percent,
            Vertical::FromZero => plain,
            Vertical::Rate => fine,
        };
        // The first group, the best, is drawn last and lies on top.
        let mut drawing = svg(size.width, height, &self.describe)
            .class("lines")
            .child(frame.y_axis(self.y_title, label))
            .child(self.x.axis(&frame))
            .children(self.series.iter().rev().map(|series| self.series(&frame, series, size)));
        if named {
            drawing = drawing.children(self.end_names(&frame));
        }
        drawing
    }

    fn names_width(&self) -> f64 {
        let width = |Series { group, .. }: &Series| {
            text_width(&group.name, TEXT) + text_width(group.mark(), TEXT) + 8.0
        };
        self.series.iter().map(width).fold(0.0, f64::max).min(170.0)
    }

    /// The lowest positive and the highest value of a line, with their bands.
    fn span(&self) -> (f64, f64) {
        let values = |value: fn(&Estimate) -> f64| {
            let bands = self.series.iter().flat_map(|series| &series.band);
            bands.map(move |(_, estimate)| value(estimate)).filter(|value| value.is_finite())
        };
        let low = values(Estimate::low).chain(values(|estimate| estimate.mean));
        let low = low.filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        (low, values(Estimate::high).fold(0.0, f64::max))
    }

    /// Whether the vertical axis begins near the lowest value instead of at 0, where the shape would be lost.
    pub fn leaves_out_zero(&self) -> bool {
        let (low, high) = self.span();
        self.y == Vertical::Rate && low < high && (high - low < high / 2.0 || low * 30.0 < high)
    }

    fn vertical(&self, bottom: f64, top: f64) -> Scale {
        let (low, high) = self.span();
        let margin = (high - low) * 0.08;
        match self.y {
            Vertical::Percent => Scale::linear(0.0, ceiling(high.clamp(0.05, 1.0)), bottom, top),
            Vertical::Rate if low * 30.0 < high => Scale::logarithmic(low, high * 1.2, bottom, top),
            Vertical::Rate if self.leaves_out_zero() => {
                Scale::linear(low - margin, high + margin, bottom, top)
            }
            Vertical::FromZero | Vertical::Rate => Scale::linear(0.0, ceiling(high), bottom, top),
        }
    }

    fn series(&self, frame: &Frame, series: &Series, size: Size) -> Element {
        let Series { group, band, .. } = series;
        let point = |x: f64, y: f64| format!("{} {}", px(frame.x.at(x)), px(frame.y.at(y)));
        let path = |points: Vec<String>| format!("M{}", points.join("L"));
        let mut drawn = tag("g").class(series.class());
        if band.iter().any(|(_, estimate)| estimate.deviation.is_some()) {
            let above = band.iter().map(|(x, estimate)| point(*x, estimate.high()));
            let below = band.iter().rev().map(|(x, estimate)| point(*x, estimate.low()));
            drawn =
                drawn.child(tag("path").class("band").with("d", path(above.chain(below).collect()) + "Z"));
        }
        let middle = band.iter().map(|(x, estimate)| point(*x, estimate.mean)).collect();
        drawn = drawn.child(tag("path").class("line").with("d", path(middle)));
        if size.narrow {
            return drawn;
        }
        let every = band.len().div_ceil(MOST_TOOLTIPS).max(1);
        drawn.children(band.iter().rev().step_by(every).map(|(x, estimate)| {
            let value = self.show(estimate.mean);
            let spread = estimate
                .deviation
                .map(|deviation| format!(" ± {}", self.show(deviation)))
                .unwrap_or_default();
            let tooltip = format!("{}, {}: {value}{spread}{}", group.name, self.x.place(*x), self.unit());
            tag("circle")
                .class("touch")
                .with("cx", px(frame.x.at(*x)))
                .with("cy", px(frame.y.at(estimate.mean)))
                .with("r", 7)
                .tooltip(tooltip)
        }))
    }

    fn show(&self, value: f64) -> String {
        match self.y {
            Vertical::Percent => crate::format::percent(value),
            Vertical::FromZero | Vertical::Rate => short(value),
        }
    }

    fn unit(&self) -> &'static str {
        if self.y == Vertical::Percent { " %" } else { "" }
    }

    fn end_names(&self, frame: &Frame) -> Vec<Element> {
        let ends: Vec<(&Group, f64, f64)> = self
            .series
            .iter()
            .filter_map(|Series { group, band, .. }| {
                let (x, estimate) = band.last()?;
                Some((*group, frame.x.at(*x), frame.y.at(estimate.mean)))
            })
            .collect();
        let wanted: Vec<f64> = ends.iter().map(|end| end.2).collect();
        let placed = spread(&wanted, TEXT + 4.0, frame.top, frame.bottom);
        let name = |(&(group, x, y), at): (&(&Group, f64, f64), f64)| {
            let name = fit(&group.name, group.mark(), TEXT, self.names_width());
            tag("g")
                .class(format!("{} end-name", series_class(group)))
                .child(line(x + 3.0, y, frame.right + 14.0, at))
                .child(text(frame.right + 18.0, at + 4.0, "start", &name))
        };
        ends.iter().zip(placed).map(name).collect()
    }
}

/// A share in percent, without the noise of its computation.
pub fn short_percent(share: f64) -> String {
    let percent = (share * 1000.0).round() / 10.0 + 0.0;
    percent.to_string()
}

/// A small value with as many digits as tell ticks of a narrow range apart.
fn fine(value: f64) -> String {
    if value == 0.0 || !(1e-9..0.01).contains(&value.abs()) {
        return plain(value);
    }
    let text = format!("{value:.3e}");
    match text.split_once('e') {
        Some((digits, power)) => format!("{}e{power}", digits.trim_end_matches('0').trim_end_matches('.')),
        None => text,
    }
}

/// A tick's value without the noise of its computation.
fn plain(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.01 {
        return format!("{value:.1e}").replace(".0e", "e");
    }
    let rounded = (value * 1000.0).round() / 1000.0 + 0.0;
    rounded.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_small_rates_are_told_apart() {
        assert_eq!(
            [0.0, 2.95e-4, 3e-4, 3.05e-4, 0.02].map(fine),
            ["0", "2.95e-4", "3e-4", "3.05e-4", "0.02"]
        );
    }
}
