//! Saved records to statistics, tables, plots and one HTML file. Knows no tensors.
//!
//! [`record`] describes what a run leaves on disk and is the interface to other programs; [`metrics`] turns its
//! events into numbers. [`load`] reads any number of run folders, and a [`Report`] shows them in every format.
//! Nothing here prints or writes: exporters return text.
//!
//! ```no_run
//! let report = dpcl_report::load(&["out/small".into()])?;
//! std::fs::write("report.html", report.html()).expect("the working folder is writable");
//! # Ok::<(), dpcl_report::Error>(())
//! ```

#![forbid(unsafe_code)]

use std::path::PathBuf;

pub mod against;
pub mod costs;
pub mod curves;
pub mod error;
mod export;
pub mod figures;
pub mod format;
pub mod group;
mod html;
mod later_keys;
pub mod metrics;
mod old_records;
pub mod paper;
pub mod plane;
pub mod read;
pub mod record;
pub mod reproduce;
pub mod seal;
pub mod statistics;
pub mod student;
pub mod table;
pub mod uncertainty;
mod unfinished;

pub use error::{Error, Result};
pub use unfinished::Unfinished;

use group::{Run, Setting};
use read::Record;
use record::BadImages;

/// Runs sorted for comparison, ready to be shown.
#[derive(Clone, Debug)]
pub struct Report {
    /// What may be compared; empty if no run finished.
    pub settings: Vec<Setting>,
    /// Runs without a result, which enter no number; by label and seed.
    pub unfinished: Vec<Unfinished>,
    /// What a reader of the numbers should know about the records.
    pub notes: Vec<String>,
    compared: Option<against::Compared>,
}

/// Reads every record in the given folders or below them.
pub fn load(folders: &[PathBuf]) -> Result<Report> {
    read::find(folders).map(Report::new)
}

impl Report {
    /// Sorts records that were already read.
    pub fn new(records: Vec<Record>) -> Self {
        Self::of(records, false)
    }

    /// The same with one row more for each run whose average answers: that of the weights that learn.
    pub fn with_unaveraged(records: Vec<Record>) -> Self {
        Self::of(records, true)
    }

