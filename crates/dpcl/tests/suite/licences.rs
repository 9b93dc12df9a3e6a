//! Everything that is built into the program is on the list of licences, under a licence that is allowed.

use std::{collections::BTreeSet, fs, path::Path};

/// The same as in `deny.toml`.
const ALLOWED: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

fn read(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().parent().unwrap();
    fs::read_to_string(root.join(name)).unwrap()
}

/// Name, version and licence of each line of the list.
fn listed() -> Vec<[String; 3]> {
    let text = read("LICENSES.md");
    let rows = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| crate "));
    let cells =
        |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    rows.map(|line| cells(line).try_into().unwrap()).collect()
}

/// Whether one of the alternatives has only allowed parts. Old expressions have `/` for `OR`.
fn is_allowed(expression: &str) -> bool {
    let plain = expression.replace('/', " OR ").replace(['(', ')'], " ");
    // `(A OR B) AND C`: the parts joined by AND bind less tightly than the brackets, as in all expressions here.
    if expression.contains('(') {
        return plain.split(" AND ").all(is_allowed);
    }
    let alternative = |text: &str| text.split(" AND ").all(|part| ALLOWED.contains(&part.trim()));
    plain.split(" OR ").any(alternative)
}

#[test]
fn every_licence_is_allowed() {
    let listed = listed();
    assert!(listed.len() > 100, "the list has {} entries", listed.len());
    for [name, version, licence] in &listed {
        assert!(is_allowed(licence), "{name} {version} is licensed under `{licence}`");
    }
    assert!(!is_allowed("GPL-3.0") && !is_allowed("MIT AND GPL-3.0") && is_allowed("GPL-3.0 OR MIT"));
    assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0") && !is_allowed(""));
}

#[test]
fn the_list_is_that_of_the_lock_file() {
    let lock: toml::Table = read("Cargo.lock").parse().unwrap();
    let text = |package: &toml::Value, key: &str| package[key].as_str().unwrap().to_owned();
    let locked: BTreeSet<(String, String)> = lock["package"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| (text(package, "name"), text(package, "version")))
        .collect();
    for [name, version, _] in listed() {
        let is_there = locked.contains(&(name.clone(), version.clone()));
        assert!(is_there, "{name} {version} is not what is built; run `make licences`");
    }
}

#[test]
fn direct_dependencies_are_listed() {
    let workspace: toml::Table = read("Cargo.toml").parse().unwrap();
    let names: BTreeSet<String> = listed().into_iter().map(|[name, ..]| name).collect();
    let only_in_tests = ["insta", "peak_alloc", "proptest", "tempfile"];
    for name in workspace["workspace"]["dependencies"].as_table().unwrap().keys() {
        let ours = name.starts_with("dpcl");
        let known = ours || only_in_tests.contains(&name.as_str()) || names.contains(name);
        assert!(known, "{name} is not listed; run `make licences`");
    }
}

#[test]
fn both_lists_of_allowed_licences_are_the_same() {
    let deny: toml::Table = read("deny.toml").parse().unwrap();
    let allowed = deny["licenses"]["allow"].as_array().unwrap();
    let allowed: Vec<&str> = allowed.iter().map(|licence| licence.as_str().unwrap()).collect();
    assert_eq!(allowed, ALLOWED);
}
