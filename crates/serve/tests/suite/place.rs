//! A folder with a server in this process, and requests to it.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use dpcl::{Config, Image, data, folder::Every};
use dpcl_serve::{Begin, Learning, Limits, Options, Role, Server};
use serde_json::Value;
use tempfile::TempDir;

/// Keys of a learner that is quick and still learns.
pub const SMALL: &str =
    "method = 'er'\nmodel = 'slim'\nwidth = 4\nsize = 16\nmemory = 20\nbatch = 8\nupdates = 1.0\nthreads = 1";

/// A folder, and log lines of the servers in it.
pub struct Place {
    folder: TempDir,
    lines: Arc<Mutex<Vec<Value>>>,
}

impl Place {
    /// An empty one.
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), lines: Arc::default() }
    }

    /// The server's folder.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("server")
    }

    /// Log lines so far.
    pub fn lines(&self) -> Vec<Value> {
        self.lines.lock().unwrap().clone()
    }

    /// How a server here is run.
    pub fn options(&self) -> Options {
        let lines = Arc::clone(&self.lines);
        Options {
            listen: "127.0.0.1:0".parse().unwrap(),
            token: None,
            limits: Limits::default(),
            journal: Arc::new(move |line| lines.lock().unwrap().push(line.clone())),
            role: Role::Learner(learning(&self.path())),
        }
    }

    /// Starts one.
    pub fn start(&self) -> Asked {
        self.start_with(|_| {})
    }

    /// Starts one that is run otherwise.
    pub fn start_with(&self, change: impl FnOnce(&mut Options)) -> Asked {
        let mut options = self.options();
        change(&mut options);
        let token = options.token.clone();
        let server = Server::start(options).unwrap();
        Asked { client: Client::new(&server.address().to_string(), token.as_deref()), server }
    }
}

/// A small learner in a folder.
pub fn learning(folder: &Path) -> Learning {
    Learning {
        folder: folder.to_owned(),
        begin: Begin::Config(Box::new(Config::from_toml(SMALL).unwrap())),
        checkpoint_every: Every::Time(Duration::from_secs(3600)),
        threads: 1,
    }
}

/// A server that can be asked.
pub struct Asked {
    /// The server.
    pub server: Server,
    /// Asks it.
    pub client: Client,
}

/// Asks a server.
#[derive(Clone)]
pub struct Client {
    agent: ureq::Agent,
    /// Its address.
    pub address: String,
    token: Option<String>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its content type.
    pub kind: String,
    /// Its headers.
    pub headers: ureq::http::HeaderMap,
    /// Its body.
    pub bytes: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.bytes)))
    }

    /// Fails the test unless the status is this; gives the body.
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.bytes));
        if self.bytes.is_empty() { Value::Null } else { self.json() }
    }

    /// Fails the test unless it is a problem of this status and kind; gives its detail.
    pub fn problem(self, status: u16, kind: &str) -> String {
        let problem = self.json();
        assert_eq!((self.status, self.kind.as_str()), (status, "application/problem+json"), "{problem}");
        assert_eq!(problem["type"], format!("/problems#{kind}"), "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
        assert!(problem["title"].is_string(), "{problem}");
        problem["detail"].as_str().unwrap().to_owned()
    }
}

impl Client {
    /// A client of a server.
    pub fn new(address: &str, token: Option<&str>) -> Self {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build();
        Self { agent: agent.into(), address: address.to_owned(), token: token.map(str::to_owned) }
    }

    /// GET.
    pub fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[])
    }

    /// GET with headers.
    pub fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = self.agent.get(format!("http://{}{path}", self.address));
        for (name, value) in self.bearer().iter().map(|(name, value)| (*name, value.as_str())) {
            request = request.header(name, value);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        answer(request.call().unwrap())
    }

    /// POST.
    pub fn post(&self, path: &str, kind: &str, body: &[u8]) -> Answer {
        self.post_with(path, &[("Content-Type", kind)], body)
    }

    /// POST with headers.
    pub fn post_with(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.try_post(path, headers, body).unwrap()
    }

    /// POST to a server that may be gone.
    pub fn try_post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Option<Answer> {
        let mut request = self.agent.post(format!("http://{}{path}", self.address));
        for (name, value) in self.bearer().iter().map(|(name, value)| (*name, value.as_str())) {
            request = request.header(name, value);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send(body).ok().map(answer)
    }

    fn bearer(&self) -> Option<(&'static str, String)> {
        self.token.as_ref().map(|token| ("Authorization", format!("Bearer {token}")))
    }

    /// Teaches an image of a class.
    pub fn teach(&self, number: usize) -> Answer {
        let label = ["night", "day", "dusk"][number % 3];
        self.post(&format!("/observe?label={label}"), "image/png", &picture(number))
    }

    /// Waits until everything accepted is learned and answers.
    pub fn settle(&self) -> Value {
        loop {
            let status = self.get("/status").expect(200);
            if status["accepted"] == status["version"] {
                return status;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The learner's state, whole, as a file.
    pub fn state(&self) -> Vec<u8> {
        self.post("/checkpoint", "", b"").expect(200);
        let answer = self.get("/checkpoint");
        assert_eq!(answer.status, 200);
        answer.bytes
    }
}

fn answer(mut response: ureq::http::Response<ureq::Body>) -> Answer {
    let header = |name: &str| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
    let kind = header("content-type").unwrap_or_default();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let bytes = response.body_mut().with_config().limit(1 << 30).read_to_vec().unwrap_or_default();
    Answer { status, kind, headers, bytes }
}

/// A picture: dark, bright or in between by its number, each another.
pub fn picture(number: usize) -> Vec<u8> {
    let base = [30_u8, 220, 120][number % 3];
    let pixel = |at: usize| base.wrapping_add((at * (number / 3 + 1) % 23) as u8);
    data::png(&Image { height: 16, width: 16, pixels: (0..16 * 16 * 3).map(pixel).collect() })
}