    fn of(records: Vec<Record>, unaveraged: bool) -> Self {
        let (mut runs, mut unfinished, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for record in records {
            let left = Unfinished::of(&record);
            match Run::of(record) {
                Some(run) => {
                    notes.extend(disagreement(&run));
                    notes.extend(left_out(&run));
                    notes.extend(altered(&run));
                    let sibling = if unaveraged { run.unaveraged() } else { None };
                    runs.push(run);
                    runs.extend(sibling);
                }
                None => unfinished.push(left),
            }
        }
        unfinished.sort_by_cached_key(|run: &Unfinished| (run.label.clone(), run.seed, run.path.clone()));
        let (settings, repeated) = group::sort(runs);
        for note in repeated {
            // A run and its sibling lie in one folder, of which one note is enough.
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        Self { settings, unfinished, notes, compared: None }
    }

    /// Aligned columns that fit in `width` characters; `colour` adds terminal styles.
    pub fn terminal(&self, width: usize, colour: bool) -> String {
        export::terminal::export(self, width, colour)
    }

    /// The same for a file or another program: without styles, no name cut.
    pub fn plain(&self, width: usize) -> String {
        export::terminal::plain(self, width)
    }

    /// Pipe tables under headings.
    pub fn markdown(&self) -> String {
        export::markdown::export(self)
    }

    /// `booktabs` tables to paste into a paper.
    pub fn latex(&self) -> String {
        export::latex::export(self)
    }

    /// One line a group, unrounded, shares as 0..1.
    pub fn csv(&self) -> String {
        export::csv::export(self)
    }

    /// One line an evaluation of each run, unrounded, shares as 0..1.
    pub fn evaluations(&self) -> String {
        export::evaluations::export(self)
    }

    /// Every run's curves as TensorBoard reads them: the run's place in a folder, and the bytes of its file of events.
    pub fn tensorboard(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let runs = self.settings.iter().enumerate().flat_map(|(place, setting)| {
            setting.groups.iter().flat_map(|group| &group.runs).map(move |run| (place, run))
        });
        let several = self.settings.len() > 1;
        let file = |(place, run): (usize, &Run)| {
            let folder = format!("{}-seed{}", run.result.label.replace(['/', '\\'], "-"), run.result.seed);
            let parent =
                if several { PathBuf::from(format!("setting-{}", place + 1)) } else { PathBuf::new() };
            (parent.join(folder).join("events.out.tfevents.0.dpcl"), export::tensorboard::events(run))
        };
        runs.map(file).collect()
    }

    /// Everything the report knows, runs included, unrounded, shares as 0..1.
    pub fn json(&self) -> String {
        export::json::export(self)
    }

    /// One page with figures that needs nothing but itself.
    pub fn html(&self) -> String {
        html::export(self)
    }
}

/// One page of the paper's tables with ours beside them, and of figures.
pub fn paper_page(tables: &[paper::Beside], figures: &[figures::Figure]) -> String {
    html::paper::page(tables, figures)
}

/// The events are the truth; a result file that says otherwise was edited or written by another version.
fn disagreement(run: &Run) -> Option<String> {
    let same = |(a, b): (Option<f64>, Option<f64>)| match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() < 1e-9,
        (a, b) => a == b,
    };
    let (ours, theirs) = (values(&run.metrics), values(&run.result.metrics));
    let names: Vec<&str> = ours
        .iter()
        .zip(theirs)
        // Forgetting of a single task was once called 0.
        .filter(|((name, ours), (_, theirs))| {
            let once = name.starts_with("fm") && ours.is_none() && *theirs == Some(0.0);
            !once && !same((*ours, *theirs))
        })
        .map(|((name, _), _)| *name)
        .collect();
    let path = run.record.path.display();
    (!names.is_empty()).then(|| {
        format!("{path}: result.json disagrees with events.jsonl on {}; the events count", names.join(", "))
    })
}

/// Damage that still reads well would go unnoticed without its checksum.
fn altered(run: &Run) -> Option<String> {
    let path = run.record.path.display();
    run.record.altered.then(|| {
        format!("{path}: the record is not as the run left it; restore its files, or run again elsewhere")
    })
}

/// Numbers from fewer images than the set has are told as such.
fn left_out(run: &Run) -> Option<String> {
    let BadImages { stream, test } = BadImages::of(&run.record.events);
    let path = run.record.path.display();
    let names = run.record.events.iter().filter_map(|event| match event {
        record::Event::BadImage { file, .. } => file.as_deref(),
        _ => None,
    });
    (stream + test > 0).then(|| {
        let files = named(&names.collect::<Vec<_>>());
        format!("{path}: {stream} stream and {test} test images could not be read and were left out{files}")
    })
}

/// How many files a note names.
const MOST_NAMED: usize = 8;

/// The first of some files, after a colon.
fn named(files: &[&str]) -> String {
    let shown = files[..files.len().min(MOST_NAMED)].join(", ");
    match files.len().saturating_sub(MOST_NAMED) {
        _ if files.is_empty() => String::new(),
        0 => format!(": {shown}"),
        more => format!(": {shown} and {more} more"),
    }
}

/// Every metric by its name in the record.
pub(crate) fn values(metrics: &record::Metrics) -> [(&'static str, Option<f64>); 14] {
    [
        ("acc", metrics.acc),
        ("fm", metrics.fm),
        ("fm_signed", metrics.fm_signed),
        ("fm_max", metrics.fm_max),
        ("a_auc", metrics.a_auc),
        ("a_avg", metrics.a_avg),
        ("a_last", metrics.a_last),
        ("f_last", metrics.f_last),
        ("online_acc", metrics.online_acc),
        ("acc_task_ids", metrics.acc_task_ids),
        ("fm_task_ids", metrics.fm_task_ids),
        ("ece", metrics.ece),
        ("aurc_confidence", metrics.aurc_confidence),
        ("aurc_disagreement", metrics.aurc_disagreement),
    ]
}
