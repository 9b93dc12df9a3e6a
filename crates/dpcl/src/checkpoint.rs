//! A learner in one file, whole: weights, optimiser, memory, generators, configuration.
//!
//! # Layout, version 1
//!
//! A checkpoint is a [safetensors](https://github.com/huggingface/safetensors) file: eight bytes with the length of the
//! header (little-endian), a JSON header padded with spaces to a multiple of eight, then the arrays one after the other.
//!
//! | in the file | what it is |
//! |---|---|
//! | `__metadata__.format` | `dpcl-checkpoint` |
//! | `__metadata__.version` | version of this layout, `1` |
//! | `__metadata__.program`, `.isa` | version of the program and instruction set of the kernels that wrote it |
//! | `__metadata__.shape` | size of the images, JSON |
//! | `__metadata__.config` | the checked configuration, TOML |
//! | `__metadata__.classes` | names of the data set's classes that number labels refer to, JSON; empty for other labels |
//! | `__metadata__.values` | counters, labels, generators, histories by dotted name, JSON |
//! | `__metadata__.run` | where a run stood, JSON; absent from learners saved by hand |
//! | `core.model.encoder.*` | `stem`, `group1.block0`, …: `conv1.weight` [out, in, kernel, kernel], `bn1.weight`, `.bias`, `.running_mean`, `.running_var`, `shortcut.conv.weight`, … in PyTorch's layouts |
//! | `core.model.heads.weight`, `.bias` | heads, one after the other: [heads · classes, features] |
//! | `core.model.optimiser.first.*`, `.second.*` | Adam's moments, in the layout the program works in |
//! | `method.*` | what the method keeps: `method.memory.images`, `method.arrivals.images` [count, height, width, 3], … |
//! | `checksum` | the last 32 bytes: MD5 of everything before the arrays, then MD5 of everything before `checksum` |
//!
//! Arrays of floats come first, then arrays of bytes, each by name, so that all are aligned. `format`, `version` and
//! `checksum` keep their places and meaning in every later version: damage can be told from novelty.
//!
//! A PyTorch user reads the weights with
//!
//! ```python
//! from safetensors.torch import load_file
//! prefix = "core.model.encoder."
//! arrays = load_file("160.ckpt")
//! encoder = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
//! ```
//!
//! Checksums find accidents, not forgeries: a file from a stranger is read without trust in any length it names, but what
//! it makes a learner answer is the stranger's.

mod layout;

#[cfg(test)]
mod tests;

use std::{
    fs::File,
    io::{self, BufReader, Cursor, Read, Seek, Write},
    path::Path,
};

use crate::{
    config::Config,
    disk,
    error::{Error, Result},
    learner::{Learner, Shape},
    state::State,
};

/// Version of the layout; readers refuse a newer one.
pub const VERSION: u32 = 1;

/// Everything in a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The checked configuration of the learner.
    pub config: Config,
    /// Size of the images it takes.
    pub shape: Shape,
    /// Names of the data set's classes, for labels that are class numbers; empty where labels are something else.
    pub classes: Vec<String>,
    /// The learner's arrays and values.
    pub state: State,
    /// Where a run stood, as the run wrote it; `None` for learners saved by hand.
    pub run: Option<serde_json::Value>,
    /// Version of the program that made it.
    pub program: String,
    /// Instruction set of the kernels that made it.
    pub isa: String,
    /// Checksum of the file it was read from, in hexadecimal digits.
    pub checksum: Option<String>,
}

/// Where in a run a checkpoint could be taken, with the stream samples learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// After a sample or a task end.
    Sample(u64),
    /// Before a run that was asked to stop does so.
    Stopping(u64),
    /// After the last task end.
    End(u64),
}

/// What makes a file unfit to be taken further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Flaw {
    /// It is something else.
    #[error("is not a checkpoint: {0}")]
    SomethingElse(String),
    /// It was whole once.
    #[error("is a damaged checkpoint: {0}")]
    Damaged(String),
    /// Its layout is from the future.
    #[error("is a checkpoint of layout {found}; this program reads up to {VERSION}")]
    Newer {
        /// Version of its layout.
        found: u32,
    },
    /// It is whole, and what it holds is no longer made of numbers.
    #[error("is a checkpoint of training that ran away: `{0}` is not finite")]
    NotFinite(String),
    /// It is whole, but no learner can be made of it.
    #[error("is a checkpoint that cannot be taken up: {0}")]
    Misfit(String),
    /// It was made by a program whose runs this one does not repeat.
    #[error("was made by dpcl {made} with {made_isa} kernels, and this is dpcl {here} with {here_isa}")]
    OtherProgram {
        /// Version that made it.
        made: String,
        /// Instruction set that made it.
        made_isa: String,
        /// This program's version.
        here: String,
        /// The instruction set in use.
        here_isa: String,
    },
}

