//! `dpcl predict`: what a saved learner makes of images.

use std::{
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::ValueEnum;
use dpcl::{
    Error, Label, Prediction,
    checkpoint::Checkpoint,
    data::{self, Ahead, OnBadImage},
};
use serde_json::{Map, Value, json};

use crate::{failure, flags, newest, output};

/// Ask a saved learner what images show
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The learner: a `.ckpt` file, or the folder of a run
    #[arg(long, value_name = "FILE|RUN")]
    checkpoint: PathBuf,

    /// Image files, or folders of them; `-` reads paths from standard input, one a line
    #[arg(value_name = "IMAGE", required = true)]
    images: Vec<PathBuf>,

    /// How to show the answers
    #[arg(long, value_enum, default_value_t = Format::Csv)]
    format: Format,

    /// Answer no class where its probability is below this
    #[arg(long, value_name = "PROBABILITY", value_parser = probability)]
    abstain_below: Option<f32>,

    /// Images that cannot be read: `fail` at the end, or `skip` them
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
Which answers may be wrong? Sort by `probability`, the lowest first: it ranks
errors best. `entropy` says nearly the same. `disagreement` does not find errors
reliably, and is empty where there is only one head.
Images are turned as their tags say and made to the learner's size as its
training images were (`--fit`). What can be read: PNG, JPEG, WebP, BMP and the first
frame of GIF. One that cannot be read does not keep the others from
being answered; the exit code is then 1.

Examples:
  dpcl predict --checkpoint runs/photos/er-seed1 photo.jpg
  dpcl predict --checkpoint last.ckpt photos --format json | jq .class
  dpcl predict --checkpoint last.ckpt --abstain-below 0.6 photos
  find . -name '*.jpg' | dpcl predict --checkpoint last.ckpt -";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A header and a line an image
    Csv,
    /// An object a line
    Json,
}

/// Images answered at once: enough to keep every core busy, few enough to stay small.
const ROWS: usize = 128;

/// Answers for every image that can be read, in the order given.
pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let mut checkpoint = Checkpoint::read(&newest::checkpoint(&arguments.checkpoint)?)?;
    checkpoint.config.settings.threads = arguments.threads.unwrap_or(0);
    let learner = checkpoint.learner()?;
    let (paths, mut problems) = paths(&arguments.images)?;
    let files = data::open_files(paths.clone(), learner.shape().height, checkpoint.config.settings.fit)?;
    let mut decoded = Ahead::new(files, (0..paths.len()).collect(), ROWS);
    let telling = Telling {
        format: arguments.format,
        class_name: &|label: &Label| checkpoint.class_name(label),
        disagree: learner.heads() > 1,
        abstain_below: arguments.abstain_below.unwrap_or(0.0),
    };
    if arguments.format == Format::Csv && !paths.is_empty() {
        output::data("file,class,probability,disagreement,entropy\n")?;
    }
    let mut answered = 0;
    for chunk in paths.chunks(ROWS) {
        let (mut images, mut names) = (Vec::new(), Vec::new());
        for (path, image) in chunk.iter().zip(decoded.by_ref()) {
            match image {
                Ok(image) => {
                    images.push(image);
                    names.push(path.display().to_string());
                }
                Err(problem) => problems.push(problem.whole()),
            }
        }
        let answers = learner.predict_all(&images)?;
        let lines = names.iter().zip(&answers).map(|(name, answer)| telling.line(name, answer));
        output::data(&lines.collect::<String>())?;
        answered += answers.len();
    }
    if problems.is_empty() {
        return Ok(failure::DONE);
    }
    if arguments.on_bad_image != "skip" {
        return Err(Error::BadImages { problems }.into());
    }
    problems.iter().for_each(|problem| output::talk(format!("skipped: {problem}")));
    output::talk(format!("{answered} of {} images could be read", answered + problems.len()));
    Ok(if answered == 0 { failure::FAILED } else { failure::DONE })
}

/// Every image file meant, and what is wrong with paths that mean none.
fn paths(asked: &[PathBuf]) -> anyhow::Result<(Vec<PathBuf>, Vec<String>)> {
    let (mut paths, mut problems) = (Vec::new(), Vec::new());
    let mut add = |path: &Path| match data::image_files(path) {
        Ok(found) => paths.extend(found),
        Err(problem) => problems.push(problem.whole()),
    };
    for path in asked {
        if path == Path::new("-") {
            let text = io::read_to_string(io::stdin()).context("cannot read paths from standard input")?;
            text.lines().filter(|line| !line.is_empty()).for_each(|line| add(Path::new(line)));
        } else {
            add(path);
        }
    }
    Ok((paths, problems))
}

fn probability(text: &str) -> Result<f32, String> {
    let number = text.parse().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "must be a number from 0 to 1".to_owned())
}

/// How answers are shown.
struct Telling<'a> {
    format: Format,
    class_name: &'a dyn Fn(&Label) -> String,
    /// Whether there are heads that can.
    disagree: bool,
    abstain_below: f32,
}

impl Telling<'_> {
    fn line(&self, file: &str, answer: &Prediction) -> String {
        let Prediction { label, probabilities, entropy, .. } = answer;
        let own = probabilities.iter().find(|(other, _)| other == label);
        let probability = own.map_or(0.0, |(_, probability)| *probability);
        let class = (probability >= self.abstain_below).then(|| (self.class_name)(label));
        let disagreement = self.disagree.then_some(answer.disagreement);
        let mut text = String::new();
        let written = match self.format {
            Format::Csv => {
                let (file, class) = (field(file), field(&class.unwrap_or_default()));
                let disagreement = disagreement.map(|number| number.to_string()).unwrap_or_default();
                writeln!(text, "{file},{class},{probability},{disagreement},{entropy}")
            }
            Format::Json => {
                let named =
                    |(label, probability): &(Label, f32)| ((self.class_name)(label), json!(probability));
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
        let telling = |format| Telling { format, class_name: &name, disagree: true, abstain_below: 0.0 };
        let csv = telling(Format::Csv);
        assert_eq!(csv.line("a, b.png", &answer), "\"a, b.png\",eel,0.75,0.125,0.5\n");
        assert!(csv.line("=a.png", &answer).starts_with("'=a.png,eel,"));
        let read = |line: String| serde_json::from_str::<Value>(&line).unwrap();
        let json = read(telling(Format::Json).line("a\n.png", &answer));
        assert_eq!((&json["file"], &json["probability"]), (&json!("a\n.png"), &json!(0.75)));
        assert_eq!(json["probabilities"], json!({ "elk": 0.25, "eel": 0.75 }));

        let unsure = Telling { abstain_below: 0.8, disagree: false, ..csv };
        assert_eq!(unsure.line("a.png", &answer), "a.png,,0.75,,0.5\n");
        let json = read(Telling { format: Format::Json, ..unsure }.line("a.png", &answer));
        assert_eq!((&json["class"], &json["disagreement"]), (&Value::Null, &Value::Null));
    }
}
