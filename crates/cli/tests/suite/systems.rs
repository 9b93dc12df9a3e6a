//! The systems that the paper compares stand in one list, and each says where it departs from its own paper.

use crate::support::Place;

/// The thirteen and the paper's own, each with words that its departures have to say; `er` and `clib`, which the protocol
/// was made for, have none.
const SYSTEMS: [(&str, &str); 14] = [
    ("er", ""),
    ("ewc++", "importance"),
    ("der++", "augmented"),
    ("bic", "reservoir"),
    ("clib", ""),
    ("mir", "clean images"),
    ("er-cpr", "five other methods"),
    ("fs-dgpm", "first order only"),
    ("dro", "signs"),
    ("oddl", "guessed threshold"),
    ("ctn", "rounds"),
    ("ccll", "no public code"),
    ("nfm", "DPCL's public code"),
    ("dpcl", "`dpcl.pfi` is off"),
];

#[test]
fn the_papers_systems_stand_in_one_list_with_where_they_depart() {
    let place = Place::new();
    let text = place.say("list methods").done().stdout;
    let json = place.say("list methods --format json").done().stdout;
    let list: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    for (name, word) in SYSTEMS {
        let rows = text.lines().filter(|line| line.split(' ').next() == Some(name)).count();
        assert_eq!(rows, 1, "{name} has a row of its own:\n{text}");
        let entry = list.iter().find(|entry| entry["name"] == name).unwrap();
        let departures: Vec<&str> = entry["departures"]
            .as_array()
            .unwrap()
            .iter()
            .map(|departure| departure.as_str().unwrap())
            .collect();
        assert_eq!(departures.is_empty(), word.is_empty(), "{name}: {departures:?}");
        assert!(departures.join("; ").contains(word), "{name}: {departures:?}");
    }
    let told = |knowledge: &str| -> Vec<&str> {
        let names = SYSTEMS.iter().map(|(name, _)| *name);
        let of = |name: &str| list.iter().any(|of| of["name"] == name && of["knowledge"] == knowledge);
        names.filter(|name| of(name)).collect()
    };
    assert_eq!(told("task-ids"), ["ctn", "ccll"]);
    assert_eq!(told("task-ends"), ["ewc++", "bic", "fs-dgpm"]);
}
