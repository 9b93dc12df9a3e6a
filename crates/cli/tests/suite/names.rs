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
fn a_list_of_nothing_says_what_can_be_listed() {
    let place = Place::new();
    let listed = place.say("list").done().stdout;
    for line in listed.lines().filter(|line| !line.starts_with(' ')) {
        place.say(&format!("list {}", line.split(' ').next().unwrap())).done();
    }
    insta::assert_snapshot!("list", listed);
}

#[test]
fn a_list_of_keys_says_who_reads_each() {
    let listed = Place::new().say("list keys").done().stdout;
    let text = listed.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "lr_decay Factor on the learning rate after each step (exp-reset) a number, above 0; default: 0.9999; read by the rate exp-reset",
        "mir.candidates Stored samples looked at in each step a whole number, at least 1; default: 50; read by mir",
        "batch Training batch: half stream, half memory a whole number, at least 2; default: the data set's; --batch; read by every method",
    ] {
        assert!(text.contains(words), "{words}: {listed}");
    }
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

#[test]
fn keys_that_nothing_reads_are_told() {
    let place = Place::new();
    place.write("mine.toml", "method = \"er\"\nsuperclass_order = \"a\"\n[dpcl]\nheads = 3\n");
    for (arguments, words) in [
        (
            "--method er --scenario disjoint --n 30",
            "`n` changes nothing here: the scenario is `disjoint`, and only `i-blurry`",
        ),
        ("--method finetune --memory 30", "`memory` changes nothing here: these runs have no memory"),
        ("--method er --set dpcl.heads=3", "`dpcl.heads` changes nothing here"),
        ("mine.toml", "`superclass_order` changes nothing here"),
        ("mine.toml", "`dpcl.heads` changes nothing here"),
        ("--method er --rate constant --set lr_decay=0.9", "`lr_decay` changes nothing here"),
    ] {
        let checked = place.say(&format!("check {arguments}")).done();
        assert!(checked.talk().contains(words), "{arguments}: {}", checked.stderr);
    }
    for arguments in [
        "",
        "--method er --n 100",
        "--method er --n 30 --m 5",
        "--method finetune,er --memory 30",
        "--method er,dpcl --set dpcl.heads=3",
        "small-iblurry --dataset fashion-mini --classes 10",
        "--n 0,50 --m 10",
    ] {
        let checked = place.say(&format!("check {arguments}")).done();
        assert!(!checked.stderr.contains("changes nothing"), "{arguments}: {}", checked.stderr);
    }
}

#[test]
fn samples_that_a_stream_leaves_out_are_told() {
    let place = Place::new();
    let rm = "--method er --scenario rm-blurry --m 30 --tasks 3 --per-class 10";
    let told = place.say(&format!("check {rm}")).done().talk();
    let (_, told) = told.split_once("rm-blurry: ").unwrap();
    let counts: Vec<usize> = told.split(' ').filter_map(|word| word.parse().ok()).take(2).collect();
    assert!(counts[0] > 0 && counts[1] > 0, "{told}");
    let run = place.say(&format!("run {rm} --width 4 --memory 10 --updates 0.1 --eval-period 0")).done();
    let words =
        format!("note: rm-blurry: {} samples never arrive, {} arrive more than once", counts[0], counts[1]);
    assert!(run.talk().contains(&words), "{words}: {}", run.stderr);
    let classes = place.say("check --method er --n 0 --m 10 --tasks 4").done().talk();
    assert!(classes.contains("blurry: 2 classes left out, so that 4 tasks have equal numbers"), "{classes}");
    assert!(!place.say("check --method er").done().talk().contains("never arrive"));
}