impl Flaw {
    /// Whether a run goes on from the checkpoint before it.
    pub(crate) fn is_passed_over(&self) -> bool {
        matches!(self, Self::Damaged(_) | Self::SomethingElse(_) | Self::NotFinite(_))
    }

    /// What the reader can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::SomethingElse(_) => {
                "give a `.ckpt` file from a run's `checkpoint` folder or `Learner::save`".into()
            }
            Self::Damaged(_) => "use the checkpoint before it, or a copy; a run falls back by itself".into(),
            Self::Newer { .. } => "read it with the program that wrote it, or a later one".into(),
            Self::NotFinite(_) => "use a checkpoint from before that, and a lower `lr`".into(),
            Self::Misfit(_) => "it was made by another version of the program, or tampered with".into(),
            Self::OtherProgram { made, made_isa, .. } => format!(
                "go on with dpcl {made} and {}={made_isa}, or remove the `checkpoint` folder to start over",
                dpcl_kernels::ISA_VARIABLE
            ),
        }
    }
}

impl Checkpoint {
    /// What the learner is in this moment. Copies every array.
    pub fn of(learner: &Learner) -> Self {
        Self {
            config: learner.config(),
            shape: learner.shape(),
            classes: Vec::new(),
            state: learner.state(),
            run: None,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            isa: dpcl_kernels::isa_name().to_owned(),
            checksum: None,
        }
    }

    /// Writes it to a new file that takes the place of `path` once it is safe on disk; returns its checksum.
    ///
    /// # Errors
    /// When the disk does not take it or its numbers are not finite; what `path` held before is then still there.
    pub fn write(&self, path: &Path) -> Result<String> {
        if let Some(name) = self.state.not_finite() {
            return Err(Error::NotFinite { what: format!("`{name}`") });
        }
        let mut checksum = String::new();
        disk::write_through(path, &mut |file| {
            checksum = self.write_to(file)?;
            Ok(())
        })?;
        Ok(checksum)
    }

    /// Writes its bytes; returns their checksum.
    ///
    /// # Errors
    /// What `out` reports.
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<String> {
        layout::write(self, out)
    }

    /// Reads a file and makes sure that it is whole.
    ///
    /// # Errors
    /// [`Error::BadCheckpoint`] when it is not a checkpoint, is damaged or is of a newer layout.
    pub fn read(path: &Path) -> Result<Self> {
        let open = || -> io::Result<(File, u64)> {
            let file = File::open(path)?;
            let length = file.metadata()?.len();
            Ok((file, length))
        };
        let (file, length) = open().map_err(|source| Error::io("read", path, source))?;
        Self::read_from(&mut BufReader::with_capacity(1 << 16, file), length, path)
    }

    /// The same for bytes in memory; `path` is for error texts only.
    ///
    /// # Errors
    /// As for [`Checkpoint::read`].
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Self> {
        Self::read_from(&mut Cursor::new(bytes), bytes.len() as u64, path)
    }

    fn read_from<R: Read + Seek>(file: &mut R, length: u64, path: &Path) -> Result<Self> {
        layout::read(file, length).map_err(|failure| match failure {
            layout::Failure::Io(source) => Error::io("read", path, source),
            layout::Failure::Flaw(flaw) => Error::bad_checkpoint(path, flaw),
        })
    }

    /// The checksum that a file ends with, without looking at the rest.
    ///
    /// # Errors
    /// When it cannot be read or is too short to be a checkpoint.
    pub fn checksum_of(path: &Path) -> Result<String> {
        let read = || -> io::Result<Option<String>> { layout::last_checksum(&mut File::open(path)?) };
        let found = read().map_err(|source| Error::io("read", path, source))?;
        found.ok_or_else(|| Error::bad_checkpoint(path, Flaw::SomethingElse("it is too short".into())))
    }

    /// The learner it holds; it goes on as if it had never been put away.
    ///
    /// # Errors
    /// When configuration and arrays do not make a learner.
    pub fn learner(&self) -> Result<Learner> {
        Learner::from_checkpoint(self)
    }

    /// What a label that is a class number is called.
    pub fn class_name(&self, label: &crate::Label) -> String {
        let name = match label {
            crate::Label::Number(number) => {
                usize::try_from(*number).ok().and_then(|number| self.classes.get(number))
            }
            crate::Label::Name(_) => None,
        };
        name.cloned().unwrap_or_else(|| label.to_string())
    }
}
