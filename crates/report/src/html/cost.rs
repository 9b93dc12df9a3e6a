//! What the runs cost: seconds of learning and evaluating, and peak memory, as horizontal bars.

use super::markup::{Element, fit, tag, text_width};
use super::plot::{TEXT, both_sizes, rect, svg, text};
use super::summary::{header, rows_of, scrolled};
use super::{card, series_class};
use crate::costs;
use crate::format::{bytes, short};
use crate::group::{Group, Run, Setting};
use crate::statistics::Estimate;

const LEFT: f64 = 96.0;
const ROW: f64 = 30.0;
const TOP: f64 = 26.0;

pub fn figure(setting: &Setting) -> Element {
    let groups = &setting.groups;
    let learning = means(groups, |run| run.result.train_seconds);
    let evaluating = means(groups, |run| run.result.eval_seconds);
    let memory = means(groups, |run| run.result.peak_memory_bytes as f64);
    let rates = means(groups, |run| run.result.updates as f64 / run.result.train_seconds);

    let time: Vec<Bar> = (0..groups.len())
        .map(|place| {
            let (learning, evaluating) = (learning[place], evaluating[place]);
            let rate = Some(rates[place]).filter(|rate| rate.is_finite());
            Bar {
                parts: vec![("solid", learning), ("light", evaluating)],
                label: format!("{} s", short(learning + evaluating)),
                tooltip: format!(
                    "{} s learning, {} s evaluating{}",
                    short(learning),
                    short(evaluating),
                    rate.map(|rate| format!(", {} updates/s", short(rate))).unwrap_or_default()
                ),
            }
        })
        .collect();
    let memory: Vec<Bar> = memory
        .into_iter()
        .map(|peak| Bar { parts: vec![("solid", peak)], label: bytes(peak), tooltip: bytes(peak) })
        .collect();
    let panels =
        [(&time, "time: learning, evaluating (lighter)"), (&memory, "peak memory")].map(|(bars, title)| {
            tag("div").children(both_sizes(440.0, |size| draw(groups, bars, title, size.width)))
        });
    let caption = "Wall-clock time and largest resident memory of a run, means over seeds. They depend on the machine and on \
                   what else ran there.";
    card("Time and memory", caption).child(tag("div").class("panels").children(panels))
}

/// The same and the size of the models as numbers, as complexity tables of papers give them.
pub fn table(setting: &Setting) -> Element {
    let table = costs::table(setting);
    let head = header(&table.columns);
    let notes = table.footnotes.iter().map(|note| tag("p").class("note").text(note));
    card("Costs", "Means over seeds.").child(scrolled(head, rows_of(setting, &table))).children(notes)
}

struct Bar {
    parts: Vec<(&'static str, f64)>,
    label: String,
    tooltip: String,
}

fn means(groups: &[Group], value: fn(&Run) -> f64) -> Vec<f64> {
    let mean = |group: &Group| {
        let values: Vec<f64> = group.runs.iter().map(value).collect();
        Estimate::of(&values).map_or(0.0, |estimate| estimate.mean)
    };
    groups.iter().map(mean).collect()
}

fn draw(groups: &[Group], bars: &[Bar], title: &str, width: f64) -> Element {
    let label_room = bars.iter().map(|bar| text_width(&bar.label, TEXT)).fold(0.0, f64::max) + 10.0;
    let length = |bar: &Bar| bar.parts.iter().map(|(_, value)| value).sum::<f64>();
    let longest = bars.iter().map(length).fold(0.0, f64::max);
    let unit = if longest > 0.0 && longest.is_finite() { (width - LEFT - label_room) / longest } else { 0.0 };
    let rows = groups.iter().zip(bars).enumerate().map(|(place, (group, bar))| {
        let top = TOP + place as f64 * ROW;
        let name = fit(&group.name, group.mark(), TEXT, LEFT - 10.0);
        let mut x = LEFT;
        let mut row = tag("g")
            .class(series_class(group))
            .tooltip(format!("{}: {}", group.name, bar.tooltip))
            .child(text(LEFT - 10.0, top + 17.0, "end", &name));
        for (class, value) in &bar.parts {
            row = row.child(
                rect(x, top + 4.0, value * unit, ROW - 12.0).class(format!("bar {class}")).with("rx", 2),
            );
            x += value * unit;
        }
        row.child(text(x + 6.0, top + 17.0, "start", &bar.label).class("value"))
    });
    svg(width, TOP + groups.len() as f64 * ROW, title)
        .class("cost")
        .child(text(0.0, 12.0, "start", title).class("title"))
        .children(rows)
}
