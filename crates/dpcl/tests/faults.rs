//! What happens when something is wrong or at the edge: images that cannot be read, labels out of range, memories and
//! classes as small as they get, streams shorter than a buffer. Each has one defined answer.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::{fs, path::Path, sync::atomic::AtomicBool};

use dpcl::{
    Config, Error, Image, Learner, Run, Shape, Watch,
    data::{self, OnBadImage},
    memory::SCHEMES,
    methods::METHODS,
};
use dpcl_report::record::{BadImages, EvaluationKind, Event, Part, RunResult};

const SIDE: usize = 16;

/// A little of everything that decides how long a run takes.
const QUICK: &str =
    "model = 'slim'\nwidth = 4\nupdates = 1.0\nautoaugment = 'none'\nthreads = 1\neval_period = 0\n";

fn plain(side: usize, value: u8) -> Image {
    Image { height: side, width: side, pixels: vec![value; side * side * 3].into() }
}

/// Two classes, dark and light, of `train` training images and three test images each; sizes differ.
fn folder(root: &Path, train: u8) {
    for (class, value) in [("dark", 20), ("light", 200)] {
        for (half, count) in [("train", train), ("test", 3)] {
            let folder = root.join(half).join(class);
            fs::create_dir_all(&folder).unwrap();
            for copy in 0..count {
                let image = plain(12 + 4 * usize::from(copy % 3), value + copy);
                fs::write(folder.join(format!("{copy:02}.png")), data::png(&image)).unwrap();
            }
        }
    }
}

fn folder_config(root: &Path, more: &str) -> Config {
    let text = format!("{QUICK}dataset = 'folder'\nsize = {SIDE}\ntasks = 2\nmemory = 8\nbatch = 4\n{more}");
    let mut config = Config::from_toml(&text).unwrap();
    config.settings.data_dir = Some(root.to_owned());
    config
}

/// A run with what it wrote down; `during` is called with every event before it is kept.
fn record(config: &Config, mut during: impl FnMut(&Event)) -> (Vec<Event>, dpcl::Result<RunResult>) {
    let run = Run::open(config).unwrap();
    let mut events = Vec::new();
    let mut keep = |event: &Event| {
        during(event);
        events.push(event.clone());
        Ok(())
    };
    let mut watch = Watch { event: &mut keep, progress: &mut |_| {}, stop: &AtomicBool::new(false) };
    let result = run.execute(&mut watch);
    (events, result)
}

/// The whole chain of causes, as the command line shows it.
fn told(error: &dyn std::error::Error) -> String {
    let source = error.source().map(|source| format!(": {}", told(source))).unwrap_or_default();
    format!("{error}{source}")
}

fn built_in(more: &str) -> Config {
    Config::from_toml(&format!("{QUICK}{more}")).unwrap()
}

fn finished(config: &Config) -> (Vec<Event>, RunResult) {
    let (events, result) = record(config, |_| {});
    (events, result.unwrap())
}

#[test]
fn a_damaged_image_ends_the_run_with_its_file_and_place() {
    let root = tempfile::tempdir().unwrap();
    folder(root.path(), 6);
    // Given statistics let the damage go unnoticed until the image's turn comes.
    let config = folder_config(root.path(), "");
    let run = Run::open(&config).unwrap();
    let position = run.schedule().tasks[0].samples[3];
    let name = run.dataset().train.images.file_name(position).unwrap();
    let mut config = run.config().clone();
    config.settings.on_bad_image = OnBadImage::Fail;
    let file = root.path().join(&name);
    let (_, result) = record(&config, |event| {
        if matches!(event, Event::Start { .. }) {
            fs::write(&file, b"\x89PNG, but not for long").unwrap();
        }
    });
    let error = result.unwrap_err();
    let text = told(&error);
    assert!(
        text.starts_with(&format!("stream sample 4 (training image {position}) cannot be read: ")),
        "{text}"
    );
    assert!(text.contains(&name), "{text}");
    assert!(error.hint().unwrap().contains("--on-bad-image skip"), "{error:?}");
}

