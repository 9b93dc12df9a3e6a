//! `dpcl serve`: a learner behind HTTP, or a replica of one.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use anyhow::Context;
use dpcl::{Config, folder::Every};
use dpcl_serve::{Begin, Error, Following, Journal, Learning, Limits, Options, Role, Server, Source};
use serde_json::{Value, json};
use toml::Table;

use crate::{
    failure::{self, Usage},
    keys, layers, output, signals,
};

/// Keep a learner running behind HTTP: it learns labelled images as they come
/// and answers at any time
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Where the server keeps everything; taken up again when it is started anew
    #[arg(long, value_name = "DIR", required_unless_present = "follow", conflicts_with = "follow")]
    dir: Option<PathBuf>,

    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,

    /// A file with the token that clients must send [default: $DPCL_TOKEN, else none]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Answer from the checkpoints of another server: its address or its folder
    #[arg(long, value_name = "URL|DIR")]
    follow: Option<String>,

    /// Seconds between two looks at it
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, requires = "follow")]
    follow_every: f64,

    #[command(flatten)]
    learning: Beginning,

    #[command(flatten)]
    limits: Most,
}

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Learning")]
struct Beginning {
    /// How to learn: a TOML file or preset of one method [default: `dpcl`, slim network]
    #[arg(long, value_name = "CONFIG|PRESET", conflicts_with_all = ["follow", "from"])]
    config: Option<String>,

    /// Set any key, as in `--set size=64`
    #[arg(long, value_name = "KEY=VALUE", conflicts_with_all = ["follow", "from"])]
    set: Vec<String>,

    /// Begin with the learner of a checkpoint, if the folder is empty
    #[arg(long, value_name = "FILE", conflicts_with = "follow")]
    from: Option<PathBuf>,

    /// Write a checkpoint every N samples, or every N seconds
    #[arg(long, value_name = "EVERY", default_value_t)]
    checkpoint_every: Every,

    /// Threads of the learner [default: one core is left to predictions]
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
}

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Limits")]
struct Most {
    /// Accepted samples that may wait to be learned
    #[arg(long, value_name = "SAMPLES", default_value_t = Limits::default().waiting)]
    most_waiting: u64,

    /// Classes in all
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().classes)]
    most_classes: usize,

    /// Pixels of an image as sent
    #[arg(long, value_name = "PIXELS", default_value_t = Limits::default().pixels)]
    most_pixels: u64,

    /// Bytes of a request
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().body_bytes)]
    most_bytes: usize,
}

const EXAMPLES: &str = "\
Whatever was acknowledged is on disk and is learned, in the order of arrival,
also after a crash. The live page is at /, the interface at /openapi.json.
Log lines on stderr are JSON. Beyond this machine it listens only with a token.

Examples:
  dpcl serve --dir otters
  curl --data-binary @a.png 'http://127.0.0.1:8080/observe?label=otter'
  curl --data-binary @b.png 'http://127.0.0.1:8080/predict?threshold=0.6'
  dpcl serve --dir photos --set size=64 --set memory=1000
  DPCL_TOKEN=… dpcl serve --dir otters --listen 0.0.0.0:8080
  dpcl serve --follow http://127.0.0.1:8080 --listen 127.0.0.1:8081";

/// What a server begins with when nothing is said: small enough to learn fast on any machine.
const DEFAULT: &str = "method = 'dpcl'\nmodel = 'slim'\n";

/// How often the flag of a signal is looked at.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves until it is asked to stop.
pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let options = Options {
        listen: arguments.listen,
        token: token(arguments.token_file.as_deref())?,
        limits: limits(&arguments.limits),
        journal: journal(),
        role: role(arguments)?,
    };
    let stop = Arc::new(AtomicBool::new(false));
    signals::set_on_signal_then_exit(&stop)?;
    let server = Server::start(options).map_err(explained)?;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(PAUSE);
    }
    server.stop();
    Ok(failure::DONE)
}

