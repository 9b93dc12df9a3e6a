//! Runs as processes: starts them, a few at a time, listens to what they say, tells them to stop. One failing does
//! not stop the others. Knows nothing of how progress is shown.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::Duration,
};

use anyhow::Context;
use dpcl::{Progress, folder::Every};
use dpcl_report::record::RunResult;

use crate::{
    failure::Failure,
    grid::Planned,
    message::{Message, Order},
};

/// How a run ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// With a result.
    Finished(Box<RunResult>),
    /// It had ended before.
    Kept(Box<RunResult>),
    /// Stopped from outside, or never started because of that.
    Interrupted,
    /// With an error.
    Failed(Failure),
}

/// Somebody who follows the runs, named by their position in the grid.
pub trait Audience {
    /// A run's process was started.
    fn begun(&mut self, run: usize);
    /// A run goes on.
    fn progress(&mut self, run: usize, progress: &Progress);
    /// A run was taken up in a way worth knowing.
    fn notice(&mut self, run: usize, text: &str);
    /// A run ended.
    fn ended(&mut self, run: usize, outcome: &Outcome);
    /// The runs were asked to stop.
    fn stopping(&mut self);
}

/// How many processes at a time and how many threads each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Processes at a time.
    pub jobs: usize,
    /// Threads of each.
    pub threads: usize,
}

impl Shares {
    /// Fills the machine's cores: as many runs side by side as there are cores, threads for what is left over.
    pub fn new(runs: usize, cores: usize, jobs: Option<usize>, threads: Option<usize>) -> Self {
        let most = threads.map_or(cores, |threads| cores / threads);
        let jobs = jobs.unwrap_or(most).clamp(1, runs.max(1));
        Self { jobs, threads: threads.unwrap_or(cores / jobs).max(1) }
    }
}

/// What holds for every run of a command.
pub struct Asked<'a> {
    /// The command as a person could give it again.
    pub command: &'a str,
    /// How often checkpoints are written.
    pub every: Every,
}

/// Makes the runs; the outcomes are in their order.
pub fn conduct(
    runs: &[Planned],
    shares: Shares,
    asked: &Asked<'_>,
    stop: &AtomicBool,
    audience: &mut dyn Audience,
) -> Vec<Outcome> {
    let (sender, receiver) = mpsc::channel();
    let conductor = Conductor {
        runs,
        shares,
        asked,
        stop,
        sender,
        waiting: 0,
        playing: Vec::new(),
        outcomes: vec![None; runs.len()],
    };
    conductor.conduct(&receiver, audience)
}

struct Conductor<'a> {
    runs: &'a [Planned],
    shares: Shares,
    asked: &'a Asked<'a>,
    stop: &'a AtomicBool,
    sender: Sender<(usize, News)>,
    /// The first run not started yet.
    waiting: usize,
    playing: Vec<Playing>,
    outcomes: Vec<Option<Outcome>>,
}

/// A process under way. Dropping its stdin asks it to stop.
struct Playing {
    run: usize,
    child: Child,
    stdin: Option<ChildStdin>,
}

enum News {
    Message(Message),
    /// Its stdout is closed; what it complained about on stderr.
    Closed(String),
}

/// Time between two looks at the stop flag.
const MOMENT: Duration = Duration::from_millis(100);

