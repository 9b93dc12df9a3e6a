//! Whole grids on the embedded images, as small as they get: records, continuing, refusing, repeating.

use crate::support::{Answer, Place};

/// A run of about a second.
const TINY: &str = "--classes 4 --tasks 2 --per-class 16 --width 4 --updates 1 --memory 20 --eval-period 16";

fn run(place: &Place, rest: &str) -> Answer {
    place.say(&format!("run {TINY} {rest}"))
}

#[test]
fn a_grid_is_recorded_compared_and_continued() {
    let place = Place::new();
    let answer = run(&place, "--method finetune,er --seeds 1..2 --name tiny").done();
    for title in ["finetune-seed1", "finetune-seed2", "er-seed1", "er-seed2"] {
        for file in ["config.toml", "events.jsonl", "result.json"] {
            assert!(place.has(&format!("runs/tiny/{title}/{file}")), "{title}/{file}");
        }
        assert!(answer.talk().contains(&format!("{title}: ACC ")), "{}", answer.stderr);
    }
    assert!(answer.talk().contains("; 4 of 4 runs ended"), "{}", answer.stderr);
    assert!(place.read("runs/tiny/report.html").contains("<svg"));
    for word in ["er", "finetune", "±", "acc", "fm", "a_auc", "updates/s", "seconds", "peak memory"] {
        assert!(answer.stdout.contains(word), "{word} is not in\n{}", answer.stdout);
    }
    assert!(answer.talk().contains("what to try next"), "{}", answer.stderr);

    let result: serde_json::Value =
        serde_json::from_str(&place.read("runs/tiny/er-seed2/result.json")).unwrap();
    for (key, value) in [
        ("method", "er"),
        ("label", "er"),
        ("dataset", "fashion-mini"),
        ("scenario", "disjoint"),
        ("model", "resnet18"),
    ] {
        assert_eq!(result[key], value, "{key}");
    }
    assert_eq!(
        (&result["seed"], &result["samples"], &result["updates"]),
        (&2.into(), &64.into(), &64.into())
    );
    for key in ["train_seconds", "eval_seconds", "peak_memory_bytes", "isa", "format"] {
        assert!(!result[key].is_null(), "{key}");
    }
    assert!(result["parameters"]["network"].as_u64() > Some(0));
    let metrics = ["acc", "fm", "fm_signed", "fm_max", "a_auc", "a_avg", "a_last", "f_last", "ece"];
    for metric in metrics.into_iter().chain(["aurc_confidence"]) {
        assert!(result["metrics"][metric].is_f64(), "{metric}");
    }
    assert!(result["metrics"]["online_acc"].is_null());
    assert!(result["metrics"]["aurc_disagreement"].is_null(), "one head cannot disagree");
    let config = place.read("runs/tiny/er-seed2/config.toml");
    assert!(config.starts_with("# command: dpcl run --classes 4 "), "{config}");

    let events = place.read("runs/tiny/er-seed1/events.jsonl");
    let answer = run(&place, "--method finetune,er --seeds 1..3 --name tiny").done();
    assert_eq!(answer.talk().matches("finished earlier and kept").count(), 4, "{}", answer.stderr);
    assert!(place.has("runs/tiny/er-seed3/result.json"));
    assert_eq!(place.read("runs/tiny/er-seed1/events.jsonl"), events);

    let refused = run(&place, "--method er --name tiny --set memory=10");
    assert_eq!(refused.code, 2);
    assert!(refused.talk().contains("`memory` is 20 there and 10 here"), "{}", refused.stderr);
    assert!(refused.talk().contains("hint: keep both"), "{}", refused.stderr);
    assert_eq!(place.read("runs/tiny/er-seed1/events.jsonl"), events);

    reports_show_the_records(&place);
}

fn reports_show_the_records(place: &Place) {
    let table = place.say("report runs").done();
    assert!(table.stdout.contains('±'), "{}", table.stdout);
    assert!(place.has("runs/report.html"));
    for (format, ending, mark) in [
        ("markdown", "md", "| "),
        ("latex", "tex", "\\begin{tabular}"),
        ("csv", "csv", "acc"),
        ("json", "json", "{"),
        ("html", "html", "<!"),
    ] {
        let shown = place.say(&format!("report runs/tiny --format {format}")).done();
        assert!(shown.stdout.contains(mark), "{format}: {}", shown.stdout);
        assert_eq!(shown.stderr, "", "{format}");
        let file = place.say(&format!("report runs/tiny --output shown.{ending}")).done();
        assert_eq!(file.stdout, "");
        assert_eq!(place.read(&format!("shown.{ending}")), shown.stdout);
    }
}

#[test]
fn one_seed_makes_one_record_whatever_the_threads() {
    let place = Place::new();
    run(&place, "--method er --online --name first --threads 1").done();
    run(&place, "--method er --online --name second --threads 1").done();
    run(&place, "--method er --online --name wide --threads 2").done();
    let events = |name: &str| place.read(&format!("runs/{name}/er-seed1/events.jsonl"));
    assert_eq!(events("first"), events("second"));
    assert_eq!(events("first"), events("wide"));
    let threads = |name: &str| {
        let result: serde_json::Value =
            serde_json::from_str(&place.read(&format!("runs/{name}/er-seed1/result.json"))).unwrap();
        assert!(result["metrics"]["online_acc"].is_f64());
        result["threads"].as_u64()
    };
    assert_eq!((threads("first"), threads("wide")), (Some(1), Some(2)));
}

