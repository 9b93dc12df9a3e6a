//! One file over HTTP(S): resumed where it stopped, checked against its MD5, and put in place in one step.
//!
//! While it is incomplete the file is called `<name>.part`. A file with a wrong checksum is set aside as
//! `<name>.rejected`, so that it can be looked at but never read as data.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use md5::{Digest, Md5};
use ureq::{Agent, Body, http::Response};

use crate::{
    disk::refuse_link,
    error::{Error, Result},
};

/// A file to download.
pub(super) struct Remote<'a> {
    /// Its name here and at every address.
    pub name: &'a str,
    /// MD5 in lower-case hexadecimal digits.
    pub md5: &'a str,
    /// Where a person would get it.
    pub official: &'a str,
}

/// How far a download has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The file's name.
    pub file: &'a str,
    /// Bytes here, those of an earlier attempt included.
    pub done: u64,
    /// Bytes in all, when the server says.
    pub total: Option<u64>,
}

/// Silence of the other side after which an attempt counts as interrupted.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a transfer that breaks off is taken up again, as long as each attempt gets further.
const ATTEMPTS: usize = 5;

/// Several times the largest archive: a server that goes on longer sends something else.
const LONGEST: u64 = 1 << 30;

/// Puts the file into `folder`, trying each base address in turn; a file that is already there and right is kept.
///
/// # Errors
/// When no address delivers the right file (the first one's failure is reported), or the folder cannot be written.
pub(super) fn download(
    remote: &Remote,
    bases: &[&str],
    folder: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf> {
    let target = folder.join(remote.name);
    fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
    if target.is_file() {
        if checksum(&target)? == remote.md5 {
            return Ok(target);
        }
        set_aside(&target, &target)?;
    }
    let mut first_failure = None;
    for base in bases {
        let transfer = Transfer {
            url: format!("{}/{}", base.trim_end_matches('/'), remote.name),
            part: folder.join(format!("{}.part", remote.name)),
            target: &target,
            remote,
        };
        match transfer.run(progress) {
            Ok(()) => return Ok(target),
            Err(error @ Error::Download { .. }) => {
                first_failure.get_or_insert(error);
            }
            Err(other) => return Err(other),
        }
    }
    Err(first_failure.expect("every data set has at least one address"))
}

/// One file from one address.
struct Transfer<'a> {
    url: String,
    part: PathBuf,
    target: &'a Path,
    remote: &'a Remote<'a>,
}

impl Transfer<'_> {
    fn run(&self, progress: &mut dyn FnMut(Progress)) -> Result<()> {
        let agent: Agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(PATIENCE))
            .timeout_per_read(Some(PATIENCE))
            .build()
            .into();
        let mut attempt = 1;
        loop {
            let before = length(&self.part);
            match self.attempt(&agent, progress) {
                Ok(()) => break,
                Err(Error::Download { .. }) if attempt < ATTEMPTS && length(&self.part) > before => {
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
        let found = checksum(&self.part)?;
        if found != self.remote.md5 {
            let rejected = set_aside(&self.part, self.target)?;
            return Err(self.failed(format!(
                "what came has the MD5 {found}, not {}; it was set aside as {}",
                self.remote.md5,
                rejected.display()
            )));
        }
        fs::rename(&self.part, self.target).map_err(|error| Error::io("rename", &self.part, error))
    }

    /// Asks for what is missing and appends it, or writes everything when the server does not do parts.
    fn attempt(&self, agent: &Agent, progress: &mut dyn FnMut(Progress)) -> Result<()> {
        let have = length(&self.part);
        let mut request = agent.get(&self.url);
        if have > 0 {
            request = request.header("Range", format!("bytes={have}-"));
        }
        let response = request.call().map_err(|error| self.failed(format!("no answer ({error})")))?;
        match response.status().as_u16() {
            200 => self.receive(response, 0, progress),
            206 if resumes_at(&response, have) => self.receive(response, have, progress),
            206 => {
                self.forget()?;
                Err(self.failed("the server sent another part than was asked for".into()))
            }
            // Nothing lies beyond what is here; the checksum decides whether that is the whole file.
            416 if have > 0 => Ok(()),
            _ => Err(self.failed(format!("the server answered {}", response.status()))),
        }
    }

    fn receive(
        &self,
        response: Response<Body>,
        offset: u64,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        let writing = |error| Error::io("write", &self.part, error);
        refuse_link(&self.part)?;
        let mut file = OpenOptions::new()
            .create(true)
            .write(true)
            .append(offset > 0)
            .truncate(offset == 0)
            .open(&self.part)
            .map_err(writing)?;
        let mut body = response.into_body();
        let total = body.content_length().map(|rest| offset + rest);
        let mut reader = body.as_reader();
        let mut buffer = vec![0; 256 * 1024];
        let mut done = offset;
        loop {
            progress(Progress { file: self.remote.name, done, total });
            let count = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.broken(done, total, &error.to_string())),
            };
            file.write_all(&buffer[..count]).map_err(writing)?;
            done += count as u64;
            if done > LONGEST {
                self.forget()?;
                return Err(self.failed(format!("the server sent more than {LONGEST} bytes")));
            }
        }
        if total.is_some_and(|total| done < total) {
            return Err(self.broken(done, total, "the connection was closed"));
        }
        file.sync_all().map_err(writing)
    }

    fn forget(&self) -> Result<()> {
        fs::remove_file(&self.part).map_err(|error| Error::io("remove", &self.part, error))
    }

    fn broken(&self, done: u64, total: Option<u64>, reason: &str) -> Error {
        let of = total.map(|total| format!(" of {total}")).unwrap_or_default();
        self.failed(format!("the transfer broke off after {done}{of} bytes ({reason})"))
    }

    fn failed(&self, problem: String) -> Error {
        let hint = format!(
            "run the same command again to continue, or download {} by hand and save it as {}",
            self.remote.official,
            self.target.display()
        );
        Error::Download { url: self.url.clone(), problem, hint }
    }
}

/// Whether a partial answer begins at the byte asked for.
fn resumes_at(response: &Response<Body>, offset: u64) -> bool {
    let range = response.headers().get("content-range").and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.trim().starts_with(&format!("bytes {offset}-")))
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Renames `path` to what a rejected `target` is called.
fn set_aside(path: &Path, target: &Path) -> Result<PathBuf> {
    let rejected = target.with_added_extension("rejected");
    fs::rename(path, &rejected).map_err(|error| Error::io("rename", path, error))?;
    Ok(rejected)
}

/// MD5 of a file in lower-case hexadecimal digits.
fn checksum(path: &Path) -> Result<String> {
    let reading = |error| Error::io("read", path, error);
    let mut file = File::open(path).map_err(reading)?;
    let mut hasher = Md5::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match file.read(&mut buffer).map_err(reading)? {
            0 => break,
            count => hasher.update(&buffer[..count]),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests;
