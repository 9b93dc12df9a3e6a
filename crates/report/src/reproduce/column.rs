//! What a column of a document's table shows of a run, and how it is written.

use crate::group::Run;
use crate::metrics::AccuracyMatrix;
use crate::record::{Event, Metrics};
use crate::statistics::Estimate;
use crate::{format, student, values};

/// What stands where nothing was measured.
pub const NOTHING: &str = "–";

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// The row's key, which is the name of a folder or a label.
    Folder,
    /// Instruction set of the kernels.
    InstructionSet,
    /// Training steps.
    Updates,
    /// A metric by its name in the record.
    Metric(&'static str),
    /// Mean accuracy over the tasks so far when a task had ended, from 1.
    After(usize),
    /// Accuracy on one task at the end, from 1.
    End(usize),
    /// The last value of a counter that the method keeps.
    Counter(String),
}

impl Column {
    /// The column of that name in a directive.
    pub fn parse(name: &str) -> Option<Self> {
        let task = |number: &str| number.parse().ok().filter(|task| *task > 0);
        match name.split_once('_') {
            Some(("after", number)) => return task(number).map(Self::After),
            Some(("end", number)) => return task(number).map(Self::End),
            Some(("count", counter)) => return Some(Self::Counter(counter.to_owned())),
            _ => {}
        }
        match name {
            "folder" => Some(Self::Folder),
            "isa" => Some(Self::InstructionSet),
            "updates" => Some(Self::Updates),
            _ => metric_names().find(|metric| *metric == name).map(Self::Metric),
        }
    }

    /// Every name a directive may use.
    pub fn known() -> String {
        let metrics: Vec<&str> = metric_names().collect();
        format!("folder, isa, updates, after_1, end_1, count_<counter>, {}", metrics.join(", "))
    }

    /// What stands above it.
    pub fn heading(&self) -> String {
        match self {
            Self::Folder => "folder".into(),
            Self::InstructionSet => "instruction set".into(),
            Self::Updates => "updates".into(),
            Self::Metric("a_avg") => "A_avg".into(),
            Self::Metric("aurc_confidence") => "AURC, confidence".into(),
            Self::Metric("aurc_disagreement") => "AURC, disagreement".into(),
            Self::Metric(name) => name.to_uppercase(),
            Self::After(task) => format!("after task {task}"),
            Self::End(task) => format!("task {task}"),
            Self::Counter(name) => name.replace('_', " "),
        }
    }

    /// Whether it holds numbers, which have means and differences.
    pub fn is_number(&self) -> bool {
        !matches!(self, Self::Folder | Self::InstructionSet)
    }

    /// The number it shows of one run.
    pub fn measure(&self, run: &Run) -> Option<f64> {
        match self {
            Self::Folder | Self::InstructionSet => None,
            Self::Updates => Some(run.result.updates as f64),
            Self::Metric(name) => {
                values(&run.metrics).into_iter().find(|(metric, _)| metric == name).and_then(|pair| pair.1)
            }
            Self::After(task) => {
                AccuracyMatrix { rows: run.matrix.rows.get(..*task)?.to_vec() }.final_accuracy()
            }
            Self::End(task) => run.matrix.get(run.matrix.rows.len().checked_sub(1)?, task - 1),
            Self::Counter(name) => run.record.events.iter().rev().find_map(|event| match event {
                Event::Progress { counters, .. } => counters.get(name).copied(),
                _ => None,
            }),
        }
    }

    /// A number with its deviation, where it has one; a difference with its sign and its 95 % interval.
    pub fn show(&self, estimate: &Estimate, difference: bool) -> String {
        let mean = self.signed(estimate.mean, difference);
        if difference {
            return student::interval(estimate).map_or_else(
                || mean.clone(),
                |(low, high)| format!("{mean} [{}, {}]", self.signed(low, true), self.signed(high, true)),
            );
        }
        match estimate.deviation {
            Some(deviation) => format!("{mean} ± {}", self.number(deviation)),
            None => mean,
        }
    }

    fn signed(&self, value: f64, plus: bool) -> String {
        let text = self.number(value.abs());
        let zero = text.chars().all(|letter| matches!(letter, '0' | '.'));
        let sign = match () {
            () if zero => "",
            () if value < 0.0 => "−",
            () if plus => "+",
            () => "",
        };
        format!("{sign}{text}")
    }

    fn number(&self, value: f64) -> String {
        match self {
            Self::Updates | Self::Counter(_) => format::thousands(value.round() as u64),
            _ => format::tenths(value),
        }
    }
}

fn metric_names() -> impl Iterator<Item = &'static str> {
    values(&Metrics::default()).into_iter().map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_headings() {
        let heading = |name: &str| Column::parse(name).map(|column| column.heading());
        assert_eq!(heading("a_auc").as_deref(), Some("A_AUC"));
        assert_eq!(heading("after_3").as_deref(), Some("after task 3"));
        assert_eq!(heading("end_1").as_deref(), Some("task 1"));
        assert_eq!(heading("count_rate_ups").as_deref(), Some("rate ups"));
        for unknown in ["", "speed", "after_0", "after_x", "end_", "ACC"] {
            assert_eq!(heading(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn differences_have_signs() {
        let show = |values: &[f64], difference| {
            Column::Metric("acc").show(&Estimate::of(values).unwrap(), difference)
        };
        assert_eq!(show(&[0.125], false), "12.5");
        assert_eq!(show(&[0.125], true), "+12.5");
        assert_eq!(show(&[-0.125], true), "−12.5");
        assert_eq!(show(&[0.000_001], true), "0.0");
        assert_eq!(show(&[0.01, 0.03], false), "2.0 ± 1.4");
        // s/√2 is one point, of which t₀.₉₇₅;₁ is 12.7.
        assert_eq!(show(&[-0.01, -0.03], true), "−2.0 [−14.7, +10.7]");
        assert_eq!(show(&[0.01, 0.01], true), "+1.0 [+1.0, +1.0]");
        assert_eq!(Column::Updates.show(&Estimate::of(&[15_000.0]).unwrap(), false), "15,000");
    }
}
