//! A page of many methods: boxes that show and hide each of them everywhere, a highlight for the one pointed at, and what
//! has a panel a method folded away. By style alone; the page has no script.

use std::collections::BTreeMap;

use super::{
    markup::{Element, tag},
    swatch, tier,
};
use crate::{Report, group::Setting};

/// With more methods than this a page gets boxes and folds.
const MANY: usize = 12;

/// Names by their colours, where there are many.
fn names(report: &Report) -> Option<BTreeMap<usize, String>> {
    let groups = report.settings.iter().flat_map(|setting| &setting.groups);
    let names: BTreeMap<usize, String> =
        groups.map(|group| (group.colour, format!("{}{}", group.name, group.mark()))).collect();
    (names.len() > MANY).then_some(names)
}

/// The boxes.
pub fn boxes(report: &Report) -> Option<Element> {
    let names = names(report)?;
    let entry = |(colour, name): (&usize, &String)| {
        let input =
            tag("input").with("type", "checkbox").with("id", format!("m{colour}")).with("checked", "checked");
        let label = tag("label").child(input).child(swatch()).child(tag("span").text(name));
        tag("li").class(tier(*colour)).class(format!("pick-{colour}")).child(label)
    };
    let list = tag("ul").class("legend").children(names.iter().map(entry));
    let all = tag("button").with("type", "reset").text("show all");
    let summary = tag("summary").text(format!("{} methods: show, hide, point at one", names.len()));
    Some(
        tag("details")
            .class("card chooser")
            .with("open", "open")
            .child(summary)
            .child(tag("form").child(list).child(all)),
    )
}

/// The style that makes them work.
pub fn rules(report: &Report) -> String {
    let rule = |colour: usize| {
        format!(
            "body:has(#m{colour}:not(:checked)) .m{colour} {{ display: none; }}\n\
             body:has(.pick-{colour}:hover) .lines g[class^=s]:not(.m{colour}) {{ opacity: 0.1; }}\n\
             body:has(.pick-{colour}:hover) tr.m{colour} {{ background: var(--code); }}\n"
        )
    };
    names(report).map(|names| names.into_keys().map(rule).collect()).unwrap_or_default()
}

/// A figure with a panel a method, folded away where there are many.
pub fn fold(setting: &Setting, title: &str, figure: Element) -> Element {
    if setting.groups.len() <= MANY {
        return figure;
    }
    let summary = tag("summary").text(format!("{title} of {} methods", setting.groups.len()));
    tag("details").class("fold").child(summary).child(figure)
}
