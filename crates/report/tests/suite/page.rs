//! The page as a document: well formed, closed to the outside, harmless whatever a record holds.

use crate::made_up::Plan;
use dpcl_report::Report;
use dpcl_report::against::Asked;
use dpcl_report::record::{ClassCount, ConfidenceBin, EvaluationKind, Event, FORMAT, Kept, Uncertainty};
use proptest::prelude::*;

fn page() -> String {
    let plans = [
        Plan { heads: 3, ..Plan::small("er", 0.9, 0.5) },
        Plan { memory: 0, ..Plan::small("finetune", 0.9, 0.0) },
    ];
    Report::new(plans.iter().flat_map(|plan| [1, 2].map(|seed| plan.record(seed))).collect()).html()
}

/// Checks that every tag is closed in order, every attribute quoted, and no bare `<` or `&` left.
pub fn check_well_formed(page: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>\n").ok_or("no document type")?;
    while let Some(start) = rest.find('<') {
        check_text(&rest[..start])?;
        let end = start + rest[start..].find('>').ok_or("a tag never ends")?;
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("</{name}> closes nothing"));
            }
            continue;
        }
        let name = tag.split([' ', '/']).next().unwrap_or_default();
        let attributes = tag[name.len()..].trim_end_matches(" /");
        // Outside the quotes only ` name=` may stand, and nothing after the last of them.
        let mut outside = attributes.split('"').step_by(2).collect::<Vec<_>>();
        let last = outside.pop().unwrap_or_default();
        if !last.is_empty() || outside.iter().any(|name| !name.starts_with(' ') || !name.ends_with('=')) {
            return Err(format!("<{tag}> has an attribute without quotes around it"));
        }
        check_text(attributes)?;
        if !tag.ends_with(" /") {
            open.push(name);
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} never closed")) }
}

fn check_text(text: &str) -> Result<(), String> {
    let known = ["amp;", "lt;", "gt;", "quot;"];
    let bare = text.split('&').skip(1).find(|after| !known.iter().any(|entity| after.starts_with(entity)));
    bare.map_or(Ok(()), |after| Err(format!("a bare & before {after:.20}")))
}

#[test]
fn the_page_is_well_formed() {
    assert_eq!(check_well_formed(&page()), Ok(()));
}

