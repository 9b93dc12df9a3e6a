//! Everything the report knows as one JSON object: unrounded, shares as 0..1, `null` where not measured.

use serde_json::{Map, Value, json};

use crate::against::{Comparison, Difference, Rival};
use crate::group::{Group, Run, Setting};
use crate::record::{Kept, Uncertainty};
use crate::statistics::{Band, Estimate, average};
use crate::student::{CONFIDENCE, POWER};
use crate::uncertainty::{self, risk_coverage};
use crate::{Report, costs, curves, values};

/// Version of this object's layout.
const FORMAT: u32 = 1;

pub fn export(report: &Report) -> String {
    let object = json!({
        "format": FORMAT,
        "settings": report.settings.iter().map(|setting| self::setting(setting, report)).collect::<Vec<_>>(),
        "unfinished": report.unfinished,
        "notes": report.notes,
    });
    format!("{object:#}\n")
}

fn setting(setting: &Setting, report: &Report) -> Value {
    let mut object = json!({
        "name": setting.name,
        "description": setting.description(),
        "groups": setting.groups.iter().map(|group| self::group(group, setting)).collect::<Vec<_>>(),
    });
    if let Some(comparison) = report.comparison(setting) {
        object["comparison"] = self::comparison(&comparison);
    }
    object
}

/// `needed` is `null` beyond a thousand seeds as well; a deviation is known then.
fn comparison(comparison: &Comparison) -> Value {
    json!({
        "against": comparison.opponent.name,
        "confidence": CONFIDENCE,
        "margin": comparison.margin / 100.0,
        "power": POWER,
        "rows": comparison.rivals.iter().map(|rival| self::rival(rival, comparison)).collect::<Vec<_>>(),
    })
}

fn rival(rival: &Rival, comparison: &Comparison) -> Value {
    let differences: Map<String, Value> = comparison
        .metrics
        .iter()
        .zip(&rival.differences)
        .map(|(metric, found)| ((*metric).to_owned(), difference(found)))
        .collect();
    json!({
        "name": rival.group.name,
        "differences": differences,
        "seeds_of_row_only": rival.further,
        "seeds_of_opponent_only": rival.lacking,
        "seeds_on_two_instruction_sets": rival.other_sets,
    })
}

fn difference(found: &Difference) -> Value {
    json!({
        "pairs": found.pairs(),
        "mean": found.estimate.map(|estimate| estimate.mean),
        "deviation": found.estimate.and_then(|estimate| estimate.deviation),
        "interval": found.interval,
        "outcome": found.estimate.map(|_| found.outcome.word()),
        "needed": found.needed,
    })
}

fn group(group: &Group, setting: &Setting) -> Value {
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
    json!({
        "name": group.name,
        "label": result.label,
        "method": result.method,
        "dataset": result.dataset,
        "scenario": result.scenario,
        "model": result.model,
        "knowledge": result.knowledge,
        "answers": result.answers,
        "metrics": metrics,
        "any_time": { "columns": ["samples", "mean", "deviation"], "points": points(&average(&any_time)) },
        "risk_coverage": risk(group),
        "costs": costs(group, setting),
        "runs": group.runs.iter().map(run).collect::<Vec<_>>(),
    })
}

fn points(band: &Band) -> Vec<Value> {
    band.iter().map(|(x, estimate)| json!([x, estimate.mean, estimate.deviation])).collect()
}

fn risk(group: &Group) -> Value {
    let by = |kept: fn(&Uncertainty) -> &Vec<Kept>| {
        let last = group.runs.iter().filter_map(|run| uncertainty::last(&run.record.events));
        points(&average(&last.map(|last| risk_coverage(kept(last))).collect::<Vec<_>>()))
    };
    json!({
        "columns": ["coverage", "mean", "deviation"],
        "by_confidence": by(|last| &last.by_confidence),
        "by_entropy": by(|last| &last.by_entropy),
        "by_disagreement": by(|last| &last.by_disagreement),
    })
}

/// Amounts, and multiples of the reference's where it is there.
fn costs(group: &Group, setting: &Setting) -> Value {
    let amounts: Map<String, Value> =
        costs::COSTS.iter().map(|cost| (cost.key.to_owned(), json!(cost.mean(group)))).collect();
    let times = costs::reference(setting).map(|reference| {
        let times: Map<String, Value> = costs::COSTS
            .iter()
            .map(|cost| (cost.key.to_owned(), json!(cost.ratio(group, reference))))
            .collect();
        json!({ "name": reference.name, "times": times })
    });
    json!({ "amounts": amounts, "reference": times })
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
        "parameters": run.result.parameters,
        "calibration": uncertainty::last(&run.record.events).map(|last| &last.calibration),
        "isa": run.result.isa,
        "threads": run.result.threads,
        "version": run.result.version,
    })
}
