//! `dpcl bench`: how fast this program is on this machine.

use dpcl::bench::StepBench;

use crate::{failure, output};

mod cost;

/// Measure speed on this machine
#[derive(clap::Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    Step(Step),
    Cost(cost::Cost),
    Peak(Peak),
}

/// Measure the processor's multiply-add rate without memory traffic: the most any program can reach
#[derive(clap::Args, Debug)]
struct Peak {
    /// Threads; 0 uses every core
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Time a training step and an evaluation batch
///
/// A warm-up comes before the steps that count. `DPCL_ISA=avx512|avx2|portable` holds the program to one
/// instruction set.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
struct Step {
    /// Network; see `dpcl list models`
    #[arg(long, default_value = "slim")]
    model: String,
    /// Training batch
    #[arg(long, default_value_t = 16)]
    batch: usize,
    /// Height and width of the images
    #[arg(long, default_value_t = 32)]
    size: usize,
    /// Threads; 0 uses every core
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Steps that count
    #[arg(long, default_value_t = 20)]
    steps: usize,
    /// Images in an evaluation batch
    #[arg(long, default_value_t = 128)]
    eval_batch: usize,
    /// Use stock Burn operators instead of our kernels
    #[arg(long)]
    stock: bool,
    /// Also time a network that keeps its average, step for step beside one that does not
    #[arg(long)]
    average: bool,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// A line for people
    Text,
    /// One JSON object
    Json,
}

const EXAMPLES: &str = "\
Examples:
  dpcl bench step --model resnet18 --threads 1
  dpcl bench step --model slim --steps 50 --format json
  DPCL_ISA=avx2 dpcl bench step --model resnet34";

/// Measures and prints.
pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let text = match &arguments.what {
        What::Step(step) => measure_step(step)? + "\n",
        What::Cost(cost) => cost::measure(cost)?,
        What::Peak(peak) => measure_peak(peak) + "\n",
    };
    output::styled_data(&text)?;
    Ok(failure::DONE)
}

fn measure_peak(peak: &Peak) -> String {
    let (isa, gflops) = dpcl::bench::peak(peak.threads);
    match peak.format {
        Format::Json => serde_json::json!({ "isa": isa, "gflops": gflops }).to_string(),
        Format::Text => format!("{isa}: {gflops:.0} GFLOP/s in registers"),
    }
}

fn measure_step(step: &Step) -> anyhow::Result<String> {
    let bench = StepBench {
        model: step.model.clone(),
        batch: step.batch.max(1),
        size: step.size.max(8),
        threads: step.threads,
        steps: step.steps,
        eval_batch: step.eval_batch.max(1),
        stock: step.stock,
        average: step.average,
    };
    let timing = bench.run()?;
    let averaged = timing.averaged_ms.map_or(String::new(), |averaged| {
        let ratio = averaged.median / timing.train_ms.median;
        format!("; with an average {:.1} ms (best {:.1}), ratio {ratio:.3}", averaged.median, averaged.min)
    });
    Ok(match step.format {
        Format::Json => serde_json::to_string(&timing)?,
        Format::Text => format!(
            "{} at {size} × {size}, batch {}, {} threads, {}: step {:.1} ms (best {:.1}), {:.0} GFLOP/s{averaged}; \
             evaluation {:.3} ms an image; peak memory {:.0} MiB",
            timing.model,
            timing.batch,
            timing.threads,
            timing.isa,
            timing.train_ms.median,
            timing.train_ms.min,
            timing.gflops,
            timing.eval_ms_per_image.median,
            timing.peak_memory_bytes as f64 / (1 << 20) as f64,
            size = timing.size,
        ),
    })
}
