//! Folders of one's own images, as somebody meets the program who has nothing else.

use std::{
    fs,
    io::Write as _,
    process::{Command, Stdio},
};

use crate::support::{Answer, Place};
use dpcl::{Image, data};
use serde_json::Value;

/// As small as a run gets.
const TINY: &str =
    "--method er --model slim --width 4 --size 16 --memory 12 --set autoaugment=none --threads 1";

fn picture(place: &Place, file: &str, [width, height]: [usize; 2], value: u8) {
    let path = place.path().join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let image = Image { height, width, pixels: vec![value; height * width * 3].into() };
    fs::write(path, data::png(&image)).unwrap();
}

/// So many pictures of a class right in a folder, without halves.
fn class(place: &Place, folder: &str, value: u8, count: u8) {
    for number in 0..count {
        picture(place, &format!("{folder}/{number:02}.png"), [20, 14 + usize::from(number)], value + number);
    }
}

/// Two classes without halves.
fn photos(place: &Place) {
    class(place, "photos/dark", 10, 10);
    class(place, "photos/light", 200, 10);
}

fn run(place: &Place, arguments: &str) -> Answer {
    let mut command = format!("run {arguments} {TINY}");
    for (flag, value) in [("--updates", 1), ("--batch", 4)] {
        if !arguments.contains(flag) {
            command.push_str(&format!(" {flag} {value}"));
        }
    }
    place.say(&command)
}

/// The events of a run of a kind.
fn events(place: &Place, run: &str, kind: &str) -> Vec<Value> {
    let lines = place.read(&format!("runs/{run}/events.jsonl"));
    let all = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|event| event["event"] == kind).collect()
}

#[test]
fn a_folder_of_photos_is_learned_and_one_more_class_is_taught() {
    let place = Place::new();
    photos(&place);
    let answer = run(&place, "photos/").done();
    let talk = answer.talk();
    assert!(talk.contains("the last 2 of each class are kept for testing"), "{talk}");
    assert!(place.read("runs/photos/er-seed1/config.toml").contains("tasks = 2\n"), "{}", answer.whole());
    assert!(answer.stderr.lines().all(|line| line.chars().count() <= 80), "{}", answer.stderr);
    run(&place, "photos/").done();

    class(&place, "extra/grey", 100, 10);
    let answer = run(&place, "--from runs/photos/er-seed1 --dataset folder --data-dir extra").done();
    assert!(place.read("runs/further/er-seed1/config.toml").contains("tasks = 1\n"), "{}", answer.whole());
    assert!(answer.talk().contains("not tested, though known: "), "{}", answer.stderr);
    assert!(answer.talk().contains("FM –"), "nothing is known of what was forgotten: {}", answer.stderr);
    assert!(answer.stdout.contains("not tested on what it knew before: "), "{}", answer.stdout);
    assert!(answer.stdout.contains("dark") && answer.stdout.contains("light"), "{}", answer.stdout);
}

