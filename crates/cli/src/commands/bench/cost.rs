//! `dpcl bench cost`: what a sample costs with each method, beside plain replay and the paper's complexity table.

use std::process::{Command, Stdio};

use anyhow::Context;
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
/// the model and of all that is kept, peak memory, each also as a multiple of `er`'s. `dpcl report` has the costs of
/// real runs.
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
    /// Learn the stream once with this method and print the peak memory; for processes started by this command
    #[arg(long, hide = true)]
    alone: Option<String>,
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
    if let Some(method) = &cost.alone {
        return Ok(format!("{}\n", bench.peak_memory(method)?));
    }
    let mut names = cost.method.clone();
    if names.is_empty() {
        // Plain replay first: beside itself it shows the noise.
        let others = METHODS.iter().map(|info| info.name).filter(|name| *name != REFERENCE);
        names = std::iter::once(REFERENCE).chain(others).map(str::to_owned).collect();
    }
    names.iter().try_for_each(|name| methods::find(name).map(drop))?;
    let mut measured = Vec::with_capacity(names.len());
    let reference = peak_memory(&bench, REFERENCE)?;
    for (number, name) in names.iter().enumerate() {
        output::talk(format!("{} of {}: {name}", number + 1, names.len()));
        let peak = if name == REFERENCE { reference } else { peak_memory(&bench, name)? };
        measured.push(bench.run(name)?.with_peaks(peak, reference));
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

/// Peak memory of a process of its own that learns with a method.
fn peak_memory(bench: &CostBench, method: &str) -> anyhow::Result<u64> {
    let numbers = [
        ("--batch", bench.batch.to_string()),
        ("--updates", bench.updates.to_string()),
        ("--memory", bench.memory.to_string()),
        ("--size", bench.size.to_string()),
        ("--tasks", bench.tasks.to_string()),
        ("--samples", bench.samples.to_string()),
        ("--threads", bench.threads.to_string()),
    ];
    let program = std::env::current_exe().context("cannot find the program itself")?;
    let answer = Command::new(program)
        .args(["bench", "cost", "--alone", method, "--model", &bench.model])
        .args(numbers.iter().flat_map(|(flag, number)| [*flag, number.as_str()]))
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start a process to measure memory")?;
    anyhow::ensure!(answer.status.success(), "the process that measures the memory of {method} failed");
    let text = String::from_utf8_lossy(&answer.stdout);
    text.trim().parse().with_context(|| format!("the process that measures memory said {text:?}"))
}

const COLUMNS: [&str; 14] = [
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
    "peak memory",
    "×",
    "paper, GPU",
];

fn table(bench: &CostBench, measured: &[Measured]) -> Table {
    let answers_late = |name: &str| methods::find(name).is_ok_and(|info| info.answers != Answers::AnyTime);
    let row = |cost: &Measured| {
        let times = |ratio: f64| format!("{ratio:.2}");
        let known = |ratio: Option<f64>| ratio.map_or_else(|| "–".to_owned(), times);
        let texts = [
            format!("{} ms", format::short(cost.sample_ms.median)),
            times(cost.sample_times.median),
            known(cost.paper.map(|paper| paper.step_times)),
            format::short(cost.steps),
            format!("{} M", format::short(cost.multiply_adds / 1e6)),
            times(cost.multiply_adds_times),
            format::thousands(cost.model_parameters),
            times(cost.model_times),
            known(cost.paper.map(|paper| paper.model_times)),
            format::bytes(cost.kept_bytes as f64),
            times(cost.kept_times),
            cost.peak_memory_bytes.map_or_else(|| "–".to_owned(), |bytes| format::bytes(bytes as f64)),
            known(cost.peak_memory_times),
            known(cost.paper.map(|paper| paper.memory_times)),
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
         stored images and what else is saved; peak memory: of a process that learns the stream once"
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
