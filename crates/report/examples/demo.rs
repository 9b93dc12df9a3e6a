//! Writes made-up records of a few methods into a folder, and their report beside them, to look at the page without
//! having run anything: `cargo run -p dpcl-report --example demo -- FOLDER [KIND]`, KIND being
//! `plain` (the default), `settings` (two of them) or `crowded` (many methods with long names, tasks and classes).

#[path = "../tests/suite/made_up/mod.rs"]
mod made_up;

use std::path::PathBuf;

use made_up::{Plan, write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let out = PathBuf::from(arguments.next().ok_or("give a folder to write to")?);
    let (plans_of, seeds) = match arguments.next().as_deref() {
        None | Some("plain") => (plans("disjoint"), 3),
        Some("settings") => ([plans("disjoint"), plans("i-blurry")].concat(), 3),
        Some("crowded") => (crowd(), 1),
        Some(other) => return Err(format!("there is no kind {other}").into()),
    };
    for plan in plans_of {
        for seed in 1..=seeds {
            write(&plan.record(seed), &out.join(plan.scenario));
        }
    }
    let broken = Plan { label: "broken", ..plans("disjoint").remove(1) };
    write(&broken.cut_record(1, 90, None), &out.join("disjoint"));
    write(&broken.cut_record(2, 40, Some("out of memory while growing the head")), &out.join("disjoint"));
    std::fs::write(out.join("report.html"), dpcl_report::load(std::slice::from_ref(&out))?.html())?;
    Ok(())
}

fn plans(scenario: &'static str) -> Vec<Plan> {
    let classes = [
        "apple",
        "aquarium fish",
        "baby",
        "bear",
        "beaver",
        "bed",
        "bee",
        "beetle",
        "bicycle",
        "bottle",
        "bowl",
        "boy",
        "bridge",
        "bus",
        "butterfly",
        "camel",
        "can",
        "castle",
        "caterpillar",
        "cattle",
    ];
    let plan = |label, peak, kept| Plan {
        classes: classes.map(str::to_owned).to_vec(),
        tasks: 5,
        samples_per_task: 1000,
        period: 100,
        memory: 400,
        scenario,
        ..Plan::small(label, peak, kept)
    };
    vec![
        Plan { slowness: 5.1, heads: 5, online: true, ..plan("dpcl", 0.93, 0.74) },
        Plan { slowness: 4.1, ..plan("er", 0.9, 0.5) },
        Plan { slowness: 6.3, ..plan("der++", 0.88, 0.61) },
        Plan { slowness: 5.2, knowledge: "task-ends", ..plan("bic", 0.84, 0.56) },
        Plan { slowness: 3.4, memory: 0, ..plan("finetune", 0.95, 0.0) },
    ]
}

fn crowd() -> Vec<Plan> {
    const NAMES: [&str; 17] = [
        "er",
        "ewc++",
        "der++",
        "bic",
        "mir",
        "clib",
        "er-cpr",
        "fs-dgpm",
        "dro",
        "oddl",
        "ctn",
        "ccll",
        "gdumb",
        "a-preset-with-a-remarkably-long-name",
        "finetune",
        "joint",
        "dpcl",
    ];
    let plan = |(place, label): (usize, &'static str)| Plan {
        classes: (0..100).map(|class| format!("class {class} <with> a \"long\" & odd name")).collect(),
        tasks: 20,
        samples_per_task: 500,
        period: 250,
        memory: 2000,
        knowledge: if label == "ctn" { "task-ids" } else { "none" },
        slowness: 2.0 + place as f64,
        ..Plan::small(label, 0.6 + 0.02 * place as f64, 0.05 * place as f64)
    };
    NAMES.into_iter().enumerate().map(plan).collect()
}
