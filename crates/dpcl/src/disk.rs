//! Files that are there whole or not at all, whatever happens to the machine.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Write},
    path::Path,
};

use crate::error::{Error, Result};

/// Writes a file under a temporary name, syncs it and renames it into place, so that it is there whole or not at all.
///
/// # Errors
/// When the disk does not take it; what was at `path` before is then still there.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    write_through(path, &mut |file| file.write_all(bytes))
}

/// The same for bytes that are made while they are written.
///
/// # Errors
/// As for [`write_whole`].
pub fn write_through(path: &Path, fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let partial = path.with_extension("partial");
    let mut write = || -> io::Result<()> {
        let mut file = BufWriter::with_capacity(1 << 16, new_file(&partial)?);
        fill(&mut file)?;
        file.into_inner()?.sync_all()?;
        fs::rename(&partial, path)
    };
    write().map_err(|source| {
        // On a full disk a useless half would take the room that is lacking.
        let _ = fs::remove_file(&partial);
        Error::io("write", path, source)
    })?;
    sync_folder_of(path);
    Ok(())
}

/// A new file. What has its name is taken away and not written through: in a stranger's folder it may be a link to any
/// other file.
pub(crate) fn new_file(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => OpenOptions::new().write(true).create_new(true).open(path),
    }
}

/// Refuses a link where a file or folder of one's own is to be.
pub(crate) fn refuse_link(path: &Path) -> Result<()> {
    if path.is_symlink() {
        let hint = "put what it leads to in its place, or make the run in another folder";
        return Err(Error::bad_data(path, "is a link, and a run writes into its own folder only", hint));
    }
    Ok(())
}

/// A new name outlives a loss of power only once its folder is synced. Not every system can do that, and the file is
/// whole either way.
pub(crate) fn sync_folder_of(path: &Path) {
    if cfg!(unix) {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let _ = File::open(parent.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
    }
}
