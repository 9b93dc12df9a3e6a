//! `dpcl predict`: what a saved learner makes of images.

use std::{fmt::Write as _, path::PathBuf};

use clap::ValueEnum;
use dpcl::{
    Error, Label, Prediction,
    checkpoint::Checkpoint,
    data::{self, Ahead, OnBadImage},
};
use serde_json::{Map, Value, json};

use crate::{failure, flags, output};

/// Ask a saved learner what images show
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The learner: a `.ckpt` file
    #[arg(long, value_name = "FILE")]
    checkpoint: PathBuf,

    /// PNG or JPEG files, or folders of them
    #[arg(value_name = "IMAGE", required = true)]
    images: Vec<PathBuf>,

    /// How to show the answers
    #[arg(long, value_enum, default_value_t = Format::Csv)]
    format: Format,

    /// An image that cannot be read: `fail`, or `skip` and go on
    #[arg(long, value_name = "WHAT", value_parser = flags::choice::<OnBadImage>(), default_value = "fail", hide_possible_values = true)]
    on_bad_image: String,

    /// Threads [default: as many as there are cores]
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
}

const EXAMPLES: &str = "\
One line an image: file, class, probability of that class, how much the
learner's heads disagree and the entropy of all classes' probabilities (nats).
As JSON also `probabilities`, those of all classes by name.
Images are resized to the learner's size, as those of a folder data set are.

Examples:
  dpcl predict --checkpoint runs/a/er-seed1/checkpoint/2500.ckpt photo.jpg
  dpcl predict --checkpoint last.ckpt photos --format json | jq .class";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A header and a line an image
    Csv,
    /// An object a line
    Json,
}

/// Images answered at once: enough to keep every core busy, few enough to stay small.
const ROWS: usize = 128;

/// Answers for every image, in the order given.
pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let mut checkpoint = Checkpoint::read(&arguments.checkpoint)?;
    checkpoint.config.settings.threads = arguments.threads.unwrap_or(0);
    let learner = checkpoint.learner()?;
    let mut paths = Vec::new();
    for path in &arguments.images {
        paths.extend(data::image_files(path)?);
    }
    let files = data::open_files(paths.clone(), learner.shape().height)?;
    let mut decoded = Ahead::new(files, (0..paths.len()).collect(), ROWS);
    if arguments.format == Format::Csv {
        output::data("file,class,probability,disagreement,entropy\n")?;
    }
    let class_name = |label: &Label| checkpoint.class_name(label);
    let skip = arguments.on_bad_image == "skip";
    let mut answered = 0;
    for (first, chunk) in (0..).step_by(ROWS).zip(paths.chunks(ROWS)) {
        let (mut images, mut names) = (Vec::new(), Vec::new());
        for (offset, (path, image)) in chunk.iter().zip(decoded.by_ref()).enumerate() {
            match image {
                Ok(image) => {
                    images.push(image);
                    names.push(path.display().to_string());
                }
                Err(problem) if skip => output::talk(format!("skipped: {:#}", anyhow::Error::new(problem))),
                Err(problem) => {
                    let what = format!("image {} of {}", first + offset + 1, paths.len());
                    return Err(Error::BadImage { what, source: Box::new(problem) }.into());
                }
            }
        }
        let answers = learner.predict_all(&images)?;
        let mut text = String::new();
        for (name, answer) in names.iter().zip(&answers) {
            text.push_str(&line(arguments.format, name, &class_name, answer));
        }
        output::data(&text)?;
        answered += answers.len();
    }
    if answered < paths.len() {
        output::talk(format!("{answered} of {} images could be read", paths.len()));
    }
    Ok(if answered == 0 { failure::FAILED } else { failure::DONE })
}

fn line(format: Format, file: &str, class_name: &dyn Fn(&Label) -> String, answer: &Prediction) -> String {
    let Prediction { label, probabilities, disagreement, entropy } = answer;
    let class = class_name(label);
    let own = probabilities.iter().find(|(other, _)| other == label);
    let probability = own.map_or(0.0, |(_, probability)| *probability);
    let mut text = String::new();
    let written = match format {
        Format::Csv => {
            let (file, class) = (field(file), field(&class));
            writeln!(text, "{file},{class},{probability},{disagreement},{entropy}")
        }
        Format::Json => {
            let named = |(label, probability): &(Label, f32)| (class_name(label), json!(probability));
            let probabilities: Map<String, Value> = probabilities.iter().map(named).collect();
            let object = json!({
                "file": file,
                "class": class,
                "probability": probability,
                "probabilities": probabilities,
                "disagreement": disagreement,
                "entropy": entropy,
            });
            writeln!(text, "{object}")
        }
    };
    written.expect("text takes what is written");
    text
}

/// Quotes where a reader of CSV would otherwise see two fields; what a spreadsheet would take for a formula begins with an
/// apostrophe.
fn field(text: &str) -> String {
    let text = &if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        format!("'{text}")
    } else {
        text.to_owned()
    };
    if text.contains(['"', ',', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_the_answer_and_names_are_quoted_where_needed() {
        let answer = Prediction {
            label: Label::Number(1),
            probabilities: vec![(Label::Number(0), 0.25), (Label::Number(1), 0.75)],
            disagreement: 0.125,
            entropy: 0.5,
        };
        let name = |label: &Label| ["elk", "eel"][label.number().unwrap()].to_owned();
        assert_eq!(line(Format::Csv, "a, b.png", &name, &answer), "\"a, b.png\",eel,0.75,0.125,0.5\n");
        assert_eq!(line(Format::Csv, "=a.png", &name, &answer), "'=a.png,eel,0.75,0.125,0.5\n");
        let json: Value = serde_json::from_str(&line(Format::Json, "a\n.png", &name, &answer)).unwrap();
        assert_eq!((&json["file"], &json["probability"]), (&json!("a\n.png"), &json!(0.75)));
        assert_eq!(json["probabilities"], json!({ "elk": 0.25, "eel": 0.75 }));
    }
}
