//! Image files as they are given: single files, and folders searched to the bottom.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Fit, ImageSource,
    decode::{KINDS, check_size},
    folder::Files,
    layout::{Passed, images_below},
};
use crate::error::{Error, Result};

/// The image files meant by a path: the file itself, whatever its name, or every image file in and below a folder by
/// name. Hidden files are passed over; a folder is searched once, however many links lead to it.
///
/// # Errors
/// When there is no such path, a folder cannot be listed or no image is in it.
pub fn image_files(path: &Path) -> Result<Vec<PathBuf>> {
    let kind = std::fs::metadata(path).map_err(|error| Error::io("open", path, error))?;
    if !kind.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let found = images_below(path, &mut Passed::default())?;
    if found.is_empty() {
        return Err(Error::bad_data(path, "has no images", format!("name a folder with {KINDS} files")));
    }
    Ok(found)
}

/// Files that are decoded when asked for, each as a square of the size.
///
/// # Errors
/// When images of that size cannot be served.
pub fn open_files(paths: Vec<PathBuf>, size: usize, fit: Fit) -> Result<Arc<dyn ImageSource>> {
    check_size(size)?;
    Ok(Arc::new(Files { size, fit, root: PathBuf::new(), paths }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_itself_and_a_folder_is_searched_to_the_bottom() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("b/c")).unwrap();
        for name in ["z.png", "b/c/1.JPG", "b/0.jpeg", "notes.txt", ".hidden.png"] {
            std::fs::write(root.path().join(name), "").unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(root.path(), root.path().join("b/loop")).unwrap();
        let found = image_files(root.path()).unwrap();
        let names: Vec<_> = found.iter().map(|path| path.strip_prefix(root.path()).unwrap()).collect();
        assert_eq!(names, ["b/0.jpeg", "b/c/1.JPG", "z.png"].map(Path::new));
        let text = root.path().join("notes.txt");
        assert_eq!(image_files(&text).unwrap(), [text]);
        assert!(image_files(&root.path().join("absent")).is_err());
        std::fs::create_dir(root.path().join("empty")).unwrap();
        let error = image_files(&root.path().join("empty")).unwrap_err();
        assert!(error.to_string().ends_with("has no images"), "{error}");
    }
}