#[test]
fn what_was_known_before_is_tested_where_its_images_are_named() {
    let place = Place::new();
    photos(&place);
    run(&place, "photos").done();
    class(&place, "extra/grey", 100, 10);
    let further = "--from runs/photos/er-seed1 --dataset folder --data-dir photos --data-dir extra";
    let answer = run(&place, further).done();
    assert!(!answer.talk().contains("not tested"), "{}", answer.whole());
    assert!(!answer.talk().contains("FM –"), "{}", answer.stderr);
    let evaluations = events(&place, "further/er-seed1", "evaluation");
    let totals = |evaluation: &Value| {
        let counts = evaluation["classes"].as_array().unwrap();
        counts.iter().map(|count| count["total"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let first = evaluations.first().unwrap();
    assert_eq!((&first["samples"], totals(first)), (&0.into(), vec![2, 2]), "before anything is learned");
    assert_eq!(totals(evaluations.last().unwrap()), [2, 2, 2]);
    let start = &events(&place, "further/er-seed1", "start")[0];
    assert_eq!(start["task_samples"], serde_json::json!([0, 8]));
    assert_eq!(start["classes"], serde_json::json!(["grey", "dark", "light"]));

    let answer = run(&place, "--dataset folder --data-dir photos --data-dir extra --name both");
    assert_eq!(answer.code, 2, "{}", answer.whole());
    assert!(answer.talk().contains("`--from`"), "{}", answer.stderr);
}

#[test]
fn every_bad_file_is_named_and_a_way_on() {
    let place = Place::new();
    photos(&place);
    for file in ["photos/dark/03.png", "photos/light/05.png"] {
        place.write(file, "no image");
    }
    for arguments in [format!("run photos {TINY}"), "data inspect photos".to_owned()] {
        let answer = place.say(&arguments);
        assert_eq!(answer.code, 1, "{arguments}: {}", answer.whole());
        let talk = answer.talk();
        for words in ["2 images cannot be read", "dark/03.png: ", "light/05.png: ", "--on-bad-image skip"] {
            assert!(talk.contains(words), "{arguments}: {words}: {}", answer.stderr);
        }
    }
    assert!(place.has("folder-photos.png"), "the sheet has the images that can be read");

    let answer = run(&place, "photos --on-bad-image skip").done();
    let talk = answer.talk();
    assert!(talk.contains("2 unreadable images: dark/03.png (") && talk.contains("light/05.png"), "{talk}");
    let whole = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(whole.contains("2 stream and 0 test images could not be read and were left out: "), "{whole}");
    assert!(whole.contains("dark/03.png") && whole.contains("light/05.png"), "{whole}");
}

#[test]
fn bad_test_images_are_named_together() {
    let place = Place::new();
    photos(&place);
    for file in ["photos/dark/09.png", "photos/dark/08.png"] {
        let whole = fs::read(place.path().join(file)).unwrap();
        fs::write(place.path().join(file), &whole[..whole.len() / 2]).unwrap();
    }
    let given = "--set mean=[0.5,0.5,0.5] --set std=[0.2,0.2,0.2]";
    let answer = run(&place, &format!("photos {given}"));
    assert_eq!(answer.code, 1, "{}", answer.whole());
    let talk = answer.talk();
    assert!(talk.contains("2 images cannot be read") && talk.contains("dark/08.png"), "{talk}");
    assert!(talk.contains("dark/09.png"), "{talk}");
}

#[test]
fn a_folder_s_pictures_are_told_as_they_are() {
    let place = Place::new();
    photos(&place);
    picture(&place, "photos/light/a.png", [300, 200], 9);
    place.write("photos/light/b.heic", "from a phone");
    place.write("photos/notes.txt", "by hand");
    let answer = place.say("data inspect photos").done();
    let whole = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "pictures of 20 × 14 to 300 × 200 pixels: 13 wide, 6 tall, 2 square",
        "served as 32 × 32, squashed",
        "passed over: 1 .heic, 1 .txt",
        "the last 2 of each class are kept for testing",
    ] {
        assert!(whole.contains(words), "{words}: {}", answer.stdout);
    }
    assert!(answer.stdout.lines().all(|line| line.chars().count() <= 80), "{}", answer.stdout);
    let answer = place.say("data inspect photos --format json --output other.png").done();
    let facts: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(facts["pictures"]["largest"], serde_json::json!([200, 300]));
    let answer = run(&place, "photos").done();
    assert!(answer.talk().contains("passed over: 1 .heic, 1 .txt"), "{}", answer.stderr);
}

#[test]
fn how_pictures_are_fitted_is_chosen_recorded_and_kept() {
    let place = Place::new();
    photos(&place);
    run(&place, "photos --fit pad --name pad").done();
    run(&place, "photos --name squash").done();
    assert!(place.read("runs/pad/er-seed1/config.toml").contains("fit = \"pad\"\n"));
    assert!(place.read("runs/squash/er-seed1/config.toml").contains("fit = \"squash\"\n"));
    let result: Value = serde_json::from_str(&place.read("runs/pad/er-seed1/result.json")).unwrap();
    assert_eq!((&result["group"]["fit"], &result["absent"]["fit"]), (&"pad".into(), &"squash".into()));
    class(&place, "extra/grey", 100, 10);
    run(&place, "--from runs/pad/er-seed1 --dataset folder --data-dir extra").done();
    assert!(place.read("runs/further/er-seed1/config.toml").contains("fit = \"pad\"\n"));

    // A tall picture, light at its ends, dark in its middle: what a learner sees of it depends on how it is fitted.
    picture(&place, "tall.png", [16, 160], 20);
    let probability = |run: &str| {
        let answer = place.call(["predict", "--checkpoint", run, "tall.png"]).done();
        answer.stdout.lines().nth(1).unwrap().to_owned()
    };
    let (pad, again) = (probability("runs/pad/er-seed1"), probability("runs/pad"));
    assert_eq!(pad, again, "a run's folder, and that of its grid");
    let checkpoint = dpcl::checkpoint::Checkpoint::read(&newest(&place, "pad")).unwrap();
    let padded = data::read_fitted(&place.path().join("tall.png"), 16, data::Fit::Pad).unwrap();
    let own = checkpoint.learner().unwrap().predict(&padded).unwrap();
    assert!(pad.contains(&own.entropy.to_string()), "{pad} and {own:?}");
}

/// The only checkpoint file that ends a run.
fn newest(place: &Place, name: &str) -> std::path::PathBuf {
    let folder = place.path().join(format!("runs/{name}/er-seed1/checkpoint"));
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.max_by_key(|path| path.file_stem().unwrap().to_str().unwrap().parse::<u64>().unwrap()).unwrap()
}

#[test]
fn data_without_tasks_are_learned_without() {
    let place = Place::new();
    photos(&place);
    let answer = run(&place, "photos --scenario shuffled").done();
    let start = &events(&place, "photos/er-seed1", "start")[0];
    assert_eq!(start["task_classes"].as_array().unwrap().len(), 1);
    assert!(place.read("runs/photos/er-seed1/config.toml").contains("tasks = 1\n"), "{}", answer.whole());
    let built_in =
        "run --method er --scenario shuffled --per-class 4 --width 4 --updates 1 --memory 8 --name built-in";
    place.say(built_in).done();
    assert!(place.say("list scenarios").done().stdout.contains("shuffled"));
}

#[test]
fn too_few_steps_and_images_never_learned_are_told() {
    let place = Place::new();
    photos(&place);
    class(&place, "photos/grey", 100, 11);
    let answer = run(&place, "photos --batch 8").done();
    let talk = answer.talk();
    assert!(talk.contains("25 images and --updates 1 make 8 training steps a class"), "{talk}");
    assert!(talk.contains("--updates 12"), "{talk}");
    let whole = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(whole.contains("did not learn its last image, which never filled half a batch"), "{whole}");
    let enough = run(&place, "photos --batch 8 --updates 30 --per-class 4 --name enough").done();
    assert!(!enough.talk().contains("steps a class"), "{}", enough.stderr);
    assert!(!enough.stdout.contains("did not learn its last"), "{}", enough.stdout);
}

#[test]
fn what_to_do_next_can_be_done() {
    let place = Place::new();
    photos(&place);
    let answer = run(&place, "photos").done();
    let line = answer.stderr.lines().find(|line| line.contains("predict --checkpoint")).unwrap();
    let path = line.split_whitespace().find(|word| word.ends_with(".ckpt")).unwrap();
    assert_eq!(place.path().join(path), newest(&place, "photos"));

    let mut command: Command = place.program();
    command.args(["predict", "--checkpoint", path, "-"]).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"photos/dark/01.png\n\nphotos/light\n").unwrap();
    let piped = Answer::of(&child.wait_with_output().unwrap()).done();
    assert_eq!(piped.stdout.lines().count(), 1 + 11);
    let direct = place.call(["predict", "--checkpoint", path, "photos/dark/01.png", "photos/light"]).done();
    assert_eq!(piped.stdout, direct.stdout);
    for line in direct.stdout.lines().skip(1) {
        assert_eq!(line.split(',').nth(3), Some(""), "one head has nobody to disagree with: {line}");
    }

    let answer = place.call(["predict", "--checkpoint", path, "photos", "--abstain-below", "1"]).done();
    assert!(
        answer.stdout.lines().skip(1).all(|line| line.split(',').nth(1) == Some("")),
        "{}",
        answer.stdout
    );
    let answer = place.call(["predict", "--checkpoint", path, "photos", "--abstain-below", "2"]);
    assert_eq!(answer.code, 2, "{}", answer.whole());
    assert!(place.say("predict --help").done().stdout.contains("ranks\nerrors best"));
}

#[test]
fn folders_that_mean_nothing_are_explained() {
    let place = Place::new();
    photos(&place);
    run(&place, "photos --seeds 1..2").done();
    for (arguments, code, words) in [
        ("run runs/photos/er-seed1", 2, "--resume runs/photos/er-seed1"),
        ("run runs", 1, "is no data set of a known kind"),
        ("predict --checkpoint runs/photos photos", 2, "name one of them: runs/photos/er-seed1, "),
        ("predict --checkpoint photos photos", 2, "photos holds no checkpoint"),
        ("inspect photos", 2, "photos holds no checkpoint"),
    ] {
        let answer = place.say(arguments);
        assert_eq!(answer.code, code, "{arguments}: {}", answer.whole());
        assert!(answer.talk().contains(words), "{arguments}: {}", answer.stderr);
    }
    place.say("inspect runs/photos/er-seed2").done();
}
