//! What happens at the edges: labels out of range, memories and classes as small as they get, streams shorter than a
//! buffer, images of mixed size. Each has one defined answer.

use std::fs;

use crate::small::{SIDE, built_in, finished, folder, folder_config, plain};
use dpcl::{
    Error, Image, Learner, Run, Shape, data,
    method::{Memory, Sample},
    methods::METHODS,
    names::SCHEMES,
};
use dpcl_report::record::Event;

#[test]
fn labels_out_of_range_are_refused_with_the_record_and_a_way_out() {
    let root = tempfile::tempdir().unwrap();
    let record = |label: u8| [vec![label], vec![0; 3072]].concat();
    let good = [record(0), record(1)].concat();
    fs::write(root.path().join("data_batch_1.bin"), [good.clone(), record(10)].concat()).unwrap();
    fs::write(root.path().join("test_batch.bin"), good).unwrap();
    let error = data::open("cifar10", Some(root.path()), None).unwrap_err();
    assert!(error.to_string().ends_with("record 2 has label 10, but there are only 10"), "{error}");
    assert!(error.hint().is_some());
    // A learner's own labels have no range: any number or name is a class.
    let mut learner = Learner::new(&built_in("batch = 2\nmemory = 2"), shape()).unwrap();
    for label in [i64::MIN, -1, i64::MAX] {
        learner.observe(&plain(SIDE, 9), label).unwrap();
    }
    assert_eq!(learner.labels().len(), 3);
}

/// Methods of the common protocol: samples wait for their half of a batch and earn steps. The others set samples aside (`bic`), learn
/// from the memory alone (`clib`) or put learning off (`gdumb`, `joint`).
const BUFFERED: [&str; 7] = ["dpcl", "er", "er-cpr", "der++", "mir", "ewc++", "finetune"];

fn shape() -> Shape {
    Shape { channels: 3, height: SIDE, width: SIDE }
}

#[test]
fn memories_smaller_than_the_number_of_classes_work_down_to_none() {
    for info in METHODS {
        for memory in [0, 1, 3] {
            let text = format!(
                "method = '{}'\nmemory = {memory}\nclasses = 4\ntasks = 2\nper_class = 8\nbatch = 4",
                info.name
            );
            let config = built_in(&text);
            if let Err(error) = config.check() {
                assert!(matches!(&error, Error::BadKey { key, .. } if key == "memory"), "{error:?}");
                assert_eq!(memory, 0, "{}: {error}", info.name);
                continue;
            }
            let (events, result) = finished(&config);
            assert_eq!(result.samples, 32, "{}", info.name);
            for event in &events {
                if let Event::Memory { slots, .. } = event {
                    let filled: usize = slots.iter().map(|(_, count)| count).sum();
                    assert!(filled <= memory, "{} with {memory} slots holds {filled}", info.name);
                }
            }
        }
    }
}

#[test]
fn every_scheme_keeps_to_one_slot_for_many_classes() {
    for scheme in SCHEMES {
        let mut memory = Memory::new(scheme.name, 1, 5).unwrap();
        for class in (0..40).chain(0..40) {
            let sample = Sample::new(plain(8, class as u8), class);
            memory.offer(&sample, Some(0.5));
            assert!(memory.slots().len() <= 1, "{}", scheme.name);
        }
        assert!(memory.draw(8).len() <= 1, "{}", scheme.name);
    }
}

#[test]
fn a_class_with_one_sample_is_a_class() {
    let root = tempfile::tempdir().unwrap();
    folder(root.path(), 5);
    for copy in 1..5 {
        fs::remove_file(root.path().join(format!("train/dark/{copy:02}.png"))).unwrap();
    }
    let (events, result) = finished(&folder_config(root.path(), ""));
    assert_eq!(result.samples, 6);
    let met = events.iter().filter(|event| matches!(event, Event::NewClass { .. })).count();
    assert_eq!(met, 2);
    let (_, result) = finished(&built_in("classes = 3\ntasks = 3\nper_class = 1\nbatch = 2"));
    assert_eq!((result.samples, result.updates), (3, 3));
}

