//! `dpcl reproduce` on embedded images: plans, runs, tables beside the paper's, figures, and everything that is refused.

use std::{
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use crate::support::{Answer, Place};

fn reproduce(place: &Place, rest: &str) -> Answer {
    place.say(&format!("reproduce {rest}"))
}

#[test]
fn everything_that_can_be_reproduced_is_listed() {
    let list = reproduce(&Place::new(), "list").done().stdout;
    for id in [
        "main",
        "setups",
        "complexity",
        "ablation",
        "splits",
        "blurriness",
        "hyperparameters",
        "resnet18",
        "memory",
        "rates",
        "dro",
        "architecture",
        "any-time",
        "t-sne",
        "landscape",
    ] {
        assert!(list.contains(&format!("{id}: ")), "{id} is not in\n{list}");
    }
    for word in ["CIFAR100-SC", "fs-dgpm", "dpcl-literal-no-bsc", "smoke", "i-Blurry (75, 10)"] {
        assert!(list.contains(word), "{word} is not in\n{list}");
    }
}

#[test]
fn a_plan_says_what_it_takes_and_starts_nothing() {
    let place = Place::new();
    let plan = reproduce(&place, "rates --scale smoke --seeds 1..2 --dry-run").done();
    // Two methods, two seeds; 8 classes of 12 images, one update each.
    assert!(plan.talk().contains("runs 4 "), "{}", plan.stderr);
    assert!(plan.talk().contains("updates 384 "), "{}", plan.stderr);
    for word in ["evaluations", "time about", "disk about", "reproduced/smoke"] {
        assert!(plan.talk().contains(word), "{word} is not in\n{}", plan.stderr);
    }
    assert!(!place.has("reproduced"));
}

#[test]
fn a_table_is_run_resumed_and_shown_beside_the_papers() {
    let place = Place::new();
    let first = reproduce(&place, "rates --scale smoke --seeds 1").done();
    assert!(first.stdout.contains("43.80 ± 0.34"), "{}", first.stdout);
    assert!(first.stdout.contains("ours, smoke"), "{}", first.stdout);
    assert!(first.stdout.contains("numbers themselves cannot"), "{}", first.stdout);
    let run = "reproduced/smoke/cifar100-5/dpcl-literal-clib-rate-seed1";
    let events = place.read(&format!("{run}/events.jsonl"));
    let result: serde_json::Value = serde_json::from_str(&place.read(&format!("{run}/result.json"))).unwrap();
    assert!(result["multiply_adds"].as_u64() > Some(1_000_000), "{result}");

    let again = reproduce(&place, "rates --scale smoke --seeds 1..2").done();
    assert_eq!(again.talk().matches("finished earlier and kept").count(), 2, "{}", again.stderr);
    assert_eq!(place.read(&format!("{run}/events.jsonl")), events);
    // Two seeds make pairs.
    assert!(
        again.stdout.contains("Seed by seed") && again.stdout.contains("95 % interval"),
        "{}",
        again.stdout
    );
    let status = reproduce(&place, "rates --scale smoke --seeds 1..3 --status").done();
    assert!(status.stdout.contains("6 runs: 4 done, 2 not begun"), "{}", status.stdout);
    assert!(status.stdout.contains("cifar100-5/dpcl-literal-seed3"), "{}", status.stdout);
    for file in ["rates.md", "rates.tex", "rates.html", "figures/rates-cifar100-any-time.svg"] {
        assert!(place.has(&format!("reproduced/smoke/{file}")), "{file}");
    }
    let latex = place.read("reproduced/smoke/rates.tex");
    assert!(latex.contains("\\toprule") && latex.contains("43.80 $\\pm$ 0.34"), "{latex}");
    let page = place.read("reproduced/smoke/rates.html");
    assert!(page.contains("<svg") && page.contains("45.27 ± 1.32") && !page.contains("<script"));
}

#[test]
fn figures_are_drawn_from_the_learners() {
    let place = Place::new();
    let answer = reproduce(&place, "landscape t-sne --scale smoke --methods er").done();
    assert!(answer.stdout.contains("after task 3"), "{}", answer.stdout);
    for file in ["landscape-after-task-1", "landscape-after-task-3", "landscape-after-task-5", "t-sne-er"] {
        let svg = place.read(&format!("reproduced/smoke/figures/{file}.svg"));
        assert!(svg.starts_with("<svg") && !svg.contains("NaN"), "{file}");
    }
    let scatter = place.read("reproduced/smoke/figures/t-sne-er.svg");
    assert!(scatter.matches("<circle").count() > 20, "{scatter}");
    let page = place.read("reproduced/smoke/paper.html");
    assert!(page.contains("t-SNE") && page.contains("after task 5"));
    // The picture repeats.
    reproduce(&place, "t-sne --scale smoke --methods er --status").done();
    assert_eq!(place.read("reproduced/smoke/figures/t-sne-er.svg"), scatter);
}

#[test]
fn what_cannot_be_reproduced_is_told_with_a_way_out() {
    let place = Place::new();
    let refused = |rest: &str, problem: &str, hint: &str| {
        let answer = reproduce(&place, rest);
        assert_eq!(answer.code, 2, "{rest}: {}", answer.stderr);
        let talk = answer.talk();
        assert!(talk.contains(problem) && talk.contains("hint: ") && talk.contains(hint), "{rest}: {talk}");
    };
    refused("main-table", "called `main-table`", "reproduce list");
    refused("main --scale small --data-dir nowhere --dry-run", "stream cifar100-5", "--columns");
    refused("main --scale smoke --methods nobody", "nothing is left", "--methods");
    refused("rates --scale smoke --cancel", "nothing to cancel", "--engine slurm");
    refused("rates --scale smoke --engine slurm --cancel", "nothing was submitted", "--scale");
    assert!(!place.has("reproduced"));

    let bare = Answer::of(
        &place
            .program()
            .env("PATH", "")
            .args(["reproduce", "rates", "--scale", "smoke", "--engine", "slurm"])
            .output()
            .unwrap(),
    );
    assert_eq!(bare.code, 2);
    assert!(bare.talk().contains("no `sbatch`") && bare.talk().contains("--engine local"), "{}", bare.stderr);
    assert!(!place.has("reproduced"));
}

#[test]
fn a_record_of_another_version_is_named() {
    let place = Place::new();
    let only = "rates --scale smoke --methods dpcl-literal";
    reproduce(&place, only).done();
    let path = "reproduced/smoke/cifar100-5/dpcl-literal-seed1/result.json";
    let newer = place.read(path).replacen("\"format\":1", "\"format\":99", 1).replacen(
        "\"format\": 1",
        "\"format\": 99",
        1,
    );
    place.write(path, &newer);
    let answer = reproduce(&place, only);
    assert_ne!(answer.code, 0);
    assert!(answer.talk().contains("format 99 is newer"), "{}", answer.stderr);
    assert!(answer.talk().contains("hint: update the program"), "{}", answer.stderr);
    assert_eq!(place.read(path), newer);
}

#[test]
fn a_cluster_gets_one_array_of_what_is_left() {
    let place = Place::new();
    reproduce(&place, "rates --scale smoke --methods CLIB").done();
    let options = "--engine slurm --time 1:00:00 --mem 2G --partition fast --sbatch=--account=vision --jobs 4 --grace 90";
    let answer = reproduce(&place, &format!("rates --scale smoke --seeds 1..2 {options} --dry-run")).done();
    for line in [
        "#SBATCH --array=0-2%4",
        "#SBATCH --time=1:00:00",
        "#SBATCH --mem=2G",
        "#SBATCH --partition=fast",
        "#SBATCH --account=vision",
        "#SBATCH --signal=B:USR1@90",
        "#SBATCH --requeue",
        "run-one --order",
    ] {
        assert!(answer.stdout.contains(line), "{line} is not in\n{}", answer.stdout);
    }
    assert!(!place.has("reproduced/smoke/cluster"));
}

#[cfg(unix)]
#[test]
fn a_run_killed_from_outside_is_explained_and_gone_on_with() {
    let place = Place::new();
    let command = "reproduce rates --scale smoke --methods dpcl-literal --checkpoint-every 1";
    let mut program = place.program();
    program.args(command.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = program.spawn().unwrap();
    let (parent, begin) = (child.id(), Instant::now());
    let mut killed = false;
    while !killed && begin.elapsed() < Duration::from_secs(120) {
        thread::sleep(Duration::from_millis(20));
        let begun = place.has("reproduced/smoke/cifar100-5/dpcl-literal-seed1/checkpoint");
        if begun && let Some(run) = child_of(parent) {
            killed = std::process::Command::new("kill").args(["-KILL", &run]).status().unwrap().success();
        }
    }
    let answer = Answer::of(&child.wait_with_output().unwrap());
    assert!(killed);
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    assert!(
        answer.talk().contains("lack of memory") && answer.talk().contains("--jobs"),
        "{}",
        answer.stderr
    );
    place.say(command).done();
    let other = Place::new();
    other.say(command).done();
    let events = |place: &Place| place.read("reproduced/smoke/cifar100-5/dpcl-literal-seed1/events.jsonl");
    assert_eq!(events(&place), events(&other));
}

/// The process that another has started.
#[cfg(unix)]
fn child_of(parent: u32) -> Option<String> {
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    children.split_whitespace().next().map(str::to_owned)
}
