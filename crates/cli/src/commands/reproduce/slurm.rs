//! Runs on a Slurm cluster: one job array, each element one run into the shared folder. What is left to do is submitted;
//! whether a run finished is read from its record, never from the scheduler. The script is ours, the scheduling Slurm's.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::Context;
use dpcl::folder::write_whole;
use serde::{Deserialize, Serialize};

use super::{
    Project, data,
    state::{self, State},
};
use crate::{
    failure::{self, Usage},
    grid::Planned,
    invocation,
    message::Order,
    output,
};

/// What each run gets on a cluster.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Cluster")]
pub struct Resources {
    /// Stop the runs on the cluster; what they have is kept
    #[arg(long, conflicts_with_all = ["dry_run", "status"])]
    pub cancel: bool,

    /// Time limit of a run between two checkpoints: it is requeued when the
    /// time is up
    #[arg(long, value_name = "[DAYS-]H:M:S", default_value = "24:00:00")]
    time: String,

    /// Memory of a run
    #[arg(long, value_name = "SIZE", default_value = "4G")]
    mem: String,

    /// Seconds before the time limit at which a run writes a checkpoint and
    /// leaves
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    grace: u32,

    /// Where to run
    #[arg(long)]
    partition: Option<String>,

    /// Further lines for the script, as in `--account=vision`
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    sbatch: Vec<String>,
}

/// What was submitted last, in `cluster/array.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Array {
    /// Number of the job.
    job: String,
    /// The run of each element.
    runs: Vec<PathBuf>,
}

const ARRAY_FILE: &str = "array.json";
const SCRIPT_FILE: &str = "array.sh";
/// Seconds for which a job may refuse to be cancelled.
const TRIES: u32 = 15;

/// Submits, shows or cancels.
pub fn execute(project: &Project) -> anyhow::Result<u8> {
    let folder = project.wanted.folder().join("cluster");
    let arguments = project.arguments;
    if arguments.cluster.cancel {
        return cancel(&folder);
    }
    if arguments.status {
        return status(project, &folder);
    }
    let open = left(project)?;
    if open.is_empty() {
        output::talk("every run has its result");
        return project.present();
    }
    // Elements may be started anywhere: every path has to be whole.
    let here = std::env::current_dir().context("cannot tell the current folder")?;
    let script = script(project, &here.join(&folder), open.len())?;
    if arguments.dry_run {
        output::data(&script)?;
        output::talk(format!("{} runs; nothing was submitted", open.len()));
        return Ok(failure::DONE);
    }
    data::check(&project.grid)?;
    require_cluster()?;
    refuse_while_queued(&folder)?;
    submit(project, &here, &folder, &open, &script)
}

/// Runs without a result that nobody makes at the moment.
fn left<'a>(project: &'a Project) -> anyhow::Result<Vec<&'a Planned>> {
    let mut open = Vec::new();
    for run in &project.grid.runs {
        if !matches!(State::of(run)?, State::Done | State::Running) {
            open.push(run);
        }
    }
    Ok(open)
}

