//! `dpcl inspect`: what a checkpoint holds.

use std::path::PathBuf;

use anyhow::Context;
use dpcl::{
    Image, Learner,
    checkpoint::Checkpoint,
    data, folder,
    method::{Correlation, HistoryCheck, Memory},
};
use serde_json::{Map, Value, json};

use super::list::Format;
use crate::{
    failure::{self, Usage},
    newest, output,
};

/// Look into a checkpoint: configuration, classes, memory, learning state
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A `.ckpt` file, or the folder of a run
    #[arg(value_name = "CHECKPOINT|RUN")]
    checkpoint: PathBuf,

    /// How to show it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Also every number of the saved state and every key of the configuration
    #[arg(long)]
    all: bool,

    /// Also write a contact sheet of the memory
    #[arg(long, value_name = "FILE.png")]
    sheet: Option<PathBuf>,

    /// Also hold the histories of stored samples against what the heads disagree on now
    #[arg(long)]
    history: bool,
}

const EXAMPLES: &str = "\
Examples:
  dpcl inspect runs/a/er-seed1/checkpoint/2500.ckpt
  dpcl inspect last.ckpt --all
  dpcl inspect last.ckpt --sheet memory.png
  dpcl inspect last.ckpt --history
  dpcl inspect last.ckpt --format json | jq .memory";

/// Shows it.
pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let checkpoint = Checkpoint::read(&newest::checkpoint(&arguments.checkpoint)?)?;
    let learner = checkpoint.learner()?;
    let histories = if arguments.history { Some(histories(&learner)?) } else { None };
    let facts = Facts { checkpoint: &checkpoint, learner: &learner, histories };
    let text = match arguments.format {
        Format::Text => facts.text(output::data_width(), arguments.all),
        Format::Json => serde_json::to_string_pretty(&facts.json()).context("cannot write JSON")? + "\n",
    };
    output::data(&text)?;
    if let Some(path) = &arguments.sheet {
        let names = learner.labels().iter().map(|label| checkpoint.class_name(label)).collect();
        let sheet = learner.memory().and_then(|memory| sheet(memory, names));
        let Some(sheet) = sheet else {
            let hint = "leave `--sheet` out, or give a checkpoint of a learner with a memory";
            return Err(Usage::with_hint("the memory holds no image to show", hint).into());
        };
        folder::write_whole(path, &data::png(&sheet))?;
        output::talk(format!("contact sheet: {}", path.display()));
    }
    Ok(failure::DONE)
}

/// The memory's histories beside a clean pass.
fn histories(learner: &Learner) -> anyhow::Result<HistoryCheck> {
    let hint =
        "leave `--history` out, or give a checkpoint of a learner whose memory or rate follows disagreement";
    let nothing = || Usage::with_hint("no disagreement on a stored sample was measured", hint);
    Ok(learner.check_histories().ok_or_else(nothing)?)
}

/// Images a class on the contact sheet, and classes on it.
const SHEET: (usize, usize) = (10, 20);

/// The first stored images of the first classes, one row a class beside its name; black where a class has fewer.
fn sheet(memory: &Memory, names: Vec<String>) -> Option<Image> {
    let [height, width] = memory.slots().first()?.image.extent();
    let black = Image { height, width, pixels: vec![0; height * width * 3].into() };
    let mut rows: Vec<(String, Vec<Image>)> =
        names.into_iter().take(SHEET.1).map(|name| (name, Vec::new())).collect();
    for sample in memory.slots() {
        if let Some((_, images)) = rows.get_mut(sample.class)
            && images.len() < SHEET.0
        {
            images.push(sample.image.to_bytes().into_owned());
        }
    }
    Some(data::named_rows(&rows, SHEET.0, &black))
}