fn limits(most: &Most) -> Limits {
    Limits {
        waiting: most.most_waiting,
        classes: most.most_classes,
        pixels: most.most_pixels,
        body_bytes: most.most_bytes,
        bodies_bytes: Limits::default().bodies_bytes.max(2 * most.most_bytes),
        ..Limits::default()
    }
}

/// The token from a file, else from the environment.
fn token(file: Option<&Path>) -> anyhow::Result<Option<String>> {
    let text = match file {
        Some(path) => {
            Some(std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?)
        }
        None => std::env::var("DPCL_TOKEN").ok(),
    };
    let Some(token) = text.map(|text| text.trim().to_owned()) else { return Ok(None) };
    if token.is_empty() || !token.chars().all(|character| character.is_ascii_graphic()) {
        let hint = "write a long random word of visible ASCII characters";
        return Err(Usage::with_hint("the token is empty or holds blanks", hint).into());
    }
    Ok(Some(token))
}

/// One JSON object a line, with the time.
fn journal() -> Journal {
    Arc::new(|line: &Value| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut timed = json!({ "time": (now.as_secs_f64() * 1000.0).round() / 1000.0 });
        if let (Value::Object(timed), Value::Object(line)) = (&mut timed, line) {
            timed.extend(line.clone());
        }
        output::talk(timed.to_string());
    })
}

fn role(arguments: &Arguments) -> anyhow::Result<Role> {
    if let Some(source) = &arguments.follow {
        let every = Duration::try_from_secs_f64(arguments.follow_every);
        let every = every.ok().filter(|every| !every.is_zero());
        let every =
            every.ok_or_else(|| Usage::new("`--follow-every` must be a number of seconds above 0"))?;
        let is_address = source.starts_with("http://") || source.starts_with("https://");
        let source = match is_address {
            true => Source::Url(source.trim_end_matches('/').to_owned()),
            false => Source::Folder(PathBuf::from(source)),
        };
        return Ok(Role::Replica(Following { source, every }));
    }
    let Beginning { from, checkpoint_every, threads, .. } = &arguments.learning;
    Ok(Role::Learner(Learning {
        folder: arguments.dir.clone().context("`--dir` says where the server keeps everything")?,
        begin: match from {
            Some(path) => Begin::Checkpoint(path.clone()),
            None => begin(&arguments.learning)?,
        },
        checkpoint_every: *checkpoint_every,
        threads: threads.unwrap_or(0),
    }))
}

/// The configuration asked for; what a folder holds goes before one that nobody asked for.
fn begin(learning: &Beginning) -> anyhow::Result<Begin> {
    let asked = learning.config.is_some() || !learning.set.is_empty();
    let mut table: Table = DEFAULT.parse().context("the default configuration")?;
    if let Some(config) = &learning.config {
        table = layers::read(config)?.table;
    }
    let mut set = Table::new();
    for text in &learning.set {
        layers::lay(&mut set, layers::assignment(text)?);
    }
    layers::lay_over_source(&mut table, set);
    if table.get("method").is_some_and(|method| !method.is_str()) {
        let hint = "add `--set method=NAME`";
        return Err(Usage::with_hint("a server learns with one method, and several are named", hint).into());
    }
    for key in keys::OF_GRIDS.into_iter().filter(|key| !["seed", "threads"].contains(key)) {
        table.remove(key);
    }
    let config = Config::from_table(table).map_err(keys::explain_unknown)?;
    config.check().map_err(keys::explain_unknown)?;
    let config = Box::new(config);
    Ok(if asked { Begin::Config(config) } else { Begin::Anything(config) })
}

/// What is asked for wrongly is told as such.
fn explained(error: Error) -> anyhow::Error {
    match error {
        Error::Library(error) => error.into(),
        Error::Open { .. } | Error::Unservable { .. } => {
            Usage::with_hint(error.to_string(), error.hint().unwrap_or_default()).into()
        }
        other => other.into(),
    }
}
