//! Records of runs: each of their files, read and shown in every format.

use std::{fs, path::Path};

use dpcl::Config;
use dpcl_report::{
    Report,
    record::{CONFIG_FILE, EVENTS_FILE, RESULT_FILE},
};

use super::Target;

const EVENTS: &str = r#"{"event":"start","format":1,"classes":["a","b"],"task_classes":[[0],[1]],"task_samples":[4,4]}
{"event":"new_class","samples":1,"class":0}
{"event":"progress","samples":2,"updates":6,"loss":0.6931,"rate":0.0003,"counters":{"accepts":3.0}}
{"event":"evaluation","samples":4,"updates":12,"kind":"period","classes":[{"class":0,"correct":3,"total":4}]}
{"event":"task_end","task":0,"samples":4}
{"event":"evaluation","samples":4,"updates":12,"kind":{"task_end":0},"classes":[{"class":0,"correct":3,"total":4}]}
{"event":"memory","samples":4,"slots":[[0,2]]}
{"event":"online","samples":4,"correct":1}
{"event":"new_class","samples":5,"class":1}
{"event":"bad_image","samples":5,"part":"stream","position":7,"file":"train/b/3.png"}
{"event":"progress","samples":8,"updates":24,"loss":null,"rate":0.0002}
{"event":"task_end","task":1,"samples":8}
{"event":"evaluation","samples":8,"updates":24,"kind":{"task_end":1},"classes":[{"class":0,"correct":2,"total":4},{"class":1,"correct":4,"total":4}]}
{"event":"memory","samples":8,"slots":[[0,1],[1,1]]}
{"event":"glimpse","png":"iVBORw0KGgo="}
"#;

const RESULT: &str = r#"{"format":1,"method":"er","label":"er","dataset":"toy","scenario":"disjoint","model":"slim","seed":1,"metrics":{"acc":0.75,"fm":0.25,"fm_signed":0.25,"fm_max":0.25,"a_auc":0.75,"a_avg":0.75,"a_last":0.75,"f_last":0.25,"online_acc":0.25},"updates":24,"samples":8,"bad_images":{"stream":1,"test":0},"train_seconds":1.5,"eval_seconds":0.5,"peak_memory_bytes":100000000,"isa":"avx2","threads":1,"knowledge":"none","version":"0.1.0"}"#;

fn write(folder: &Path) {
    fs::write(folder.join(CONFIG_FILE), Config::default().check().unwrap().to_toml()).unwrap();
    fs::write(folder.join(EVENTS_FILE), EVENTS).unwrap();
    fs::write(folder.join(RESULT_FILE), RESULT).unwrap();
}

/// Reads a folder and shows what is in it in every way there is.
fn show(folder: &Path) -> bool {
    let Ok(record) = dpcl_report::read::read(folder) else { return false };
    let report = Report::new(vec![record]);
    for text in [report.terminal(80, false), report.markdown(), report.latex(), report.csv(), report.html()] {
        assert!(!text.is_empty());
    }
    serde_json::from_str::<serde_json::Value>(&report.json()).unwrap();
    true
}

fn reader(file: &'static str) -> (tempfile::TempDir, impl FnMut(&[u8]) -> bool) {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("er-seed1");
    fs::create_dir(&folder).unwrap();
    write(&folder);
    (root, move |bytes: &[u8]| {
        fs::write(folder.join(file), bytes).unwrap();
        show(&folder)
    })
}

#[test]
fn events_of_a_finished_run() {
    let (_root, read) = reader(EVENTS_FILE);
    Target::new("events", vec![EVENTS.into()]).run(read);
}

#[test]
fn events_of_a_run_cut_off() {
    let (root, read) = reader(EVENTS_FILE);
    fs::remove_file(root.path().join("er-seed1").join(RESULT_FILE)).unwrap();
    Target::new("events-cut-off", vec![EVENTS.into(), EVENTS[..700].into()]).run(read);
}

#[test]
fn results() {
    let (_root, read) = reader(RESULT_FILE);
    Target::new("result", vec![RESULT.into()]).run(read);
}

#[test]
fn configurations_of_records() {
    let (_root, read) = reader(CONFIG_FILE);
    let seeds = vec![Config::default().check().unwrap().to_toml().into_bytes(), b"seed = 1\n".to_vec()];
    Target::new("record-config", seeds).run(read);
}
