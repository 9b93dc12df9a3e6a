//! `dpcl list`: everything that can be named in a configuration or read in a table.

use clap::ValueEnum;
use dpcl::{
    Settings,
    config::{Key, Keys as _},
};
use serde_json::{Value, json};

use crate::{failure, output, presets};

/// List what can be named: methods, data sets, presets, …
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// What to list [default: what can be listed]
    #[arg(value_enum, hide_possible_values = true)]
    kind: Option<Kind>,

    /// How to show it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

const EXAMPLES: &str = "\
Examples:
  dpcl list                           what can be listed
  dpcl list methods
  dpcl list datasets --format json
  dpcl list presets";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// How to learn (`--method`)
    Methods,
    /// Which images (`--dataset`)
    Datasets,
    /// In which order they arrive (`--scenario`)
    Scenarios,
    /// Networks (`--model`)
    Models,
    /// What a memory keeps (`--memory-scheme`)
    Memories,
    /// Learning-rate rules (`--rate`)
    Rates,
    /// The numbers in tables and records
    Metrics,
    /// Named configurations (`dpcl run PRESET`)
    Presets,
    /// Every key of a configuration: meaning, values, default, who reads it
    Keys,
}

/// How lists and facts are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

/// One thing with a name: what people read, in paragraphs, and further facts for programs.
struct Entry {
    name: String,
    about: String,
    more: Option<String>,
    facts: Value,
}

impl Entry {
    fn plain(name: &str, about: &str) -> Self {
        Self { name: name.to_owned(), about: about.to_owned(), more: None, facts: json!({}) }
    }
}

/// Prints the list.
pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let Some(kind) = arguments.kind else {
        let entries: Vec<Entry> = kinds();
        output::data(&shown(&entries, arguments.format))?;
        return Ok(failure::DONE);
    };
    let entries = match kind {
        Kind::Methods => methods(),
        Kind::Datasets => datasets(),
        Kind::Scenarios => {
            let all = dpcl::stream::Scenario::ALL;
            all.iter().map(|scenario| Entry::plain(scenario.name(), scenario.about())).collect()
        }
        Kind::Models => dpcl::names::MODELS.iter().map(|info| Entry::plain(info.name, info.about)).collect(),
        Kind::Memories => {
            dpcl::names::SCHEMES.iter().map(|info| Entry::plain(info.name, info.about)).collect()
        }
        Kind::Rates => dpcl::names::RATES.iter().map(|info| Entry::plain(info.name, info.about)).collect(),
        Kind::Metrics => METRICS.iter().map(|(name, about)| Entry::plain(name, about)).collect(),
        Kind::Keys => keys(),
        Kind::Presets => {
            presets::PRESETS.iter().map(|preset| Entry::plain(preset.name, preset.about())).collect()
        }
    };
    output::data(&shown(&entries, arguments.format))?;
    Ok(failure::DONE)
}

fn shown(entries: &[Entry], format: Format) -> String {
    match format {
        Format::Text => text(entries, output::data_width()),
        Format::Json => json(entries),
    }
}

/// What can be listed.
fn kinds() -> Vec<Entry> {
    let entry = |kind: &Kind| {
        let value = kind.to_possible_value()?;
        let about = value.get_help().map(ToString::to_string).unwrap_or_default();
        Some(Entry::plain(value.get_name(), &about))
    };
    Kind::value_variants().iter().filter_map(entry).collect()
}

fn methods() -> Vec<Entry> {
    let entry = |info: &dpcl::methods::MethodInfo| {
        let told = match info.knowledge {
            dpcl::method::Knowledge::None => "",
            dpcl::method::Knowledge::TaskEnds => " (is told where tasks end)",
            dpcl::method::Knowledge::TaskIds => " (is told the task of every sample)",
        };
        let answers = match info.answers {
            dpcl::method::Answers::AnyTime => "",
            dpcl::method::Answers::TaskEnds => " (answers as of the last task end)",
            dpcl::method::Answers::End => " (answers at the end only)",
        };
        let facts = json!({
            "knowledge": info.knowledge.name(),
            "answers": info.answers.name(),
            "section": info.section,
            "memory_scheme": info.memory_scheme,
            "rate": info.rate,
            "departures": info.departures,
        });
        let departures = info.departures.join("; ");
        let more = (!departures.is_empty()).then(|| format!("departs from its paper: {departures}"));
        Entry { name: info.name.to_owned(), about: format!("{}{told}{answers}", info.about), more, facts }
    };
    dpcl::methods::all().into_iter().map(entry).collect()
}

/// The common keys, then each method's own, dotted.
fn keys() -> Vec<Entry> {
    let common = Settings::keys().into_iter().map(|key| key_entry(&key, None));
    let own = dpcl::methods::all().into_iter().flat_map(|info| {
        (info.keys.list)().into_iter().map(|key| key_entry(&key, Some(info))).collect::<Vec<_>>()
    });
    common.chain(own).collect()
}

