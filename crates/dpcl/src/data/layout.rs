//! Where in a folder of images the classes lie, and what else lies there: names of files and folders only, no image is
//! opened.
//!
//! A folder has `train` and a half to test on, or `train` alone, or the class folders directly. A class folder's images
//! may lie in folders of their own below it. Links to folders are followed.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::decode::{ENDINGS, KINDS};
use crate::error::{Error, Result};

/// Names of the half to test on, the official one first.
const TEST_FOLDERS: [&str; 4] = ["test", "val", "valid", "validation"];

/// How many folders deep a folder is looked into for a first image, when it is to be recognised.
const DEPTH: usize = 3;

/// Where the class folders lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Those of the images to learn from.
    pub train: PathBuf,
    /// Those of the images to test on, if they are apart.
    pub test: Option<PathBuf>,
}

impl Layout {
    /// The layout of a folder, if there is any sign of one.
    pub fn of(directory: &Path) -> Option<Self> {
        let train = directory.join("train");
        let test = TEST_FOLDERS.map(|name| directory.join(name)).into_iter().find(|path| path.is_dir());
        // Images right in it make `train` a class of vehicles.
        if train.is_dir() && (test.is_some() || holds_classes(&train)) {
            return Some(Self { train, test });
        }
        holds_classes(directory).then(|| Self { train: directory.to_owned(), test: None })
    }
}

/// Whether the folders in a folder hold images, and none of them is a data set by itself.
fn holds_classes(directory: &Path) -> bool {
    let children = folders(directory);
    !children.iter().any(|child| child.join("train").is_dir())
        && children.iter().any(|child| holds_image(child, DEPTH))
}

fn holds_image(folder: &Path, depth: usize) -> bool {
    let Ok(found) = entries(folder) else { return false };
    found.iter().any(|(_, path)| path.is_file() && is_image(path))
        || (depth > 1 && found.iter().any(|(_, path)| path.is_dir() && holds_image(path, depth - 1)))
}

fn folders(directory: &Path) -> Vec<PathBuf> {
    let found = entries(directory).unwrap_or_default();
    found.into_iter().map(|(_, path)| path).filter(|path| path.is_dir()).collect()
}

/// Names of the class folders, sorted; hidden ones do not count.
///
/// # Errors
/// When the folder cannot be listed or has none.
pub(super) fn class_names(folder: &Path) -> Result<Vec<String>> {
    let names: Vec<String> =
        entries(folder)?.into_iter().filter(|(_, path)| path.is_dir()).map(|(name, _)| name).collect();
    if names.is_empty() {
        let hint = "put the images of each class into a subfolder named after the class";
        return Err(Error::bad_data(folder, "has no class folders", hint));
    }
    Ok(names)
}

/// What was found beside the images that are used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    /// Other files, by their endings.
    others: BTreeMap<String, usize>,
    /// Images outside class folders.
    loose: usize,
    /// Images that lie deeper than their class folder, which are used.
    deep: usize,
}

impl Passed {
    fn over(&mut self, path: &Path) {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        *self.others.entry(ending.unwrap_or_default()).or_default() += 1;
    }

    /// Counts the files of a folder of class folders that lie beside these.
    pub fn beside_classes(&mut self, folder: &Path) -> Result<()> {
        for (_, path) in entries(folder)?.into_iter().filter(|(_, path)| path.is_file()) {
            if is_image(&path) {
                self.loose += 1;
            } else {
                self.over(&path);
            }
        }
        Ok(())
    }

    /// What people should know, a line each.
    pub fn notes(&self) -> Vec<String> {
        let kind = |(ending, count): (&String, &usize)| match ending.as_str() {
            "" => format!("{count} without an ending"),
            ending => format!("{count} .{ending}"),
        };
        let mut passed: Vec<String> = self.others.iter().map(kind).collect();
        if self.loose > 0 {
            let plural = if self.loose == 1 { "image" } else { "images" };
            passed.push(format!("{} {plural} outside class folders", self.loose));
        }
        let mut notes = Vec::new();
        if !passed.is_empty() {
            notes.push(format!("passed over: {} (what is read: {KINDS})", passed.join(", ")));
        }
        if self.deep > 0 {
            let (plural, verb) = if self.deep == 1 { ("image", "counts") } else { ("images", "count") };
            notes.push(format!("{} {plural} of folders below a class folder {verb} for it", self.deep));
        }
        notes
    }
}