impl Conductor<'_> {
    fn conduct(mut self, receiver: &Receiver<(usize, News)>, audience: &mut dyn Audience) -> Vec<Outcome> {
        let mut told = false;
        loop {
            let news = receiver.recv_timeout(if self.playing.is_empty() { Duration::ZERO } else { MOMENT });
            let stopping = self.stop.load(Ordering::Relaxed);
            if stopping && !told {
                told = true;
                audience.stopping();
                self.playing.iter_mut().for_each(|playing| playing.stdin = None);
            }
            if let Ok((run, news)) = news {
                self.hear(run, news, audience);
            }
            while !stopping && self.playing.len() < self.shares.jobs && self.waiting < self.runs.len() {
                self.start(audience);
            }
            if self.playing.is_empty() && (stopping || self.waiting == self.runs.len()) {
                break;
            }
        }
        self.outcomes.into_iter().map(|outcome| outcome.unwrap_or(Outcome::Interrupted)).collect()
    }

    fn start(&mut self, audience: &mut dyn Audience) {
        let run = self.waiting;
        self.waiting += 1;
        audience.begun(run);
        match self.spawn(run) {
            Ok(playing) => self.playing.push(playing),
            Err(error) => self.end(run, Outcome::Failed(Failure::from(&error)), audience),
        }
    }

    fn spawn(&self, run: usize) -> anyhow::Result<Playing> {
        let planned = &self.runs[run];
        let mut config = planned.config.clone();
        config.settings.threads = self.shares.threads;
        let order = Order {
            config: config.to_toml()?,
            folder: planned.folder.path().to_owned(),
            command: self.asked.command.to_owned(),
            every: self.asked.every.to_string(),
        };
        let order = serde_json::to_string(&order).context("cannot write the order of a run")?;
        let program = std::env::current_exe().context("cannot find the program itself")?;
        let mut child = Command::new(program)
            .arg("run-one")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start a process for a run")?;
        let mut stdin = child.stdin.take().context("the process has no stdin")?;
        writeln!(stdin, "{order}").context("the process took no order")?;
        self.listen(run, &mut child)?;
        Ok(Playing { run, child, stdin: Some(stdin) })
    }

    /// Passes on what the process says, from a thread of its own.
    fn listen(&self, run: usize, child: &mut Child) -> anyhow::Result<()> {
        let stdout = child.stdout.take().context("the process has no stdout")?;
        let mut stderr = child.stderr.take().context("the process has no stderr")?;
        let sender = self.sender.clone();
        let complaints = thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stderr.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Ok(message) = serde_json::from_str(&line) {
                    let _ = sender.send((run, News::Message(message)));
                }
            }
            let _ = sender.send((run, News::Closed(complaints.join().unwrap_or_default())));
        });
        Ok(())
    }

    fn hear(&mut self, run: usize, news: News, audience: &mut dyn Audience) {
        match news {
            News::Message(Message::Progress(progress)) => audience.progress(run, &progress),
            News::Message(Message::Notice(text)) => audience.notice(run, &text),
            News::Message(Message::Finished(result)) => self.end(run, Outcome::Finished(result), audience),
            News::Message(Message::Kept(result)) => self.end(run, Outcome::Kept(result), audience),
            News::Message(Message::Interrupted) => self.end(run, Outcome::Interrupted, audience),
            News::Message(Message::Failed(failure)) => self.end(run, Outcome::Failed(failure), audience),
            News::Closed(complaints) => self.bury(run, &complaints, audience),
        }
    }

    /// The process is gone; one that said nothing about its end did not end well.
    fn bury(&mut self, run: usize, complaints: &str, audience: &mut dyn Audience) {
        let Some(position) = self.playing.iter().position(|playing| playing.run == run) else { return };
        let mut playing = self.playing.remove(position);
        playing.stdin = None;
        let status = playing.child.wait();
        if self.outcomes[run].is_none() {
            let killed = status.as_ref().is_ok_and(was_killed);
            let ending = status.map_or_else(|error| error.to_string(), |status| status.to_string());
            let mut failure = Failure::plain(format!("the process ended without a result ({ending})"));
            failure.chain.extend(last_lines(complaints));
            failure.hints.extend(killed.then(|| KILLED.to_owned()));
            self.end(run, Outcome::Failed(failure), audience);
        }
    }

    fn end(&mut self, run: usize, outcome: Outcome, audience: &mut dyn Audience) {
        audience.ended(run, &outcome);
        self.outcomes[run] = Some(outcome);
    }
}

/// What a system that runs out of memory does.
const KILLED: &str = "something killed it, most often the system for lack of memory: the same command goes on from the last \
                      checkpoint; give it fewer `--jobs`, a smaller batch or network, or more memory";

#[cfg(unix)]
fn was_killed(status: &std::process::ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    status.signal() == Some(9)
}

#[cfg(not(unix))]
fn was_killed(_: &std::process::ExitStatus) -> bool {
    false
}

/// The end of what a process said before it died: where the reason is.
fn last_lines(text: &str) -> Option<String> {
    const LINES: usize = 6;
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    (!last.is_empty()).then(|| last.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_shared_between_runs_and_threads() {
        let shares = |runs, cores, jobs, threads| {
            let shares = Shares::new(runs, cores, jobs, threads);
            (shares.jobs, shares.threads)
        };
        assert_eq!(shares(1, 2, None, None), (1, 2));
        assert_eq!(shares(2, 2, None, None), (2, 1));
        assert_eq!(shares(6, 2, None, None), (2, 1));
        assert_eq!(shares(3, 8, None, None), (3, 2));
        assert_eq!(shares(6, 2, Some(1), None), (1, 2));
        assert_eq!(shares(6, 8, None, Some(4)), (2, 4));
        assert_eq!(shares(6, 2, None, Some(4)), (1, 4));
        assert_eq!(shares(2, 2, Some(5), Some(1)), (2, 1));
    }

    #[test]
    fn only_the_end_of_a_long_complaint_is_kept() {
        let text = (0..20).map(|line| format!("line {line}\n\n")).collect::<String>();
        assert_eq!(last_lines(&text).unwrap().lines().next(), Some("line 14"));
        assert_eq!(last_lines("\n"), None);
    }
}
