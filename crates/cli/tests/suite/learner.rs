//! Saved learners: asked with `predict`, looked into with `inspect`.

use std::{collections::BTreeSet, fs};

use crate::support::Place;
use dpcl::{
    Config, Image, Label, Learner, Prediction, Shape,
    checkpoint::Checkpoint,
    data::{self, Dataset},
};
use serde_json::Value;

const SIDE: usize = 32;

/// A learner of three classes of the built-in images, saved as `some.ckpt`.
fn saved(place: &Place) -> (Learner, Dataset) {
    saved_under(place, "reservoir")
}

/// The same with a memory under this scheme.
fn saved_under(place: &Place, scheme: &str) -> (Learner, Dataset) {
    let text =
        "method = 'dpcl'\nmodel = 'slim'\nwidth = 4\nmemory = 10\nupdates = 1.0\nbatch = 4\nthreads = 1";
    let text = &format!("{text}\nmemory_scheme = '{scheme}'");
    let shape = Shape { channels: 3, height: SIDE, width: SIDE };
    let mut learner = Learner::new(&Config::from_toml(text).unwrap(), shape).unwrap();
    let set = data::open("fashion-mini", None, None).unwrap();
    let chosen = (0..set.train.labels.len()).filter(|&position| set.train.labels[position] < 3).step_by(31);
    for position in chosen.take(20) {
        learner.observe(&set.train.images.image(position).unwrap(), set.train.labels[position]).unwrap();
    }
    let checkpoint = Checkpoint { classes: set.classes.clone(), ..Checkpoint::of(&learner) };
    checkpoint.write(&place.path().join("some.ckpt")).unwrap();
    (learner, set)
}

/// One image beside a folder with two more, one of another size.
fn pictures(place: &Place, set: &Dataset) -> [&'static str; 3] {
    fs::create_dir_all(place.path().join("photos/deep")).unwrap();
    let names = ["one.png", "photos/b.png", "photos/deep/a.png"];
    let wide = Image { height: 20, width: 50, pixels: vec![90; 3000].into() };
    let images = [set.test.images.image(0).unwrap(), set.test.images.image(60).unwrap(), wide];
    for (name, image) in names.iter().zip(images) {
        fs::write(place.path().join(name), data::png(&image)).unwrap();
    }
    names
}

#[test]
fn every_image_gets_the_learners_answer_by_the_class_s_name() {
    let place = Place::new();
    let (learner, set) = saved(&place);
    let names = pictures(&place, &set);
    let images: Vec<Image> =
        names.iter().map(|name| data::read_image(&place.path().join(name), SIDE).unwrap()).collect();
    let line = |(name, answer): (&&str, Prediction)| {
        let class = &set.classes[answer.label.to_string().parse::<usize>().unwrap()];
        let own = answer.probabilities.iter().find(|(label, _)| *label == answer.label).unwrap().1;
        format!("{name},{class},{own},{},{}", answer.disagreement, answer.entropy)
    };
    let expected: Vec<String> = names.iter().zip(learner.predict_all(&images).unwrap()).map(line).collect();
    let answer = place.say("predict --checkpoint some.ckpt one.png photos").done();
    let mut lines = answer.stdout.lines();
    assert_eq!(lines.next(), Some("file,class,probability,disagreement,entropy"));
    assert_eq!(lines.collect::<Vec<_>>(), expected);

    let answer = place.say("predict --checkpoint some.ckpt photos --format json").done();
    let objects: Vec<Value> = answer.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 2);
    assert_eq!(objects[1]["file"], names[2]);
    let class = |label: &Label| set.classes[label.number().unwrap()].as_str();
    let met: BTreeSet<&str> = learner.labels().iter().map(class).collect();
    for object in &objects {
        assert!(set.classes.iter().any(|class| object["class"] == class.as_str()), "{object}");
        assert!((0.0..=1.0).contains(&object["probability"].as_f64().unwrap()), "{object}");
        assert!(object["disagreement"].is_f64() && object["entropy"].is_f64(), "{object}");
        let probabilities = object["probabilities"].as_object().unwrap();
        assert_eq!(probabilities.keys().map(String::as_str).collect::<BTreeSet<_>>(), met, "{object}");
        let values: Vec<f64> = probabilities.values().map(|value| value.as_f64().unwrap()).collect();
        assert!((values.iter().sum::<f64>() - 1.0).abs() < 1e-4, "{object}");
        let own = &probabilities[object["class"].as_str().unwrap()];
        assert_eq!(own, &object["probability"], "{object}");
        assert!(values.iter().all(|&value| value <= own.as_f64().unwrap()), "{object}");
    }
}

