//! `dpcl bench cost`: how it is asked for and laid out. What it measures is tested where it is measured.

use crate::support::Place;

/// As little as can be measured.
const LITTLE: &str = "bench cost --size 8 --batch 4 --memory 4 --tasks 2 --samples 4 --rounds 1 --threads 1";

#[test]
fn costs_are_one_object_for_programs() {
    let answer = Place::new().say(&format!("{LITTLE} --method er,gdumb --format json")).done();
    let json: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!((&json["model"], &json["samples"]), (&"slim".into(), &4.into()));
    let costs = json["costs"].as_array().unwrap();
    let methods: Vec<&str> = costs.iter().map(|cost| cost["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["er", "gdumb"]);
    assert_eq!(
        (&costs[0]["multiply_adds_times"], &costs[0]["paper"]["step_times"]),
        (&1.0.into(), &1.0.into())
    );
    assert!(costs[1]["paper"].is_null());
    assert!(!cfg!(target_os = "linux") || costs[1]["peak_memory_times"].as_f64().unwrap() > 0.5);
    assert_eq!(answer.stderr, "1 of 2: er\n2 of 2: gdumb\n");
}

#[test]
fn costs_are_a_table_for_people_and_for_notes() {
    let place = Place::new();
    let text = place.say(&format!("{LITTLE} --method mir,gdumb")).done().stdout;
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for word in
        ["mir", "gdumb§", "paper, step", "2.42", "peak memory", "multiply-adds", "§ trains at task ends"]
    {
        assert!(text.contains(word), "{word} is not in {text}");
    }
    let pipes = place.say(&format!("{LITTLE} --method er --format markdown")).done().stdout;
    let lines: Vec<&str> = pipes.lines().take(3).collect();
    let cells = |line: &str| line.matches('|').count();
    assert!(lines[0].starts_with("| | sample | × | paper, step |"), "{pipes}");
    assert!(lines[2].starts_with("| er | ") && cells(lines[2]) == cells(lines[0]), "{pipes}");
    assert!(!pipes.contains('§'), "{pipes}");
}

#[test]
fn a_name_is_looked_up_before_anything_is_measured() {
    let answer = Place::new().say(&format!("{LITTLE} --method er,eer"));
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""));
    assert!(answer.stderr.contains("eer") && !answer.stderr.contains("1 of 2"), "{}", answer.stderr);
}
