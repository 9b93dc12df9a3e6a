//! What a method costs, counted as the complexity tables of papers count it: time of a training step, size of the
//! model, memory; beside the numbers themselves, how many times those of plain replay.
//!
//! Everything comes from the results of the runs; knows no format.

use crate::format;
use crate::group::{Group, Run, Setting};
use crate::statistics::Estimate;
use crate::table::{Cell, Row, Table, method_notes};

/// The method others are measured by.
const REFERENCE: &str = "er";

/// Heading of how many times the reference's the amount before it is.
const TIMES: &str = "×";

/// One kind of cost.
pub struct Cost {
    /// Its name in exported files, unit included.
    pub key: &'static str,
    heading: &'static str,
    show: fn(f64) -> String,
    value: fn(&Run) -> Option<f64>,
}

/// Every cost, in the order of the table.
pub const COSTS: [Cost; 6] = [
    Cost {
        key: "step_seconds",
        heading: "step",
        show: |seconds| format!("{} ms", format::short(seconds * 1000.0)),
        value: |run| {
            let updates = run.result.updates as f64;
            (updates > 0.0).then(|| run.result.train_seconds / updates)
        },
    },
    Cost {
        key: "total_seconds",
        heading: "whole run",
        show: |seconds| format!("{} s", format::short(seconds)),
        value: |run| Some(run.result.train_seconds + run.result.eval_seconds),
    },
    Cost {
        key: "multiply_adds",
        heading: "multiply-adds",
        show: |count| format!("{} G", format::short(count / 1e9)),
        value: |run| run.result.multiply_adds.map(|count| count as f64),
    },
    Cost {
        key: "model_parameters",
        heading: "model size",
        show: |count| format::thousands(count as u64),
        value: |run| run.result.parameters.map(|held| held.network as f64 + held.state as f64),
    },
    Cost {
        key: "stored_parameters",
        heading: "with history",
        show: |count| format::thousands(count as u64),
        value: |run| {
            let held = run.result.parameters?;
            Some(held.network as f64 + held.state as f64 + held.history as f64)
        },
    },
    Cost {
        key: "peak_memory_bytes",
        heading: "peak memory",
        show: format::bytes,
        value: |run| Some(run.result.peak_memory_bytes as f64),
    },
];

impl Cost {
    /// Mean over the seeds of a group; `None` where its records do not tell.
    pub fn mean(&self, group: &Group) -> Option<f64> {
        let values: Vec<f64> = group.runs.iter().filter_map(self.value).collect();
        Estimate::of(&values).map(|estimate| estimate.mean)
    }

    /// How many times the reference's.
    pub fn ratio(&self, group: &Group, reference: &Group) -> Option<f64> {
        let (own, reference) = (self.mean(group)?, self.mean(reference)?);
        (reference > 0.0).then(|| own / reference)
    }
}

/// The group of plain replay that the others are measured by; of several the best.
pub fn reference(setting: &Setting) -> Option<&Group> {
    let label = |group: &&Group| group.first().result.label == REFERENCE;
    setting.groups.iter().find(label)
}

/// A setting's costs as text: amounts, and multiples of the reference's where it is there. Columns that no record
/// fills are left out.
pub fn table(setting: &Setting) -> Table {
    let reference = reference(setting);
    let known = |cost: &&Cost| setting.groups.iter().any(|group| cost.mean(group).is_some());
    let costs: Vec<&Cost> = COSTS.iter().filter(known).collect();
    let plain = |text: Option<String>| Cell { mean: text.unwrap_or_else(|| "–".into()), ..Cell::default() };
    let cells = |cost: &Cost, group: &Group| {
        let amount = plain(cost.mean(group).map(cost.show));
        let times =
            reference.map(|reference| plain(cost.ratio(group, reference).map(|ratio| format!("{ratio:.2}"))));
        std::iter::once(amount).chain(times).collect::<Vec<_>>()
    };
    let row = |group: &Group| Row {
        name: group.name.clone(),
        mark: group.mark(),
        cells: costs.iter().flat_map(|cost| cells(cost, group)).collect(),
    };
    let times = reference.map(|_| TIMES);
    Table {
        columns: costs.iter().flat_map(|cost| std::iter::once(cost.heading).chain(times)).collect(),
        metrics: 0,
        rows: setting.groups.iter().map(row).collect(),
        footnotes: footnotes(setting, reference, &costs),
    }
}

fn footnotes(setting: &Setting, reference: Option<&Group>, costs: &[&Cost]) -> Vec<String> {
    let mut notes = vec![
        "step: time of learning per training step; whole run: learning and evaluating; both \
         depend on what else ran on the machine"
            .to_owned(),
    ];
    if costs.iter().any(|cost| cost.key == "multiply_adds") {
        notes.push(
            "multiply-adds: of convolutions and linear layers in learning, forward and backward".to_owned(),
        );
    }
    if costs.iter().any(|cost| cost.key == "model_parameters") {
        notes.push(
            "model size: numbers learned by gradients and those kept beside them at a fixed size (copies, running \
             means and squares), without stored images and optimiser moments; with history: past values kept one \
             by one (deviation columns) as well"
                .to_owned(),
        );
    }
    notes.push("peak memory: of the whole process, data and stored images included".to_owned());
    if let Some(reference) = reference {
        notes.push(format!("{TIMES}: how many times {}'s", reference.name));
    }
    if machines(setting) > 1 {
        notes.push(
            "the runs used different instruction sets or numbers of threads: their times do not compare"
                .into(),
        );
    }
    notes.extend(method_notes(setting));
    notes
}

fn machines(setting: &Setting) -> usize {
    let runs = setting.groups.iter().flat_map(|group| &group.runs);
    let kinds: std::collections::BTreeSet<(&str, usize)> =
        runs.map(|run| (run.result.isa.as_str(), run.result.threads)).collect();
    kinds.len()
}