#[test]
fn a_bad_image_is_named_or_skipped() {
    let place = Place::new();
    let (_, set) = saved(&place);
    pictures(&place, &set);
    place.write("photos/c.png", "not an image");
    let answer = place.say("predict --checkpoint some.ckpt one.png photos");
    assert_eq!(answer.code, 1, "{}", answer.whole());
    let talk = answer.talk();
    assert_eq!(answer.stdout.lines().count(), 4, "the others are answered: {}", answer.stdout);
    let told = "1 image cannot be read: photos/c.png: is not a PNG, JPEG, WebP, BMP or GIF image";
    assert!(talk.contains(told), "{talk}");
    assert!(talk.contains("hint:") && talk.contains("--on-bad-image skip"), "{talk}");

    let answer = place.say("predict --checkpoint some.ckpt one.png photos --on-bad-image skip").done();
    assert_eq!(answer.stdout.lines().count(), 4);
    let talk = answer.talk();
    assert!(talk.contains("skipped: photos/c.png: is not a"), "{talk}");
    assert!(talk.contains("3 of 4 images could be read"), "{talk}");
    let answer = place.say("predict --checkpoint some.ckpt absent.png one.png photos/c.png");
    assert_eq!((answer.code, answer.stdout.lines().count()), (1, 2), "{}", answer.whole());
    assert!(answer.talk().contains("2 images cannot be read: cannot open absent.png"), "{}", answer.stderr);
    let answer = place.say("predict --checkpoint some.ckpt photos/c.png --on-bad-image skip");
    assert_eq!(answer.code, 1, "nothing was answered: {}", answer.whole());
}

#[test]
fn what_is_no_checkpoint_or_no_image_is_explained() {
    let place = Place::new();
    saved(&place);
    place.write("text.ckpt", "this is a web page, not a checkpoint of any kind whatsoever");
    let whole = fs::read(place.path().join("some.ckpt")).unwrap();
    fs::write(place.path().join("half.ckpt"), &whole[..whole.len() / 2]).unwrap();
    fs::create_dir(place.path().join("empty")).unwrap();
    for (arguments, words) in [
        ("predict --checkpoint absent.ckpt one.png", "cannot read absent.ckpt"),
        ("predict --checkpoint text.ckpt one.png", "text.ckpt is not a checkpoint"),
        ("inspect text.ckpt", "text.ckpt is not a checkpoint"),
        ("inspect half.ckpt", "half.ckpt is a damaged checkpoint"),
        ("predict --checkpoint some.ckpt absent.png", "cannot open absent.png"),
        ("predict --checkpoint some.ckpt empty", "empty: has no images"),
    ] {
        let answer = place.say(arguments);
        assert_eq!(answer.code, 1, "{}", answer.whole());
        assert_eq!(answer.stdout, "", "{arguments}");
        assert!(
            answer.talk().replace(':', "").contains(&words.replace(':', "")),
            "{arguments}: {}",
            answer.stderr
        );
    }
}

