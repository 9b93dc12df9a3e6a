//! Figures that need the learner itself: features of the first task in a plane, and the loss around the classifier's
//! weights. Made from the last checkpoint of each finished run.

use std::sync::Arc;

use dpcl::{Checkpoint, Image, Learner, Run, data::Ahead};
use dpcl_report::{
    figures::{Figure, Line, Panel, Point},
    paper::{Sheet, SheetRow},
    plane,
};

use super::{Project, state::State};
use crate::{grid::Planned, matrix::Kind, output};

/// Samples of the first task that a figure shows or averages over.
const MOST_POINTS: usize = 500;
const MOST_IMAGES: usize = 1000;
/// Shifts to each side of the classifier's weights, in steps of the published plotting code.
const STEPS: i32 = 25;

/// Every figure of the tables asked for whose runs are there.
pub fn make(project: &Project) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (experiment, sheet) in project.experiments.iter().zip(&project.sheets) {
        let figure = match experiment.kind {
            Kind::Table | Kind::AnyTime => None,
            Kind::TSne => t_sne(project, sheet)?,
            Kind::Landscape => landscape(project, sheet)?,
        };
        figures.extend(figure);
    }
    Ok(figures)
}

fn t_sne(project: &Project, sheet: &Sheet) -> anyhow::Result<Option<Figure>> {
    let mut panels = Vec::new();
    for (column, row) in
        sheet.columns.iter().flat_map(|column| column.rows.iter().map(move |row| (column, row)))
    {
        let Some(probe) = finished(project, row)?.into_iter().next() else { continue };
        output::talk(format!("t-SNE of {}, {}", row.label, column.name));
        let probe = Probe::of(probe, MOST_POINTS)?;
        let features: Vec<Vec<f64>> = probe
            .learner
            .features(&probe.images)?
            .into_iter()
            .map(|point| point.into_iter().map(f64::from).collect())
            .collect();
        let places = plane::embed(&features, plane::Settings::default());
        let answers = probe.learner.predict_all(&probe.images)?;
        let points = places.iter().zip(&answers).zip(&probe.classes).map(|((&[x, y], answer), &class)| {
            let probability = answer.probabilities[class].1;
            let loss = -f64::from(probability.max(f32::MIN_POSITIVE)).ln();
            Point { x, y, loss, class: probe.names[class].clone() }
        });
        panels.push(Panel::Scatter { name: row.name.clone(), points: points.collect() });
    }
    let caption = format!(
        "t-SNE (perplexity 30, 1,000 steps, started from principal components) of what the encoder makes of up to {MOST_POINTS} \
         training images of the first task after the last one; one seed, scale {}. Darker is a higher loss.",
        sheet.scale
    );
    Ok(figure(sheet, caption, panels))
}

fn landscape(project: &Project, sheet: &Sheet) -> anyhow::Result<Option<Figure>> {
    let shifts: Vec<f64> = (-STEPS..=STEPS).map(|step| f64::from(step) / f64::from(STEPS)).collect();
    let mut panels = Vec::new();
    for column in &sheet.columns {
        let mut lines = Vec::new();
        for row in &column.rows {
            let mut points: Vec<(f64, Vec<f64>)> = shifts.iter().map(|&shift| (shift, Vec::new())).collect();
            for planned in finished(project, row)? {
                let probe = Probe::of(planned, MOST_IMAGES)?;
                let seed = planned.setup.seed;
                let losses = probe.learner.landscape(&probe.images, &probe.classes, &shifts, seed)?;
                points.iter_mut().zip(losses).for_each(|((_, all), loss)| all.push(loss));
            }
            if points.iter().any(|(_, losses)| !losses.is_empty()) {
                output::talk(format!("loss around the classifier of {}, {}", row.label, column.name));
                lines.push(Line { name: row.name.clone(), points });
            }
        }
        if !lines.is_empty() {
            panels.push(Panel::Landscape { name: column.name.clone(), lines });
        }
    }
    let caption = format!(
        "Mean loss of up to {MOST_IMAGES} training images of the first task, without augmentation, when the classifier's weights \
         are shifted along a random direction as long as they are; bands are one deviation over seeds; scale {}.",
        sheet.scale
    );
    Ok(figure(sheet, caption, panels))
}

fn figure(sheet: &Sheet, caption: String, panels: Vec<Panel>) -> Option<Figure> {
    (!panels.is_empty()).then(|| Figure { id: sheet.id.clone(), title: sheet.title.clone(), caption, panels })
}

/// The finished runs of a row.
fn finished<'a>(project: &'a Project, row: &SheetRow) -> anyhow::Result<Vec<&'a Planned>> {
    let of_row =
        project.grid.runs.iter().filter(|run| row.folders.iter().any(|folder| folder == run.folder.path()));
    let mut done = Vec::new();
    for run in of_row {
        if State::of(run)? == State::Done {
            done.push(run);
        }
    }
    Ok(done)
}

/// A learner after its run, and images of the first task.
struct Probe {
    learner: Learner,
    images: Vec<Image>,
    /// The learner's number of each image's class.
    classes: Vec<usize>,
    /// Names of the classes by those numbers.
    names: Vec<String>,
}

impl Probe {
    fn of(planned: &Planned, most: usize) -> anyhow::Result<Self> {
        let run = Run::open(&planned.config)?;
        let newest = planned.folder.checkpoints().into_iter().next();
        let path = newest.ok_or_else(|| {
            let problem = format!("{} has no checkpoint any more", planned.folder.path().display());
            let hint = "figures are made with the learner itself: move the folder away and run it again";
            crate::failure::Usage::with_hint(problem, hint)
        })?;
        let checkpoint = Checkpoint::read(&path)?;
        let learner = checkpoint.learner()?;
        let numbers: Vec<Option<usize>> = learner.labels().iter().map(dpcl::Label::number).collect();
        let names = learner.labels().iter().map(|label| checkpoint.class_name(label)).collect();
        let samples = &run.schedule().tasks[0].samples;
        let every = samples.len().div_ceil(most).max(1);
        let train = &run.dataset().train;
        let (mut positions, mut classes) = (Vec::new(), Vec::new());
        for &position in samples.iter().step_by(every) {
            if let Some(met) = numbers.iter().position(|number| *number == Some(train.labels[position])) {
                positions.push(position);
                classes.push(met);
            }
        }
        let images = Ahead::new(Arc::clone(&train.images), positions, 64).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { learner, images, classes, names })
    }
}
