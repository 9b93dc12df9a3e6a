//! `dpcl run-one`: one run in a process of its own, so that its time and peak memory are its own. Started by
//! `dpcl run`; takes its order from stdin and reports on stdout.

use std::{
    io::{self, BufRead, Read, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Context;
use dpcl::{
    Config, Progress, Run,
    folder::{Claim, RunFolder, Status},
    run::Recording,
};

use crate::{
    failure::{self, Failure},
    message::{Message, Order},
    output, signals,
};

/// Time between two reports of progress: as often as an eye can follow.
const PAUSE: Duration = Duration::from_millis(60);

/// How long a folder that another process holds is waited for, and between two looks.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(100);

/// Makes the run ordered on stdin. Failures are reported on stdout, so that there is one way to hear of them.
pub fn execute() -> anyhow::Result<u8> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).context("cannot read the order")?;
    let order: Order = serde_json::from_str(&line).context("the order is not one; use `dpcl run`")?;
    let stop = Arc::new(AtomicBool::new(false));
    signals::set_on_signal(&stop)?;
    let begun = Arc::new(AtomicBool::new(false));
    stop_when_left_alone(Arc::clone(&stop), Arc::clone(&begun));

    let message = perform(&order, &stop, &begun).unwrap_or_else(|error| match Failure::from(&error) {
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

fn perform(order: &Order, stop: &AtomicBool, begun: &AtomicBool) -> anyhow::Result<Message> {
    let run = Run::open(&Config::from_toml(&order.config)?)?;
    let folder = RunFolder::at(&order.folder);
    if let Status::Finished(result) = folder.status(run.setup())? {
        return Ok(Message::Kept(result));
    }
    begun.store(true, Ordering::Relaxed);
    let claim = claim(&folder, stop)?;
    // Another process may have finished it since.
    if let Status::Finished(result) = folder.status(run.setup())? {
        return Ok(Message::Kept(result));
    }
    let learned = learn(order, &run, (&folder, &claim), stop);
    if let Err(error) = &learned {
        let failure = Failure::from(error);
        if failure.code != failure::INTERRUPTED {
            folder.note_failure(&failure.text());
        }
    }
    learned
}

/// Takes the folder. A process whose watcher was killed needs a moment to notice, write a checkpoint and go.
fn claim(folder: &RunFolder, stop: &AtomicBool) -> anyhow::Result<Claim> {
    let begun = Instant::now();
    let mut told = false;
    loop {
        match folder.claim() {
            Err(dpcl::Error::Claimed { .. }) if stop.load(Ordering::Relaxed) => {
                return Err(dpcl::Error::Interrupted.into());
            }
            Err(dpcl::Error::Claimed { .. }) if begun.elapsed() < PATIENCE => {
                if !std::mem::replace(&mut told, true) {
                    let text = format!(
                        "another process holds {}; waiting up to {} s for it to end",
                        folder.path().display(),
                        PATIENCE.as_secs()
                    );
                    send(&Message::Notice(text))?;
                }
                std::thread::sleep(LOOK);
            }
            claimed => return Ok(claimed?),
        }
    }
}

/// Makes the run in a folder that this process has claimed.
fn learn(
    order: &Order,
    run: &Run,
    (folder, claim): (&RunFolder, &Claim),
    stop: &AtomicBool,
) -> anyhow::Result<Message> {
    let mut last: Option<Instant> = None;
    let mut progress = |progress: &Progress| {
        if last.is_none_or(|last| last.elapsed() >= PAUSE) || progress.samples == progress.total {
            last = Some(Instant::now());
            // A watcher that has gone closes stdin as well, which stops the run.
            let _ = send(&Message::Progress(progress.clone()));
        }
    };
    let result = run.record(Recording {
        folder,
        claim,
        command: Some(&order.command),
        every: order.every.parse().map_err(anyhow::Error::msg)?,
        progress: &mut progress,
        notice: &mut |text| {
            let _ = send(&Message::Notice(text.to_owned()));
        },
        stop,
    })?;
    Ok(Message::Finished(Box::new(result)))
}

/// The watcher holds this process's stdin open for as long as the run is wanted, and the system closes it when the watcher
/// dies, however it dies. While data are opened there is nothing to keep yet.
fn stop_when_left_alone(stop: Arc<AtomicBool>, begun: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let mut rest = Vec::new();
        let _ = io::stdin().lock().read_to_end(&mut rest);
        stop.store(true, Ordering::Relaxed);
        if !begun.load(Ordering::Relaxed) {
            let _ = send(&Message::Interrupted);
            std::process::exit(failure::INTERRUPTED.into());
        }
    });
}

fn send(message: &Message) -> anyhow::Result<()> {
    let line = serde_json::to_string(message).context("cannot write a message")?;
    output::data(&(line + "\n"))?;
    io::stdout().flush().context("cannot write a message")
}