#[test]
fn the_checker_finds_what_it_should() {
    let broken = ["<p>", "<p></b>", "<p class=x></p>", "<p>a & b</p>", "<p><b></p></b>"];
    for text in broken {
        assert!(check_well_formed(&format!("<!DOCTYPE html>\n{text}")).is_err(), "{text}");
    }
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let page = page();
    for forbidden in
        ["http:", "https:", "<script", "<link", "<iframe", "@import", "url(", "src=\"//", "href=\"//"]
    {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    let sources = page.split("src=\"").skip(1);
    assert!(sources.clone().count() > 0);
    assert!(sources.into_iter().all(|source| source.starts_with("data:image/png;base64,")));
    assert!(page.split("href=\"").skip(1).all(|link| link.starts_with('#')));
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn names_from_records_are_text() {
    let page = page();
    assert!(page.contains("cat &amp; dog") && page.contains("&lt;b&gt;ox&lt;/b&gt;"));
    assert!(page.contains("&quot;hen&quot;"));
    assert!(!page.contains("<b>ox"));
}

#[test]
fn figures_have_descriptions_and_captions() {
    let page = page();
    let drawings = page.matches("<svg ").count();
    assert!(drawings > 10);
    assert_eq!(page.matches("role=\"img\" aria-label=\"").count(), drawings);
    assert_eq!(page.matches("<figure ").count(), page.matches("<figcaption>").count());
    assert!(page.matches("<img ").count() == page.matches(" alt=\"").count());
}

#[test]
fn every_section_is_there() {
    let page = page();
    for title in [
        "Summary",
        "Any-time accuracy",
        "Accuracy matrix",
        "Forgetting per task",
        "Time and memory",
        "Costs",
        "Per-class accuracy at the end",
        "Risk and coverage",
        "Calibration",
        "Training loss",
        "Learning rate",
        "Memory",
        "Configuration",
        "Runs",
    ] {
        assert!(page.contains(&format!("<h3>{title}</h3>")), "{title}");
    }
    assert!(page.contains("dpcl run small --method er --seeds 1"), "the command that made a run");
}

#[test]
fn only_heads_that_disagree_have_a_line_of_disagreement() {
    let page = page();
    assert!(page.contains("er by disagreement, AURC"));
    assert!(!page.contains("finetune by disagreement"));
    // The line, drawn wide and narrow, and its place in the key.
    assert_eq!(page.matches(" dotted\"").count(), 3);
    let [er, finetune] = ["er, ECE", "finetune, ECE"].map(|text| page.matches(text).count());
    assert_eq!([er, finetune], [1, 1]);
}

#[test]
fn records_that_do_not_tell_of_uncertainty_or_size_still_have_a_page() {
    let mut record = Plan::small("er", 0.9, 0.5).record(1);
    record.events.retain(|event| !matches!(event, Event::Uncertainty(_)));
    let result = record.result.as_mut().unwrap();
    result.parameters = None;
    result.metrics = dpcl_report::metrics::metrics(&record.events);
    let report = Report::new(vec![record]);
    let page = report.html();
    assert_eq!(check_well_formed(&page), Ok(()));
    for absent in ["Risk and coverage", "Calibration", "model size"] {
        assert!(!page.contains(absent), "{absent}");
    }
    assert!(page.contains("<h3>Costs</h3>"));
    assert!(!report.markdown().contains("ece"));
    assert_eq!(report.notes, Vec::<String>::new());
}

#[test]
fn on_a_page_of_thirty_methods_each_can_be_hidden_and_pointed_at() {
    let method =
        |at: usize| Plan::small(format!("method-{at:02}").leak(), 0.9 - at as f64 / 100.0, 0.5).record(1);
    let many = Report::new((0..30).map(method).collect()).html();
    assert_eq!(check_well_formed(&many), Ok(()));
    assert!(many.contains("30 methods: show, hide"));
    for at in 0..30 {
        assert!(many.contains(&format!("id=\"m{at}\"")), "{at}");
        assert!(
            many.contains(&format!("body:has(#m{at}:not(:checked)) .m{at} {{ display: none; }}")),
            "{at}"
        );
        assert!(many.matches(&format!(" m{at}\"")).count() > 1, "{at}");
    }
    // What has a panel a method is folded, and no two methods look the same.
    assert!(many.contains("Memory of 30 methods"));
    let looks: std::collections::BTreeSet<&str> = many
        .split("<li class=\"")
        .skip(1)
        .filter_map(|entry| entry.split(" pick-").next())
        .take(30)
        .collect();
    assert_eq!(looks.len(), 30);
    assert!(!many.contains("<script") && !page().contains("chooser\""));
}

#[test]
fn the_same_records_give_the_same_page() {
    assert_eq!(page(), page());
}

#[test]
fn a_run_that_measured_nothing_still_has_a_page() {
    let mut record = Plan::small("er", 0.9, 0.5).record(1);
    record.events.truncate(1);
    let page = Report::new(vec![record]).html();
    assert_eq!(check_well_formed(&page), Ok(()));
    assert!(page.contains("there is no accuracy to report"));
}

/// Events a reader accepts but no sane run writes.
fn odd_event() -> impl Strategy<Value = Event> {
    let number =
        prop_oneof![Just(0.0), Just(f64::NAN), Just(1e308), Just(-1e308), Just(1e-320), -10.0..10.0_f64];
    let count = prop_oneof![Just(0), Just(1), Just(u64::MAX), 0_u64..1000];
    let class = 0_usize..3;
    let evaluation = (
        count.clone(),
        prop::collection::vec((class.clone(), count.clone(), count.clone()), 0..4),
        any::<bool>(),
    );
    prop_oneof![
        (count.clone(), number.clone(), number).prop_map(|(samples, loss, rate)| Event::Progress {
            samples,
            updates: samples,
            loss,
            rate,
            counters: Default::default()
        }),
        evaluation.prop_map(|(samples, counts, end)| Event::Evaluation {
            samples,
            updates: samples,
            kind: if end { EvaluationKind::TaskEnd((samples % 2) as usize) } else { EvaluationKind::Period },
            classes: counts
                .into_iter()
                .map(|(class, a, b)| ClassCount { class, correct: a.min(b), total: a.max(b) })
                .collect(),
        }),
        (count.clone(), class.clone(), any::<u32>()).prop_map(|(samples, class, slots)| Event::Memory {
            samples,
            slots: vec![(class, slots as usize)]
        }),
        (count.clone(), class).prop_map(|(samples, class)| Event::NewClass { samples, class }),
        (count.clone(), count.clone(), count, any::<bool>()).prop_map(|(samples, a, b, several)| {
            let kept = [Kept { kept: a, correct: a.min(b) }, Kept { kept: b, correct: b }];
            let kept = kept[usize::from(!several)..].to_vec();
            Event::Uncertainty(Uncertainty {
                samples,
                calibration: vec![ConfidenceBin { count: a, confidence: b as f64, correct: a.min(b) }],
                by_confidence: kept.clone(),
                by_entropy: Vec::new(),
                by_disagreement: kept,
            })
        }),
        "\\PC{0,20}".prop_map(|png| Event::Glimpse { png }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_record_breaks_a_format(
        events in prop::collection::vec(odd_event(), 0..12),
        names in prop::collection::vec("\\PC{0,12}", 3),
        sizes in prop::collection::vec(prop_oneof![Just(0_usize), 1_usize..500], 2),
        seconds in prop_oneof![Just(0.0), Just(1e300), 0.0..1e4_f64],
    ) {
        let mut record = Plan::small("er", 0.9, 0.5).record(1);
        record.events = vec![Event::Start {
            format: FORMAT,
            classes: names,
            task_classes: vec![vec![0], vec![1, 2]],
            task_samples: sizes,
        }];
        record.events.extend(events);
        record.result.as_mut().unwrap().train_seconds = seconds;
        let report = Report::new(vec![record.clone()]);
        prop_assert_eq!(check_well_formed(&report.html()), Ok(()));
        let lengths = [
            report.terminal(80, false).len(),
            report.markdown().len(),
            report.latex().len(),
            report.csv().len(),
            report.json().len(),
        ];
        prop_assert!(lengths.iter().all(|length| *length > 0));

        let mut report = Report::new(vec![record, Plan::small("other", 0.9, 0.5).record(1)]);
        report.compare(&Asked { against: "other".into(), metrics: Vec::new(), margin: 3.0 }).unwrap();
        prop_assert_eq!(check_well_formed(&report.html()), Ok(()));
        let compared = [report.terminal(80, false), report.markdown(), report.latex(), report.json()];
        prop_assert!(compared.iter().all(|text| text.contains("other")));
    }
}

#[test]
fn tables_show_that_they_scroll() {
    let page = page();
    let (_, style) = page.split_once(".scroll {").unwrap();
    let (style, _) = style.split_once('}').unwrap();
    assert!(style.contains("overflow-x: auto"), "{style}");
    for (kind, count) in [("no-repeat local", 2), ("no-repeat scroll", 2), ("var(--shade)", 2)] {
        assert_eq!(style.matches(kind).count(), count, "{kind}: {style}");
    }
}

/// Values on the vertical axis of the figure of learning rates, from below.
fn rate_axis(page: &str) -> Vec<f64> {
    let (_, figure) = page.split_once("<h3>Learning rate</h3>").unwrap();
    let (_, axis) = figure.split_once("<g class=\"axis\">").unwrap();
    let (axis, _) = axis.split_once("</g>").unwrap();
    let texts = axis.split("text-anchor=\"end\">").skip(1);
    texts.map(|text| text.split('<').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn the_axis_of_a_rate_that_changes_little_shows_how_it_changes() {
    let mut record = Plan::small("er", 0.9, 0.5).record(1);
    let rate_of = |samples: u64| 3e-4 * 0.9999_f64.powf(samples as f64 / 2.0);
    let (mut lowest, mut highest) = (f64::INFINITY, 0.0_f64);
    for event in &mut record.events {
        if let Event::Progress { rate, samples, .. } = event {
            *rate = rate_of(*samples);
            (lowest, highest) = (lowest.min(*rate), highest.max(*rate));
        }
    }
    assert!(lowest > highest * 0.9, "{lowest} {highest}");
    let page = Report::new(vec![record]).html();
    assert!(page.contains("The axis does not begin at 0."));
    let ticks = rate_axis(&page);
    assert!(ticks.len() > 2 && ticks.windows(2).all(|pair| pair[0] < pair[1]), "{ticks:?}");
    assert!(ticks[0] > lowest * 0.95, "{ticks:?}");
}
