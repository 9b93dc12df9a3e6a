//! Everything the report knows as one JSON object: unrounded, shares as 0..1, `null` where not measured.

use serde_json::{Map, Value, json};

use crate::group::{Group, Run, Setting};
use crate::statistics::{Estimate, average};
use crate::{Report, curves, values};

/// Version of this object's layout.
const FORMAT: u32 = 1;

pub fn export(report: &Report) -> String {
    let object = json!({
        "format": FORMAT,
        "settings": report.settings.iter().map(setting).collect::<Vec<_>>(),
        "unfinished": report.unfinished,
        "notes": report.notes,
    });
    format!("{object:#}\n")
}

fn setting(setting: &Setting) -> Value {
    json!({
        "name": setting.name,
        "description": setting.description(),
        "groups": setting.groups.iter().map(group).collect::<Vec<_>>(),
    })
}

fn group(group: &Group) -> Value {
    let result = &group.first().result;
    let metrics: Map<String, Value> = values(&Default::default())
        .iter()
        .enumerate()
        .map(|(index, (name, _))| {
            let measured: Vec<f64> =
                group.runs.iter().filter_map(|run| values(&run.metrics)[index].1).collect();
            ((*name).to_owned(), json!(Estimate::of(&measured)))
        })
        .collect();
    let any_time: Vec<_> = group.runs.iter().map(|run| curves::any_time(&run.record.events)).collect();
    let any_time: Vec<Value> = average(&any_time)
        .iter()
        .map(|(samples, estimate)| json!([samples, estimate.mean, estimate.deviation]))
        .collect();
    json!({
        "name": group.name,
        "label": result.label,
        "method": result.method,
        "dataset": result.dataset,
        "scenario": result.scenario,
        "model": result.model,
        "knowledge": result.knowledge,
        "metrics": metrics,
        "any_time": { "columns": ["samples", "mean", "deviation"], "points": any_time },
        "runs": group.runs.iter().map(run).collect::<Vec<_>>(),
    })
}

fn run(run: &Run) -> Value {
    json!({
        "path": run.record.path,
        "seed": run.result.seed,
        "metrics": run.metrics,
        "accuracy_matrix": run.matrix.rows,
        "updates": run.result.updates,
        "samples": run.result.samples,
        "train_seconds": run.result.train_seconds,
        "eval_seconds": run.result.eval_seconds,
        "peak_memory_bytes": run.result.peak_memory_bytes,
        "isa": run.result.isa,
        "threads": run.result.threads,
        "version": run.result.version,
    })
}
