//! Image files as they are given: single files, and folders searched to the bottom.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    ImageSource,
    decode::check_size,
    folder::{Files, entries, is_image},
};
use crate::error::{Error, Result};

/// The image files meant by a path: the file itself, whatever its name, or every PNG and JPEG file in and below a
/// folder by name. Hidden files and links to folders inside it are passed over.
///
/// # Errors
/// When there is no such path, a folder cannot be listed or no image is in it.
pub fn image_files(path: &Path) -> Result<Vec<PathBuf>> {
    let kind = std::fs::metadata(path).map_err(|error| Error::io("open", path, error))?;
    if !kind.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    collect(path, &mut found)?;
    if found.is_empty() {
        let hint = "name a folder with .png, .jpg or .jpeg files";
        return Err(Error::bad_data(path, "has no PNG or JPEG images", hint));
    }
    Ok(found)
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for (_, path) in entries(folder)? {
        let link = path.is_symlink();
        if path.is_dir() && !link {
            collect(&path, found)?;
        } else if path.is_file() && is_image(&path) {
            found.push(path);
        }
    }
    Ok(())
}

/// Files that are decoded when asked for, each resized directly to `size` × `size`.
///
/// # Errors
/// When images of that size cannot be served.
pub fn open_files(paths: Vec<PathBuf>, size: usize) -> Result<Arc<dyn ImageSource>> {
    check_size(size)?;
    Ok(Arc::new(Files { size, paths }))
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
        assert!(error.to_string().ends_with("has no PNG or JPEG images"), "{error}");
    }
}
