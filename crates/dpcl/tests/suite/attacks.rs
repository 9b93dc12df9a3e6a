//! Folders and files that a stranger made: nothing outside a run's folder is touched, and what something else does to a
//! record is noticed.

#![cfg(unix)]

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
};

use dpcl::{
    Checkpoint, Config, Error, Run,
    checkpoint::Flaw,
    data,
    folder::{Every, RunFolder, write_whole},
    run::Recording,
};

use crate::small::{folder, folder_config, plain, record, told};

const SMALL: &str = "method = 'er'\nclasses = 4\ntasks = 2\nper_class = 16\nmodel = 'slim'\nwidth = 4\nmemory = 10\n\
                     updates = 1.0\neval_period = 20\nautoaugment = 'none'\nlr = 0.002\n";

/// Makes the run in a folder; `meanwhile` is called with the samples learned and says when to stop.
fn recorded(folder: &Path, mut meanwhile: impl FnMut(u64) -> bool) -> Result<(), Error> {
    let folder = RunFolder::at(folder);
    let stop = AtomicBool::new(false);
    let run = Run::open(&Config::from_toml(SMALL).unwrap())?;
    run.record(Recording {
        folder: &folder,
        claim: &folder.claim()?,
        command: Some("dpcl run --name 'a\u{7f}\u{1b}[31m'"),
        every: Every::Samples(8),
        progress: &mut |progress| stop.store(meanwhile(progress.samples), Ordering::Relaxed),
        notice: &mut |_| {},
        stop: &stop,
    })?;
    Ok(())
}

#[test]
fn temporary_files_are_new_and_never_links() {
    let place = tempfile::tempdir().unwrap();
    let outside = place.path().join("bashrc");
    fs::write(&outside, "precious").unwrap();
    let run = place.path().join("run");
    fs::create_dir(&run).unwrap();
    for name in ["report", "config", "result", "error"] {
        symlink("../bashrc", run.join(format!("{name}.partial"))).unwrap();
    }
    symlink("../bashrc", run.join("error.txt")).unwrap();
    write_whole(&run.join("report.html"), b"page").unwrap();
    assert_eq!(fs::read_to_string(run.join("report.html")).unwrap(), "page");
    recorded(&run, |_| false).unwrap();
    assert_eq!(fs::read_to_string(&outside).unwrap(), "precious");

    let failed = place.path().join("failed");
    fs::create_dir(&failed).unwrap();
    fs::write(failed.join("config.toml"), "").unwrap();
    symlink("../bashrc", failed.join("error.txt")).unwrap();
    RunFolder::at(&failed).note_failure("error: no");
    assert_eq!(fs::read_to_string(failed.join("error.txt")).unwrap(), "error: no");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "precious");
}

#[test]
fn a_folder_whose_parts_lead_elsewhere_is_refused() {
    for name in ["events.jsonl", "checkpoint", "lock"] {
        let place = tempfile::tempdir().unwrap();
        let run = place.path().join("run");
        assert!(matches!(recorded(&run, |samples| samples >= 20), Err(Error::Interrupted)));
        let elsewhere = place.path().join("elsewhere");
        fs::rename(run.join(name), &elsewhere).unwrap();
        symlink(&elsewhere, run.join(name)).unwrap();
        let before = fs::metadata(&elsewhere).unwrap().len();
        let error = recorded(&run, |_| false).unwrap_err();
        assert!(
            error.to_string().ends_with("is a link, and a run writes into its own folder only"),
            "{error}"
        );
        assert_eq!(fs::metadata(&elsewhere).unwrap().len(), before, "{name}");
    }
}

#[test]
fn a_command_with_control_characters_leaves_a_configuration_that_reads() {
    let place = tempfile::tempdir().unwrap();
    recorded(place.path(), |_| false).unwrap();
    let text = fs::read_to_string(place.path().join("config.toml")).unwrap();
    assert!(text.starts_with(r"# command: dpcl run --name 'a\u{7f}\u{1b}[31m'"), "{text}");
    RunFolder::at(place.path()).config().unwrap();
}

#[test]
fn what_was_set_aside_stays() {
    let place = tempfile::tempdir().unwrap();
    let folder = RunFolder::at(place.path());
    fs::create_dir(place.path().join("checkpoint")).unwrap();
    let path = place.path().join("checkpoint/8.ckpt");
    for text in ["first", "second", "third"] {
        fs::write(&path, text).unwrap();
        folder.set_aside(&path).unwrap();
    }
    for (name, text) in [("8.aside", "first"), ("8.aside-2", "second"), ("8.aside-3", "third")] {
        assert_eq!(fs::read_to_string(place.path().join("checkpoint").join(name)).unwrap(), text);
    }
}

