//! `dpcl inspect`: what a checkpoint holds.

use std::path::PathBuf;

use anyhow::Context;
use dpcl::{Image, Learner, checkpoint::Checkpoint, data, folder, method::Memory};
use serde_json::{Map, Value, json};

use super::list::Format;
use crate::{
    failure::{self, Usage},
    output,
};

/// Look into a checkpoint: configuration, classes, memory, learning state
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A `.ckpt` file
    #[arg(value_name = "CHECKPOINT")]
    checkpoint: PathBuf,

    /// How to show it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Also write a contact sheet of the memory
    #[arg(long, value_name = "FILE.png")]
    sheet: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  dpcl inspect runs/a/er-seed1/checkpoint/2500.ckpt
  dpcl inspect last.ckpt --sheet memory.png
  dpcl inspect last.ckpt --format json | jq .memory";

/// Shows it.
pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let checkpoint = Checkpoint::read(&arguments.checkpoint)?;
    let learner = checkpoint.learner()?;
    let facts = Facts { checkpoint: &checkpoint, learner: &learner };
    let text = match arguments.format {
        Format::Text => facts.text(output::data_width()),
        Format::Json => serde_json::to_string_pretty(&facts.json()).context("cannot write JSON")? + "\n",
    };
    output::data(&text)?;
    if let Some(path) = &arguments.sheet {
        let sheet = learner.memory().and_then(|memory| sheet(memory, learner.labels().len()));
        let Some(sheet) = sheet else {
            let hint = "leave `--sheet` out, or give a checkpoint of a learner with a memory";
            return Err(Usage::with_hint("the memory holds no image to show", hint).into());
        };
        folder::write_whole(path, &data::png(&sheet))?;
        output::talk(format!("contact sheet: {}", path.display()));
    }
    Ok(failure::DONE)
}

/// Images a class on the contact sheet, and classes on it.
const SHEET: (usize, usize) = (10, 20);

/// The first stored images of the first classes, one row a class; black where a class has fewer.
fn sheet(memory: &Memory, classes: usize) -> Option<Image> {
    let first = &memory.slots().first()?.image;
    let [height, width] = first.extent();
    let black = Image { height, width, pixels: vec![0; height * width * 3].into() };
    let (columns, rows) = (SHEET.0, classes.min(SHEET.1));
    let mut cells = vec![black; rows * columns];
    let mut filled = vec![0; rows];
    for sample in memory.slots().iter().filter(|sample| sample.class < rows) {
        let place = &mut filled[sample.class];
        if *place < columns {
            cells[sample.class * columns + *place] = sample.image.to_bytes().into_owned();
            *place += 1;
        }
    }
    Some(data::tile(&cells, columns))
}

struct Facts<'a> {
    checkpoint: &'a Checkpoint,
    learner: &'a Learner,
}

impl Facts<'_> {
    /// Classes in order of arrival with the slots each holds.
    fn classes(&self) -> Vec<(String, usize)> {
        let slots = self.learner.memory().map(Memory::histogram).unwrap_or_default();
        let labels = self.learner.labels().iter();
        let of = |number: usize| slots.get(number).copied().unwrap_or(0);
        labels.enumerate().map(|(number, label)| (self.checkpoint.class_name(label), of(number))).collect()
    }

    /// Single numbers and words of the saved state, by dotted name: rates, counters, credits. Lists are left out.
    fn learning(&self) -> Map<String, Value> {
        let mut found = Map::new();
        for (key, value) in &self.checkpoint.state.values {
            flatten(key, value, &mut found);
        }
        for (key, value) in self.learner.counters() {
            found.insert(format!("counters.{key}"), json!(value));
        }
        found
    }

    fn capacity(&self) -> (usize, usize) {
        self.learner.memory().map_or((0, 0), |memory| (memory.slots().len(), memory.capacity()))
    }

    fn json(&self) -> Value {
        let Checkpoint { config, program, isa, checksum, run, .. } = self.checkpoint;
        let shape = self.learner.shape();
        let (filled, slots) = self.capacity();
        let classes: Vec<Value> =
            self.classes().into_iter().map(|(name, slots)| json!({ "name": name, "slots": slots })).collect();
        json!({
            "program": program,
            "isa": isa,
            "checksum": checksum,
            "image": { "height": shape.height, "width": shape.width },
            "samples": self.learner.samples(),
            "updates": self.learner.updates(),
            "classes": classes,
            "memory": { "slots": slots, "filled": filled },
            "learning": self.learning(),
            "run": run,
            "config": config.to_table().unwrap_or_default(),
        })
    }

    fn text(&self, width: usize) -> String {
        let Checkpoint { config, program, isa, .. } = self.checkpoint;
        let settings = &config.settings;
        let shape = self.learner.shape();
        let (filled, slots) = self.capacity();
        let classes = self.classes();
        let mut lines = vec![
            format!("{} with {}, seed {}", settings.method, settings.model, settings.seed),
            format!("made by dpcl {program} with {isa} kernels"),
            format!("images of {} × {} pixels", shape.height, shape.width),
            format!(
                "{} samples seen, {} training steps taken",
                self.learner.samples(),
                self.learner.updates()
            ),
            format!("{} classes met, {filled} of {slots} memory slots filled", classes.len()),
            String::new(),
        ];
        lines.extend(histogram(&classes, width));
        lines.extend([String::new(), "learning state:".to_owned()]);
        lines.extend(self.learning().iter().map(|(key, value)| format!("  {key} = {value}")));
        lines.extend([String::new(), "configuration:".to_owned()]);
        lines.extend(
            config
                .to_toml()
                .unwrap_or_default()
                .lines()
                .map(|line| format!("  {line}").trim_end().to_owned()),
        );
        lines.join("\n") + "\n"
    }
}

/// One bar a class.
fn histogram(classes: &[(String, usize)], width: usize) -> Vec<String> {
    let most = classes.iter().map(|class| class.1).max().unwrap_or(0).max(1);
    let column = classes.iter().map(|class| class.0.chars().count()).max().unwrap_or(0).clamp(5, 24);
    let longest = width.saturating_sub(column + 9).clamp(4, 40);
    let mut lines = vec![format!("{:<column$} {:>6}", "class", "slots")];
    for (name, slots) in classes {
        let short: String = name.chars().take(column).collect();
        let bar = "█".repeat((slots * longest).div_ceil(most));
        lines.push(format!("{short:<column$} {slots:>6} {bar}").trim_end().to_owned());
    }
    lines
}

fn flatten(key: &str, value: &Value, found: &mut Map<String, Value>) {
    match value {
        Value::Object(inner) => {
            inner.iter().for_each(|(name, value)| flatten(&format!("{key}.{name}"), value, found));
        }
        Value::Array(_) | Value::Null => {}
        single => drop(found.insert(key.to_owned(), single.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_left_out_of_the_learning_state() {
        let mut found = Map::new();
        flatten(
            "method.rate",
            &json!({ "value": 0.5, "history": [1, 2], "inner": { "ups": 3 } }),
            &mut found,
        );
        assert_eq!(Value::Object(found), json!({ "method.rate.value": 0.5, "method.rate.inner.ups": 3 }));
    }

    #[test]
    fn bars_are_in_proportion() {
        let lines = histogram(&[("cat".into(), 8), ("dog".into(), 4)], 29);
        let bars: Vec<usize> =
            lines.iter().skip(1).map(|line| line.chars().filter(|&letter| letter == '█').count()).collect();
        assert_eq!(bars, [15, 8]);
    }
}
