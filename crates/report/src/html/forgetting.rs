//! How much of each task was lost by the end: bars per task and group with the spread over seeds.

use super::markup::{Element, tag};
use super::plot::{Frame, Size, both_sizes, line, rect, svg, text};
use super::scale::{Scale, ceiling};
use super::{card, legend, series_class};
use crate::format::percent;
use crate::group::{Group, Setting};
use crate::statistics::Estimate;

/// `None` for streams of one task, where nothing can be forgotten.
pub fn figure(setting: &Setting) -> Option<Element> {
    let series: Vec<(&Group, Vec<Option<Estimate>>)> =
        setting.groups.iter().map(|group| (group, mean_drops(group))).collect();
    series.iter().flat_map(|(_, drops)| drops).flatten().next()?;
    // As many bars as half the page's width can keep apart.
    let bars: usize = series.iter().map(|(_, drops)| drops.len()).sum();
    let (width, class) = if bars > 40 { (940.0, "full") } else { (500.0, "half") };
    let caption = "Accuracy on a task right after learning it, minus accuracy on it at the end. Below zero the task was \
                   improved by what came later.";
    Some(
        card("Forgetting per task", caption)
            .class(class)
            .child(legend(&setting.groups))
            .children(both_sizes(width, |size| draw(&series, size))),
    )
}

fn mean_drops(group: &Group) -> Vec<Option<Estimate>> {
    let drops: Vec<Vec<Option<f64>>> = group.runs.iter().map(|run| run.matrix.forgetting()).collect();
    let tasks = drops.iter().map(Vec::len).max().unwrap_or(0);
    let of_task = |task: usize| {
        let values: Vec<f64> = drops.iter().filter_map(|drops| *drops.get(task)?).collect();
        Estimate::of(&values)
    };
    (0..tasks).map(of_task).collect()
}

fn draw(series: &[(&Group, Vec<Option<Estimate>>)], size: Size) -> Element {
    let tasks = series.iter().map(|(_, drops)| drops.len()).max().unwrap_or(0);
    let estimates = || series.iter().flat_map(|(_, drops)| drops).flatten();
    let high = estimates().map(Estimate::high).fold(0.05, f64::max);
    let low = estimates().map(Estimate::low).fold(0.0, f64::min);
    let height = if size.narrow { 250.0 } else { 300.0 };
    let (left, right, top, bottom) = (46.0, size.width - 4.0, 30.0, height - 42.0);
    let frame = Frame {
        left,
        right,
        top,
        bottom,
        x: Scale::linear(0.0, tasks as f64, left, right),
        y: Scale::linear(-ceiling(-low), ceiling(high), bottom, top),
    };
    let slot = (right - left) / tasks as f64;
    let thick = (slot * 0.78 / series.len() as f64).min(34.0);
    let every = (24.0 / slot).ceil().max(1.0) as usize;
    let names = (0..tasks).step_by(every).map(|task| {
        text(left + (task as f64 + 0.5) * slot, bottom + 18.0, "middle", &(task + 1).to_string())
    });
    let bars = series.iter().enumerate().map(|(place, (group, drops))| {
        let offset = (place as f64 - series.len() as f64 / 2.0) * thick;
        let bars = drops.iter().enumerate().filter_map(|(task, estimate)| {
            let middle = left + (task as f64 + 0.5) * slot + offset + thick / 2.0;
            estimate.map(|estimate| bar(&frame, middle, thick, group, task, estimate))
        });
        tag("g").class(series_class(group)).children(bars)
    });
    svg(size.width, height, "Forgetting of each task by each method")
        .class("bars")
        .child(frame.y_axis("percentage points lost", |share| format!("{:.0}", share * 100.0 + 0.0)))
        .child(
            tag("g")
                .class("axis")
                .children(names)
                .child(text((left + right) / 2.0, bottom + 36.0, "middle", "task").class("title")),
        )
        .children(bars)
        .child(line(left, frame.y.at(0.0), right, frame.y.at(0.0)).class("zero"))
}

fn bar(frame: &Frame, middle: f64, thick: f64, group: &Group, task: usize, estimate: Estimate) -> Element {
    let (zero, end) = (frame.y.at(0.0), frame.y.at(estimate.mean));
    let gap = if thick > 6.0 { 1.0 } else { 0.0 };
    let deviation =
        estimate.deviation.map(|deviation| format!(" ± {}", percent(deviation))).unwrap_or_default();
    let mut drawn = tag("g")
        .tooltip(format!("{}, task {}: {}{deviation} points", group.name, task + 1, percent(estimate.mean)))
        .child(
            rect(middle - thick / 2.0 + gap, zero.min(end), thick - 2.0 * gap, (zero - end).abs())
                .class("bar")
                .with("rx", 2),
        );
    if estimate.deviation.is_some() {
        drawn = drawn.child(
            line(middle, frame.y.at(estimate.low()), middle, frame.y.at(estimate.high())).class("whisker"),
        );
    }
    drawn
}