#[test]
fn an_empty_class_is_refused_by_name_or_by_key() {
    let root = tempfile::tempdir().unwrap();
    folder(root.path(), 2);
    for half in ["train", "test"] {
        fs::create_dir(root.path().join(half).join("none")).unwrap();
    }
    let error = Run::open(&folder_config(root.path(), "")).map(|_| ()).unwrap_err();
    assert!(error.to_string().ends_with("train/none: has no images"), "{error}");
    assert!(error.hint().unwrap().contains("add images of this class"), "{error:?}");
    let error = Run::open(&built_in("per_class = 0")).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("`per_class`: must be at least 1"), "{error}");
    let error = Run::open(&built_in("holdout = 250")).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("`holdout`: leaves no training sample of class"), "{error}");
}

#[test]
fn one_class_alone_is_learned_and_always_right() {
    for info in METHODS {
        let text = format!("method = '{}'\nclasses = 1\ntasks = 1\nper_class = 16\nbatch = 4", info.name);
        let (events, result) = finished(&built_in(&text));
        assert_eq!(result.metrics.a_last, Some(1.0), "{}", info.name);
        let zero = events.iter().all(|event| match event {
            Event::Progress { loss, .. } => loss.abs() < 1e-5,
            _ => true,
        });
        // Stored logits can be missed by a network that knows one class only.
        assert!(zero || info.name == "der++", "{}: one class leaves nothing to be wrong about", info.name);
    }
}

#[test]
fn what_never_fills_a_buffer_is_not_learned_but_flushing_learns_it() {
    for name in BUFFERED {
        // Three samples and buffers of eight: the stream is shorter than one.
        let text = format!("method = '{name}'\nclasses = 3\ntasks = 1\nper_class = 1\nbatch = 16");
        let (events, result) = finished(&built_in(&text));
        assert_eq!((result.samples, result.updates), (3, 0), "{name}");
        assert!(result.metrics.a_last.is_some(), "{name}: classes that arrived are evaluated");
        assert!(events.iter().all(|event| !matches!(event, Event::Progress { .. })), "{}", name);

        // Eleven samples: one buffer of eight, and three that stay behind.
        let text = format!("method = '{name}'\nclasses = 1\ntasks = 1\nper_class = 11\nbatch = 16");
        assert_eq!(finished(&built_in(&text)).1.updates, 8, "{name}");

        let mut learner =
            Learner::new(&built_in(&format!("method = '{name}'\nbatch = 16")), shape()).unwrap();
        for value in 0..3_u8 {
            learner.observe(&plain(SIDE, value * 90), usize::from(value)).unwrap();
        }
        assert_eq!(learner.updates(), 0, "{name}");
        assert_eq!(learner.flush().unwrap().len(), 3, "{name}");
        assert!(learner.flush().unwrap().is_empty(), "{name}: nothing waits any more");
    }
}

#[test]
fn the_smallest_batch_without_a_memory_stays_finite() {
    for name in BUFFERED {
        let text = format!("method = '{name}'\nclasses = 2\ntasks = 2\nper_class = 6\nbatch = 2\nmemory = 0");
        let (_, result) = finished(&built_in(&text));
        assert_eq!(result.updates, 12, "{name}");
    }
}

#[test]
fn images_of_mixed_size_are_scaled_in_folders_and_refused_by_learners() {
    let root = tempfile::tempdir().unwrap();
    folder(root.path(), 3);
    let set = data::open("folder", Some(root.path()), Some(SIDE)).unwrap();
    for position in 0..set.train.labels.len() {
        let image = set.train.images.image(position).unwrap();
        assert_eq!((image.height, image.width), (SIDE, SIDE));
    }

    let mut learner = Learner::new(&built_in("batch = 2"), shape()).unwrap();
    learner.observe(&plain(SIDE, 30), "a").unwrap();
    let before = learner.state();
    let wrong = [
        plain(SIDE + 4, 1),
        Image { height: SIDE, width: SIDE + 1, ..plain(SIDE, 1) },
        Image { pixels: vec![0; 5].into(), ..plain(SIDE, 1) },
        Image { height: usize::MAX, width: 2, ..plain(SIDE, 1) },
    ];
    for image in &wrong {
        let error = learner.observe(image, "b").unwrap_err();
        assert!(matches!(error, Error::WrongShape { .. }), "{error:?}");
        assert!(error.hint().unwrap().contains("resize the image"), "{error:?}");
        assert!(learner.predict(image).is_err());
    }
    assert!(learner.state() == before, "a refused image leaves no trace, nor does its label");
}
