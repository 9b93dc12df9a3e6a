//! Whether the methods know what they do not know: wrong answers over the share of images answered, and accuracy over
//! confidence.

use super::lines::{Horizontal, Lines, Series, Vertical, short_percent};
use super::markup::{Element, px, tag};
use super::plot::{Frame, Size, both_sizes, line, svg};
use super::scale::Scale;
use super::{card, key, pair, series_class};
use crate::format::{percent, thousands};
use crate::group::{Group, Run, Setting};
use crate::record::{ConfidenceBin, Kept, Uncertainty};
use crate::statistics::{Band, Estimate, average};
use crate::uncertainty::{last, ranks, risk_coverage};

/// A line passes by bins that hold less than this share of the answers: a few answers say little about a confidence.
const LEAST_SHARE: f64 = 0.01;

/// `None` if no record tells how sure its answers were.
pub fn figures(setting: &Setting) -> Option<Element> {
    let figures: Vec<Element> = risk(setting).into_iter().chain(reliability(setting)).collect();
    (!figures.is_empty()).then(|| pair(figures))
}

fn risk(setting: &Setting) -> Option<Element> {
    let lines = |group| {
        let confidence = band(group, |last| &last.by_confidence);
        let disagreement = band(group, |last| &last.by_disagreement);
        [(confidence, false), (disagreement, true)].map(|(band, dotted)| Series { group, band, dotted })
    };
    let series: Vec<Series> =
        setting.groups.iter().flat_map(lines).filter(|series| !series.band.is_empty()).collect();
    if series.is_empty() {
        return None;
    }
    let entries: Vec<(String, String)> = series.iter().map(|series| (series.class(), area(series))).collect();
    let several = setting.groups.iter().any(|group| group.runs.len() > 1);
    let caption = [
        "Share of wrong answers if only the surest are given, most confident first; all are given at the right.",
        if series.iter().any(|series| series.dotted) {
            " Dotted: the answers first on which the heads disagree least."
        } else {
            ""
        },
        if several { " Bands are one standard deviation over seeds." } else { "" },
        " AURC is the mean height of a line.",
    ];
    let lines = Lines {
        series,
        x: Horizontal::Share("share of test images answered, %"),
        y: Vertical::Percent,
        y_title: "wrong among the answers given, %",
        describe: "Share of wrong answers of each method over the share of images answered".into(),
        names: false,
        height: 320.0,
    };
    Some(
        card("Risk and coverage", &caption.concat())
            .child(key(entries.into_iter()))
            .children(both_sizes(500.0, |size| lines.draw(size))),
    )
}

/// Empty where nothing is recorded or all answers are alike.
fn band(group: &Group, kept: fn(&Uncertainty) -> &Vec<Kept>) -> Band {
    let of_run = |run: &Run| Some(kept(last(&run.record.events)?)).filter(|kept| ranks(kept)).cloned();
    let curves: Vec<_> = group.runs.iter().filter_map(of_run).map(|kept| risk_coverage(&kept)).collect();
    average(&curves)
}

fn area(series: &Series) -> String {
    let Series { group, dotted, .. } = series;
    let (by, value): (&str, fn(&Run) -> Option<f64>) = if *dotted {
        (" by disagreement", |run| run.metrics.aurc_disagreement)
    } else {
        ("", |run| run.metrics.aurc_confidence)
    };
    format!("{}{}{by}, AURC {}", group.name, group.mark(), mean(group, value))
}

fn mean(group: &Group, value: fn(&Run) -> Option<f64>) -> String {
    let values: Vec<f64> = group.runs.iter().filter_map(value).collect();
    match Estimate::of(&values) {
        Some(Estimate { mean, deviation: Some(deviation), .. }) => {
            format!("{} ± {} %", percent(mean), percent(deviation))
        }
        Some(Estimate { mean, .. }) => format!("{} %", percent(mean)),
        None => "–".into(),
    }
}