#[test]
fn an_exported_stream_runs_as_the_generated_one() {
    let place = Place::new();
    place.say("split export --out splits --classes 4 --tasks 2 --per-class 16").done();
    run(&place, "--method er --name drawn").done();
    run(&place, "--method er --name read --split splits").done();
    let events = |name: &str| place.read(&format!("runs/{name}/er-seed1/events.jsonl"));
    assert_eq!(events("drawn"), events("read"));
}

#[test]
fn configurations_with_labels_share_a_table_and_a_failing_run_stops_no_other() {
    let place = Place::new();
    let keys = "method = \"er\"\nclasses = 4\ntasks = 2\nper_class = 16\nwidth = 4\nupdates = 1\n";
    place.write("some.toml", &format!("label = \"some\"\nmemory = 20\n{keys}"));
    place.write("none.toml", &format!("label = \"none\"\nmemory = 0\n{keys}"));
    place.write("wild.toml", &format!("label = \"wild\"\nlr = 1e30\n{keys}"));
    let answer = place.say("run some.toml wild.toml none.toml --name both --out records");
    assert_eq!(answer.code, 1, "{}", answer.whole());
    for row in ["some", "none"] {
        assert!(place.has(&format!("records/both/{row}-seed1/result.json")), "{}", answer.stderr);
        assert!(answer.stdout.lines().any(|line| line.starts_with(row)), "{}", answer.stdout);
    }
    assert!(answer.talk().contains("error: wild-seed1: the loss became"), "{}", answer.stderr);
    assert!(answer.talk().contains("hint: lower `lr`"), "{}", answer.stderr);
    assert!(place.read("records/both/wild-seed1/error.txt").starts_with("error: the loss became"));
}

#[test]
fn a_preset_or_file_of_one_method_is_compared_like_a_method() {
    let place = Place::new();
    place.write("mine.toml", "method = \"er\"\nlr = 0.001\nmemory = 7\n");
    run(&place, "--method er,dpcl,dpcl-literal,mine.toml --set dpcl.heads=2 --name readings").done();
    let key = |title: &str, key: &str| {
        let config: toml::Table =
            place.read(&format!("runs/readings/{title}-seed1/config.toml")).parse().unwrap();
        let value = key.split('.').fold(toml::Value::Table(config), |value, part| value[part].clone());
        value.to_string()
    };
    assert_eq!(key("er", "lr"), "0.0003");
    assert_eq!(key("mine", "lr"), "0.001");
    assert_eq!((key("mine", "method"), key("mine", "classes")), ("\"er\"".into(), "4".into()));
    assert_eq!(key("mine", "memory"), "20", "the command line has the last word");
    assert_eq!((key("dpcl", "dpcl.noise"), key("dpcl", "rate")), ("\"nfm\"".into(), "\"constant\"".into()));
    let letter = (key("dpcl-literal", "dpcl.noise"), key("dpcl-literal", "rate"));
    assert_eq!(letter, ("\"paper\"".into(), "\"pima\"".into()));
    assert_eq!((key("dpcl", "dpcl.heads"), key("dpcl-literal", "dpcl.heads")), ("2".into(), "2".into()));
}

#[test]
fn the_command_line_overrules_what_stands_for_a_method() {
    let place = Place::new();
    let says = |keys: &str, flags: &str, line: &str| {
        place.write("mine.toml", &format!("method = \"er\"\n{keys}\n"));
        let shown = place.say(&format!("check --method mine.toml {flags}")).done().stdout;
        shown.lines().any(|shown| shown.starts_with(line))
    };
    assert!(says("model = \"resnet18\"", "--width 8", "width = 8"));
    assert!(says("model = \"resnet18\"", "--model slim --width 8", "width = 8"));
    assert!(says("updates_per_sample = 2.0", "--updates 5", "updates = 5.0"));
    assert!(!says("width = 8", "--model slim", "width"), "a network named above comes with its own width");
    assert!(says("scenario = \"disjoint\"", "--n 50 --m 10", "scenario = \"i-blurry\""));
}

#[test]
fn several_configurations_with_the_same_variants_keep_apart() {
    let place = Place::new();
    place.write("a.toml", "name = \"x\"\nmemory = 20\n");
    place.write("b.toml", "name = \"x\"\nmemory = 30\n");
    let shown = place.say("check a.toml b.toml --method er,dpcl-literal").done();
    for title in ["a-er-seed1", "a-dpcl-literal-seed1", "b-er-seed1", "b-dpcl-literal-seed1"] {
        assert!(shown.whole().contains(title), "{}", shown.whole());
    }
    place.write("wrong.toml", "method = \"er\"\nlr = -1.0\n");
    let refused = place.say("check --method er,wrong.toml");
    assert_eq!(refused.code, 2, "{}", refused.whole());
    assert!(refused.talk().contains("wrong.toml"), "{}", refused.stderr);
}
