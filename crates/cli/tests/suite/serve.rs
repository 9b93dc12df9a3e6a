//! `dpcl serve` as a person starts it: it listens, learns, answers, and stops when asked to.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Stdio},
};

use crate::support::Place;

const SMALL: &str = "serve --dir served --listen 127.0.0.1:0 --set method=er --set model=slim --set width=4 --set size=16 \
                     --set memory=20 --set batch=8 --set updates=1";

/// A server, and what it says.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(place: &Place, arguments: &str) -> Self {
        let mut program = place.program();
        let mut child =
            program.args(arguments.split_whitespace()).stderr(Stdio::piped()).spawn().expect("it starts");
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut events = lines.filter_map(|line| serde_json::from_str::<serde_json::Value>(&line).ok());
        let listening = events.find(|event| event["event"] == "listening").expect("it listens");
        // What it goes on to say has to go somewhere.
        std::thread::spawn(move || events.for_each(drop));
        Self { child, address: listening["address"].as_str().unwrap().to_owned() }
    }

    fn ask(&self, method: &str, path: &str, body: &[u8]) -> (u16, serde_json::Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap())
    }

    fn stop(mut self) -> i32 {
        let id = self.child.id().to_string();
        assert!(std::process::Command::new("kill").arg(id).status().unwrap().success());
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn picture(grey: u8) -> Vec<u8> {
    dpcl::data::png(&dpcl::Image { height: 16, width: 16, pixels: vec![grey; 768].into() })
}

#[test]
fn a_server_learns_answers_stops_and_goes_on() {
    let place = Place::new();
    let served = Served::start(&place, SMALL);
    for number in 0..9 {
        let label = ["night", "day"][number % 2];
        let (status, told) =
            served.ask("POST", &format!("/observe?label={label}"), &picture(number as u8 * 20));
        assert_eq!((status, &told["accepted"]), (202, &1.into()), "{told}");
    }
    assert_eq!(served.stop(), 0);
    // The same command goes on; so does one that says nothing of how to learn. The checkpoint is one like others.
    for arguments in [SMALL, "serve --dir served --listen 127.0.0.1:0"] {
        let served = Served::start(&place, arguments);
        assert_eq!(served.ask("GET", "/status", b"").1["accepted"], 9);
        assert_eq!(served.stop(), 0);
    }
    let newest = place.path().join("served/checkpoint");
    let names = std::fs::read_dir(newest).unwrap().map(|entry| entry.unwrap().path());
    let newest = names.filter(|path| path.extension().is_some_and(|kind| kind == "ckpt")).max().unwrap();
    std::fs::write(place.path().join("a.png"), picture(20)).unwrap();
    let newest = newest.to_str().unwrap();
    let told = place.call(["predict", "--checkpoint", newest, "a.png"]);
    assert!(told.done().stdout.contains("a.png,"));
}

#[test]
fn wrong_wishes_are_told() {
    let place = Place::new();
    let said = |arguments: &str| {
        let answer = place.say(arguments);
        (answer.code, answer.talk())
    };
    let (code, talk) = said("serve --dir served --listen 0.0.0.0:0");
    assert!(code == 2 && talk.contains("without a token") && talk.contains("--token-file"), "{talk}");
    let (code, talk) = said("serve --dir served --listen 127.0.0.1:0 --set method=joint");
    assert!(code == 2 && talk.contains("does not answer at any time"), "{talk}");
    let (code, talk) = said("serve --dir served --set memmory=3");
    assert!(code == 2 && talk.contains("did you mean `memory`"), "{talk}");
    let (code, talk) = said("serve --follow nowhere --listen 127.0.0.1:0");
    assert!(code == 1 && talk.contains("it has no checkpoint yet"), "{talk}");
    let (code, _) = said("serve");
    assert_eq!(code, 2);
    let _served = Served::start(&place, SMALL);
    let (code, talk) = said("serve --dir served --listen 127.0.0.1:0");
    assert!(code == 1 && talk.contains("another server has the folder"), "{talk}");
}
