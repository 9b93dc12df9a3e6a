//! The text of a record's configuration: what may stand in it, and how long it may be.

use std::{fs::File, io::Read as _, path::Path};

use super::MOVE_AWAY;
use crate::{
    config,
    error::{Error, Result},
};

/// Text as one line of a TOML comment, which takes no control characters.
pub(super) fn in_comment(text: &str) -> String {
    let show = |letter: char| match letter.is_control() {
        true => letter.escape_unicode().to_string(),
        false => letter.to_string(),
    };
    text.chars().map(show).collect()
}

/// The text of a file that should be a configuration.
pub(super) fn read_config(path: &Path) -> Result<String> {
    let mut text = String::new();
    let file = File::open(path).map_err(|source| Error::io("read", path, source))?;
    let read = file.take(config::LONGEST as u64 + 1).read_to_string(&mut text);
    read.map_err(|source| Error::io("read", path, source))?;
    if text.len() > config::LONGEST {
        return Err(Error::bad_data(path, "is longer than any configuration", MOVE_AWAY));
    }
    Ok(text)
}
