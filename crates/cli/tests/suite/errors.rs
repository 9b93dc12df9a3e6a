//! What is said when something is wrong: the problem, the cause, a way out, and the right exit code.

use crate::support::{Answer, Place};

/// Code and text without the lists of names, which grow with every method and preset.
fn told(answer: &Answer) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut listing = false;
    for line in answer.whole().lines() {
        if listing && line.starts_with("      ") {
            continue;
        }
        let list = ["known names: ", "valid keys: ", "hint: presets: ", "[possible values: "];
        let begin = list.iter().find_map(|words| Some(line.find(words)? + words.len()));
        listing = begin.is_some();
        lines.push(begin.map_or_else(|| line.to_owned(), |begin| format!("{}…", &line[..begin])));
    }
    lines.join("\n")
}

/// Each case is a name and the arguments; the snapshot holds code and text.
#[test]
fn wrong_usage_is_explained() {
    let place = Place::new();
    place.write("typo.toml", "memmory = 100\n");
    place.write("grid-key.toml", "seeds = \"3..1\"\n");
    place.write("wrong-type.toml", "batch = \"many\"\n");
    place.write("not-toml.toml", "method = \"er\"\nbatch = = 2\n");
    place.write("labelled.toml", "label = \"mine\"\n");
    for (name, arguments) in [
        ("no-such-config", "run nothing.toml"),
        ("unknown-key", "run typo.toml"),
        ("unknown-key-set", "run --set learning_rate=1"),
        ("unknown-method-key", "run --method er --set er.heads=3"),
        ("bad-seeds-in-file", "check grid-key.toml"),
        ("bad-seeds-flag", "run --seeds 3..1"),
        ("wrong-type", "check wrong-type.toml"),
        ("not-toml", "check not-toml.toml"),
        ("unknown-method", "run --method err"),
        ("unknown-method-set", "run --set method=err"),
        ("unknown-dataset", "run --dataset cifar"),
        ("unknown-scenario", "run --scenario blury"),
        ("odd-batch", "check --batch 7"),
        ("m-without-scenario", "run --m 10"),
        ("set-without-value", "run --set lr"),
        ("shared-label", "run labelled.toml --method er,finetune"),
        ("name-is-a-path", "run --name a/b"),
        ("unknown-preset", "presets show big"),
        ("unknown-list", "list method"),
    ] {
        let answer = place.say(arguments);
        assert_eq!(answer.code, 2, "{name}: {}", answer.whole());
        insta::assert_snapshot!(format!("error-{name}"), told(&answer));
    }
    assert!(!place.has("runs"), "wrong usage must leave nothing behind");
}

#[test]
fn wrong_names_are_answered_with_the_right_ones() {
    let place = Place::new();
    for (arguments, names) in [
        ("run --set memmory=3", &["did you mean `memory`?", "lr_reset_on_new_class", "seeds", "jobs"][..]),
        ("run --method dpcl --set dpcl.sigma=3", &["did you mean `dpcl.sigma_a`?", "dpcl.heads"]),
        ("run --set candidates=3", &["did you mean `mir.candidates`?"]),
        ("run --method dpcl --set dpc.heads=3", &["did you mean `dpcl.heads`?", "valid keys"]),
        ("run --method er --set er.heads=3", &["did you mean `dpcl.heads`?", "`er` has no keys of its own"]),
        ("run --method dpcl --set dpcl.noise=papr", &["did you mean `paper`?"]),
        ("run --set superclass_order=seded", &["did you mean `seeded`?"]),
        ("run --set rate=exp-rest", &["did you mean `exp-reset`?"]),
        ("run --set dataset=cifr10", &["did you mean `cifar10`?"]),
        ("run smal", &["did you mean `small`?"]),
        ("presets show defalt", &["did you mean `default`?"]),
        ("bench cost --method finetun", &["did you mean `finetune`?"]),
        ("data fetch cifr10", &["did you mean `cifar10`?"]),
        ("data inspect cifr10", &["did you mean `cifar10`?"]),
        ("run --set method=err", &["er", "finetune"]),
        ("run --set rate=linear", &["exp-reset", "constant"]),
        ("run --set memory_scheme=fifo", &["reservoir"]),
        ("run --set model=resnet", &["slim", "resnet34-imagenet"]),
        ("run --dataset cifar", &["cifar10", "cifar100", "folder"]),
        ("run nothing", &["default", "small-iblurry", "paper-imagenet100"]),
    ] {
        let answer = place.say(arguments);
        assert_eq!(answer.code, 2, "{}", answer.whole());
        for name in names {
            assert!(answer.talk().contains(name), "{arguments}: {name}: {}", answer.stderr);
        }
    }
}

#[test]
fn errors_speak_of_numbers_not_of_types() {
    let place = Place::new();
    for (arguments, words) in [
        ("check --memory x", "must be a whole number"),
        ("check --memory=-1", "must be a whole number"),
        ("check --updates x", "must be a number"),
        ("run --jobs many", "must be a whole number"),
        ("bench step --batch x", "must be a whole number"),
    ] {
        let answer = place.say(arguments);
        assert_eq!(answer.code, 2, "{}", answer.whole());
        assert!(answer.talk().contains(words), "{arguments}: {}", answer.stderr);
        for word in ["usize", "u64", "f64", "digit", "literal", "string"] {
            assert!(!answer.stderr.contains(word), "{arguments}: {}", answer.stderr);
        }
    }
}

#[test]
fn what_cannot_be_done_is_explained() {
    let place = Place::new();
    for (name, arguments) in [
        ("no-data", "run small --method er --threads 1"),
        ("no-data-check", "check small --method er"),
        ("no-records", "report nowhere"),
        ("inspect-nothing", "data inspect nothing"),
        ("no-split", "split check splits --classes 4 --tasks 2"),
        ("fetch-imagenet", "data fetch imagenet100"),
    ] {
        let answer = place.say(arguments);
        assert_ne!(answer.code, 0, "{name}: {}", answer.whole());
        insta::assert_snapshot!(format!("error-{name}"), told(&answer));
    }
}

#[test]
fn a_stream_that_cannot_be_laid_out_is_wrong_usage() {
    let place = Place::new();
    let answer = place.say("run --method er --classes 4 --tasks 5");
    assert_eq!(answer.code, 2, "{}", answer.whole());
    assert!(answer.talk().contains("configuration key `tasks`"), "{}", answer.stderr);
    assert_eq!(answer.stdout, "");
}

#[test]
fn a_download_without_a_network_says_what_to_do_by_hand() {
    let place = Place::new();
    let output =
        place.program().args(["data", "fetch", "mnist"]).env("DPCL_MIRROR", "http://127.0.0.1:1").output();
    let answer = Answer::of(&output.unwrap());
    assert_eq!(answer.code, 1, "{}", answer.whole());
    assert_eq!(answer.stdout, "");
    assert!(
        answer.talk().contains("hint: run the same command again to continue, or download"),
        "{}",
        answer.stderr
    );
}

#[test]
fn an_instruction_set_that_is_none_is_refused() {
    let place = Place::new();
    let answer =
        Answer::of(&place.program().args(["list", "methods"]).env("DPCL_ISA", "mmx").output().unwrap());
    assert_eq!(answer.code, 2, "{}", answer.whole());
    assert!(answer.talk().contains("unknown instruction set `mmx`"), "{}", answer.stderr);
    assert!(answer.talk().contains("hint: unset DPCL_ISA"), "{}", answer.stderr);
}
