//! Which official files make up a data set, where they are, and getting them.

use std::path::{Path, PathBuf};

use super::download::{Remote, download};
use crate::error::{Error, Result};

pub use super::download::Progress;

/// Environment variable that replaces the official address: file names are appended to its value.
pub const MIRROR_VARIABLE: &str = "DPCL_MIRROR";

/// A set that can be downloaded.
struct Source {
    name: &'static str,
    /// Addresses the file names are appended to, the official one first.
    bases: &'static [&'static str],
    /// Folder of its own, for sets of several files.
    folder: Option<&'static str>,
    /// File names and MD5 sums.
    files: &'static [(&'static str, &'static str)],
}

const SOURCES: &[Source] = &[
    Source {
        name: "cifar10",
        bases: &["https://www.cs.toronto.edu/~kriz"],
        folder: None,
        files: &[("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530")],
    },
    Source {
        name: "cifar100",
        bases: &["https://www.cs.toronto.edu/~kriz"],
        folder: None,
        files: &[("cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8")],
    },
    Source {
        name: "mnist",
        // The author's own site asks for a password; these two carry the same files.
        bases: &[
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            "https://storage.googleapis.com/cvdf-datasets/mnist",
        ],
        folder: Some("mnist"),
        files: &[
            ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
            ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
            ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
            ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
        ],
    },
    Source {
        name: "fashion-mnist",
        // The first has no HTTPS; the checksum stands in for it.
        bases: &[
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
        ],
        folder: Some("fashion-mnist"),
        files: &[
            ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
            ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
            ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
            ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
        ],
    },
];

/// Downloads the official files of a data set below `into`, from the address in `DPCL_MIRROR` if that is set.
///
/// Returns what to open: the archive, or the folder of the files. Files that are there and right are not fetched
/// again, a broken download is resumed, and every file is checked.
///
/// # Errors
/// When the set cannot be downloaded at all, when the network or the server fails, when a checksum is wrong, or when
/// `into` cannot be written.
pub fn fetch(name: &str, into: &Path, progress: &mut dyn FnMut(Progress)) -> Result<PathBuf> {
    let mirror = std::env::var(MIRROR_VARIABLE).ok().filter(|mirror| !mirror.is_empty());
    fetch_from(mirror.as_deref(), name, into, progress)
}

/// Like [`fetch`], from `mirror` instead of the official addresses when one is given.
///
/// # Errors
/// As [`fetch`].
pub fn fetch_from(
    mirror: Option<&str>,
    name: &str,
    into: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf> {
    let source = SOURCES.iter().find(|source| source.name == name).ok_or_else(|| not_fetched(name))?;
    let folder = source.folder.map_or_else(|| into.to_owned(), |folder| into.join(folder));
    let only_mirror: Vec<&str> = mirror.into_iter().collect();
    let bases = if only_mirror.is_empty() { source.bases } else { &only_mirror };
    let mut last = folder.clone();
    for (file, md5) in source.files {
        let official = format!("{}/{file}", source.bases[0]);
        let remote = Remote { name: file, md5, official: &official };
        last = download(&remote, bases, &folder, progress)?;
    }
    Ok(if source.folder.is_some() { folder } else { last })
}

fn not_fetched(name: &str) -> Error {
    if name.starts_with("imagenet") {
        return Error::Download {
            url: "https://image-net.org/download.php".into(),
            problem: "ImageNet is never fetched, because it needs an account".into(),
            hint: "register there, unpack ILSVRC-2012 into `train/<id>/` and `val/<id>/`, and name that folder with \
                   `--data-dir`"
                .into(),
        };
    }
    let known = SOURCES.iter().map(|source| source.name.to_owned()).collect();
    Error::UnknownName { kind: "data set to fetch", name: name.to_owned(), known }
}

#[cfg(test)]
mod tests {
    use super::{super::idx, *};

    #[test]
    fn addresses_and_checksums_are_well_formed() {
        for source in SOURCES {
            assert!(source.bases.iter().all(|base| base.starts_with("http") && !base.ends_with('/')));
            for (_, md5) in source.files {
                assert!(md5.len() == 32 && md5.bytes().all(|byte| b"0123456789abcdef".contains(&byte)));
            }
            if source.folder.is_some() {
                let names: Vec<&str> = source.files.iter().map(|(file, _)| &file[..file.len() - 3]).collect();
                assert_eq!(names, idx::FILES);
            }
        }
    }

    #[test]
    fn a_mirror_replaces_the_address_but_not_the_advice() {
        let root = tempfile::tempdir().unwrap();
        let error =
            fetch_from(Some("http://127.0.0.1:1/copy/"), "mnist", root.path(), &mut |_| {}).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("http://127.0.0.1:1/copy/train-images-idx3-ubyte.gz: no answer"), "{text}");
        let hint = error.hint().unwrap();
        assert!(
            hint.contains("https://ossci-datasets.s3.amazonaws.com/mnist/train-images-idx3-ubyte.gz"),
            "{hint}"
        );
        assert!(
            hint.ends_with(&format!("mnist{}train-images-idx3-ubyte.gz", std::path::MAIN_SEPARATOR)),
            "{hint}"
        );
    }

    #[test]
    fn what_cannot_be_fetched_says_why() {
        let error = fetch("imagenet100", Path::new("x"), &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("needs an account"), "{error}");
        let error = fetch("folder", Path::new("x"), &mut |_| {}).unwrap_err();
        assert_eq!(error.to_string(), "there is no data set to fetch called `folder`");
        assert_eq!(error.hint().unwrap(), "known names: cifar10, cifar100, mnist, fashion-mnist");
    }
}
