//! `dpcl bench cost`: what a sample costs with each method, beside plain replay and the paper's complexity table.

use dpcl::{
    bench::cost::{CLASSES, Cost as Measured, CostBench, REFERENCE},
    method::Answers,
    methods::{self, METHODS},
};
use dpcl_report::{
    format,
    table::{Cell, Row, Table},
};

use crate::output;

/// Measure what a sample costs with each method, in turn with plain replay
///
/// Every method learns one short stream of made-up images from beginning to end: time, counted multiply-adds, size of
/// the model and of all that is kept, each also as a multiple of `er`'s. `dpcl report` has the costs of real runs.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Cost {
    /// Methods, with commas; all of `dpcl list methods` unless given
    #[arg(long, value_delimiter = ',')]
    method: Vec<String>,
    /// Network; see `dpcl list models`
    #[arg(long, default_value = "slim")]
    model: String,
    /// Training batch
    #[arg(long, default_value_t = 16)]
    batch: usize,
    /// Training steps a sample
    #[arg(long, default_value_t = 1.0)]
    updates: f64,
    /// Slots of the memory
    #[arg(long, default_value_t = 160)]
    memory: usize,
    /// Height and width of the images
    #[arg(long, default_value_t = 32)]
    size: usize,
    /// Tasks of the stream
    #[arg(long, default_value_t = 4)]
    tasks: usize,
    /// Samples of a task
    #[arg(long, default_value_t = 48)]
    samples: usize,
    /// Threads; 0 uses every core
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Times that each stream is learned and counted
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// A table for people
    Text,
    /// One JSON object
    Json,
    /// A pipe table
    Markdown,
}

const EXAMPLES: &str = "\
Examples:
  dpcl bench cost --threads 1
  dpcl bench cost --method er,dpcl,mir --model resnet18 --format markdown
  dpcl bench cost --memory 2000 --tasks 5 --samples 500 --format json";

/// Measures and lays out.
pub fn measure(cost: &Cost) -> anyhow::Result<String> {
    let bench = CostBench {
        model: cost.model.clone(),
        batch: cost.batch,
        updates: cost.updates,
        memory: cost.memory,
        size: cost.size,
        tasks: cost.tasks,
        samples: cost.samples,
        threads: cost.threads,
        rounds: cost.rounds.max(1),
    };
    let mut names = cost.method.clone();
    if names.is_empty() {
        // Plain replay first: beside itself it shows the noise.
        let others = METHODS.iter().map(|info| info.name).filter(|name| *name != REFERENCE);
        names = std::iter::once(REFERENCE).chain(others).map(str::to_owned).collect();
    }
    names.iter().try_for_each(|name| methods::find(name).map(drop))?;
    let mut measured = Vec::with_capacity(names.len());
    for (number, name) in names.iter().enumerate() {
        output::talk(format!("{} of {}: {name}", number + 1, names.len()));
        measured.push(bench.run(name)?);
    }
    Ok(match cost.format {
        Format::Text => table(&bench, &measured).terminal(output::data_width(), output::data_colour()),
        Format::Markdown => table(&bench, &measured).markdown(),
        Format::Json => {
            let stream = serde_json::json!({
                "model": bench.model, "batch": bench.batch, "updates": bench.updates, "memory": bench.memory,
                "size": bench.size, "tasks": bench.tasks, "samples": bench.samples, "classes": CLASSES,
                "threads": dpcl::bench::threads(bench.threads), "rounds": bench.rounds,
                "isa": dpcl::bench::isa(), "costs": measured,
            });
            serde_json::to_string_pretty(&stream)? + "\n"
        }
    })
}

const COLUMNS: [&str; 12] = [
    "sample",
    "×",
    "paper, step",
    "steps",
    "multiply-adds",
    "×",
    "model size",
    "×",
    "paper, model",
    "kept",
    "×",
    "paper, GPU",
];

fn table(bench: &CostBench, measured: &[Measured]) -> Table {
    let answers_late = |name: &str| methods::find(name).is_ok_and(|info| info.answers != Answers::AnyTime);
    let row = |cost: &Measured| {
        let times = |ratio: f64| format!("{ratio:.2}");
        let paper = |ratio: Option<f64>| ratio.map_or_else(|| "–".to_owned(), times);
        let texts = [
            format!("{} ms", format::short(cost.sample_ms.median)),
            times(cost.sample_times.median),
            paper(cost.paper.map(|paper| paper.step_times)),
            format::short(cost.steps),
            format!("{} M", format::short(cost.multiply_adds / 1e6)),
            times(cost.multiply_adds_times),
            format::thousands(cost.model_parameters),
            times(cost.model_times),
            paper(cost.paper.map(|paper| paper.model_times)),
            format::bytes(cost.kept_bytes as f64),
            times(cost.kept_times),
            paper(cost.paper.map(|paper| paper.memory_times)),
        ];
        Row {
            name: cost.method.clone(),
            mark: if answers_late(&cost.method) { "§" } else { "" },
            cells: texts.map(|mean| Cell { mean, ..Cell::default() }).into(),
        }
    };
    let rows: Vec<Row> = measured.iter().map(row).collect();
    let mut footnotes = vec![
        format!(
            "{}, {size} × {size} pixels; batch {}, memory {}, updates a sample {}; tasks {}, samples a task {}; rounds {}; \
             threads {}, {}",
            bench.model,
            bench.batch,
            bench.memory,
            bench.updates,
            bench.tasks,
            bench.samples,
            bench.rounds,
            dpcl::bench::threads(bench.threads),
            dpcl::bench::isa(),
            size = bench.size,
        ),
        format!(
            "sample: time of learning it, work at task ends included; steps: those taken for it; ×: how many times {REFERENCE}'s, \
             of times in the same round; medians"
        ),
        "multiply-adds: of convolutions and linear layers, forward and backward, counted as they are done".into(),
        "model size: numbers learned and those kept beside them at a fixed size; kept: bytes of weights, moments, \
         stored images and what else is saved"
            .into(),
        "paper: complexity table of the DPCL paper as multiples of ER's, with ResNet34: time of a step, model size, memory of \
         the GPU (activations too, no stored images)"
            .into(),
    ];
    if rows.iter().any(|row| !row.mark.is_empty()) {
        footnotes
            .push("§ trains at task ends or at the end: its cost depends on how many tasks there are".into());
    }
    Table { columns: COLUMNS.into(), metrics: 0, rows, footnotes }
}
