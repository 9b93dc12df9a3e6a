//! Where a data set's files are looked for: in the folder that was named, or one step below it.
//!
//! Knows folder and file names only; what is inside the files is the readers' business.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// What a reader needs found.
pub(super) struct Wanted<'a> {
    /// The data set's name, for the error.
    pub name: &'a str,
    /// Folders below the named one that people keep this set in, the official one first.
    pub folders: &'a [&'a str],
    /// The official archive, when the set can be read straight from it.
    pub archive: Option<&'a str>,
    /// Whether a folder holds the set (or enough of it that the reader should complain, not this file).
    pub holds: &'a dyn Fn(&Path) -> bool,
    /// Whether any other child folder will do: only when the file names tell this set from all others.
    pub any_child: bool,
    /// Whether `dpcl data fetch` can get it.
    pub fetchable: bool,
}

impl Wanted<'_> {
    /// The folder or archive to read, given the set's own folder, that folder's parent, or the archive itself.
    ///
    /// # Errors
    /// When the set is in none of these places; all of them are named.
    pub fn find(&self, directory: &Path) -> Result<PathBuf> {
        if directory.is_file() && self.archive.is_some() {
            return Ok(directory.to_owned());
        }
        let folders: Vec<PathBuf> = std::iter::once(directory.to_owned())
            .chain(self.folders.iter().map(|folder| directory.join(folder)))
            .collect();
        if let Some(found) = folders.iter().find(|folder| (self.holds)(folder)) {
            return Ok(found.clone());
        }
        let archives: Vec<PathBuf> = self
            .archive
            .iter()
            .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
            .collect();
        if let Some(found) = archives.iter().find(|archive| archive.is_file()) {
            return Ok(found.clone());
        }
        if self.any_child
            && let Some(found) = children(directory).into_iter().find(|child| (self.holds)(child))
        {
            return Ok(found);
        }
        let looked = folders.into_iter().chain(archives.into_iter().take(1)).collect();
        Err(Error::NoData { name: self.name.to_owned(), looked, hint: self.hint() })
    }

    fn hint(&self) -> String {
        let elsewhere = "name the folder that has it with `--data-dir`";
        if self.fetchable {
            format!("get it with `dpcl data fetch {}`, or {elsewhere}", self.name)
        } else {
            elsewhere.to_owned()
        }
    }
}

/// The folders directly below `directory`, by name; none when it cannot be listed.
pub(super) fn children(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted<'a>(holds: &'a dyn Fn(&Path) -> bool) -> Wanted<'a> {
        Wanted {
            name: "cifar10",
            folders: &["cifar-10-batches-bin"],
            archive: Some("cifar-10-binary.tar.gz"),
            holds,
            any_child: true,
            fetchable: true,
        }
    }

    #[test]
    fn own_folder_parent_any_child_and_archive_are_all_found() {
        let root = tempfile::tempdir().unwrap();
        let holds = |path: &Path| path.join("mark").is_file();
        let odd = root.path().join("my-copy");
        std::fs::create_dir(&odd).unwrap();
        std::fs::write(odd.join("mark"), "").unwrap();
        assert_eq!(wanted(&holds).find(root.path()).unwrap(), odd);
        assert_eq!(wanted(&holds).find(&odd).unwrap(), odd);

        let archive = root.path().join("cifar-10-binary.tar.gz");
        std::fs::write(&archive, "").unwrap();
        assert_eq!(wanted(&holds).find(root.path()).unwrap(), archive, "before any odd child");
        assert_eq!(wanted(&holds).find(&archive).unwrap(), archive);

        let official = root.path().join("cifar-10-batches-bin");
        std::fs::create_dir(&official).unwrap();
        std::fs::write(official.join("mark"), "").unwrap();
        assert_eq!(wanted(&holds).find(root.path()).unwrap(), official, "before the archive");
    }

    #[test]
    fn what_is_not_there_is_listed_with_a_way_to_get_it() {
        let error = wanted(&|_| false).find(Path::new("nowhere")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no cifar10 data found; looked for nowhere, nowhere/cifar-10-batches-bin, \
             nowhere/cifar-10-binary.tar.gz"
        );
        assert_eq!(
            error.hint().unwrap(),
            "get it with `dpcl data fetch cifar10`, or name the folder that has it with `--data-dir`"
        );
    }
}
