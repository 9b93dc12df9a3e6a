//! One stream of a table: its rows as text, and what can be said of their order and their differences.

use super::{MEASURES, Measure, Printed, Sheet, SheetColumn, SheetRow, correlation, printed};
use crate::{
    against::{Difference, Outcome, lower_is_better},
    error::Result,
    format,
    group::{self, Run, Setting},
    read,
    record::{CONFIG_FILE, RESULT_FILE},
    statistics::Estimate,
    student,
    table::method_notes,
};

/// A table of one stream.
#[derive(Clone, Debug)]
pub struct Column {
    /// The paper's name of the stream.
    pub name: String,
    /// Headings: for each measure the paper's, ours and the difference, then costs.
    pub headings: Vec<String>,
    /// Methods in the paper's order.
    pub rows: Vec<Row>,
    /// Headings of the comparison seed by seed.
    pub paired_headings: Vec<String>,
    /// Every other method against DPCL.
    pub paired: Vec<Row>,
    /// What is to be said below.
    pub notes: Vec<String>,
}

/// A line of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The paper's name of the method.
    pub name: String,
    /// What the method is told, and when it answers.
    pub mark: &'static str,
    /// The label of our runs.
    pub label: String,
    /// One text a heading.
    pub cells: Vec<String>,
}

/// The method that others are compared with, by the paper's name.
const OPPONENT: &str = "DPCL";
/// The label that multiples are of.
const REFERENCE: &str = "er";
/// Where nothing is known.
const NOTHING: &str = "–";

/// A row with its records.
struct Made<'a> {
    row: &'a SheetRow,
    runs: Vec<Run>,
    /// Records that were begun and have no result.
    unfinished: usize,
}

impl Column {
    /// Reads the records of a column; the second part is what they are for curves.
    pub(super) fn of(sheet: &Sheet, column: &SheetColumn) -> Result<(Self, Vec<Setting>)> {
        let made = column.rows.iter().map(Made::read).collect::<Result<Vec<_>>>()?;
        let measures: Vec<&Measure> = MEASURES
            .iter()
            .filter(|measure| column.metrics.iter().any(|name| name == measure.name))
            .collect();
        let of = |measure: &Measure| format!("{} paper", measure.heading);
        let mut headings: Vec<String> = measures
            .iter()
            .flat_map(|measure| [of(measure), format!("ours, {}", sheet.scale), "difference".to_owned()])
            .collect();
        headings.extend(["seeds", "updates", "multiply-adds", "time", "memory"].map(str::to_owned));
        let reference = made.iter().find(|made| made.row.label == REFERENCE);
        let mut rows = Vec::new();
        let mut notes = Vec::new();
        for made in &made {
            let mut cells = Vec::new();
            for measure in &measures {
                let paper = printed(&sheet.id, &column.name, &made.row.name, measure.name);
                cells.extend(compared(paper, made.estimate(measure, reference)));
            }
            cells.extend(made.costs());
            rows.push(made.told(cells));
        }
        for measure in &measures {
            notes.extend(order(sheet, column, &made, measure, reference));
        }
        notes.extend(missing(&made));
        let (paired_headings, paired) = paired(&made, &measures);
        let runs = made.into_iter().flat_map(|made| made.runs).collect::<Vec<_>>();
        let settings = if runs.is_empty() { Vec::new() } else { group::sort(distinct(runs)).0 };
        for note in settings.iter().flat_map(method_notes) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        let name = column.name.clone();
        Ok((Self { name, headings, rows, paired_headings, paired, notes }, settings))
    }
}

/// Rows of one table can share runs.
fn distinct(runs: Vec<Run>) -> Vec<Run> {
    let mut seen = std::collections::BTreeSet::new();
    runs.into_iter().filter(|run| seen.insert(run.record.path.clone())).collect()
}

impl<'a> Made<'a> {
    fn read(row: &'a SheetRow) -> Result<Self> {
        let (mut runs, mut unfinished) = (Vec::new(), 0);
        for folder in row.folders.iter().filter(|folder| folder.join(CONFIG_FILE).exists()) {
            if !folder.join(RESULT_FILE).exists() {
                unfinished += 1;
                continue;
            }
            runs.extend(Run::of(read::read(folder)?));
        }
        Ok(Self { row, runs, unfinished })
    }

