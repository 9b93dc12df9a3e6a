//! The paper's tables with ours beside them: what was printed, what our records say, the difference, whether methods
//! come in the same order, and what pairs of runs of one seed can decide.
//!
//! `reproduce.rs` next door fills tables into documents; here a whole table of the paper is made from the records that
//! `dpcl reproduce` left. Which record belongs to which cell is said by a [`Sheet`]; no configuration is known here.

mod column;
mod formats;
mod printed;
mod ranks;

pub use column::{Column, Row};
pub use printed::{Printed, printed};
pub use ranks::correlation;

use std::path::PathBuf;

use crate::{error::Result, group::Setting};

/// One table of the paper, with the places of our records.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    /// Its short name, as in the table of printed numbers.
    pub id: String,
    /// What it compares.
    pub title: String,
    /// The scale our runs were made at.
    pub scale: String,
    /// Columns, a data set or stream each.
    pub columns: Vec<SheetColumn>,
    /// What is doubtful about the printed numbers.
    pub doubts: Vec<String>,
}

/// One stream of a table.
#[derive(Clone, Debug, Default)]
pub struct SheetColumn {
    /// The paper's name of it.
    pub name: String,
    /// What is compared, by the names of [`MEASURES`].
    pub metrics: Vec<String>,
    /// Its methods.
    pub rows: Vec<SheetRow>,
}

/// One method on one stream.
#[derive(Clone, Debug, Default)]
pub struct SheetRow {
    /// The paper's name of it.
    pub name: String,
    /// The label of our runs.
    pub label: String,
    /// Where their records are or will be, one a seed.
    pub folders: Vec<PathBuf>,
}

/// A table made: every text is there.
#[derive(Clone, Debug)]
pub struct Beside {
    /// Its short name.
    pub id: String,
    /// What it compares.
    pub title: String,
    /// One table a column of the paper's.
    pub columns: Vec<Column>,
    /// What holds for all of them.
    pub notes: Vec<String>,
    /// The settings of our runs, for curves, with the column's name.
    pub settings: Vec<(String, Setting)>,
}

/// The scale at which our numbers and the paper's are of the same experiment.
const SAME: &str = "paper";

impl Beside {
    /// Reads the records that are there and lays them beside what was printed.
    ///
    /// # Errors
    /// When a record cannot be read, or was written by a later version.
    pub fn of(sheet: &Sheet) -> Result<Self> {
        let (mut columns, mut settings) = (Vec::new(), Vec::new());
        for column in &sheet.columns {
            let (made, of_column) = Column::of(sheet, column)?;
            columns.push(made);
            settings.extend(of_column.into_iter().map(|setting| (column.name.clone(), setting)));
        }
        let mut notes = vec![match sheet.scale.as_str() {
            SAME => "Both at the paper's full scale.".to_owned(),
            scale => format!(
                "The paper's numbers are of its full scale, ours of the scale `{scale}`, which is smaller: the order of the \
                 methods can be compared, the numbers themselves cannot."
            ),
        }];
        notes.push(
            "Deviations are over seeds. Difference: ours minus the paper's. A lower FM, which is forgetting, is better."
                .into(),
        );
        notes.push(
            "Multiply-adds: of learning, forward and backward, as counted; time: learning and evaluating, which depends on the \
             machine and on what else ran there; memory: the largest of the process. All are means of a run."
                .into(),
        );
        notes.extend(sheet.doubts.iter().map(|doubt| format!("Doubt: {doubt}.")));
        Ok(Self { id: sheet.id.clone(), title: sheet.title.clone(), columns, notes, settings })
    }

    /// Pipe tables under headings.
    pub fn markdown(&self) -> String {
        formats::markdown(self)
    }

    /// `booktabs` tables to paste into a paper.
    pub fn latex(&self) -> String {
        formats::latex(self)
    }

    /// The any-time curves of every stream, each as a file: a name and an SVG text.
    pub fn curves(&self) -> Vec<(String, String)> {
        crate::html::paper::curves(self)
    }
}

/// Something that is compared with a printed number.
pub struct Measure {
    /// Its name in the table of printed numbers.
    pub name: &'static str,
    /// Its heading, with its unit.
    pub heading: &'static str,
    value: fn(&crate::group::Run) -> Option<f64>,
    /// Whether it is told as a multiple of plain replay's.
    is_ratio: bool,
}

/// Everything that can be compared. Shares are in percent.
pub const MEASURES: [Measure; 7] = [
    Measure { name: "acc", heading: "ACC %", value: |run| Some(100.0 * run.metrics.acc?), is_ratio: false },
    Measure { name: "fm", heading: "FM %", value: |run| Some(100.0 * run.metrics.fm?), is_ratio: false },
    Measure {
        name: "a_auc",
        heading: "A_AUC %",
        value: |run| Some(100.0 * run.metrics.a_auc?),
        is_ratio: false,
    },
    Measure {
        name: "step",
        heading: "time of a step, × ER's",
        value: |run| (run.result.updates > 0).then(|| run.result.train_seconds / run.result.updates as f64),
        is_ratio: true,
    },
    Measure {
        name: "run",
        heading: "time of a run, × ER's",
        value: |run| Some(run.result.train_seconds + run.result.eval_seconds),
        is_ratio: true,
    },
    Measure {
        name: "model",
        heading: "model size, × ER's",
        value: |run| run.result.parameters.map(|held| (held.network + held.state) as f64),
        is_ratio: true,
    },
    Measure {
        name: "peak",
        heading: "memory, × ER's",
        value: |run| Some(run.result.peak_memory_bytes as f64),
        is_ratio: true,
    },
];
