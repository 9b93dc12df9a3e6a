//! The repository's documents: tables that are those of the records, lines and words that people can read.

use std::path::{Path, PathBuf};

use dpcl_report::reproduce::DOCUMENTS;

/// Characters a line of prose may have.
const WIDTH: usize = 120;

/// Stilted words; a phrase counts across the end of a line too.
const PHRASES: [&str; 6] = ["so many", "the letter", "mend", "mends", "mended", "one file a method"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Markdown file that people write, in the root and in `docs`.
fn documents() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in [root(), root().join("docs")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            // A list that `make licences` writes.
            if name.ends_with(".md") && name != "LICENSES.md" {
                found.push((name, std::fs::read_to_string(path).unwrap()));
            }
        }
    }
    assert!(found.len() > 6, "the walk found the documents");
    found
}

/// Lines of prose with their numbers: no table, no code, no address.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut code = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        if !(code || fence || line.starts_with('|') || line.contains("://")) {
            lines.push((index + 1, line));
        }
    }
    lines
}

/// The words in order, in small letters, one space around each.
fn words(text: &str) -> String {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| format!(" {}", word.to_lowercase())).collect::<String>() + " "
}

#[test]
fn tables_are_those_of_the_records() {
    for document in DOCUMENTS {
        let expected = document.text(&root()).unwrap();
        let found = std::fs::read_to_string(root().join(document.output)).unwrap();
        let differs = expected.lines().zip(found.lines()).position(|(expected, found)| expected != found);
        assert!(
            expected == found,
            "{} is out of date from line {}: run make reproduce",
            document.output,
            differs.unwrap_or_else(|| expected.lines().count().min(found.lines().count())) + 1
        );
    }
}

#[test]
fn lines_fit_a_window() {
    for (name, text) in documents() {
        for (number, line) in prose(&text) {
            let width = line.chars().count();
            assert!(width <= WIDTH, "{name}, line {number} has {width} characters");
        }
    }
}

#[test]
fn words_are_plain() {
    for (name, text) in documents() {
        let words = words(&text);
        for phrase in PHRASES {
            assert!(!words.contains(&format!(" {phrase} ")), "{name} says \"{phrase}\"");
        }
    }
}

#[test]
fn the_checks_see_what_they_should() {
    let text = "| a table |\n```\ncode\n```\nsee https://example.org\nprose\n";
    assert_eq!(prose(text), [(6, "prose")]);
    assert_eq!(words("By the\n**letter's** end, we recommend"), " by the letter s end we recommend ");
}
