//! The frame of a figure: plotting area, axes with their units, grid, task borders, and the two sizes every figure is
//! drawn in. Knows pixels and values, not what they measure.

use super::markup::{Element, px, tag, text_width};
use super::scale::Scale;

/// Size of axis and label text, as in the style sheet.
pub const TEXT: f64 = 12.0;

/// An SVG drawing. `describe` is what a screen reader says in place of it.
pub fn svg(width: f64, height: f64, describe: &str) -> Element {
    tag("svg")
        .with("viewBox", format!("0 0 {} {}", px(width), px(height)))
        .with("width", px(width))
        .with("height", px(height))
        .with("role", "img")
        .with("aria-label", describe)
}

/// The same figure drawn for a wide and for a narrow screen; the style sheet shows one. Shrinking one drawing would
/// shrink its text beyond reading.
pub fn both_sizes(wide: f64, draw: impl Fn(Size) -> Element) -> [Element; 2] {
    let boxed = |class: &str, size| tag("div").class(class).child(draw(size));
    [boxed("wide", Size { width: wide, narrow: false }), boxed("narrow", Size { width: 340.0, narrow: true })]
}

/// How large a figure is to be drawn.
#[derive(Clone, Copy)]
pub struct Size {
    pub width: f64,
    pub narrow: bool,
}

/// How the numbers of an axis are written.
pub type TickLabel = fn(f64) -> String;

/// A plotting area with its axes.
pub struct Frame {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
    pub x: Scale,
    pub y: Scale,
}

impl Frame {
    pub fn height(&self) -> f64 {
        self.bottom - self.top
    }

    /// Horizontal grid lines with their values, and the vertical axis' title above them.
    pub fn y_axis(&self, title: &str, label: TickLabel) -> Element {
        let ticks = self.y.ticks((self.height() / 36.0) as usize);
        let lines = ticks.iter().flat_map(|&tick| {
            let y = self.y.at(tick);
            [line(self.left, y, self.right, y), text(self.left - 8.0, y + 4.0, "end", &label(tick))]
        });
        tag("g").class("axis").children(lines).child(text(0.0, 12.0, "start", title).class("title"))
    }

    /// Values below the plotting area, with the horizontal axis' title under them.
    pub fn x_axis(&self, title: &str, label: TickLabel) -> Element {
        let room = self.right - self.left;
        let widest = self.x.ticks(4).iter().map(|&tick| text_width(&label(tick), TEXT)).fold(0.0, f64::max);
        let ticks = self.x.ticks((room / (widest + 26.0)).max(2.0) as usize);
        let marks =
            ticks.iter().map(|&tick| text(self.x.at(tick), self.bottom + 18.0, "middle", &label(tick)));
        tag("g")
            .class("axis")
            .children(marks)
            .child(text(self.left + room / 2.0, self.bottom + 36.0, "middle", title).class("title"))
    }

    /// Dashed lines between tasks and the tasks' names above them, as long as there is room for names.
    pub fn tasks(&self, borders: &[f64], end: f64) -> Element {
        let mut edges = vec![self.x.at(0.0)];
        edges.extend(borders.iter().map(|&border| self.x.at(border)));
        edges.push(self.x.at(end));
        let widths = edges.windows(2).map(|pair| pair[1] - pair[0]);
        let narrowest = widths.fold(f64::INFINITY, f64::min);
        let long = text_width(&format!("task {}", edges.len()), TEXT) + 4.0;
        let short = text_width(&edges.len().to_string(), TEXT) + 4.0;
        let name = |task: usize| match narrowest {
            room if room >= long => Some(format!("task {task}")),
            room if room >= short => Some(task.to_string()),
            _ => None,
        };
        let names = edges.windows(2).zip(1..).filter_map(|(pair, task)| {
            Some(text((pair[0] + pair[1]) / 2.0, self.top - 6.0, "middle", &name(task)?))
        });
        let lines = edges[1..edges.len() - 1].iter().map(|&x| line(x, self.top - 14.0, x, self.bottom));
        tag("g").class("tasks").children(lines).children(names)
    }
}

pub fn line(x1: f64, y1: f64, x2: f64, y2: f64) -> Element {
    tag("line").with("x1", px(x1)).with("y1", px(y1)).with("x2", px(x2)).with("y2", px(y2))
}

pub fn rect(x: f64, y: f64, width: f64, height: f64) -> Element {
    tag("rect")
        .with("x", px(x))
        .with("y", px(y))
        .with("width", px(width.max(0.0)))
        .with("height", px(height.max(0.0)))
}

pub fn text(x: f64, y: f64, anchor: &str, content: &str) -> Element {
    tag("text").with("x", px(x)).with("y", px(y)).with("text-anchor", anchor).text(content)
}

/// Heights for labels that would like to stand at the given heights but must not overlap: as close as a least gap
/// allows, in the same order, inside `top..bottom` while there is room.
pub fn spread(wanted: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut placed = wanted.to_vec();
    let mut least = top;
    for &index in &order {
        placed[index] = placed[index].max(least);
        least = placed[index] + gap;
    }
    let mut most = bottom;
    for &index in order.iter().rev() {
        placed[index] = placed[index].min(most);
        most = placed[index] - gap;
    }
    placed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn labels_move_only_as_far_as_needed() {
        assert_eq!(spread(&[50.0, 10.0], 14.0, 0.0, 100.0), [50.0, 10.0]);
        assert_eq!(spread(&[50.0, 52.0], 14.0, 0.0, 100.0), [50.0, 64.0]);
        assert_eq!(spread(&[98.0, 99.0], 14.0, 0.0, 100.0), [86.0, 100.0]);
    }

    proptest! {
        #[test]
        fn labels_never_overlap(wanted in prop::collection::vec(0.0..300.0_f64, 1..12)) {
            let mut placed = spread(&wanted, 14.0, 0.0, 300.0);
            placed.sort_by(f64::total_cmp);
            prop_assert!(placed.windows(2).all(|pair| pair[1] - pair[0] >= 14.0 - 1e-9));
        }
    }
}
