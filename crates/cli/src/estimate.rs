//! What runs will take, before they start: training steps, answered images, disk, and an estimate of time from a step
//! and an answer measured here and at this moment. Knows nothing of who asks.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use dpcl::{Run, bench::pace::Pace, folder::Status, run::Outlook};
use dpcl_report::format;

use crate::{conductor::Shares, grid::Planned, show};

/// What one run takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Work and space.
    pub outlook: Outlook,
    /// Seconds, as far as a step and an answer tell.
    pub seconds: f64,
    /// Whether it is on record already, so that it will be kept as it is.
    pub finished: bool,
}

/// What all runs of a command take.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// One a run, in their order.
    pub runs: Vec<Forecast>,
    /// Processes side by side and threads of each, as it was estimated for.
    pub shares: Shares,
}

/// Seconds that a configuration is measured for, beyond the two steps that it takes at least.
const PATIENCE: Duration = Duration::from_millis(150);

/// Keys that change neither a step nor an answer.
const WITHOUT_EFFECT: [&str; 20] = [
    "seed",
    "label",
    "dataset",
    "data_dir",
    "scenario",
    "n",
    "m",
    "tasks",
    "blurry_order",
    "superclass_order",
    "classes",
    "first_tasks",
    "per_class",
    "holdout",
    "split",
    "eval_period",
    "updates",
    "lr",
    "mean",
    "std",
];

/// Opens every stream, counts what it takes, and measures each configuration once. `told` hears what is being measured.
///
/// # Errors
/// When data cannot be opened or a configuration cannot be run.
pub fn of(runs: &[Planned], shares: Shares, told: &mut dyn FnMut(&str)) -> anyhow::Result<Estimate> {
    let mut outlooks: BTreeMap<String, (Outlook, usize)> = BTreeMap::new();
    let mut paces: BTreeMap<String, Pace> = BTreeMap::new();
    let mut forecasts = Vec::with_capacity(runs.len());
    for planned in runs {
        if matches!(planned.folder.status(&planned.setup)?, Status::Finished(_)) {
            forecasts.push(Forecast { outlook: Outlook::default(), seconds: 0.0, finished: true });
            continue;
        }
        let stream = without(&planned.setup.to_table(), &["seed", "label"]);
        let (outlook, size) = match outlooks.get(&stream) {
            Some(known) => *known,
            None => {
                let run = Run::open(&planned.config)?;
                *outlooks.entry(stream).or_insert((run.outlook()?, run.dataset().size))
            }
        };
        let key = format!("{size} {}", without(&planned.setup.to_table(), &WITHOUT_EFFECT));
        let pace = match paces.get(&key) {
            Some(known) => *known,
            None => {
                told(&planned.setup.label);
                let mut config = planned.config.clone();
                (config.settings.size, config.settings.threads) = (Some(size), shares.threads);
                *paces.entry(key).or_insert(Pace::measure(&config.check()?, PATIENCE)?)
            }
        };
        let answers = (outlook.answers + outlook.remeasured) as f64;
        forecasts.push(Forecast {
            outlook,
            seconds: outlook.updates as f64 * pace.step_seconds + answers * pace.answer_seconds,
            finished: false,
        });
    }
    Ok(Estimate { runs: forecasts, shares })
}

fn without(table: &toml::Table, keys: &[&str]) -> String {
    let mut table = table.clone();
    keys.iter().for_each(|key| drop(table.remove(*key)));
    table.to_string()
}

impl Estimate {
    /// Runs that are still to be made.
    pub fn open(&self) -> impl Iterator<Item = &Forecast> {
        self.runs.iter().filter(|run| !run.finished)
    }

    /// The time until the last of them ends, each begun as soon as a process is free.
    pub fn wall_seconds(&self) -> f64 {
        let mut free = vec![0.0_f64; self.shares.jobs.max(1)];
        for run in self.open() {
            let first = (0..free.len()).min_by(|&a, &b| free[a].total_cmp(&free[b])).unwrap_or(0);
            free[first] += run.seconds;
        }
        free.into_iter().fold(0.0, f64::max)
    }

    /// Bytes that their records and checkpoints will take.
    pub fn bytes(&self) -> u64 {
        self.open().map(|run| run.outlook.bytes).sum()
    }

    /// The sums, a line each.
    pub fn lines(&self, folders: &[PathBuf]) -> Vec<String> {
        let open = self.open().count();
        let sum = |of: fn(&Outlook) -> u64| format::thousands(self.open().map(|run| of(&run.outlook)).sum());
        let kept = self.runs.len() - open;
        let kept = if kept == 0 { String::new() } else { format!(", {kept} more on record already") };
        // An empty sum of floats is minus zero.
        let total = self.open().fold(0.0, |sum, run| sum + run.seconds);
        let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        let mut lines = vec![
            format!("runs         {open}{kept}"),
            format!("updates      {}", sum(|outlook| outlook.updates)),
            format!(
                "evaluations  {} of {} test images in all",
                sum(|outlook| outlook.evaluations),
                sum(|outlook| outlook.answers)
            ),
            format!(
                "time         about {} with {} at a time ({} one after another)",
                human(self.wall_seconds()),
                self.shares.jobs,
                human(total)
            ),
            format!("disk         about {} of records and checkpoints", format::bytes(self.bytes() as f64)),
        ];
        if !folders.is_empty() {
            lines.push(format!("records      {}", folders.join(", ")));
        }
        lines.push(
            "             (a step and an answer of each method measured here and just then, times their number; other \
             work on the machine and data on a slow disk come on top)"
                .to_owned(),
        );
        lines
    }
}

/// `40 s`, `12:34` minutes, hours from there, days from two of them on.
pub fn human(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 60.0 => format!("{} s", seconds.ceil()),
        seconds if seconds < 2.0 * 86_400.0 => show::duration(Duration::from_secs_f64(seconds)),
        seconds => format!("{:.1} days", seconds / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(seconds: &[(f64, bool)], jobs: usize) -> Estimate {
        let outlook = Outlook {
            samples: 10,
            updates: 5,
            evaluations: 2,
            answers: 40,
            remeasured: 0,
            bytes: 1000,
            resident: 1,
        };
        let runs =
            seconds.iter().map(|&(seconds, finished)| Forecast { outlook, seconds, finished }).collect();
        Estimate { runs, shares: Shares { jobs, threads: 1 } }
    }

    #[test]
    fn processes_take_the_next_run_when_they_are_free() {
        let runs = [(10.0, false), (2.0, false), (3.0, false), (100.0, true)];
        assert_eq!(estimate(&runs, 1).wall_seconds(), 15.0);
        assert_eq!(estimate(&runs, 2).wall_seconds(), 10.0);
        assert_eq!(estimate(&[], 2).wall_seconds(), 0.0);
    }

    #[test]
    fn only_what_is_left_to_do_is_counted() {
        let lines = estimate(&[(100.0, false), (100.0, true)], 1).lines(&["runs/x".into()]).join("\n");
        assert!(lines.contains("runs         1, 1 more on record already"), "{lines}");
        assert!(lines.contains("updates      5\n") && lines.contains("2 of 40 test images"), "{lines}");
        assert!(lines.contains("about 1:40 with 1 at a time (1:40 one after another)"), "{lines}");
        assert!(lines.contains("runs/x"), "{lines}");
    }

    #[test]
    fn times_are_told_in_the_unit_that_fits() {
        assert_eq!(human(12.2), "13 s");
        assert_eq!(human(3700.0), "1:01:40");
        assert_eq!(human(5.0 * 86_400.0), "5.0 days");
    }
}
