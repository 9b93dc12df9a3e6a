//! One line an evaluation, for people who draw curves themselves: unrounded, shares as 0..1.

use super::csv::line;
use crate::Report;
use crate::metrics::accuracy;
use crate::record::{EvaluationKind, Event};

const HEADING: [&str; 15] = [
    "setting", "dataset", "scenario", "model", "label", "name", "method", "seed", "samples", "updates",
    "kind", "task", "classes", "images", "accuracy",
];

pub fn export(report: &Report) -> String {
    let mut text = line(&HEADING.map(str::to_owned));
    for setting in &report.settings {
        for group in &setting.groups {
            for run in &group.runs {
                let result = &run.result;
                let of_run = [&setting.name, &result.dataset, &result.scenario, &result.model, &result.label];
                let mut fields: Vec<String> = of_run.map(Clone::clone).to_vec();
                fields.extend([group.name.clone(), result.method.clone(), result.seed.to_string()]);
                for event in &run.record.events {
                    if let Some(evaluation) = evaluation(event) {
                        text.push_str(&line(&[fields.clone(), evaluation].concat()));
                    }
                }
            }
        }
    }
    text
}

fn evaluation(event: &Event) -> Option<Vec<String>> {
    let Event::Evaluation { samples, updates, kind, classes } = event else { return None };
    let (kind, task) = match kind {
        EvaluationKind::Period => ("period", String::new()),
        EvaluationKind::TaskEnd(task) => ("task-end", task.to_string()),
    };
    let images: u64 = classes.iter().map(|count| count.total).sum();
    Some(vec![
        samples.to_string(),
        updates.to_string(),
        kind.to_owned(),
        task,
        classes.len().to_string(),
        images.to_string(),
        accuracy(classes).map(|share| share.to_string()).unwrap_or_default(),
    ])
}
