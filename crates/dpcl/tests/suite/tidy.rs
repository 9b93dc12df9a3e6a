//! Rules of the house that the compiler does not know.

use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn all() -> Vec<(PathBuf, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    sources(crates, &mut found);
    assert!(found.len() > 50, "the walk found the workspace");
    found.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn files_are_short_enough_to_read() {
    for (path, text) in all() {
        let lines = text.lines().count();
        assert!(lines <= 400, "{} has {lines} lines", path.display());
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    for (path, text) in all() {
        assert!(text.starts_with("//!"), "{} has no module header", path.display());
    }
}

#[test]
fn only_the_kernels_are_unsafe() {
    for (path, text) in all() {
        let kernels = path.components().any(|part| part.as_os_str() == "kernels");
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let forms = ["{", "fn", "impl"].map(|form| format!("{} {form}", ["uns", "afe"].concat()));
        let uses = code.into_iter().any(|line| forms.iter().any(|form| line.contains(form.as_str())));
        assert!(kernels || !uses, "{} uses unsafe code", path.display());
    }
}

#[test]
fn the_compiler_forbids_unsafe_code_where_strangers_files_are_read() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for root in ["cli/src/lib.rs", "cli/src/main.rs", "dpcl/src/lib.rs", "report/src/lib.rs"] {
        let text = std::fs::read_to_string(crates.join(root)).unwrap();
        assert!(text.contains("#![forbid(unsafe_code)]"), "{root} allows it");
    }
}

#[test]
fn only_the_command_line_prints() {
    for (path, text) in all() {
        let command_line = path.components().any(|part| part.as_os_str() == "cli");
        let example = path.components().any(|part| part.as_os_str() == "examples");
        let printing = [["print", "ln!"].concat(), ["eprint", "ln!"].concat()];
        let prints = printing.iter().any(|word| text.contains(word));
        assert!(command_line || example || !prints, "{} prints", path.display());
    }
}
