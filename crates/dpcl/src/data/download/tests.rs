//! Downloads from a server on loopback that behaves as scripted.

use std::{
    io::{BufRead as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use super::*;

/// MD5 of the served file.
const MD5: &str = "781e5e245d69b566979b86e28d23f2c7";
const CONTENT: &[u8] = b"0123456789";

/// Serves one scripted answer a connection and remembers which ranges were asked for.
struct Server {
    base: String,
    ranges: Arc<Mutex<Vec<Option<String>>>>,
}

impl Server {
    fn new(answers: &[&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}/files", listener.local_addr().unwrap());
        let ranges = Arc::new(Mutex::new(Vec::new()));
        let asked = Arc::clone(&ranges);
        let answers = answers.to_vec();
        thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                asked.lock().unwrap().push(range_asked(&stream));
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        Self { base, ranges }
    }

    fn ranges(&self) -> Vec<Option<String>> {
        self.ranges.lock().unwrap().clone()
    }
}

fn range_asked(stream: &TcpStream) -> Option<String> {
    let lines = BufReader::new(stream).lines().map(Result::unwrap).take_while(|line| !line.is_empty());
    let headers: Vec<String> = lines.map(|line| line.to_ascii_lowercase()).collect();
    assert!(headers[0].starts_with("get /files/digits.bin http"), "{headers:?}");
    headers.iter().find_map(|line| line.strip_prefix("range: ").map(str::to_owned))
}

const WHOLE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\n0123456789";
const CUT_AFTER_FOUR: &str = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\n0123";
const FROM_FOUR: &str = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 4-9/10\r\nContent-Length: 6\r\n\
                         Connection: close\r\n\r\n456789";
const NOT_FOUND: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const BEYOND: &str = "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

const REMOTE: Remote =
    Remote { name: "digits.bin", md5: MD5, official: "https://example.org/files/digits.bin" };

fn get(bases: &[&str], folder: &Path) -> Result<PathBuf> {
    download(&REMOTE, bases, folder, &mut |_| {})
}

#[track_caller]
fn refused(result: Result<PathBuf>) -> (String, String) {
    match result {
        Err(Error::Download { problem, hint, .. }) => (problem, hint),
        other => panic!("{other:?}"),
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_whole_file_arrives_with_progress_and_is_not_fetched_twice() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("new");
    let server = Server::new(&[WHOLE]);
    let mut seen = Vec::new();
    let path = download(&REMOTE, &[&server.base], &folder, &mut |progress| {
        seen.push((progress.file.to_owned(), progress.done, progress.total));
    })
    .unwrap();
    assert_eq!(fs::read(&path).unwrap(), CONTENT);
    assert_eq!(names(&folder), ["digits.bin"]);
    assert_eq!(seen.first().unwrap(), &("digits.bin".to_owned(), 0, Some(10)));
    assert_eq!(seen.last().unwrap(), &("digits.bin".to_owned(), 10, Some(10)));
    assert_eq!(get(&["http://127.0.0.1:1"], &folder).unwrap(), path);
    assert_eq!(server.ranges(), [None]);
}

#[test]
fn a_broken_transfer_is_taken_up_where_it_stopped() {
    let root = tempfile::tempdir().unwrap();
    let server = Server::new(&[CUT_AFTER_FOUR, FROM_FOUR]);
    let path = get(&[&server.base], root.path()).unwrap();
    assert_eq!(fs::read(path).unwrap(), CONTENT);
    assert_eq!(server.ranges(), [None, Some("bytes=4-".into())]);
}

#[test]
fn a_later_call_resumes_what_an_earlier_one_left() {
    let root = tempfile::tempdir().unwrap();
    let server = Server::new(&[CUT_AFTER_FOUR, NOT_FOUND]);
    let (problem, hint) = refused(get(&[&server.base], root.path()));
    assert_eq!(problem, "the server answered 404 Not Found");
    assert!(
        hint.starts_with("run the same command again to continue, or download https://example.org"),
        "{hint}"
    );
    assert_eq!(names(root.path()), ["digits.bin.part"]);

    let server = Server::new(&[FROM_FOUR]);
    let mut first = None;
    let path = download(&REMOTE, &[&server.base], root.path(), &mut |progress| {
        first.get_or_insert((progress.done, progress.total));
    })
    .unwrap();
    assert_eq!(first, Some((4, Some(10))));
    assert_eq!(fs::read(path).unwrap(), CONTENT);
    assert_eq!(names(root.path()), ["digits.bin"]);
}

#[test]
fn a_server_that_ignores_ranges_starts_over() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("digits.bin.part"), "0123").unwrap();
    let server = Server::new(&[WHOLE]);
    let path = get(&[&server.base], root.path()).unwrap();
    assert_eq!(fs::read(path).unwrap(), CONTENT);
    assert_eq!(server.ranges(), [Some("bytes=4-".into())]);
}

#[test]
fn a_part_that_is_already_whole_is_recognised() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("digits.bin.part"), CONTENT).unwrap();
    let server = Server::new(&[BEYOND]);
    assert_eq!(fs::read(get(&[&server.base], root.path()).unwrap()).unwrap(), CONTENT);
}

#[test]
fn another_part_than_asked_for_is_not_appended() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("digits.bin.part"), "01").unwrap();
    let server = Server::new(&[FROM_FOUR]);
    let (problem, _) = refused(get(&[&server.base], root.path()));
    assert_eq!(problem, "the server sent another part than was asked for");
    assert!(names(root.path()).is_empty());
}

#[test]
fn a_wrong_checksum_is_set_aside_and_said() {
    let root = tempfile::tempdir().unwrap();
    let page = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlogin";
    let server = Server::new(&[page]);
    let (problem, _) = refused(get(&[&server.base], root.path()));
    let rejected = root.path().join("digits.bin.rejected");
    let expected = format!(
        "what came has the MD5 d56b699830e77ba53855679cb1d252da, not {MD5}; it was set aside as {}",
        rejected.display()
    );
    assert_eq!(problem, expected);
    assert_eq!(fs::read(rejected).unwrap(), b"login");
    assert_eq!(names(root.path()), ["digits.bin.rejected"]);
}

#[test]
fn a_wrong_file_in_place_is_set_aside_and_replaced() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("digits.bin"), "cut").unwrap();
    let server = Server::new(&[WHOLE]);
    get(&[&server.base], root.path()).unwrap();
    assert_eq!(names(root.path()), ["digits.bin", "digits.bin.rejected"]);
}

#[test]
fn without_a_server_the_hint_says_how_to_do_it_by_hand() {
    let root = tempfile::tempdir().unwrap();
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let error = get(&[&closed], root.path()).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with(&format!("{closed}/digits.bin: no answer (")), "{text}");
    assert_eq!(
        error.hint().unwrap(),
        format!(
            "run the same command again to continue, or download https://example.org/files/digits.bin by hand and \
             save it as {}",
            root.path().join("digits.bin").display()
        )
    );
}

#[test]
fn the_next_address_is_tried_when_one_fails() {
    let root = tempfile::tempdir().unwrap();
    let broken = Server::new(&[NOT_FOUND]);
    let whole = Server::new(&[WHOLE]);
    get(&[&broken.base, &format!("{}/", whole.base)], root.path()).unwrap();
    assert_eq!(names(root.path()), ["digits.bin"]);
}
