//! What the memory held at the end: slots per class, and a glimpse of its images. Of several seeds the lowest is
//! shown, because contents cannot be averaged.

use std::collections::BTreeMap;

use super::markup::{Element, px, tag};
use super::plot::{line, rect, svg, text};
use super::scale::{Scale, ceiling};
use super::{card, group_heading, series_class};
use crate::group::{Group, Run, Setting};
use crate::record::Event;

const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 170.0;

/// `None` if no method keeps anything.
pub fn figure(setting: &Setting) -> Option<Element> {
    let panels: Vec<Element> = setting.groups.iter().filter_map(panel).collect();
    if panels.is_empty() {
        return None;
    }
    let caption = "Memory slots each class holds at the end, in the order in which the classes were met, and some of the \
                   images kept there.";
    Some(card("Memory", caption).child(tag("div").class("panels").children(panels)))
}

fn panel(group: &Group) -> Option<Element> {
    let run = group.first();
    let slots = slots(run);
    let glimpse = glimpse(run);
    if slots.is_empty() && glimpse.is_none() {
        return None;
    }
    let mut panel = tag("div").class(series_class(group)).child(group_heading(group));
    if !slots.is_empty() {
        panel = panel.child(draw(run, &slots));
    }
    Some(panel.children(glimpse))
}

/// Classes in order of arrival with their slots at the last count; classes that lost all slots included.
fn slots(run: &Run) -> Vec<(usize, usize)> {
    let events = &run.record.events;
    let last = events.iter().rev().find_map(|event| match event {
        Event::Memory { slots, .. } => Some(slots),
        _ => None,
    });
    let Some(last) = last else { return Vec::new() };
    let mut held: BTreeMap<usize, usize> = last.iter().copied().collect();
    if held.values().all(|&slots| slots == 0) {
        return Vec::new();
    }
    let met = events.iter().filter_map(|event| match event {
        Event::NewClass { class, .. } => Some(*class),
        _ => None,
    });
    let mut ordered: Vec<(usize, usize)> =
        met.map(|class| (class, held.remove(&class).unwrap_or(0))).collect();
    ordered.extend(held);
    ordered
}

fn draw(run: &Run, slots: &[(usize, usize)]) -> Element {
    let most = slots.iter().map(|(_, slots)| *slots).max().unwrap_or(0) as f64;
    let (left, right, top, bottom) = (36.0, WIDTH - 2.0, 28.0, HEIGHT - 24.0);
    let y = Scale::linear(0.0, ceiling(most), bottom, top);
    let thick = (right - left) / slots.len() as f64;
    let grid = y.ticks(3).into_iter().flat_map(|tick| {
        [line(left, y.at(tick), right, y.at(tick)), text(left - 6.0, y.at(tick) + 4.0, "end", &px(tick))]
    });
    let bars = slots.iter().enumerate().map(|(place, &(class, slots))| {
        let gap = if thick > 5.0 { 1.0 } else { 0.0 };
        let height = bottom - y.at(slots as f64);
        let name = run.classes().get(class).map_or("unknown class", String::as_str);
        rect(left + place as f64 * thick + gap, bottom - height, thick - 2.0 * gap, height)
            .class("bar")
            .with("rx", if thick > 5.0 { 2 } else { 0 })
            .tooltip(format!("{name}: {slots} slots"))
    });
    let all: usize = slots.iter().fold(0, |sum, (_, slots)| sum.saturating_add(*slots));
    let below = format!("{} classes, {all} slots, seed {}", slots.len(), run.result.seed);
    svg(WIDTH, HEIGHT, "Memory slots of each class at the end")
        .class("bars")
        .child(tag("g").class("axis").children(grid))
        .children(bars)
        .child(line(left, bottom, right, bottom).class("zero"))
        .child(text(0.0, 12.0, "start", "slots").class("title"))
        .child(text((left + right) / 2.0, HEIGHT - 6.0, "middle", &below).class("title"))
}

fn glimpse(run: &Run) -> Option<Element> {
    let png = run.record.events.iter().rev().find_map(|event| match event {
        Event::Glimpse { png } => Some(png),
        _ => None,
    })?;
    if !is_png(png) {
        return None;
    }
    Some(
        tag("img")
            .class("glimpse")
            .with("alt", "Some of the images in memory at the end")
            .with("src", format!("data:image/png;base64,{png}")),
    )
}

/// Base64 of something that begins as PNG files do; anything else is no picture and does not go into the page.
fn is_png(text: &str) -> bool {
    text.starts_with("iVBORw0KGgo")
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pictures_are_shown() {
        assert!(is_png("iVBORw0KGgoAAAA="));
        assert!(!is_png("iVBORw0KGgo\" onload=\"x"));
        assert!(!is_png("R0lGODlh"));
    }
}
