//! `dpcl check`: what a configuration settles on and what it will cost, without running it.

use dpcl::{Run, folder::RunFolder, method::Architecture, stream::Arrivals};

use super::running::Running;
use crate::{completing, conflict, estimate, failure, flags::Flags, grid::Planned, output, told};

/// Check a configuration and show what it settles on
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// TOML files or presets [default: the preset `default`]
    #[arg(value_name = "CONFIG|PRESET", add = completing::configurations())]
    configs: Vec<String>,

    #[command(flatten)]
    flags: Flags,

    #[command(flatten)]
    running: Running,
}

const EXAMPLES: &str = "\
Opens the data, lays out the stream and measures a training step, but learns
nothing. Takes every flag of `dpcl run`. The checked configuration goes to
stdout, one for each label at its first seed; the summary goes to stderr: what
each label learns, and for all runs updates, time and disk.

Examples:
  dpcl check my.toml                      is it right, and what is left open?
  dpcl check small --method er --memory 200
  dpcl check small --method er > checked.toml";

/// Checks, opens, prints.
pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let mut grid = arguments.running.grid(&arguments.configs, &arguments.flags)?;
    let conflict = conflict::find(&grid)?.map(|conflict| (conflict.told(), conflict.name));
    if let Some(((problem, hint), name)) = conflict {
        output::talk(format!("note: {problem}\nnote: {}", hint.replace("dpcl check", "dpcl run")));
        for run in &mut grid.runs {
            let path = run.folder.path().parent().unwrap_or(run.folder.path()).with_file_name(&name);
            run.folder = RunFolder::at(path.join(&run.title));
        }
        grid.folders.iter_mut().for_each(|folder| folder.set_file_name(&name));
    }
    let mut shown: Vec<(&std::path::Path, &str)> = Vec::new();
    for planned in &grid.runs {
        let label = planned.setup.label.as_str();
        let folder = planned.folder.path().parent().unwrap_or(planned.folder.path());
        if shown.contains(&(folder, label)) {
            continue;
        }
        shown.push((folder, label));
        let run = Run::open(&planned.config)?;
        output::data(&format!("# {}\n{}", planned.title, run.setup().to_toml()))?;
        output::talk(summary(planned, &run)?);
        for advice in run.advice() {
            let lines = output::wrap(&advice, output::talk_width().saturating_sub(4));
            lines.iter().for_each(|line| output::talk(format!("  {line}")));
        }
    }
    told::ignored(&grid).iter().for_each(output::talk);
    let estimate = estimate::of(&grid.runs, grid.shares(), &mut |_| ())?;
    output::talk(format!("\nin all\n  {}", estimate.lines(&grid.folders).join("\n  ")));
    output::talk("nothing is wrong");
    Ok(failure::DONE)
}

fn summary(planned: &Planned, run: &Run) -> anyhow::Result<String> {
    let setup = run.setup();
    let schedule = run.schedule();
    let samples: usize = schedule.tasks.iter().map(|task| task.samples.len()).sum();
    let classes: usize = schedule.tasks.iter().map(|task| task.classes.len()).sum();
    let sizes: Vec<String> = schedule.tasks.iter().map(|task| task.samples.len().to_string()).collect();
    let updates = updates(samples, setup.batch, setup.updates);
    let slots = setup.memory;
    let image = run.dataset().size * run.dataset().size * 3;
    let architecture = setup.architecture()?;
    let heads = (setup.method.build)(setup)?.heads();
    let weights = weights(&architecture, heads, classes);
    let heads = if heads == 1 { String::new() } else { format!(" with {heads} heads") };
    let mut lines = vec![
        planned.title.clone(),
        format!(
            "  stream    {samples} samples of {classes} classes in {} tasks ({})",
            sizes.len(),
            sizes.join(", ")
        ),
        format!("  learning  {updates} updates of batches of up to {}", setup.batch),
        format!("  memory    {slots} slots, {}", megabytes(slots * image)),
        // Weights and two moments each, four bytes a number.
        format!(
            "  network   {weights} weights{heads}, {} with the optimiser's moments",
            megabytes(weights * 12)
        ),
        format!("  record    {}", planned.folder.path().display()),
    ];
    if let Some(left_out) = told::left_out(run) {
        lines.insert(2, format!("            {left_out}"));
    }
    Ok(lines.join("\n"))
}

/// Training steps of a stream: those that samples earn, half a batch at a time.
fn updates(samples: usize, batch: usize, per_sample: f64) -> usize {
    let mut arrivals = Arrivals::new(batch / 2, per_sample);
    (0..samples).filter_map(|sample| arrivals.push(sample)).map(|due| due.updates).sum()
}

/// Numbers that are learned: convolutions, scale and shift of each batch norm, linear heads.
fn weights(architecture: &Architecture, heads: usize, classes: usize) -> usize {
    let (layers, _) = architecture.layers();
    let encoder = layers.iter().map(|layer| {
        let kernel = layer.spec.kernel * layer.spec.kernel;
        (layer.channels_in * kernel + 2) * layer.channels_out
    });
    encoder.sum::<usize>() + (architecture.features() + 1) * heads * classes
}

fn megabytes(bytes: usize) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_counted_as_published() {
        let named = |name: &str| Architecture::named(name, None, 1e-6, 0.1).unwrap();
        assert_eq!(weights(&named("resnet18"), 1, 10), 11_173_962);
        assert_eq!(weights(&named("resnet34"), 1, 100), 21_328_292);
        assert_eq!(weights(&named("resnet34-imagenet"), 1, 1000), 21_797_672);
    }

    #[test]
    fn updates_follow_the_protocol() {
        assert_eq!(updates(20, 16, 3.0), 48);
        assert_eq!(updates(70, 64, 0.25), 16);
        assert_eq!(updates(16, 16, 0.1), 1);
        assert_eq!(updates(5000, 16, 3.0), 15_000);
        assert_eq!(updates(100_000, 20, 0.1), 10_000);
    }
}