fn key_entry(key: &Key, method: Option<&dpcl::methods::MethodInfo>) -> Entry {
    let (values, default) = (key.values_text(), key.default_text());
    let read_by = method.map_or_else(|| readers(key.name), |info| info.name.to_owned());
    let dotted = |name: &str| method.map_or(name.to_owned(), |info| format!("{}.{name}", info.section));
    let aliases: Vec<String> = key.aliases.iter().map(|alias| dotted(alias)).collect();
    let flag = key.flag.map(|_| format!("--{}", key.long()));
    let facts = json!({
        "values": values,
        "range": key.range.text(),
        "default": default,
        "read_by": read_by,
        "flag": flag,
        "old_names": aliases,
    });
    let mut more = format!("{values}; default: {default}");
    if let Some(flag) = flag {
        more.push_str(&format!("; {flag}"));
    }
    more.push_str(&format!("; read by {read_by}"));
    if let Some(alias) = aliases.first() {
        more.push_str(&format!("; once `{alias}`"));
    }
    Entry { name: dotted(key.name), about: key.help.clone(), more: Some(more), facts }
}

/// Who reads a common key.
fn readers(key: &str) -> String {
    let using = |knob: &str, names: &[&str]| format!("the {knob} {}", names.join(" and "));
    match key {
        "lr_decay" | "lr_reset_on_new_class" => using("rate", &["exp-reset"]),
        "imp_period" => format!("{}, {}", using("memory", &["clib"]), using("rate", &["clib"])),
        "rebuild" => "methods that are told where tasks end".into(),
        "n" => using("scenario", &["i-blurry"]),
        "m" | "blurry_order" => using("scenarios", &["blurry", "i-blurry", "rm-blurry"]),
        "superclass_order" => using("scenario", &["superclass"]),
        "average_statistics" | "teacher" => "runs with an `average`".into(),
        "teacher_temperature" => "runs with a `teacher`".into(),
        "cutmix_alpha" => "runs with a `cutmix_prob`".into(),
        "memory" => "methods with a memory".into(),
        _ => "every method".into(),
    }
}

fn datasets() -> Vec<Entry> {
    let entry = |info: &dpcl::data::DatasetInfo| {
        let fetch = if info.fetchable { " (`dpcl data fetch`)" } else { "" };
        let facts = serde_json::to_value(info).unwrap_or_default();
        Entry { name: info.name.to_owned(), about: format!("{}{fetch}", info.about), more: None, facts }
    };
    dpcl::data::list().iter().map(entry).collect()
}

/// Names of the numbers in `result.json`, and what they say. All are shares, 0 to 1.
const METRICS: &[(&str, &str)] = &[
    ("acc", "final accuracy: mean over tasks of the accuracy on each task's test images at the end"),
    ("fm", "forgetting: mean over earlier tasks of |accuracy when the task ended − accuracy at the end|"),
    ("fm_signed", "the same without the absolute value: negative where a task improved"),
    ("fm_max", "forgetting from the best accuracy a task ever had at an earlier task end"),
    ("a_auc", "any-time accuracy: mean over the periodic evaluations of the accuracy on classes met"),
    ("a_avg", "mean of the accuracies on classes met at task ends"),
    ("a_last", "accuracy over all classes met, at the end"),
    ("f_last", "mean over classes of the best earlier accuracy at task ends − accuracy at the end"),
    ("online_acc", "accuracy of predicting each stream sample before learning it (`--online`)"),
    ("acc_task_ids", "acc of answers that were told the task of every image (methods marked ‡)"),
    ("fm_task_ids", "fm of answers that were told the task of every image (methods marked ‡)"),
    ("acc_unaveraged", "acc of the weights that learn, where their average answers (`--average`)"),
    ("fm_unaveraged", "fm of the weights that learn, where their average answers"),
    ("a_auc_unaveraged", "a_auc of the weights that learn, where their average answers"),
    ("ece_unaveraged", "ece of the weights that learn, where their average answers"),
    (
        "ece",
        "calibration error at the end: mean over answers of |accuracy − confidence|, in 15 bins of confidence",
    ),
    (
        "aurc_confidence",
        "mean share of wrong answers over all shares answered, most confident first, at the end",
    ),
    ("aurc_disagreement", "the same, answers first on which the heads disagree least"),
];

fn text(entries: &[Entry], width: usize) -> String {
    const GAP: usize = 2;
    let column = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0) + GAP;
    let mut text = String::new();
    for entry in entries {
        let mut name = entry.name.as_str();
        for paragraph in std::iter::once(&entry.about).chain(&entry.more) {
            for line in output::wrap(paragraph, width.saturating_sub(column).max(20)) {
                text.push_str(&format!("{name:<column$}{line}\n"));
                name = "";
            }
        }
    }
    text
}

fn json(entries: &[Entry]) -> String {
    let whole = |entry: &Entry| {
        let mut object = entry.facts.clone();
        object["name"] = entry.name.clone().into();
        object["about"] = entry.about.clone().into();
        object
    };
    let list: Vec<Value> = entries.iter().map(whole).collect();
    format!("{:#}\n", Value::Array(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_of_a_record_is_explained() {
        let record = serde_json::to_value(dpcl_report::record::Metrics::default()).unwrap();
        let mut recorded: Vec<&str> = record.as_object().unwrap().keys().map(String::as_str).collect();
        let mut listed: Vec<&str> = METRICS.iter().map(|(name, _)| *name).collect();
        recorded.sort_unstable();
        listed.sort_unstable();
        assert_eq!(recorded, listed);
    }

    #[test]
    fn text_is_set_in_two_columns_within_the_width() {
        let long = Entry { more: Some("eight nine ten eleven".to_owned()), ..Entry::plain("long", "seven") };
        let entries = [Entry::plain("a", "one two three four five six"), long];
        let expected =
            "a     one two three four\n      five six\nlong  seven\n      eight nine ten\n      eleven\n";
        assert_eq!(text(&entries, 26), expected);
    }
}
