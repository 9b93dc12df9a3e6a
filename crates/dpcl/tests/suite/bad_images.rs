//! Images that cannot be read when their turn comes: they end a run by name, or are skipped and counted.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::small::{SIDE, finished, folder, folder_config, record, told};
use dpcl::{
    Error, Run, Watch,
    checkpoint::Checkpoint,
    data::{self, OnBadImage},
    run::Moment,
};
use dpcl_report::record::{BadImages, EvaluationKind, Event, Part};

#[test]
fn a_damaged_image_ends_the_run_with_its_file_and_place() {
    let root = tempfile::tempdir().unwrap();
    folder(root.path(), 6);
    // Given statistics let the damage go unnoticed until the image's turn comes.
    let config = folder_config(root.path(), "");
    let run = Run::open(&config).unwrap();
    let position = run.schedule().tasks[0].samples[3];
    let name = run.dataset().train.images.file_name(position).unwrap();
    let mut config = run.setup().config();
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

    let mut skipping = run.setup().config();
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
    let whole = record(&opened.setup().config(), |_| {}).0;
    fs::write(root.path().join(name), b"not an image").unwrap();
    let (cut, result) = record(&opened.setup().config(), |_| {});
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
fn a_run_that_skipped_images_goes_on_where_it_stopped() {
    let root = tempfile::tempdir().unwrap();
    folder(root.path(), 8);
    let opened = Run::open(&folder_config(root.path(), "on_bad_image = 'skip'\n")).unwrap();
    let samples = &opened.schedule().tasks[0].samples;
    for position in [samples[1], samples[2]] {
        let name = opened.dataset().train.images.file_name(position).unwrap();
        fs::write(root.path().join(name), b"not an image").unwrap();
    }
    fs::write(root.path().join("test/dark/00.png"), b"not an image").unwrap();
    let (whole, result) = record(&opened.setup().config(), |_| {});
    assert_eq!(result.unwrap().bad_images, BadImages { stream: 2, test: 1 });

    // Stopped after the first task's end, when the test image is known to be bad as well.
    let stop = AtomicBool::new(false);
    let (mut log, mut events, mut kept) = (Vec::new(), Vec::new(), None);
    let mut write = |event: &Event| {
        log.extend(serde_json::to_vec(event).unwrap());
        log.push(b'\n');
        events.push(event.clone());
        if matches!(event, Event::NewClass { samples: 7, .. }) {
            stop.store(true, Ordering::Relaxed);
        }
        Ok(())
    };
    let mut keep = |moment: Moment, _: u64, checkpoint: &dyn Fn() -> Checkpoint| {
        if matches!(moment, Moment::Stopping(_)) {
            kept = Some(checkpoint());
        }
        Ok(())
    };
    let run = Run::open(&opened.setup().config()).unwrap();
    let mut watch = Watch { event: &mut write, progress: &mut |_| {}, keep: &mut keep, stop: &stop };
    assert!(matches!(run.execute(&mut watch), Err(Error::Interrupted)));

    let mut write = |event: &Event| {
        events.push(event.clone());
        Ok(())
    };
    let still = AtomicBool::new(false);
    let mut watch =
        Watch { event: &mut write, progress: &mut |_| {}, keep: &mut |_, _, _| Ok(()), stop: &still };
    let result = run.resume(kept.unwrap(), Path::new("7.ckpt"), &log, &mut watch).unwrap();
    assert_eq!(result.bad_images, BadImages { stream: 2, test: 1 });
    assert_eq!(events, whole, "as if it had never stopped");
}