    fn values(&self, measure: &Measure, reference: Option<&Self>) -> Vec<f64> {
        let own: Vec<f64> = self.runs.iter().filter_map(measure.value).collect();
        if !measure.is_ratio {
            return own;
        }
        let of_reference =
            reference.map(|made| made.runs.iter().filter_map(measure.value).collect::<Vec<_>>());
        match of_reference.and_then(|values| Estimate::of(&values)).filter(|estimate| estimate.mean > 0.0) {
            Some(estimate) => own.into_iter().map(|value| value / estimate.mean).collect(),
            None => Vec::new(),
        }
    }

    fn estimate(&self, measure: &Measure, reference: Option<&Self>) -> Option<Estimate> {
        Estimate::of(&self.values(measure, reference))
    }

    fn told(&self, cells: Vec<String>) -> Row {
        let mark = self.runs.first().map_or("", Run::mark);
        Row { name: self.row.name.clone(), mark, label: self.row.label.clone(), cells }
    }

    fn costs(&self) -> [String; 5] {
        let mean = |of: fn(&Run) -> Option<f64>, show: fn(f64) -> String| {
            let values: Vec<f64> = self.runs.iter().filter_map(of).collect();
            Estimate::of(&values).map_or_else(|| NOTHING.to_owned(), |estimate| show(estimate.mean))
        };
        [
            self.runs.len().to_string(),
            mean(|run| Some(run.result.updates as f64), |count| format::thousands(count as u64)),
            mean(
                |run| run.result.multiply_adds.map(|count| count as f64),
                |count| format!("{} G", format::short(count / 1e9)),
            ),
            mean(
                |run| Some(run.result.train_seconds + run.result.eval_seconds),
                |seconds| format!("{} s", format::short(seconds)),
            ),
            mean(|run| Some(run.result.peak_memory_bytes as f64), format::bytes),
        ]
    }
}

/// Printed, ours, ours minus printed.
fn compared(paper: Option<Printed>, ours: Option<Estimate>) -> [String; 3] {
    let text = |mean: f64, deviation: Option<f64>| match deviation {
        Some(deviation) => format!("{mean:.2} ± {deviation:.2}"),
        None => format!("{mean:.2}"),
    };
    let nothing = || NOTHING.to_owned();
    let difference = paper.zip(ours).map(|(paper, ours)| signed(ours.mean - paper.mean));
    [
        paper.map_or_else(nothing, |paper| text(paper.mean, paper.deviation)),
        ours.map_or_else(nothing, |ours| text(ours.mean, ours.deviation)),
        difference.unwrap_or_else(nothing),
    ]
}

/// With a minus as wide as the plus.
fn signed(value: f64) -> String {
    let text = format!("{value:+.2}");
    text.replace('-', "−")
}

/// How alike the two orders are, and what they are.
fn order(
    sheet: &Sheet,
    column: &SheetColumn,
    made: &[Made],
    measure: &Measure,
    reference: Option<&Made>,
) -> Option<String> {
    let mut both: Vec<(&str, f64, f64)> = made
        .iter()
        .filter_map(|made| {
            let paper = printed(&sheet.id, &column.name, &made.row.name, measure.name)?;
            Some((made.row.name.as_str(), paper.mean, made.estimate(measure, reference)?.mean))
        })
        .collect();
    let pairs: Vec<(f64, f64)> = both.iter().map(|&(_, paper, ours)| (paper, ours)).collect();
    let correlation = correlation(&pairs)?;
    let falling = !lower_is_better(measure.name) && !measure.is_ratio;
    let mut names = |of: fn(&(&str, f64, f64)) -> f64| {
        both.sort_by(
            |one, other| if falling { of(other).total_cmp(&of(one)) } else { of(one).total_cmp(&of(other)) },
        );
        both.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ")
    };
    let (paper, ours) = (names(|&(_, paper, _)| paper), names(|&(_, _, ours)| ours));
    Some(format!(
        "{}: rank correlation with the paper's order {} over {} methods; best first, paper: {paper}; ours: {ours}",
        measure.heading,
        signed(correlation),
        pairs.len()
    ))
}

fn missing(made: &[Made]) -> Option<String> {
    let lacking = |made: &Made| {
        let open = made.row.folders.len() - made.runs.len();
        let begun = match made.unfinished {
            0 => String::new(),
            count => format!(", {count} begun"),
        };
        (open > 0).then(|| format!("{} ({open} of {}{begun})", made.row.label, made.row.folders.len()))
    };
    let lacking: Vec<String> = made.iter().filter_map(lacking).collect();
    (!lacking.is_empty()).then(|| format!("runs without a result: {}", lacking.join(", ")))
}

