//! Lists, presets, checks, splits and data: everything that answers without learning.

use crate::support::Place;

#[test]
fn lists_are_for_people_and_for_programs() {
    let place = Place::new();
    for kind in
        ["methods", "datasets", "scenarios", "models", "memories", "rates", "metrics", "presets", "keys"]
    {
        let text = place.say(&format!("list {kind}")).done().stdout;
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let json = place.say(&format!("list {kind} --format json")).done().stdout;
        let list: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
        assert!(!list.is_empty());
        for entry in list {
            let name = entry["name"].as_str().unwrap();
            assert!(text.contains(name), "{kind}: {name} is missing from the text");
            assert!(!entry["about"].as_str().unwrap().is_empty());
        }
    }
    insta::assert_snapshot!("list-metrics", place.say("list metrics").stdout);
}

#[test]
fn a_key_is_listed_with_all_that_is_known_of_it() {
    let json = Place::new().say("list keys --format json").done().stdout;
    let keys: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    let key = |name: &str| keys.iter().find(|key| key["name"] == name).unwrap();
    let candidates = key("mir.candidates");
    assert_eq!((&candidates["default"], &candidates["range"]), (&"50".into(), &"at least 1".into()));
    assert_eq!((&candidates["read_by"], &candidates["flag"]), (&"mir".into(), &serde_json::Value::Null));
    let updates = key("updates");
    assert_eq!((&updates["flag"], &updates["default"]), (&"--updates".into(), &"the data set's".into()));
    assert_eq!(updates["old_names"], serde_json::json!(["updates_per_sample"]));
    // A group of keys starts from what the method that holds it says.
    assert_eq!(
        (&key("dpcl.noise")["default"], &key("bic.noise")["default"]),
        (&"nfm".into(), &"paper".into())
    );
}

#[test]
fn old_spellings_mean_todays_keys() {
    let place = Place::new();
    let old = "check --method dpcl --memory-scheme rm --set updates_per_sample=2 --set dpcl.mi_pass=clean";
    let new = "check --method dpcl --memory-scheme balanced --updates 2 --set dpcl.disagreement_pass=clean";
    assert_eq!(place.say(old).done().stdout, place.say(new).done().stdout);
    let both = place.say("check --set dpcl.mi_pass=clean --set dpcl.disagreement_pass=train").done().stdout;
    assert!(!both.contains("mi_pass"), "later assignments win: {both}");
}

#[test]
fn every_preset_can_be_checked() {
    let place = Place::new();
    let json = place.say("list presets --format json").done().stdout;
    let presets: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    for preset in presets {
        let name = preset["name"].as_str().unwrap();
        let answer = place.say(&format!("check {name}"));
        // Without data the configuration itself must still be right.
        assert!(answer.code == 0 || answer.stderr.contains("data found"), "{name}: {}", answer.whole());
    }
}

#[test]
fn a_preset_is_copied_out_once() {
    let place = Place::new();
    place.say("presets copy default").done();
    assert_eq!(place.read("default.toml"), place.say("presets show default").done().stdout);
    let again = place.say("presets copy default");
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("is there already"), "{}", again.stderr);
}

#[test]
fn a_check_prints_a_configuration_that_settles_on_itself() {
    let place = Place::new();
    let answer = place.say("check --method er --classes 4 --tasks 2 --updates 0.5 --width 4").done();
    insta::assert_snapshot!("check-summary", answer.stderr);
    place.write("checked.toml", &answer.stdout);
    let again = place.say("check checked.toml").done();
    assert_eq!(again.stdout, answer.stdout);
}

#[test]
fn a_value_that_was_called_otherwise_is_taken_everywhere() {
    let place = Place::new();
    place.write("old.toml", "method = \"er\"\nmemory_scheme = \"rm\"\n");
    for asked in ["--method er --memory-scheme rm", "--method er --set memory_scheme=rm", "old.toml"] {
        let checked = place.say(&format!("check {asked}")).done().stdout;
        assert!(checked.contains("memory_scheme = \"balanced\""), "{asked}: {checked}");
    }
}

#[test]
fn flags_of_the_i_blurry_family_mean_the_same_keys() {
    let place = Place::new();
    let ours = "check --method er --dataset fashion-mini --tasks 5 --scenario i-blurry --n 50 --m 10 --seeds 3 \
                --memory 50 --model resnet34 --updates 2 --batch 8 --eval-period 40";
    let theirs = "check --mode er --dataset fashion-mini --n_tasks 5 --n 50 --m 10 --rnd_seed 3 --memory_size 50 \
                  --model_name resnet34 --online_iter 2 --batchsize 8 --eval_period 40";
    let (ours, theirs) = (place.say(ours).done(), place.say(theirs).done());
    assert_eq!(ours.stdout, theirs.stdout);
    assert!(ours.stdout.contains("scenario = \"i-blurry\""));
}

#[test]
fn files_flags_and_assignments_win_in_that_order() {
    let place = Place::new();
    place.write("mine.toml", "method = \"er\"\nmemory = 10\nbatch = 8\nlr = 0.5\n");
    let checked = place.say("check mine.toml --memory 20 --set lr=0.25 --set memory=30").done().stdout;
    let checked: toml::Table = checked.parse().unwrap();
    assert_eq!(checked["batch"].as_integer(), Some(8));
    assert_eq!(checked["memory"].as_integer(), Some(30));
    assert_eq!(checked["lr"].as_float(), Some(0.25));
}

#[test]
fn a_stream_is_exported_and_read_back() {
    let place = Place::new();
    let flags = "--scenario blurry --m 20 --tasks 2 --per-class 10 --seeds 1..2";
    let files = place.say(&format!("split export --out splits {flags}")).done().stdout;
    assert_eq!(files.lines().count(), 6, "two tasks and a test list for each of two seeds: {files}");
    assert!(place.has("splits/fashion-mini_split2_n0_m20_rand1_task0.json"), "{files}");
    let read = place.say(&format!("split check splits {flags}")).done().stdout;
    insta::assert_snapshot!("split-check", read);
}

#[test]
fn inspecting_prints_a_histogram_and_writes_a_sheet() {
    let place = Place::new();
    let answer = place.say("data inspect fashion-mini --output sheet.png").done();
    insta::assert_snapshot!("inspect", answer.stdout);
    let bytes = std::fs::read(place.path().join("sheet.png")).unwrap();
    assert_eq!(&bytes[1..4], b"PNG");
    let json = place.say("data inspect fashion-mini --output sheet.png --format json").done().stdout;
    let facts: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(facts["train"], 2500);
}