#[test]
fn a_log_that_something_else_changed_is_not_sealed() {
    let whole = tempfile::tempdir().unwrap();
    recorded(whole.path(), |_| false).unwrap();
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("events.jsonl");
    let error = recorded(place.path(), |samples| {
        if samples == 40 {
            fs::File::options().write(true).open(&log).unwrap().set_len(0).unwrap();
        }
        false
    });
    let error = error.unwrap_err();
    assert!(error.to_string().contains("is not what the run wrote"), "{error}");
    assert!(error.hint().unwrap().contains("give the command again"), "{error:?}");
    assert!(!place.path().join("result.json").exists());
    recorded(place.path(), |_| false).unwrap();
    assert_eq!(fs::read(&log).unwrap(), fs::read(whole.path().join("events.jsonl")).unwrap());
}

#[test]
fn pipes_and_devices_are_no_images() {
    let place = tempfile::tempdir().unwrap();
    let pipe = place.path().join("pipe.png");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [pipe.as_path(), Path::new("/dev/zero"), place.path()] {
        let error = data::read_image(path, 16).unwrap_err();
        assert!(error.to_string().ends_with("is no ordinary file"), "{error}");
    }
}

#[test]
fn a_text_of_megabytes_is_no_configuration() {
    let long = "# nothing\n".repeat(200_000);
    let error = Config::from_toml(&long).unwrap_err();
    assert!(error.to_string().contains("are more than any configuration has"), "{error}");

    let place = tempfile::tempdir().unwrap();
    recorded(place.path(), |samples| samples >= 20).unwrap_err();
    let path = RunFolder::at(place.path()).checkpoints().remove(0);
    let config = place.path().join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text + &long).unwrap();
    let error = recorded(place.path(), |_| false).unwrap_err();
    assert!(error.to_string().ends_with("is longer than any configuration"), "{error}");
    let error = dpcl_report::read::read(place.path()).unwrap_err();
    assert!(told(&error).contains("more than 1048576 bytes"), "{error}");

    // In a checkpoint as well, whose checksums are right.
    let checkpoint = Checkpoint::read(&path).unwrap();
    let mut altered = checkpoint.clone();
    altered.config.settings.label = Some("x".repeat(2 << 20));
    let mut bytes = Vec::new();
    altered.write_to(&mut bytes).unwrap();
    let error = Checkpoint::from_bytes(&bytes, &path).unwrap_err();
    assert!(matches!(error, Error::BadCheckpoint { flaw: Flaw::Misfit(_), .. }), "{error}");
}

/// Another image of the same size, so that the file is as long or nearly.
fn replace(path: &Path, value: u8) {
    fs::write(path, data::png(&plain(12, value))).unwrap();
}

#[test]
fn an_image_that_is_replaced_while_a_run_goes_on_is_noticed() {
    let root = tempfile::tempdir().unwrap();
    folder(root.path(), 40);
    let test = root.path().join("test/light/00.png");
    let mut config = folder_config(root.path(), "");
    config.settings.eval_period = Some(10);
    let (_, result) = record(&config, |event| {
        if matches!(event, dpcl_report::record::Event::Evaluation { .. }) {
            // Another time, or another length.
            std::thread::sleep(std::time::Duration::from_millis(20));
            replace(&test, 3);
        }
    });
    let error = told(&result.unwrap_err());
    assert!(error.contains("light/00.png: was changed after the data were opened"), "{error}");
}

#[test]
fn images_that_are_replaced_before_a_run_goes_on_are_noticed() {
    for (touch, noticed) in
        [(false, "is not what the run began with"), (true, "were written after the run began")]
    {
        let place = tempfile::tempdir().unwrap();
        let images = place.path().join("images");
        folder(&images, 12);
        let image = images.join("train/dark/00.png");
        let run = RunFolder::at(place.path().join("run"));
        let config = folder_config(&images, "");
        let made = |until: u64| {
            let (stop, mut notices) = (AtomicBool::new(false), Vec::new());
            let made = Run::open(&config).unwrap().record(Recording {
                folder: &run,
                claim: &run.claim().unwrap(),
                command: None,
                every: Every::default(),
                progress: &mut |progress| stop.store(progress.samples >= until, Ordering::Relaxed),
                notice: &mut |text| notices.push(text.to_owned()),
                stop: &stop,
            });
            (made, notices.join("\n"))
        };
        // Mean and deviation are what they are: only the file is another.
        assert!(matches!(made(6).0, Err(Error::Interrupted)));
        let before = fs::read(&image).unwrap();
        if touch {
            std::thread::sleep(std::time::Duration::from_millis(20));
            fs::write(&image, &before).unwrap();
        } else {
            fs::write(&image, [before, b"longer".to_vec()].concat()).unwrap();
        }
        let (again, notices) = made(u64::MAX);
        match again {
            Ok(_) => assert!(touch && notices.contains(noticed), "{notices}"),
            Err(error) => assert!(!touch && error.to_string().contains(noticed), "{error}"),
        }
    }
}