fn reliability(setting: &Setting) -> Option<Element> {
    let series: Vec<(&Group, Vec<ConfidenceBin>)> = setting
        .groups
        .iter()
        .map(|group| (group, pooled(group)))
        .filter(|(_, bins)| bins.iter().any(|bin| bin.count > 0))
        .collect();
    if series.is_empty() {
        return None;
    }
    let entry = |(group, _): &(&Group, Vec<ConfidenceBin>)| {
        let error = mean(group, |run| run.metrics.ece);
        (series_class(group), format!("{}{}, ECE {error}", group.name, group.mark()))
    };
    let entries: Vec<(String, String)> = series.iter().map(entry).collect();
    let caption = "How many of the answers given with about the same confidence are right, seeds together; larger dots \
                   are more answers, and lines pass by dots of less than one in a hundred. Below the dashed line a method \
                   is surer than it is right. ECE is the mean distance from it.";
    Some(
        card("Calibration", caption)
            .child(key(entries.into_iter()))
            .children(both_sizes(500.0, |size| draw(&series, size))),
    )
}

/// The bins of all seeds together.
fn pooled(group: &Group) -> Vec<ConfidenceBin> {
    let mut sum: Vec<ConfidenceBin> = Vec::new();
    for bins in group.runs.iter().filter_map(|run| Some(&last(&run.record.events)?.calibration)) {
        sum.resize(sum.len().max(bins.len()), ConfidenceBin::default());
        for (sum, bin) in sum.iter_mut().zip(bins) {
            sum.count = sum.count.saturating_add(bin.count);
            sum.correct = sum.correct.saturating_add(bin.correct);
            sum.confidence += bin.confidence;
        }
    }
    sum
}

fn draw(series: &[(&Group, Vec<ConfidenceBin>)], size: Size) -> Element {
    let height = if size.narrow { 270.0 } else { 320.0 };
    let (left, right, top, bottom) = (46.0, size.width - 10.0, 30.0, height - 42.0);
    let frame = Frame {
        left,
        right,
        top,
        bottom,
        x: Scale::linear(0.0, 1.0, left, right),
        y: Scale::linear(0.0, 1.0, bottom, top),
    };
    svg(size.width, height, "Accuracy of each method over the confidence of its answers")
        .class("lines")
        .child(frame.y_axis("right among them, %", short_percent))
        .child(frame.x_axis("confidence of the answers, %", short_percent))
        .child(line(left, bottom, right, top).class("diagonal"))
        .children(series.iter().rev().map(|(group, bins)| dots(&frame, group, bins)))
}

fn dots(frame: &Frame, group: &Group, bins: &[ConfidenceBin]) -> Element {
    let all: f64 = bins.iter().map(|bin| bin.count as f64).sum();
    let filled: Vec<(f64, f64, &ConfidenceBin)> = bins
        .iter()
        .filter(|bin| bin.count > 0)
        .map(|bin| (bin.confidence / bin.count as f64, bin.correct as f64 / bin.count as f64, bin))
        .collect();
    let points: Vec<String> = filled
        .iter()
        .filter(|(_, _, bin)| bin.count as f64 >= LEAST_SHARE * all)
        .map(|(x, y, _)| format!("{} {}", px(frame.x.at(*x)), px(frame.y.at(*y))))
        .collect();
    let dot = |(x, y, bin): &(f64, f64, &ConfidenceBin)| {
        tag("circle")
            .class("dot")
            .with("cx", px(frame.x.at(*x)))
            .with("cy", px(frame.y.at(*y)))
            .with("r", px(2.5 + 7.0 * (bin.count as f64 / all).sqrt()))
            .tooltip(format!(
                "{}: {} answers, confidence {} %, right {} %",
                group.name,
                thousands(bin.count),
                percent(*x),
                percent(*y)
            ))
    };
    tag("g")
        .class(series_class(group))
        .child(tag("path").class("line").with("d", format!("M{}", points.join("L"))))
        .children(filled.iter().map(dot))
}
