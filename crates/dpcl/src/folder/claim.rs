//! One process a folder: whoever makes a run holds a file in its folder locked.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    path::Path,
};

use crate::{
    disk::refuse_link,
    error::{Error, Result},
};

/// Held locked while a run lasts. It is never renamed or removed, so that all processes lock the same file.
const LOCK_FILE: &str = "lock";

/// The right to write into a run's folder, for as long as it lives. The system takes it back when the process ends,
/// however it ends.
#[derive(Debug)]
pub struct Claim {
    _file: File,
}

impl Claim {
    pub(super) fn of(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).map_err(|source| Error::io("create", folder, source))?;
        let path = folder.join(LOCK_FILE);
        refuse_link(&path)?;
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|source| Error::io("open", &path, source))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Error::Claimed { path: folder.to_owned() }),
            Err(TryLockError::Error(source)) => Err(Error::io("lock", &path, source)),
        }
    }
}
