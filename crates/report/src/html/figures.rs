//! Drawings of features in a plane and of the loss around the classifier's weights.

use super::{
    card, key,
    lines::short_percent,
    markup::{Element, px, tag},
    paper::standalone,
    plot::{Frame, svg, text},
    scale::{Scale, ceiling},
    tier,
};
use crate::{
    figures::{Figure, Line, Panel, Point},
    format::short,
    statistics::Estimate,
};

const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 320.0;
/// Steps of colour.
const SHADES: usize = 8;

impl Figure {
    /// The figure in a page.
    pub(super) fn card(&self) -> Element {
        let panel = |panel: &Panel| tag("div").child(tag("h4").text(panel.name())).child(panel.draw());
        let panels = tag("div").class("panels").children(self.panels.iter().map(panel));
        card(&self.title, &self.caption).children(self.legend()).child(panels)
    }

    fn legend(&self) -> Option<Element> {
        let names = self.panels.iter().find_map(|panel| match panel {
            Panel::Landscape { lines, .. } => Some(lines),
            Panel::Scatter { .. } => None,
        })?;
        Some(key(names.iter().enumerate().map(|(place, line)| (tier(place), line.name.clone()))))
    }
}

impl Panel {
    fn name(&self) -> &str {
        match self {
            Self::Scatter { name, .. } | Self::Landscape { name, .. } => name,
        }
    }

    fn draw(&self) -> Element {
        match self {
            Self::Scatter { name, points } => scatter(name, points),
            Self::Landscape { name, lines } => landscape(name, lines),
        }
    }
}

/// Each panel as a file of its own.
pub fn drawings(figure: &Figure) -> Vec<(String, String)> {
    figure.panels.iter().map(|panel| (panel.name().to_owned(), standalone(panel.draw()))).collect()
}

/// The darker, the higher the loss; the highest twentieth is as dark as the rest of it begins.
fn scatter(name: &str, points: &[Point]) -> Element {
    let finite: Vec<&Point> =
        points.iter().filter(|point| [point.x, point.y, point.loss].iter().all(|v| v.is_finite())).collect();
    let ends = |of: fn(&Point) -> f64| {
        let values = finite.iter().map(|point| of(point));
        let (low, high) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        if low < high { (low, high) } else { (low - 1.0, low + 1.0) }
    };
    let mut losses: Vec<f64> = finite.iter().map(|point| point.loss).collect();
    losses.sort_by(f64::total_cmp);
    let most = losses.get(losses.len() * 19 / 20).copied().unwrap_or(1.0).max(1e-9);
    let ((left, right), (low, high)) = (ends(|point| point.x), ends(|point| point.y));
    let (x, y) = (Scale::linear(left, right, 8.0, WIDTH - 8.0), Scale::linear(low, high, HEIGHT - 40.0, 8.0));
    let dot = |point: &&Point| {
        tag("circle")
            .with("cx", px(x.at(point.x)))
            .with("cy", px(y.at(point.y)))
            .with("r", 2.6)
            .with("fill-opacity", shade(point.loss / most))
            .tooltip(format!("{}, loss {}", point.class, short(point.loss)))
    };
    let step = 14.0;
    let shades = (0..SHADES).map(|at| {
        let share = at as f64 / (SHADES - 1) as f64;
        super::plot::rect(WIDTH / 2.0 + (at as f64 - SHADES as f64 / 2.0) * step, HEIGHT - 24.0, step, 10.0)
            .with("fill-opacity", shade(share))
    });
    let side = SHADES as f64 / 2.0 * step + 8.0;
    svg(WIDTH, HEIGHT, &format!("Features of {name} in a plane, darker where the loss is higher"))
        .child(tag("g").with("fill", "var(--heat)").children(finite.iter().map(dot)).children(shades))
        .child(text(WIDTH / 2.0 - side, HEIGHT - 15.0, "end", "loss 0"))
        .child(text(WIDTH / 2.0 + side, HEIGHT - 15.0, "start", &format!("{} and more", short(most))))
}

fn shade(share: f64) -> String {
    let step = (share.clamp(0.0, 1.0) * (SHADES - 1) as f64).round() / (SHADES - 1) as f64;
    format!("{:.2}", 0.12 + 0.88 * step)
}

fn landscape(name: &str, lines: &[Line]) -> Element {
    let banded: Vec<Vec<(f64, Estimate)>> = lines
        .iter()
        .map(|line| {
            let at = |(x, losses): &(f64, Vec<f64>)| Some((*x, Estimate::of(&finite(losses))?));
            line.points.iter().filter_map(at).collect()
        })
        .collect();
    let most = banded.iter().flatten().map(|(_, estimate)| estimate.mean).fold(0.0, f64::max);
    let reach = banded.iter().flatten().map(|(x, _)| x.abs()).fold(0.0, f64::max).max(1e-9);
    let (left, right, top, bottom) = (46.0, WIDTH - 10.0, 26.0, HEIGHT - 42.0);
    let frame = Frame {
        left,
        right,
        top,
        bottom,
        x: Scale::linear(-reach, reach, left, right),
        y: Scale::linear(0.0, ceiling(most.max(1e-9)), bottom, top),
    };
    let drawn = banded.iter().enumerate().map(|(place, band)| {
        let point = |x: f64, y: f64| format!("{} {}", px(frame.x.at(x)), px(frame.y.at(y).max(top)));
        let middle: Vec<String> = band.iter().map(|(x, estimate)| point(*x, estimate.mean)).collect();
        let above = band.iter().map(|(x, estimate)| point(*x, estimate.high()));
        let below = band.iter().rev().map(|(x, estimate)| point(*x, estimate.low()));
        let around: Vec<String> = above.chain(below).collect();
        let path = |class: &str, points: &[String], end: &str| {
            tag("path").class(class).with("d", format!("M{}{end}", points.join("L")))
        };
        tag("g")
            .class(tier(place))
            .child(path("band", &around, "Z"))
            .child(path("line", &middle, "").tooltip(&lines[place].name))
    });
    svg(WIDTH, HEIGHT, &format!("Loss of the first task {name} around the classifier's weights"))
        .class("lines")
        .child(frame.y_axis("loss of the first task", short))
        .child(frame.x_axis("shift along a random direction", |shift| short_percent(shift / 100.0)))
        .children(drawn)
}

fn finite(values: &[f64]) -> Vec<f64> {
    values.iter().copied().filter(|value| value.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_are_drawings_of_their_own() {
        let point = |x: f64, loss: f64| Point { x, y: x * x, loss, class: "<cat>".into() };
        let line = Line {
            name: "er".into(),
            points: vec![(-1.0, vec![2.0, 4.0]), (0.0, vec![1.0, 1.0]), (1.0, vec![3.0])],
        };
        let panels = vec![
            Panel::Scatter {
                name: "er".into(),
                points: vec![point(1.0, 0.1), point(2.0, 3.0), point(f64::NAN, 1.0)],
            },
            Panel::Landscape { name: "after task 1".into(), lines: vec![line] },
        ];
        let figure = Figure { id: "f".into(), title: "t".into(), caption: String::new(), panels };
        let drawings = figure.drawings();
        assert_eq!(drawings[0].1.matches("<circle").count(), 2);
        assert!(drawings[0].1.contains("&lt;cat&gt;, loss 3") && drawings[0].1.contains("xmlns="));
        assert!(drawings[1].1.contains("class=\"line\"") && !drawings[1].1.contains("NaN"));
        let text = serde_json::to_string(&figure).unwrap();
        assert!(!text.is_empty());
    }
}
