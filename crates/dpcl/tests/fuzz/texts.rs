//! Text that people write: configurations and split files.

use std::fs;

use dpcl::{Config, data, stream};

use super::Target;

#[test]
fn configurations() {
    let whole = Config::default().check().unwrap().to_toml();
    let own = "method = 'dpcl'\nlabel = 'mine'\nmean = [0.5, 0.5, 0.5]\nsplit = 'a/b'\nupdates = 0.25\n\
               classes = 10\nsuperclass_order = 'B'\n[dpcl]\nkappa = 0.2\npfi = true\n";
    let seeds = [&whole, own, "[er]\n", "seed = 1\nscenario = 'i-blurry'\nn = 50\nm = 10.5\n"];
    let seeds = seeds.map(|text| text.as_bytes().to_vec()).to_vec();
    Target::new("config", seeds).run(|bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else { return false };
        let Ok(checked) = Config::from_toml(text).and_then(|config| config.check()) else { return false };
        // What was accepted can be written down and means the same when read again.
        let again = Config::from_toml(&checked.to_toml()).unwrap().check().unwrap();
        assert!(again.to_table() == checked.to_table(), "{text}");
        true
    });
}

#[test]
fn split_files() {
    let root = tempfile::tempdir().unwrap();
    let record = |label: u8| [vec![label], vec![0; 3072]].concat();
    let records: Vec<u8> = (0..10).chain(0..10).flat_map(record).collect();
    fs::write(root.path().join("data_batch_1.bin"), &records).unwrap();
    fs::write(root.path().join("test_batch.bin"), &records).unwrap();
    let set = data::open("cifar10", Some(root.path()), None).unwrap();
    let settings = stream::StreamSettings {
        tasks: 2,
        split: Some(root.path().to_owned()),
        ..stream::StreamSettings::default()
    };
    let entry = |class: usize, number: usize| {
        let name = &set.classes[class];
        let file = format!("train/{name}/{number:04}.png");
        serde_json::json!({ "file_name": file, "klass": name, "label": class })
    };
    let task = |classes: [usize; 3]| {
        let entries = classes.iter().flat_map(|&class| [entry(class, 1), entry(class, 2)]);
        serde_json::to_vec(&entries.collect::<Vec<_>>()).unwrap()
    };
    let name = |number| stream::task_file_name(&set.name, &settings, 1, number);
    fs::write(root.path().join(name(1)), task([3, 4, 5])).unwrap();
    let first = root.path().join(name(0));
    let parts = stream::cut(&set.train.labels, set.classes.len(), &settings).unwrap();
    Target::new("split", vec![task([0, 1, 2]), task([0, 2, 9]), b"[]".to_vec()]).run(|bytes| {
        fs::write(&first, bytes).unwrap();
        stream::schedule(&set, &parts, &settings, 1).is_ok_and(|schedule| {
            let samples = schedule.tasks.iter().flat_map(|task| &task.samples);
            assert!(samples.into_iter().all(|&position| position < set.train.labels.len()));
            true
        })
    });
}
