//! Calls the program as a person would: in a folder of its own, without a terminal, colour or leftover settings.

#![allow(dead_code, reason = "each test file uses some of it")]
#![allow(clippy::unwrap_used, reason = "it only serves tests")]

use std::{
    ffi::OsStr,
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;

/// A folder to call the program in.
pub struct Place {
    folder: TempDir,
}

/// What a call gave.
pub struct Answer {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Place {
    /// An empty one.
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The program, ready to be called here.
    pub fn program(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dpcl"));
        command.current_dir(self.path()).env("NO_COLOR", "1");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CARGO_") {
                command.env_remove(name);
            }
        }
        command.env_remove("DPCL_DATA").env_remove("DPCL_MIRROR").env_remove("COLUMNS");
        command
    }

    /// Calls it with arguments.
    pub fn call<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Answer {
        Answer::of(&self.program().args(arguments).output().unwrap())
    }

    /// Calls it with arguments separated by spaces.
    pub fn say(&self, arguments: &str) -> Answer {
        self.call(arguments.split_whitespace())
    }

    /// Writes a file.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    /// Reads a file.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// Whether there is such a file or folder.
    pub fn has(&self, name: &str) -> bool {
        self.path().join(name).exists()
    }
}

impl Answer {
    /// Reads the output of a finished call.
    pub fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Fails the test unless the call succeeded.
    pub fn done(self) -> Self {
        assert_eq!(self.code, 0, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// What was said on stderr as one line, so that where it was broken does not matter.
    pub fn talk(&self) -> String {
        self.stderr.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Code and both streams in one text, for snapshots.
    pub fn whole(&self) -> String {
        format!("exit code {}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}