/// Every row minus the opponent, over the seeds that both have.
fn paired(made: &[Made], measures: &[&Measure]) -> (Vec<String>, Vec<Row>) {
    let measures: Vec<&&Measure> = measures.iter().filter(|measure| !measure.is_ratio).collect();
    let mut headings = vec!["pairs".to_owned()];
    for measure in &measures {
        headings.extend([
            format!("{} minus {OPPONENT}'s", measure.heading),
            "95 % interval".to_owned(),
            "which is better".to_owned(),
            "seeds more to decide".to_owned(),
        ]);
    }
    let Some(opponent) = made.iter().find(|made| made.row.name == OPPONENT && !made.runs.is_empty()) else {
        return (headings, Vec::new());
    };
    let others = made.iter().filter(|made| made.row.label != opponent.row.label && !made.runs.is_empty());
    let rows = others.map(|own| {
        let partner = |run: &Run| opponent.runs.iter().find(|other| other.result.seed == run.result.seed);
        let mut cells = vec![own.runs.iter().filter(|run| partner(run).is_some()).count().to_string()];
        for measure in &measures {
            let differences: Vec<f64> = own
                .runs
                .iter()
                .filter_map(|run| Some((measure.value)(run)? - (measure.value)(partner(run)?)?))
                .filter(|difference| difference.is_finite())
                .collect();
            cells.extend(decided(&differences, lower_is_better(measure.name)));
        }
        own.told(cells)
    });
    let rows = rows.collect();
    (headings, rows)
}

/// Mean, interval, outcome, and the seeds that would see a difference as large as the one measured.
fn decided(differences: &[f64], lower_is_better: bool) -> [String; 4] {
    let Some(estimate) = Estimate::of(differences) else { return [NOTHING; 4].map(str::to_owned) };
    let found = Difference::of(differences, lower_is_better, estimate.mean.abs().max(f64::MIN_POSITIVE));
    let interval = found
        .interval
        .map_or_else(|| NOTHING.to_owned(), |(low, high)| format!("{} to {}", signed(low), signed(high)));
    let outcome = match found.outcome {
        Outcome::Ahead => "it is",
        Outcome::Behind => OPPONENT,
        Outcome::Undecided => "undecided",
    };
    let more = match found.outcome {
        Outcome::Ahead | Outcome::Behind => "0".to_owned(),
        Outcome::Undecided => {
            let deviation = estimate.deviation;
            let needed =
                deviation.and_then(|deviation| student::seeds_to_decide(deviation, estimate.mean.abs()));
            let more = needed.map(|needed| needed.saturating_sub(differences.len()).max(1).to_string());
            more.unwrap_or_else(|| if deviation.is_some() { "very many".into() } else { "unknown".into() })
        }
    };
    [signed(estimate.mean), interval, outcome.to_owned(), more]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_printed_ours_and_the_difference() {
        let paper = Printed { mean: 45.27, deviation: Some(1.32) };
        let ours = Estimate::of(&[40.0, 42.0]).unwrap();
        assert_eq!(compared(Some(paper), Some(ours)), ["45.27 ± 1.32", "41.00 ± 1.41", "−4.27"]);
        assert_eq!(compared(None, Some(ours)), ["–", "41.00 ± 1.41", "–"]);
        assert_eq!(compared(Some(paper), None), ["45.27 ± 1.32", "–", "–"]);
    }

    #[test]
    fn pairs_tell_who_is_better_or_how_many_more_would() {
        // Mean 4, s 1: 4 ± 2.484, as worked out in `against.rs`.
        assert_eq!(decided(&[3.0, 4.0, 5.0], false), ["+4.00", "+1.52 to +6.48", "it is", "0"]);
        assert_eq!(decided(&[3.0, 4.0, 5.0], true)[2], "DPCL");
        let undecided = decided(&[-1.0, 4.0, 5.0], false);
        assert_eq!((undecided[2].as_str(), undecided[0].as_str()), ("undecided", "+2.67"));
        assert!(undecided[3].parse::<usize>().unwrap() > 1, "{undecided:?}");
        assert_eq!(decided(&[2.0], false), ["+2.00", "–", "undecided", "unknown"]);
    }
}