fn submit(
    project: &Project,
    here: &Path,
    folder: &Path,
    open: &[&Planned],
    script: &str,
) -> anyhow::Result<u8> {
    let orders = folder.join("orders");
    for folder in [&orders, &folder.join("logs")] {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    for (number, run) in open.iter().enumerate() {
        let mut config = run.config.clone();
        config.settings.threads = project.arguments.threads.unwrap_or(1).max(1);
        if let Some(directory) = &mut config.settings.data_dir {
            *directory = here.join(&*directory);
        }
        let order = Order {
            config: config.to_toml()?,
            folder: here.join(run.folder.path()),
            command: invocation::command(),
            every: project.arguments.checkpoint_every.to_string(),
        };
        write_whole(&orders.join(format!("{number}.json")), serde_json::to_string(&order)?.as_bytes())?;
    }
    let path = folder.join(SCRIPT_FILE);
    write_whole(&path, script.as_bytes())?;
    let said = call("sbatch", &["--parsable", &path.to_string_lossy()])?;
    let job = said.trim().split(';').next().unwrap_or_default().to_owned();
    let array = Array { job, runs: open.iter().map(|run| here.join(run.folder.path())).collect() };
    write_whole(&folder.join(ARRAY_FILE), serde_json::to_string_pretty(&array)?.as_bytes())?;
    output::talk(format!(
        "job {} with {} runs; --status shows them, --cancel stops them",
        array.job,
        open.len()
    ));
    Ok(failure::DONE)
}

/// The script of the array. A run is asked to leave by TERM, writes its checkpoint, and is requeued if it left because its
/// time was up.
fn script(project: &Project, folder: &Path, runs: usize) -> anyhow::Result<String> {
    let Resources { time, mem, grace, partition, sbatch, .. } = &project.arguments.cluster;
    let program = std::env::current_exe().context("cannot find the program itself")?;
    let at_once = project.arguments.jobs.map(|jobs| format!("%{jobs}")).unwrap_or_default();
    let ids: Vec<&str> = project.experiments.iter().map(|experiment| experiment.id.as_str()).collect();
    let threads = project.arguments.threads.unwrap_or(1).max(1);
    let mut options = vec![
        format!("--job-name=dpcl-{}", ids.join("-")),
        format!("--array=0-{}{at_once}", runs - 1),
        format!("--cpus-per-task={threads}"),
        format!("--mem={mem}"),
        format!("--time={time}"),
        format!("--signal=B:USR1@{grace}"),
        "--requeue".to_owned(),
        "--open-mode=append".to_owned(),
        format!("--output={}/%a.log", folder.join("logs").display()),
    ];
    options.extend(partition.iter().map(|partition| format!("--partition={partition}")));
    options.extend(sbatch.iter().cloned());
    let options: String = options.iter().map(|option| format!("#SBATCH {option}\n")).collect();
    let (program, orders) = (invocation::quote(&program.to_string_lossy()), folder.join("orders"));
    let orders = invocation::quote(&orders.to_string_lossy());
    Ok(format!(
        "#!/bin/bash
{options}
# USR1 comes shortly before the time limit: the run writes a checkpoint, leaves, and waits for its next turn. TERM comes when
# the job is cancelled or its node goes down: the run writes a checkpoint and leaves.
{program} run-one --order {orders}/$SLURM_ARRAY_TASK_ID.json &
run=$!
again=no
trap 'again=yes; kill -TERM $run' USR1
trap 'kill -TERM $run' TERM
code=0
wait $run || code=$?
# A signal that was caught ends the first wait, not the run.
while kill -0 $run 2>/dev/null; do code=0; wait $run || code=$?; done
if [ $again = yes ] && [ $code = {interrupted} ]; then
    scontrol requeue ${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}
fi
exit $code
",
        interrupted = failure::INTERRUPTED
    ))
}

fn status(project: &Project, folder: &Path) -> anyhow::Result<u8> {
    let array = read(folder)?;
    let states = match &array {
        Some(array) => queued(array)?,
        None => BTreeMap::new(),
    };
    let here = std::env::current_dir().context("cannot tell the current folder")?;
    let known = |place: usize| {
        let path = here.join(project.grid.runs[place].folder.path());
        let number = array.as_ref()?.runs.iter().position(|run| *run == path)?;
        states.get(&number).cloned()
    };
    output::data(&state::text(&project.grid, &known)?)?;
    project.present()
}

fn cancel(folder: &Path) -> anyhow::Result<u8> {
    let Some(array) = read(folder)? else {
        let problem = format!("nothing was submitted from {}", folder.display());
        return Err(Usage::with_hint(problem, "give --out and --scale as when it was submitted").into());
    };
    require_cluster()?;
    // Batch scripts hear of it, and let their run write a checkpoint.
    let _ = call("scancel", &["--full", "--signal=TERM", &array.job]);
    // An element that is being requeued cannot be altered for a moment.
    let mut tries = 0;
    while let Err(refused) = call("scancel", &[&array.job]) {
        tries += 1;
        if tries == TRIES {
            return Err(refused);
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    output::talk(format!(
        "job {} is cancelled; the same command without --cancel goes on with its runs",
        array.job
    ));
    Ok(failure::DONE)
}

fn read(folder: &Path) -> anyhow::Result<Option<Array>> {
    let path = folder.join(ARRAY_FILE);
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let array = serde_json::from_str(&text).map_err(|error| {
        Usage::with_hint(
            format!("{}: is not a note of a submitted job ({error})", path.display()),
            "remove it: runs are found by their records",
        )
    })?;
    Ok(Some(array))
}

fn refuse_while_queued(folder: &Path) -> anyhow::Result<()> {
    let Some(array) = read(folder)? else { return Ok(()) };
    let waiting = queued(&array)?.into_values().filter(|(state, _)| *state != State::Failed).count();
    if waiting == 0 {
        return Ok(());
    }
    let problem = format!("job {} still has {waiting} runs of this folder waiting or running", array.job);
    Err(Usage::with_hint(problem, "--status shows them; --cancel stops them").into())
}

/// What the scheduler knows of each element that is not over.
fn queued(array: &Array) -> anyhow::Result<BTreeMap<usize, (State, String)>> {
    require_cluster()?;
    // A job that is long over is unknown, which is no failure.
    let said =
        call("squeue", &["--noheader", "--array", "--states=all", "--format=%K|%T|%r", "--jobs", &array.job]);
    Ok(said.map(|text| elements(&text)).unwrap_or_default())
}

/// Lines of `element|state|reason`.
fn elements(text: &str) -> BTreeMap<usize, (State, String)> {
    let line = |line: &str| {
        let mut fields = line.trim().split('|');
        let number = fields.next()?.parse().ok()?;
        let (state, reason) = (fields.next()?, fields.next().unwrap_or_default());
        let known = match state {
            "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "CONFIGURING" => (State::Queued, reason.to_owned()),
            "RUNNING" | "COMPLETING" | "SUSPENDED" => (State::Running, String::new()),
            "OUT_OF_MEMORY" => (
                State::Failed,
                "killed for memory; submit again with more, as in `--mem 8G`: it goes on".to_owned(),
            ),
            "NODE_FAIL" | "BOOT_FAIL" => (State::Failed, format!("the node failed ({state}); submit again")),
            _ => return None,
        };
        Some((number, known))
    };
    text.lines().filter_map(line).collect()
}

fn require_cluster() -> anyhow::Result<()> {
    match Command::new("sbatch").arg("--version").output() {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(Usage::with_hint(
            "there is no `sbatch` on this machine",
            "call it where Slurm's commands are installed, usually the login node; `--engine local` runs here, and \
             `--dry-run` prints the script anywhere",
        )
        .into()),
    }
}

fn call(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let answer = Command::new(program).args(arguments).output();
    let answer = answer.with_context(|| format!("cannot start `{program}`"))?;
    if !answer.status.success() {
        let said = String::from_utf8_lossy(&answer.stderr);
        let hint = "resources are set with --time, --mem, --partition, --threads and --sbatch";
        return Err(Usage::with_hint(format!("`{program}` refused: {}", said.trim()), hint).into());
    }
    Ok(String::from_utf8_lossy(&answer.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_scheduler_says_becomes_a_state() {
        let found =
            elements("0|RUNNING|None\n1|PENDING|Resources\n2|OUT_OF_MEMORY|\n3|COMPLETED|None\nnonsense\n");
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(found[&1], (State::Queued, "Resources".to_owned()));
        assert!(found[&2].1.contains("--mem 8G"));
    }
}
