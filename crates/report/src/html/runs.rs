//! Where the numbers come from: every run, those without a result, the configurations, and what the metrics mean.

use super::card;
use super::markup::{Element, tag};
use super::summary::scrolled;
use crate::Report;
use crate::format::{bytes, percent, short, thousands};
use crate::group::{Group, Run, Setting};

/// Runs that enter no number, and what else a reader should know; `None` if there is nothing of the kind.
pub fn remarks(report: &Report) -> Option<Element> {
    if report.unfinished.is_empty() && report.notes.is_empty() {
        return None;
    }
    let unfinished = report.unfinished.iter().map(|run| {
        tag("li")
            .child(tag("b").text(run.name()))
            .text(format!(": {} ", run.state()))
            .child(tag("span").class("soft").text(format!("({})", run.path.display())))
    });
    let notes = report.notes.iter().map(|note| tag("li").text(note));
    let heading = match report.unfinished.len() {
        0 => "About these records".to_owned(),
        1 => "1 run has no result and is in none of the numbers".to_owned(),
        count => format!("{count} runs have no result and are in none of the numbers"),
    };
    Some(
        tag("aside")
            .class("remarks")
            .child(tag("h2").text(heading))
            .child(tag("ul").children(unfinished).children(notes)),
    )
}

/// One folded configuration a group, as the lowest seed recorded it.
pub fn configurations(setting: &Setting) -> Element {
    let caption = "The checked configuration of each method, exactly as recorded with its lowest seed.";
    card("Configuration", caption).children(setting.groups.iter().map(configuration))
}

fn configuration(group: &Group) -> Element {
    let run = group.first();
    let seeds: Vec<String> = group.runs.iter().map(|run| run.result.seed.to_string()).collect();
    let noun = if seeds.len() == 1 { "seed" } else { "seeds" };
    let summary = tag("summary").child(tag("b").text(&group.name)).child(
        tag("span").class("soft").text(format!(" {}, {noun} {}", run.result.method, seeds.join(", "))),
    );
    let mut details = tag("details").child(summary);
    if let Some(command) = command(run) {
        details = details
            .child(tag("p").class("soft").text("Made by"))
            .child(tag("pre").class("command").child(tag("code").text(command)));
    }
    details.child(tag("pre").with("tabindex", 0).child(tag("code").text(run.record.config_text.trim_end())))
}

/// The command in the configuration's comment `# command: …`, or under its key `command`.
fn command(run: &Run) -> Option<&str> {
    let comment = run.record.config_text.lines().find_map(|line| line.strip_prefix("# command:"));
    comment.or_else(|| run.record.config.get("command")?.as_str()).map(str::trim)
}

/// Every finished run with its own numbers.
pub fn table(setting: &Setting) -> Element {
    const HEADS: [&str; 13] = [
        "run",
        "acc",
        "fm",
        "a_auc",
        "updates",
        "samples",
        "learning s",
        "evaluating s",
        "peak memory",
        "isa",
        "threads",
        "version",
        "folder",
    ];
    let head = tag("tr").children(HEADS.map(|name| tag("th").with("scope", "col").text(name)));
    let rows = setting.groups.iter().flat_map(|group| group.runs.iter().map(move |run| row(group, run)));
    let count: usize = setting.groups.iter().map(|group| group.runs.len()).sum();
    let noun = if count == 1 { "run" } else { "runs" };
    card("Runs", "").child(
        tag("details")
            .child(tag("summary").text(format!("{count} finished {noun}")))
            .child(scrolled(head, rows)),
    )
}

fn row(group: &Group, run: &Run) -> Element {
    let share = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), percent);
    let result = &run.result;
    let numbers = [
        share(run.metrics.acc),
        share(run.metrics.fm),
        share(run.metrics.a_auc),
        thousands(result.updates),
        thousands(result.samples),
        short(result.train_seconds),
        short(result.eval_seconds),
        bytes(result.peak_memory_bytes as f64),
        result.isa.clone(),
        result.threads.to_string(),
        result.version.clone(),
        run.record.path.display().to_string(),
    ];
    let name = format!("{}{} seed {}", group.name, group.mark(), result.seed);
    tag("tr")
        .child(tag("th").with("scope", "row").text(name))
        .children(numbers.map(|text| tag("td").text(text)))
}

/// What the columns mean, for readers who come to the page without the program.
pub fn glossary() -> Element {
    let meanings = [
        ("acc", "mean over tasks of the accuracy on each task's test images after the last task"),
        (
            "fm",
            "forgetting: mean over earlier tasks of |accuracy right after the task − accuracy at the end|",
        ),
        ("fm_signed", "the same without the absolute value; below zero, later tasks helped"),
        ("fm_max", "the same from each task's best earlier accuracy"),
        ("a_auc", "mean over the periodic evaluations of the accuracy on all classes met so far"),
        ("a_avg", "mean over task ends of the accuracy on all classes met so far"),
        ("a_last", "accuracy on all classes met, after the last task"),
        ("f_last", "mean over classes of best accuracy at an earlier task end − accuracy at the end"),
        ("online_acc", "accuracy of predicting each sample of the stream before learning it"),
        ("acc_task_ids", "acc of answers that were told the task of every image"),
        ("fm_task_ids", "fm of answers that were told the task of every image"),
        (
            "ece",
            "expected calibration error at the end: answers in 15 bins of confidence, mean over answers of \
             |accuracy − mean confidence| of their bin",
        ),
        (
            "aurc_confidence",
            "area under the risk–coverage curve at the end: share of wrong answers among those kept, mean over all \
             shares kept, most confident answers first",
        ),
        ("aurc_disagreement", "the same with the answers first on which the heads disagree least"),
    ];
    let list = tag("dl").children(
        meanings.into_iter().flat_map(|(name, meaning)| [tag("dt").text(name), tag("dd").text(meaning)]),
    );
    let summary = tag("summary").text("What the metrics mean");
    tag("details").class("glossary").child(summary).child(list)
}
