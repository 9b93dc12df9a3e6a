//! The summary table of a setting, before any format: which columns, which text in each cell, which is best.
//!
//! Every exporter lays out the same [`Table`], so the formats cannot disagree about a number.

use crate::against::{Difference, Outcome, partner};
use crate::export;
use crate::format;
use crate::group::{Group, Run, Setting};
use crate::record::Remark;
use crate::statistics::Estimate;

/// One measured quantity.
pub struct Column {
    /// Heading; for a metric its name in the record.
    pub name: &'static str,
    /// What it is, in half a sentence.
    pub meaning: &'static str,
    unit: Unit,
    better: Option<Better>,
    value: fn(&Run) -> Option<f64>,
}

#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Percent,
    Number,
    Bytes,
}

#[derive(Clone, Copy, PartialEq)]
enum Better {
    Higher,
    Lower,
}

impl Column {
    /// Mean and deviation over the runs of a group that measured it.
    pub fn estimate(&self, group: &Group) -> Option<Estimate> {
        let values: Vec<f64> = group.runs.iter().filter_map(self.value).collect();
        Estimate::of(&values)
    }
}

/// The columns every report has, those of `--online` and of methods told task ids, and what is measured of uncertainty.
pub const COLUMNS: [Column; 12] = [
    Column {
        name: "acc",
        meaning: "final accuracy, mean over tasks",
        unit: Unit::Percent,
        better: Some(Better::Higher),
        value: |run| run.metrics.acc,
    },
    Column {
        name: "fm",
        meaning: "forgetting, mean over earlier tasks",
        unit: Unit::Percent,
        better: Some(Better::Lower),
        value: |run| run.metrics.fm,
    },
    Column {
        name: "a_auc",
        meaning: "accuracy on the classes met so far, mean over the stream",
        unit: Unit::Percent,
        better: Some(Better::Higher),
        value: |run| run.metrics.a_auc,
    },
    Column {
        name: "online_acc",
        meaning: "accuracy of predicting each sample before learning it",
        unit: Unit::Percent,
        better: Some(Better::Higher),
        value: |run| run.metrics.online_acc,
    },
    Column {
        name: "acc_task_ids",
        meaning: "acc of answers that were told the task of every image",
        unit: Unit::Percent,
        better: Some(Better::Higher),
        value: |run| run.metrics.acc_task_ids,
    },
    Column {
        name: "fm_task_ids",
        meaning: "fm of answers that were told the task of every image",
        unit: Unit::Percent,
        better: Some(Better::Lower),
        value: |run| run.metrics.fm_task_ids,
    },
    Column {
        name: "ece",
        meaning: "calibration error at the end",
        unit: Unit::Percent,
        better: Some(Better::Lower),
        value: |run| run.metrics.ece,
    },
    Column {
        name: "aurc_confidence",
        meaning: "wrong answers, mean over all coverages, most confident first",
        unit: Unit::Percent,
        better: Some(Better::Lower),
        value: |run| run.metrics.aurc_confidence,
    },
    Column {
        name: "aurc_disagreement",
        meaning: "the same, least disagreement first",
        unit: Unit::Percent,
        better: Some(Better::Lower),
        value: |run| run.metrics.aurc_disagreement,
    },
    Column {
        name: "updates/s",
        meaning: "training steps per second of learning",
        unit: Unit::Number,
        better: None,
        value: |run| updates_per_second(run),
    },
    Column {
        name: "seconds",
        meaning: "learning and evaluating",
        unit: Unit::Number,
        better: None,
        value: |run| Some(run.result.train_seconds + run.result.eval_seconds),
    },
    Column {
        name: "peak memory",
        meaning: "largest resident memory of the process",
        unit: Unit::Bytes,
        better: None,
        value: |run| Some(run.result.peak_memory_bytes as f64),
    },
];

fn updates_per_second(run: &Run) -> Option<f64> {
    let seconds = run.result.train_seconds;
    (seconds > 0.0).then(|| run.result.updates as f64 / seconds)
}

