//! Accuracy matrices as heat maps, one a group, averaged over seeds. Row t is the state after task t, column i the
//! test set of task i; what lies above the diagonal was not learned yet and stays empty.

use super::markup::{Element, px, tag};
use super::plot::{rect, svg, text};
use super::scale::ceiling;
use super::{card, group_heading, series_class};
use crate::format::percent;
use crate::group::{Group, Setting};
use crate::statistics::Estimate;

const LEFT: f64 = 58.0;
const TOP: f64 = 40.0;

/// `None` if no task ended in any run.
pub fn figure(setting: &Setting) -> Option<Element> {
    let matrices: Vec<(&Group, Vec<Vec<Option<Estimate>>>)> =
        setting.groups.iter().map(|group| (group, mean_matrix(group))).collect();
    let values = matrices.iter().flat_map(|(_, rows)| rows.iter().flatten().flatten());
    let highest = values.map(|estimate| estimate.mean).reduce(f64::max)?;
    let full = ceiling(highest.max(0.05)).min(1.0);
    let panels = matrices.iter().map(|(group, rows)| {
        tag("div").class(series_class(group)).child(group_heading(group)).child(draw(group, rows, full))
    });
    let caption = "Each row is the state after a task, each column the test images of one task, in percent right. \
                   Reading down a column shows a task being forgotten.";
    Some(card("Accuracy matrix", caption).child(tag("div").class("panels").children(panels)).child(key(full)))
}

fn mean_matrix(group: &Group) -> Vec<Vec<Option<Estimate>>> {
    let tasks = group.runs.iter().map(|run| run.matrix.rows.len()).max().unwrap_or(0);
    let cell = |after: usize, task: usize| {
        let values: Vec<f64> = group.runs.iter().filter_map(|run| run.matrix.get(after, task)).collect();
        Estimate::of(&values)
    };
    (0..tasks).map(|after| (0..=after).map(|task| cell(after, task)).collect()).collect()
}

fn draw(group: &Group, rows: &[Vec<Option<Estimate>>], full: f64) -> Element {
    let tasks = rows.len();
    let side = (250.0 / tasks.max(1) as f64).clamp(11.0, 44.0);
    // Beyond this the numbers of neighbouring cells and headings would touch.
    let numbered = side >= 22.0;
    let every = if numbered { 1 } else { 5 };
    let describe = format!("Accuracy of {} on each task after each task", group.name);
    let mut drawing = svg(LEFT + tasks as f64 * side + 2.0, TOP + tasks as f64 * side + 2.0, &describe)
        .class("heat")
        .child(text(LEFT, 12.0, "start", "tested on task").class("title"));
    for (after, row) in rows.iter().enumerate() {
        let middle = (after as f64 + 0.5) * side;
        if (after + 1) % every == 0 || after == 0 {
            drawing = drawing
                .child(text(LEFT + middle, TOP - 8.0, "middle", &(after + 1).to_string()))
                .child(text(LEFT - 8.0, TOP + middle + 4.0, "end", &format!("after {}", after + 1)));
        }
        for (task, estimate) in row.iter().enumerate() {
            let (x, y) = (LEFT + task as f64 * side, TOP + after as f64 * side);
            drawing = drawing.children(cell(x, y, side, *estimate, full, numbered, (after, task)));
        }
    }
    drawing
}

fn cell(
    x: f64,
    y: f64,
    side: f64,
    estimate: Option<Estimate>,
    full: f64,
    numbered: bool,
    (after, task): (usize, usize),
) -> Vec<Element> {
    let place = format!("task {} after task {}", task + 1, after + 1);
    let inset = if side < 16.0 { 0.5 } else { 1.0 };
    let square = rect(x + inset, y + inset, side - 2.0 * inset, side - 2.0 * inset).with("rx", 3);
    let Some(estimate) = estimate else {
        return vec![square.class("unmeasured").tooltip(format!("{place}: no class met"))];
    };
    let share = (estimate.mean / full).clamp(0.0, 1.0);
    let deviation =
        estimate.deviation.map(|deviation| format!(" ± {}", percent(deviation))).unwrap_or_default();
    let mut drawn = vec![
        square
            .class("measured")
            .with("fill-opacity", format!("{:.2}", 0.05 + 0.95 * share))
            .tooltip(format!("{place}: {}{deviation} %", percent(estimate.mean))),
    ];
    if numbered {
        // Where both text colours have about the same contrast to the cell.
        let shade = if share > 0.68 { "on-dark" } else { "on-light" };
        let number = format!("{:.0}", estimate.mean * 100.0);
        drawn.push(text(x + side / 2.0, y + side / 2.0 + 4.0, "middle", &number).class(shade));
    }
    drawn
}

fn key(full: f64) -> Element {
    const STEPS: usize = 10;
    let width = 160.0 / STEPS as f64;
    let describe = format!("Colour key from 0 to {} percent", px(full * 100.0));
    let steps = (0..STEPS).map(|step| {
        let share = (step as f64 + 0.5) / STEPS as f64;
        rect(30.0 + step as f64 * width, 4.0, width, 12.0)
            .class("measured")
            .with("fill-opacity", format!("{:.2}", 0.05 + 0.95 * share))
    });
    svg(250.0, 20.0, &describe)
        .class("heat key")
        .child(text(0.0, 14.0, "start", "0 %"))
        .children(steps)
        .child(text(198.0, 14.0, "start", &format!("{} %", px(full * 100.0))))
}
