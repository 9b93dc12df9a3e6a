//! Accuracy on every class at the end: one row a class, one dot a group, easiest classes first.

use std::collections::BTreeMap;

use super::markup::{Element, fit, px, tag};
use super::plot::{TEXT, line, svg, text};
use super::scale::Scale;
use super::{card, legend, series_class};
use crate::format::percent;
use crate::group::{Group, Setting};
use crate::metrics::final_counts;
use crate::statistics::Estimate;

const ROW: f64 = 19.0;
const WIDTH: f64 = 340.0;
const LEFT: f64 = 112.0;
const TOP: f64 = 34.0;
/// Panels stand side by side, or one below the other on a narrow screen.
const PANELS: usize = 3;
/// Fewer rows than this are not worth a further panel.
const LEAST_ROWS: usize = 6;
/// More rows than this are hard to read across.
const MOST_ROWS: usize = 30;
/// More classes than this are folded away.
const MOST_OPEN: usize = 60;

struct Class {
    name: String,
    /// One a group, in the setting's order.
    accuracies: Vec<Option<Estimate>>,
}

impl Class {
    fn mean(&self) -> f64 {
        let values: Vec<f64> = self.accuracies.iter().flatten().map(|estimate| estimate.mean).collect();
        Estimate::of(&values).map_or(0.0, |estimate| estimate.mean)
    }
}

/// `None` if nothing was evaluated at a task end.
pub fn figure(setting: &Setting) -> Option<Element> {
    let mut classes = classes(setting);
    if classes.is_empty() {
        return None;
    }
    classes.sort_by(|a, b| b.mean().total_cmp(&a.mean()).then_with(|| a.name.cmp(&b.name)));
    let rows = classes.len().div_ceil(PANELS).clamp(LEAST_ROWS, MOST_ROWS);
    let panels = classes.chunks(rows).map(|rows| tag("div").child(draw(&setting.groups, rows)));
    let panels = tag("div").class("panels").children(panels);
    let folded = if classes.len() > MOST_OPEN {
        let summary = tag("summary").text(format!("Show all {} classes", classes.len()));
        tag("details").child(summary).child(panels)
    } else {
        panels
    };
    let caption =
        "Share of each class' test images that are right after the last task; easiest classes first.";
    Some(card("Per-class accuracy at the end", caption).child(legend(&setting.groups)).child(folded))
}

fn classes(setting: &Setting) -> Vec<Class> {
    let mut values: BTreeMap<&str, Vec<Vec<f64>>> = BTreeMap::new();
    for (place, group) in setting.groups.iter().enumerate() {
        for run in &group.runs {
            for count in final_counts(&run.record.events).iter().filter(|count| count.total > 0) {
                let Some(name) = run.classes().get(count.class) else { continue };
                let of_class = values.entry(name).or_insert_with(|| vec![Vec::new(); setting.groups.len()]);
                of_class[place].push(count.correct as f64 / count.total as f64);
            }
        }
    }
    let class = |(name, values): (&str, Vec<Vec<f64>>)| Class {
        name: name.to_owned(),
        accuracies: values.iter().map(|values| Estimate::of(values)).collect(),
    };
    values.into_iter().map(class).collect()
}

fn draw(groups: &[Group], rows: &[Class]) -> Element {
    let bottom = TOP + rows.len() as f64 * ROW;
    let x = Scale::linear(0.0, 1.0, LEFT, WIDTH - 18.0);
    let grid = x.ticks(4).into_iter().flat_map(|tick| {
        let label = format!("{:.0}", tick * 100.0);
        [line(x.at(tick), TOP - 6.0, x.at(tick), bottom), text(x.at(tick), TOP - 12.0, "middle", &label)]
    });
    let drawn = rows
        .iter()
        .enumerate()
        .map(|(place, class)| row(groups, class, &x, TOP + (place as f64 + 0.5) * ROW));
    svg(WIDTH, bottom + 4.0, "Accuracy of each method on each class at the end")
        .class("dots")
        .child(
            tag("g")
                .class("axis")
                .children(grid)
                .child(text(0.0, TOP - 12.0, "start", "right, %").class("title")),
        )
        .children(drawn)
}

fn row(groups: &[Group], class: &Class, x: &Scale, y: f64) -> Element {
    let means = || class.accuracies.iter().flatten().map(|estimate| x.at(estimate.mean));
    let (low, high) = (means().fold(f64::INFINITY, f64::min), means().fold(0.0, f64::max));
    let name =
        text(LEFT - 12.0, y + 4.0, "end", &fit(&class.name, "", TEXT, LEFT - 12.0)).tooltip(&class.name);
    // The best group is drawn last, so that it lies on top where dots meet.
    let dots = groups.iter().zip(&class.accuracies).rev().filter_map(|(group, estimate)| {
        let estimate = (*estimate)?;
        let deviation =
            estimate.deviation.map(|deviation| format!(" ± {}", percent(deviation))).unwrap_or_default();
        Some(
            tag("circle")
                .class(format!("{} dot", series_class(group)))
                .with("cx", px(x.at(estimate.mean)))
                .with("cy", px(y))
                .with("r", 4.5)
                .tooltip(format!("{}, {}: {}{deviation} %", class.name, group.name, percent(estimate.mean))),
        )
    });
    tag("g").child(name).child(line(low, y, high, y).class("range")).children(dots)
}