/// The text of one cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// The mean; `–` where nothing was measured.
    pub mean: String,
    /// The deviation, for metrics over several seeds.
    pub deviation: Option<String>,
    /// Whether it is better than every other row's by more than noise; of an outcome, whether it is decided.
    pub best: bool,
}

impl Cell {
    /// Both parts with the given text between them.
    pub fn text(&self, between: &str) -> String {
        match &self.deviation {
            Some(deviation) => format!("{}{between}{deviation}", self.mean),
            None => self.mean.clone(),
        }
    }
}

/// One group's line.
pub struct Row {
    /// The group's name.
    pub name: String,
    /// `†`, `‡`, `§`, two of them or nothing.
    pub mark: &'static str,
    /// One cell a column.
    pub cells: Vec<Cell>,
}

/// Columns that only the full table has.
const DETAILS: [&str; 3] = ["ece", "aurc_confidence", "aurc_disagreement"];
/// Columns that are left out where no run measured them.
const OPTIONAL: [&str; 6] = ["online_acc", "acc_task_ids", "fm_task_ids", DETAILS[0], DETAILS[1], DETAILS[2]];

/// A setting's groups and columns as text.
pub struct Table {
    /// Headings of the cells, in order.
    pub columns: Vec<&'static str>,
    /// How many of them, from the first, are metrics; the others are costs.
    pub metrics: usize,
    /// The groups, in the setting's order.
    pub rows: Vec<Row>,
    /// What has to be said below it.
    pub footnotes: Vec<String>,
}

impl Table {
    /// Aligned columns that fit in `width` characters, and the footnotes; `colour` adds terminal styles.
    pub fn terminal(&self, width: usize, colour: bool) -> String {
        export::terminal::table(self, width, colour)
    }

    /// A pipe table, and the footnotes.
    pub fn markdown(&self) -> String {
        export::markdown::pipes(self)
    }

    /// The columns that fit a terminal. Leaves out what no run measured, and adds `seeds` where groups
    /// have different numbers.
    pub fn of(setting: &Setting) -> Self {
        Self::with(setting, |column| !DETAILS.contains(&column.name))
    }

    /// Every column that was measured.
    pub fn full(setting: &Setting) -> Self {
        Self::with(setting, |_| true)
    }

    fn with(setting: &Setting, wanted: fn(&Column) -> bool) -> Self {
        let measured = |column: &Column| {
            !OPTIONAL.contains(&column.name)
                || setting.groups.iter().any(|group| column.estimate(group).is_some())
        };
        let columns: Vec<&Column> =
            COLUMNS.iter().filter(|column| wanted(column) && measured(column)).collect();
        let best: Vec<Option<&Group>> = columns.iter().map(|column| best(column, setting)).collect();
        let row = |group: &Group| {
            let mut cells: Vec<Cell> = columns
                .iter()
                .zip(&best)
                .map(|(column, best)| cell(column, group, best.is_some_and(|best| best.name == group.name)))
                .collect();
            if setting.seeds().is_none() {
                cells.push(Cell { mean: group.runs.len().to_string(), ..Cell::default() });
            }
            Row { name: group.name.clone(), mark: group.mark(), cells }
        };
        let mut names: Vec<&str> = columns.iter().map(|column| column.name).collect();
        if setting.seeds().is_none() {
            names.push("seeds");
        }
        let metrics = columns.iter().filter(|column| column.better.is_some()).count();
        let rows: Vec<Row> = setting.groups.iter().map(row).collect();
        let mut footnotes = footnotes(setting, &names);
        if rows.iter().any(|row| row.cells.iter().any(|cell| cell.best)) {
            footnotes.insert(1, BOLD.into());
        }
        Self { columns: names, metrics, rows, footnotes }
    }
}

