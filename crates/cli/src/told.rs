//! What nobody would notice otherwise: keys that were given and that no run reads, and samples that a stream leaves out.

use std::collections::BTreeSet;

use dpcl::{Run, Setup, stream::Scenario};
use toml::{Table, Value};

use crate::{grid::Grid, meant};

/// A line for each key that was given and that no run of the grid reads.
pub fn ignored(grid: &Grid) -> Vec<String> {
    let given: BTreeSet<&String> = grid.given.iter().collect();
    let line = |key: &&String| {
        let reasons: Option<Vec<String>> = grid.runs.iter().map(|run| reason(key, &run.setup)).collect();
        let reason = reasons?.into_iter().next()?;
        Some(format!("note: `{key}` changes nothing here: {reason}"))
    };
    given.iter().filter_map(line).collect()
}

/// Why a run does not read a key; `None` where it does.
fn reason(key: &str, setup: &Setup) -> Option<String> {
    use Scenario::{Blurry, Disjoint, IBlurry, RmBlurry, Shuffled, Superclass};
    let scenario = |reads: &[Scenario]| {
        let names: Vec<String> = reads.iter().map(|reads| format!("`{}`", reads.name())).collect();
        let of =
            format!("the scenario is `{}`, and only {} reads it", setup.scenario.name(), names.join(", "));
        (!reads.contains(&setup.scenario)).then_some(of)
    };
    let unless = |read: bool, reason: &str| (!read).then(|| reason.to_owned());
    // All classes disjoint, or none, names a scenario and is said by it.
    let named =
        (setup.scenario == Disjoint && setup.n >= 100.0) || (setup.scenario == Blurry && setup.n <= 0.0);
    match key {
        "n" if named => None,
        "n" => scenario(&[IBlurry]),
        "m" | "blurry_order" => scenario(&[Blurry, IBlurry, RmBlurry]),
        "superclass_order" => scenario(&[Superclass]),
        "tasks" => unless(setup.scenario != Shuffled, "the scenario `shuffled` has no tasks"),
        "memory" => unless(setup.memory_scheme != "none", "these runs have no memory"),
        "imp_period" => unless(setup.measures_losses(), "neither memory nor rate measures losses"),
        "lr_decay" | "lr_reset_on_new_class" => {
            unless(setup.rate == "exp-reset", "the rate is another than `exp-reset`")
        }
        "cutmix_alpha" => unless(setup.cutmix_prob > 0.0, "no batch is cut and mixed (`cutmix_prob` is 0)"),
        "teacher_temperature" => unless(setup.teacher > 0.0, "there is no `teacher`"),
        _ => {
            let section = key.split_once('.')?.0;
            unless(section == setup.method.section, "no run here is of the method that has it")
        }
    }
}

/// Every key of a layer, dotted.
pub fn keys(layer: &Table) -> Vec<String> {
    let of = |(key, value): (&String, &Value)| match value {
        Value::Table(inner) => keys(inner).into_iter().map(|name| format!("{key}.{name}")).collect(),
        _ => vec![key.clone()],
    };
    layer.iter().flat_map(of).collect()
}

/// What of the data a whole stream does not show, or shows twice; `None` where every sample arrives once.
pub fn left_out(run: &Run) -> Option<String> {
    let (setup, schedule) = (run.setup(), run.schedule());
    if setup.first_tasks.is_some_and(|first| first < setup.tasks) {
        return None;
    }
    let arrivals = || schedule.tasks.iter().flat_map(|task| task.samples.iter());
    let met: BTreeSet<&usize> = arrivals().collect();
    let twice = arrivals().count() - met.len();
    let there = |class: &usize| run.parts().train[*class].len();
    let absent = schedule.class_order.iter().map(there).sum::<usize>().saturating_sub(met.len());
    let classes = run.parts().train.iter().filter(|samples| !samples.is_empty()).count();
    let classes = if setup.classes.is_none() { classes - schedule.class_order.len().min(classes) } else { 0 };
    let mut parts = Vec::new();
    if classes > 0 {
        let tasks = setup.tasks;
        parts.push(format!(
            "{} left out, so that {tasks} tasks have equal numbers",
            meant::counted(classes, "class")
        ));
    }
    if absent + twice > 0 {
        parts.push(format!(
            "{} never arrive, {twice} arrive more than once",
            meant::counted(absent, "sample")
        ));
    }
    (!parts.is_empty()).then(|| format!("{}: {}", setup.scenario.name(), parts.join("; ")))
}
