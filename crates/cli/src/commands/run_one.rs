//! `dpcl run-one`: one run in a process of its own, so that its time and peak memory are its own. Started by
//! `dpcl run`; takes its order from stdin and reports on stdout.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, BufRead, Read, Write},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use dpcl::{
    Config, Progress, Run, Watch,
    folder::{self, RunFolder, Status},
};
use dpcl_report::record::{CONFIG_FILE, ERROR_FILE, RESULT_FILE};

use crate::{
    failure::{self, Failure},
    message::{Message, Order},
    output, signals,
};

/// Time between two reports of progress: as often as an eye can follow.
const PAUSE: Duration = Duration::from_millis(60);

/// Held locked while a run lasts. It is never renamed or removed, so that all processes lock the same file.
const LOCK_FILE: &str = "lock";

/// Makes the run ordered on stdin. Failures are reported on stdout, so that there is one way to hear of them.
pub fn execute() -> anyhow::Result<u8> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).context("cannot read the order")?;
    let order: Order = serde_json::from_str(&line).context("the order is not one; use `dpcl run`")?;
    let stop = Arc::new(AtomicBool::new(false));
    signals::set_on_signal(&stop)?;
    stop_when_left_alone(Arc::clone(&stop));

    let message = perform(&order, &stop).unwrap_or_else(|error| match Failure::from(&error) {
        failure if failure.code == failure::INTERRUPTED => Message::Interrupted,
        failure => Message::Failed(failure),
    });
    send(&message)?;
    Ok(match message {
        Message::Failed(_) => failure::FAILED,
        Message::Interrupted => failure::INTERRUPTED,
        _ => failure::DONE,
    })
}

fn perform(order: &Order, stop: &AtomicBool) -> anyhow::Result<Message> {
    let run = Run::open(&Config::from_toml(&order.config)?)?;
    let folder = RunFolder::at(&order.folder);
    if let Status::Finished(result) = folder.status(run.config())? {
        return Ok(Message::Kept(result));
    }
    let _lock = claim(&order.folder)?;
    // Another process may have finished it since.
    if let Status::Finished(result) = folder.status(run.config())? {
        return Ok(Message::Kept(result));
    }
    let learned = learn(order, &run, &folder, stop);
    if let Err(error) = &learned {
        note_failure(&order.folder, &Failure::from(error));
    }
    learned
}

/// Makes the run in a folder that this process has locked.
fn learn(order: &Order, run: &Run, folder: &RunFolder, stop: &AtomicBool) -> anyhow::Result<Message> {
    write_config(order, run.config())?;
    let failure = order.folder.join(ERROR_FILE);
    if failure.exists() {
        fs::remove_file(&failure).with_context(|| format!("cannot remove {}", failure.display()))?;
    }
    let mut log = folder.begin(run.config())?;
    let mut last: Option<Instant> = None;
    let mut progress = |progress: &Progress| {
        if last.is_none_or(|last| last.elapsed() >= PAUSE) || progress.samples == progress.total {
            last = Some(Instant::now());
            // A watcher that has gone closes stdin as well, which stops the run.
            let _ = send(&Message::Progress(progress.clone()));
        }
    };
    let mut watch = Watch { event: &mut |event| log.write(event), progress: &mut progress, stop };
    let result = run.execute(&mut watch)?;
    log.close()?;
    folder.finish(&result)?;
    Ok(Message::Finished(Box::new(result)))
}

/// Locks the folder for as long as the file lives: two processes must not write one record.
fn claim(folder: &Path) -> anyhow::Result<File> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join(LOCK_FILE);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.with_context(|| format!("cannot open {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!("another process is making this run: {}", folder.display()),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

fn write_config(order: &Order, config: &Config) -> anyhow::Result<()> {
    let path = order.folder.join(CONFIG_FILE);
    if !path.exists() {
        let text = format!("# command: {}\n{}", order.command, config.to_toml());
        folder::write_whole(&path, text.as_bytes())?;
    }
    Ok(())
}

/// The watcher holds this process's stdin open for as long as the run is wanted.
fn stop_when_left_alone(stop: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let mut rest = Vec::new();
        let _ = io::stdin().lock().read_to_end(&mut rest);
        stop.store(true, Ordering::Relaxed);
    });
}

/// Leaves the reason in the record of a run that did not finish. Only for the process that holds the lock.
fn note_failure(folder: &Path, failure: &Failure) {
    let begun = folder.join(CONFIG_FILE).exists() && !folder.join(RESULT_FILE).exists();
    if begun && failure.code != failure::INTERRUPTED {
        let _ = fs::write(folder.join(ERROR_FILE), failure.text());
    }
}

fn send(message: &Message) -> anyhow::Result<()> {
    let line = serde_json::to_string(message).context("cannot write a message")?;
    output::data(&(line + "\n"))?;
    io::stdout().flush().context("cannot write a message")
}
