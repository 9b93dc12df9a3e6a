//! A server in a process of its own, to be killed: this test program starts itself again.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use dpcl::folder::Every;
use dpcl_serve::{Limits, Options, Role, Server};

use crate::place::{Client, learning};

/// The folder of the server that a process started by [`Process`] is to be.
const FOLDER: &str = "DPCL_SERVE_TEST_FOLDER";

/// How often it writes checkpoints, in samples.
const EVERY: &str = "DPCL_SERVE_TEST_EVERY";

/// Not a test of its own: the other process. Does nothing unless it was started by [`Process`].
#[test]
fn other_process() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let every = std::env::var(EVERY).unwrap().parse().unwrap();
    let mut learning = learning(Path::new(&folder));
    learning.checkpoint_every = Every::Samples(every);
    let server = Server::start(Options {
        listen: "127.0.0.1:0".parse().unwrap(),
        token: None,
        limits: Limits::default(),
        journal: Arc::new(|_| {}),
        role: Role::Learner(learning),
    });
    let server = server.unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "\nlistening on {}", server.address()).unwrap();
    out.flush().unwrap();
    // Until the one who started it closes its stdin or kills it.
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    server.stop();
}

/// A server in another process.
pub struct Process {
    child: Child,
    /// Asks it.
    pub client: Client,
}

impl Process {
    /// Starts one in a folder; `limit` is the most 512-byte blocks that a file of it may have.
    pub fn start(folder: &Path, every: u64, limit: Option<u64>) -> Self {
        let program: PathBuf = std::env::current_exe().unwrap();
        let arguments = ["--exact", "process::other_process", "--nocapture"];
        let mut command = match limit {
            None => {
                let mut command = Command::new(program);
                command.args(arguments);
                command
            }
            Some(blocks) => {
                let mut command = Command::new("sh");
                let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
                command.args(["-c", &script]).arg(program).args(arguments);
                command
            }
        };
        command.env(FOLDER, folder).env(EVERY, every.to_string());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let address = lines.find_map(|line| line.strip_prefix("listening on ").map(str::to_owned));
        let client = Client::new(&address.expect("the other process listens"), None);
        // What the test program says at its end has to go somewhere.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, client }
    }

    /// Kills it at once.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Lets it end.
    pub fn stop(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