#[test]
fn a_file_that_disappears_is_named_and_a_skipped_one_is_counted() {
    let root = tempfile::tempdir().unwrap();
    folder(root.path(), 6);
    let config = folder_config(root.path(), "");
    let run = Run::open(&config).unwrap();
    let gone: Vec<(usize, String)> = [run.schedule().tasks[0].samples[1], run.schedule().tasks[1].samples[5]]
        .map(|position| (position, run.dataset().train.images.file_name(position).unwrap()))
        .into();
    let remove = |event: &Event| {
        if matches!(event, Event::Start { .. }) {
            gone.iter().for_each(|(_, name)| fs::remove_file(root.path().join(name)).unwrap());
        }
    };

    let mut skipping = run.config().clone();
    skipping.settings.on_bad_image = OnBadImage::Skip;
    let (events, result) = record(&skipping, remove);
    let result = result.unwrap();
    assert_eq!(result.bad_images, BadImages { stream: 2, test: 0 });
    assert_eq!(result.samples, 10, "what is left out is not learned");
    let noted: Vec<(u64, usize, Option<String>)> = events
        .iter()
        .filter_map(|event| match event {
            Event::BadImage { samples, part: Part::Stream, position, file } => {
                Some((*samples, *position, file.clone()))
            }
            _ => None,
        })
        .collect();
    let expected = [(1, gone[0].0, Some(gone[0].1.clone())), (10, gone[1].0, Some(gone[1].1.clone()))];
    assert_eq!(noted, expected);

    // Not listed any more, so the same run on what is left is a run without faults.
    let (_, result) = finished(&folder_config(root.path(), ""));
    assert_eq!((result.samples, result.bad_images), (10, BadImages::default()));
}

#[test]
fn a_skipped_image_leaves_the_rest_of_the_stream_as_it_was() {
    let root = tempfile::tempdir().unwrap();
    folder(root.path(), 6);
    let opened = Run::open(&folder_config(root.path(), "on_bad_image = 'skip'\n")).unwrap();
    let last = opened.schedule().tasks[1].samples[5];
    let name = opened.dataset().train.images.file_name(last).unwrap();
    let whole = record(opened.config(), |_| {}).0;
    fs::write(root.path().join(name), b"not an image").unwrap();
    let (cut, result) = record(opened.config(), |_| {});
    assert_eq!(result.unwrap().samples, 11);
    let same = whole.iter().zip(&cut).take_while(|(one, other)| one == other).count();
    assert!(
        matches!(cut[same], Event::BadImage { samples: 11, .. }),
        "records differ first at {:?}",
        cut[same]
    );
}

#[test]
fn a_bad_test_image_is_named_or_left_out_of_the_totals() {
    let root = tempfile::tempdir().unwrap();
    folder(root.path(), 4);
    fs::write(root.path().join("test/light/01.png"), b"gone bad").unwrap();
    let (_, result) = record(&folder_config(root.path(), ""), |_| {});
    let text = told(&result.unwrap_err());
    assert!(
        text.starts_with("test image 4 cannot be read: ") && text.contains("test/light/01.png"),
        "{text}"
    );

    let mut config = folder_config(root.path(), "on_bad_image = 'skip'");
    config.settings.eval_period = Some(2);
    let (events, result) = finished(&config);
    assert_eq!(result.bad_images, BadImages { stream: 0, test: 1 }, "told once, however often evaluated");
    let Some(Event::Evaluation { classes, kind, .. }) =
        events.iter().rev().find(|event| matches!(event, Event::Evaluation { .. }))
    else {
        panic!("{events:?}")
    };
    assert_eq!(*kind, EvaluationKind::TaskEnd(1));
    assert_eq!(classes.iter().map(|count| count.total).collect::<Vec<_>>(), [3, 2]);
}