struct Facts<'a> {
    checkpoint: &'a Checkpoint,
    learner: &'a Learner,
    histories: Option<HistoryCheck>,
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
        let mut facts = json!({
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
        });
        if let Some(histories) = &self.histories {
            facts["histories"] = json!(histories);
        }
        facts
    }

    fn text(&self, width: usize, all: bool) -> String {
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
        if let Some(histories) = &self.histories {
            lines.push(String::new());
            lines.extend(against(histories));
        }
        let learning = self.learning().into_iter().filter(|(key, _)| all || is_asked_for(key));
        lines.extend([String::new(), "learning state:".to_owned()]);
        lines.extend(learning.map(|(key, value)| format!("  {key} = {value}")));
        let mut table = config.to_table().unwrap_or_default();
        if !all {
            table.retain(|key, _| MAIN_KEYS.contains(&key));
        }
        lines.extend([String::new(), "configuration:".to_owned()]);
        let text = toml::to_string_pretty(&table).unwrap_or_default();
        lines.extend(text.lines().map(|line| format!("  {line}").trim_end().to_owned()));
        if !all {
            lines.extend([String::new(), "the rest: --all".to_owned()]);
        }
        lines.join("\n") + "\n"
    }
}

/// Keys that say what was learned and how, in short.
const MAIN_KEYS: [&str; 12] = [
    "average",
    "batch",
    "dataset",
    "lr",
    "memory",
    "memory_scheme",
    "model",
    "rate",
    "scenario",
    "tasks",
    "updates",
    "width",
];

/// Whether a number of the saved state says something about the learning, and not only where it goes on.
fn is_asked_for(key: &str) -> bool {
    key.starts_with("counters.")
        || key.ends_with(".rate")
        || key.ends_with(".average.steps")
        || key.ends_with(".seen")
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

/// Histories beside every way to take disagreement on a clean pass.
fn against(histories: &HistoryCheck) -> Vec<String> {
    let HistoryCheck { samples, history, logit_deviation, ways } = histories;
    let number =
        |correlation: Option<f64>| correlation.map_or("–".to_owned(), |found| format!("{found:.2}"));
    let mut lines = vec![
        format!("histories of {samples} stored samples: {history:.4} nats on average"),
        format!("a logit deviates by {logit_deviation:.3} between the draws of a head"),
        String::new(),
        "rank correlation of disagreement on a clean pass with".to_owned(),
        format!(
            "{:<14} {:>8} {:>10} {:>10} {:>11} {:>10}",
            "between", "nats", "history", "in class", "new draws", "in class"
        ),
    ];
    lines.extend(ways.iter().map(|way| {
        let repeated = |of: fn(&Correlation) -> Option<f64>| number(way.repeated.as_ref().and_then(of));
        let [all, within] = [repeated(|found| found.all), repeated(|found| found.within_classes)];
        let (name, mean) = (way.between, way.mean);
        let [history, in_class] = [way.history.all, way.history.within_classes].map(number);
        format!("{name:<14} {mean:>8.4} {history:>10} {in_class:>10} {all:>11} {within:>10}")
    }));
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
    use dpcl::method::Way;

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
    fn histories_are_shown_beside_every_way_to_disagree() {
        let correlation = |all, within_classes| Correlation { all, within_classes };
        let way = |between, repeated| Way {
            between,
            mean: 0.0123,
            history: correlation(Some(0.164), Some(-0.02)),
            repeated,
        };
        let repeated = correlation(Some(0.5), None);
        let ways = vec![way("draws", Some(repeated)), way("means of heads", None)];
        let lines =
            against(&HistoryCheck { samples: 7, history: 0.00456, logit_deviation: 0.3, ways }).join("\n");
        let expected = "\
histories of 7 stored samples: 0.0046 nats on average
a logit deviates by 0.300 between the draws of a head

rank correlation of disagreement on a clean pass with
between            nats    history   in class   new draws   in class
draws            0.0123       0.16      -0.02        0.50          –
means of heads   0.0123       0.16      -0.02           –          –";
        assert_eq!(lines, expected);
    }

    #[test]
    fn bars_are_in_proportion() {
        let lines = histogram(&[("cat".into(), 8), ("dog".into(), 4)], 29);
        let bars: Vec<usize> =
            lines.iter().skip(1).map(|line| line.chars().filter(|&letter| letter == '█').count()).collect();
        assert_eq!(bars, [15, 8]);
    }
}