/// The row that is better than every other one by more than noise: of the differences seed by seed, the 95 % interval
/// leaves out 0. One seed tells nothing about noise, and rows without common seeds cannot be compared.
fn best<'a>(column: &Column, setting: &'a Setting) -> Option<&'a Group> {
    let lower = column.better? == Better::Lower;
    let measured = setting.groups.iter().filter_map(|group| Some((group, column.estimate(group)?.mean)));
    let order = |one: f64, other: f64| if lower { other.total_cmp(&one) } else { one.total_cmp(&other) };
    let (best, _) = measured.clone().max_by(|one, other| order(one.1, other.1))?;
    let mut others = measured.filter(|(group, _)| group.name != best.name).peekable();
    others.peek()?;
    let ahead = |other: &Group| {
        let pairs = best.runs.iter().filter_map(|run| Some((run, partner(run, other)?)));
        let differences: Vec<f64> =
            pairs.filter_map(|(run, other)| Some((column.value)(run)? - (column.value)(other)?)).collect();
        Difference::of(&differences, lower, 1.0).outcome == Outcome::Ahead
    };
    others.all(|(other, _)| ahead(other)).then_some(best)
}

fn cell(column: &Column, group: &Group, best: bool) -> Cell {
    let Some(estimate) = column.estimate(group) else {
        return Cell { mean: "–".into(), ..Cell::default() };
    };
    let mean = show(column.unit, estimate.mean);
    // Time and memory vary with the machine more than with the seed; their spread would claim otherwise.
    let deviation = estimate.deviation.filter(|_| column.unit == Unit::Percent).map(format::percent);
    Cell { mean, deviation, best }
}

fn show(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Percent => format::percent(value),
        Unit::Number => format::short(value),
        Unit::Bytes => format::bytes(value),
    }
}

/// What a bold number says.
pub const BOLD: &str = "bold: better than every other row, seed by seed, by more than noise (95 % interval)";

fn footnotes(setting: &Setting, columns: &[&str]) -> Vec<String> {
    let spread = match setting.seeds() {
        Some(1) => "one seed",
        _ => "mean ± standard deviation over seeds",
    };
    let further: String =
        columns.iter().filter(|name| OPTIONAL.contains(name)).map(|name| format!(", {name}")).collect();
    let mut notes =
        vec![format!("acc, fm, a_auc{further} in percent; fm is forgetting, lower is better; {spread}")];
    if DETAILS.iter().any(|name| columns.contains(name)) {
        notes.push(
            "ece is the calibration error, aurc the mean risk over all coverages; both lower is better"
                .into(),
        );
    }
    notes.extend(method_notes(setting));
    notes
}

/// What every table of methods has to say below it: the meaning of the marks that its rows bear, and what records say of
/// themselves.
pub fn method_notes(setting: &Setting) -> Vec<String> {
    let meanings = [
        ("†", "is told where tasks end"),
        ("‡", "is told the task of every sample"),
        ("§", "does not answer at any time: it learns at task ends or at the end of the stream"),
    ];
    let borne = |mark: &str| setting.groups.iter().any(|group| group.mark().contains(mark));
    let mut notes: Vec<String> = meanings
        .into_iter()
        .filter(|(mark, _)| borne(mark))
        .map(|(mark, meaning)| format!("{mark} {meaning}"))
        .collect();
    notes.extend(remarks(setting));
    notes
}

/// What records say of themselves, each remark once with all who have it; one run of a group is enough.
fn remarks(setting: &Setting) -> Vec<String> {
    let mut said: Vec<(&Remark, Vec<&str>)> = Vec::new();
    for group in &setting.groups {
        for remark in group.runs.iter().flat_map(|run| &run.result.remarks) {
            match said.iter_mut().find(|(known, _)| *known == remark) {
                Some((_, names)) if names.contains(&group.name.as_str()) => {}
                Some((_, names)) => names.push(&group.name),
                None => said.push((remark, vec![&group.name])),
            }
        }
    }
    let note = |(remark, names): (&Remark, Vec<&str>)| {
        let verb = if names.len() == 1 { &remark.one } else { &remark.several };
        format!("{} {verb}", names.join(", "))
    };
    said.into_iter().map(note).collect()
}