#[test]
fn statistics_are_measured_on_what_can_be_read() {
    let root = tempfile::tempdir().unwrap();
    folder(root.path(), 2);
    fs::write(root.path().join("train/dark/00.png"), b"").unwrap();
    assert!(data::open("folder", Some(root.path()), Some(SIDE)).is_err());
    let opened = data::open_with("folder", Some(root.path()), Some(SIDE), OnBadImage::Skip).unwrap();
    let mean = (21.0 + 200.0 + 201.0) / 3.0 / 255.0;
    assert!((opened.mean[0] - mean).abs() < 1e-6, "{:?}", opened.mean);

    for name in ["dark/01.png", "light/00.png", "light/01.png"] {
        fs::write(root.path().join("train").join(name), b"").unwrap();
    }
    let error = data::open_with("folder", Some(root.path()), Some(SIDE), OnBadImage::Skip).unwrap_err();
    assert!(error.to_string().contains("train/dark/00.png"), "nothing to measure: {error}");
}

#[test]
fn a_stream_without_one_readable_image_has_no_result() {
    let root = tempfile::tempdir().unwrap();
    folder(root.path(), 2);
    let config = folder_config(root.path(), "on_bad_image = 'skip'\n");
    let (_, result) = record(&config, |event| {
        if matches!(event, Event::Start { .. }) {
            fs::remove_dir_all(root.path().join("train")).unwrap();
        }
    });
    let text = result.unwrap_err().to_string();
    assert!(text.ends_with("none of the 4 images of the stream can be read"), "{text}");
}

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
            let (events, result) = finished(&built_in(&text));
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
        let mut memory = dpcl::memory::Memory::new(scheme.name, 1, 5).unwrap();
        for class in (0..40).chain(0..40) {
            let sample = dpcl::memory::Sample { image: plain(8, class as u8), class };
            memory.offer(&sample, 0.5);
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
    assert!(error.to_string().ends_with("train/none: has no PNG or JPEG images"), "{error}");
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
        assert!(zero, "{}: one class leaves nothing to be wrong about", info.name);
    }
}

#[test]
fn what_never_fills_a_buffer_is_not_learned_but_flushing_learns_it() {
    for info in METHODS {
        // Three samples and buffers of eight: the stream is shorter than one.
        let text = format!("method = '{}'\nclasses = 3\ntasks = 1\nper_class = 1\nbatch = 16", info.name);
        let (events, result) = finished(&built_in(&text));
        assert_eq!((result.samples, result.updates), (3, 0), "{}", info.name);
        assert!(result.metrics.a_last.is_some(), "{}: classes that arrived are evaluated", info.name);
        assert!(events.iter().all(|event| !matches!(event, Event::Progress { .. })), "{}", info.name);

        // Eleven samples: one buffer of eight, and three that stay behind.
        let text = format!("method = '{}'\nclasses = 1\ntasks = 1\nper_class = 11\nbatch = 16", info.name);
        assert_eq!(finished(&built_in(&text)).1.updates, 8, "{}", info.name);

        let mut learner =
            Learner::new(&built_in(&format!("method = '{}'\nbatch = 16", info.name)), shape()).unwrap();
        for value in 0..3_u8 {
            learner.observe(&plain(SIDE, value * 90), usize::from(value)).unwrap();
        }
        assert_eq!(learner.updates(), 0, "{}", info.name);
        assert_eq!(learner.flush().unwrap().len(), 3, "{}", info.name);
        assert!(learner.flush().unwrap().is_empty(), "{}: nothing waits any more", info.name);
    }
}

#[test]
fn the_smallest_batch_without_a_memory_stays_finite() {
    for info in METHODS {
        let text =
            format!("method = '{}'\nclasses = 2\ntasks = 2\nper_class = 6\nbatch = 2\nmemory = 0", info.name);
        let (_, result) = finished(&built_in(&text));
        assert_eq!(result.updates, 12, "{}", info.name);
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
