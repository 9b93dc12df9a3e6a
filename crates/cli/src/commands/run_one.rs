//! `dpcl run-one`: one run in a process of its own, so that its time and peak memory are its own. Started by
//! `dpcl run`, it takes its order from stdin and reports on stdout; started by a cluster, it takes it from a file.

use std::{
    fs,
    io::{self, BufRead, Read, Write},
    path::PathBuf,
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

/// Make one run in this process
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// A file with the order; nobody watches, and a signal stops the run
    #[arg(long, value_name = "FILE")]
    order: Option<PathBuf>,
}

/// Makes the run ordered on stdin or in a file. Failures are reported on stdout, so that there is one way to hear of
/// them; without a watcher they are told as by every other command.
pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let line = match &arguments.order {
        Some(path) => fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?,
        None => {
            let mut line = String::new();
            io::stdin().lock().read_line(&mut line).context("cannot read the order")?;
            line
        }
    };
    let order: Order = serde_json::from_str(&line).context("the order is not one; use `dpcl run`")?;
    let stop = Arc::new(AtomicBool::new(false));
    signals::set_on_signal(&stop)?;
    if arguments.order.is_some() {
        return alone(&order, &stop);
    }
    stop_when_left_alone(Arc::clone(&stop));

    let message =
        perform(&order, &stop, &mut send_progress()).unwrap_or_else(|error| match Failure::from(&error) {
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

/// Without a watcher: the log of a cluster's job says how it began and ended, and nothing in between.
fn alone(order: &Order, stop: &AtomicBool) -> anyhow::Result<u8> {
    output::talk(format!("run {}", order.folder.display()));
    let message = perform(order, stop, &mut |_| {})?;
    output::talk(match message {
        Message::Kept(_) => "it was finished already and is kept",
        _ => "finished",
    });
    Ok(failure::DONE)
}

/// Tells the watcher, now and then.
fn send_progress() -> impl FnMut(&Progress) {
    let mut last: Option<Instant> = None;
    move |progress: &Progress| {
        if last.is_none_or(|last| last.elapsed() >= PAUSE) || progress.samples == progress.total {
            last = Some(Instant::now());
            // A watcher that has gone closes stdin as well, which stops the run.
            let _ = send(&Message::Progress(progress.clone()));
        }
    }
}

fn perform(order: &Order, stop: &AtomicBool, progress: &mut dyn FnMut(&Progress)) -> anyhow::Result<Message> {
    let run = Run::open(&Config::from_toml(&order.config)?)?;
    let folder = RunFolder::at(&order.folder);
    if let Status::Finished(result) = folder.status(run.setup())? {
        return Ok(Message::Kept(result));
    }
    let claim = folder.claim()?;
    // Another process may have finished it since.
    if let Status::Finished(result) = folder.status(run.setup())? {
        return Ok(Message::Kept(result));
    }
    let learned = learn(order, &run, (&folder, &claim), stop, progress);
    if let Err(error) = &learned {
        let failure = Failure::from(error);
        if failure.code != failure::INTERRUPTED {
            folder.note_failure(&failure.text());
        }
    }
    learned
}

/// Makes the run in a folder that this process has claimed.
fn learn(
    order: &Order,
    run: &Run,
    (folder, claim): (&RunFolder, &Claim),
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Message> {
    let result = run.record(Recording {
        folder,
        claim,
        command: Some(&order.command),
        every: order.every.parse().map_err(anyhow::Error::msg)?,
        progress,
        notice: &mut |text| {
            let _ = send(&Message::Notice(text.to_owned()));
        },
        stop,
    })?;
    Ok(Message::Finished(Box::new(result)))
}

/// The watcher holds this process's stdin open for as long as the run is wanted.
fn stop_when_left_alone(stop: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let mut rest = Vec::new();
        let _ = io::stdin().lock().read_to_end(&mut rest);
        stop.store(true, Ordering::Relaxed);
    });
}

fn send(message: &Message) -> anyhow::Result<()> {
    let line = serde_json::to_string(message).context("cannot write a message")?;
    output::data(&(line + "\n"))?;
    io::stdout().flush().context("cannot write a message")
}