/// The images in and below a folder, by name; a folder that was entered through another link is not entered again.
///
/// # Errors
/// When a folder cannot be listed.
pub(super) fn images_below(folder: &Path, passed: &mut Passed) -> Result<Vec<PathBuf>> {
    let mut search = Search { found: Vec::new(), entered: BTreeSet::new(), passed };
    search.enter(folder, 0)?;
    Ok(search.found)
}

struct Search<'a> {
    found: Vec<PathBuf>,
    entered: BTreeSet<PathBuf>,
    passed: &'a mut Passed,
}

impl Search<'_> {
    fn enter(&mut self, folder: &Path, depth: usize) -> Result<()> {
        let whole = folder.canonicalize().map_err(|error| Error::io("open", folder, error))?;
        if !self.entered.insert(whole) {
            return Ok(());
        }
        for (_, path) in entries(folder)? {
            if path.is_dir() {
                self.enter(&path, depth + 1)?;
            } else if is_image(&path) {
                self.passed.deep += usize::from(depth > 0);
                self.found.push(path);
            } else {
                self.passed.over(&path);
            }
        }
        Ok(())
    }
}

/// Names and paths of everything in a folder that is not hidden, sorted by name.
pub(super) fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let failed = |error| Error::io("list", folder, error);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_str()
            .map(str::to_owned)
            .ok_or_else(|| Error::bad_data(&path, "has a name that is not valid Unicode", "rename it"))?;
        if !name.starts_with('.') {
            found.push((name, path));
        }
    }
    found.sort();
    Ok(found)
}

/// Whether a file is named as an image is.
pub(super) fn is_image(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
    ENDINGS.iter().any(|known| ending == *known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        root
    }

    fn layout(files: &[&str]) -> Option<(String, Option<String>)> {
        let root = tree(files);
        let inside = |path: PathBuf| path.strip_prefix(root.path()).unwrap().to_str().unwrap().to_owned();
        Layout::of(root.path()).map(|layout| (inside(layout.train), layout.test.map(inside)))
    }

    #[test]
    fn every_common_layout_is_known() {
        let halves = |test: &str| Some(("train".to_owned(), Some(test.to_owned())));
        assert_eq!(layout(&["train/a/1.png", "test/a/1.png"]), halves("test"));
        assert_eq!(layout(&["train/a/1.png", "valid/a/1.png"]), halves("valid"));
        assert_eq!(layout(&["train/a/1.webp"]), Some(("train".into(), None)));
        let direct = Some((String::new(), None));
        assert_eq!(layout(&["cat/1.png", "dog/old/1.jpg"]), direct);
        assert_eq!(layout(&["train/1.png", "plane/1.png"]), direct, "a class of trains");
        assert_eq!(layout(&["1.png", "notes/1.txt"]), None);
        assert_eq!(layout(&["a/train/cat/1.png", "b/1.png"]), None, "a folder of data sets");
        assert_eq!(layout(&[]), None);
    }

    #[test]
    fn what_is_passed_over_is_counted_by_kind() {
        let root = tree(&[
            "cat/1.png",
            "cat/2.heic",
            "cat/old/3.HEIC",
            "cat/old/4.BMP",
            "cat/README",
            "5.gif",
            "6.txt",
        ]);
        let mut passed = Passed::default();
        let found = images_below(&root.path().join("cat"), &mut passed).unwrap();
        assert_eq!(found.len(), 2);
        passed.beside_classes(root.path()).unwrap();
        assert_eq!(
            passed.notes(),
            [
                "passed over: 1 without an ending, 2 .heic, 1 .txt, 1 image outside class folders (what is read: PNG, \
                 JPEG, WebP, BMP or GIF)",
                "1 image of folders below a class folder counts for it",
            ]
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_to_folders_are_followed_once() {
        let root = tree(&["elsewhere/1.png", "photos/dog/1.png"]);
        let photos = root.path().join("photos");
        std::os::unix::fs::symlink(root.path().join("elsewhere"), photos.join("cat")).unwrap();
        std::os::unix::fs::symlink(&photos, photos.join("dog/loop")).unwrap();
        assert_eq!(class_names(&photos).unwrap(), ["cat", "dog"]);
        let images = |class| images_below(&photos.join(class), &mut Passed::default()).unwrap();
        assert_eq!(images("cat"), [photos.join("cat/1.png")]);
        assert_eq!(images("dog"), [photos.join("dog/1.png"), photos.join("dog/loop/cat/1.png")]);
    }
}