#[test]
fn a_checkpoint_is_shown_for_people_and_for_programs() {
    let place = Place::new();
    let (learner, set) = saved(&place);
    let answer = place.say("inspect some.ckpt").done();
    for words in
        ["dpcl with slim, seed 1", "20 samples seen, 20 training steps taken", "images of 32 × 32 pixels"]
    {
        assert!(answer.stdout.contains(words), "{words}: {}", answer.stdout);
    }
    for class in &set.classes[..3] {
        assert!(answer.stdout.contains(class.as_str()), "{class}: {}", answer.stdout);
    }
    assert!(answer.stdout.contains("  width = 4\n"), "{}", answer.stdout);
    assert!(
        answer.stdout.contains("rate = ") && answer.stdout.contains("the rest: --all"),
        "{}",
        answer.stdout
    );
    assert!(answer.stdout.lines().count() < 50, "{}", answer.stdout);
    let all = place.say("inspect some.ckpt --all").done().stdout;
    for key in ["core.model.optimiser.counts.", "bn_momentum = 0.1", "[dpcl]"] {
        assert!(all.contains(key) && !answer.stdout.contains(key), "{key}: {}", answer.stdout);
    }

    let answer = place.say("inspect some.ckpt --format json --sheet memory.png").done();
    let facts: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!((&facts["samples"], &facts["updates"]), (&20.into(), &20.into()));
    let slots: u64 =
        facts["classes"].as_array().unwrap().iter().map(|class| class["slots"].as_u64().unwrap()).sum();
    assert_eq!(facts["memory"]["filled"], slots);
    assert_eq!(slots as usize, learner.memory().unwrap().slots().len());
    assert_eq!(facts["config"]["method"], "dpcl");
    assert!(facts["learning"].as_object().unwrap().keys().any(|key| key.contains("rate")), "{facts}");
    let sheet = data::read_image(&place.path().join("memory.png"), 64).unwrap();
    assert!(sheet.pixels.iter().any(|&value| value != 128), "the sheet shows something");
}

#[test]
fn histories_are_held_against_a_clean_pass_when_asked_for() {
    let place = Place::new();
    saved(&place);
    let answer = place.say("inspect some.ckpt --history");
    assert_eq!(answer.code, 2, "{}", answer.whole());
    assert!(answer.talk().contains("no disagreement on a stored sample was measured"), "{}", answer.stderr);

    let (learner, _) = saved_under(&place, "pim");
    let histories = learner.check_histories().unwrap();
    let shown = place.say("inspect some.ckpt --history").done().stdout;
    assert!(shown.contains("rank correlation of disagreement on a clean pass"), "{shown}");
    assert!(shown.contains(&format!("histories of {} stored samples", histories.samples)), "{shown}");
    let facts = place.say("inspect some.ckpt --history --format json").done().stdout;
    let facts: Value = serde_json::from_str(&facts).unwrap();
    assert_eq!(facts["histories"], serde_json::to_value(&histories).unwrap());
    let facts: Value =
        serde_json::from_str(&place.say("inspect some.ckpt --format json").done().stdout).unwrap();
    assert!(facts.get("histories").is_none());
}

#[test]
fn a_learner_without_a_memory_has_no_sheet() {
    let place = Place::new();
    let config = Config::from_toml("method = 'finetune'\nmodel = 'slim'\nwidth = 2\nthreads = 1").unwrap();
    let learner = Learner::new(&config, Shape { channels: 3, height: 16, width: 16 }).unwrap();
    learner.save(place.path().join("new.ckpt")).unwrap();
    let answer = place.say("inspect new.ckpt --sheet sheet.png");
    assert_eq!(answer.code, 2, "{}", answer.whole());
    assert!(answer.talk().contains("the memory holds no image to show"), "{}", answer.stderr);
    assert!(!place.has("sheet.png"));
    fs::write(
        place.path().join("a.png"),
        data::png(&Image { height: 1, width: 1, pixels: vec![0; 3].into() }),
    )
    .unwrap();
    let answer = place.say("predict --checkpoint new.ckpt a.png");
    assert_eq!(answer.code, 1, "{}", answer.whole());
    assert!(answer.talk().contains("nothing has been learned yet"), "{}", answer.stderr);
}

#[test]
fn a_run_leaves_a_checkpoint_that_knows_its_classes() {
    let place = Place::new();
    place
        .say("run --method er --classes 2 --tasks 1 --per-class 8 --width 4 --updates 1 --memory 8 --name tiny")
        .done();
    let folder = place.path().join("runs/tiny/er-seed1/checkpoint");
    let last = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    let set = data::open("fashion-mini", None, None).unwrap();
    fs::write(place.path().join("a.png"), data::png(&set.test.images.image(0).unwrap())).unwrap();
    let answer = place.call(["predict", "--checkpoint", last.to_str().unwrap(), "a.png"]).done();
    let class = answer.stdout.lines().nth(1).unwrap().split(',').nth(1).unwrap().to_owned();
    assert!(set.classes.contains(&class), "{}", answer.stdout);
}
