//! Runs in their folders: stopped, damaged, taken up again, taken further.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use dpcl::{
    Checkpoint, Config, Error, Label, Learner, Run,
    folder::{Every, RunFolder, Status},
    run::Recording,
};
use dpcl_report::record::RunResult;
use tempfile::TempDir;

const SMALL: &str = "method = 'er'\nclasses = 4\ntasks = 2\nper_class = 16\nmodel = 'slim'\nwidth = 4\nmemory = 10\n\
                     updates = 1.0\neval_period = 20\nautoaugment = 'none'\nlr = 0.002\n";

/// A run's folder in a place of its own, and what was said about taking it up.
struct Made {
    _place: TempDir,
    folder: RunFolder,
    notices: Vec<String>,
}

impl Made {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let folder = RunFolder::at(place.path().join("er-seed1"));
        Self { _place: place, folder, notices: Vec::new() }
    }

    /// Makes the run with a checkpoint after every few samples, until it has seen `until` samples.
    fn run(&mut self, text: &str, every: u64, until: Option<u64>) -> Result<RunResult, Error> {
        let run = Run::open(&Config::from_toml(text).unwrap())?;
        let stop = AtomicBool::new(false);
        let notices = &mut self.notices;
        notices.clear();
        run.record(Recording {
            folder: &self.folder,
            claim: &self.folder.claim()?,
            command: Some("dpcl run"),
            every: Every::Samples(every),
            progress: &mut |progress| {
                stop.store(until.is_some_and(|until| progress.samples >= until), Ordering::Relaxed);
            },
            notice: &mut |text| notices.push(text.to_owned()),
            stop: &stop,
        })
    }

    fn interrupted(&mut self, every: u64, until: u64) {
        assert!(matches!(self.run(SMALL, every, Some(until)), Err(Error::Interrupted)));
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.log_path()).unwrap()
    }

    /// Samples of the checkpoints there are, newest first.
    fn checkpoints(&self) -> Vec<String> {
        let stem = |path: PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
        self.folder.checkpoints().into_iter().map(stem).collect()
    }

    fn has(&self, file: &str) -> bool {
        self.folder.path().join(file).exists()
    }
}

fn whole() -> (String, RunResult) {
    let mut made = Made::new();
    let result = made.run(SMALL, 1_000_000, None).unwrap();
    assert_eq!(made.checkpoints(), ["64"], "one at the end");
    (made.log(), result)
}

fn flip(path: &Path, position: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[position] ^= 4;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_stopped_run_goes_on_whatever_the_cadence() {
    let (log, expected) = whole();
    for every in [1, 7, 1000] {
        let mut made = Made::new();
        for until in [3, 20, 32, 33, 50] {
            made.interrupted(every, until);
            assert_eq!(made.checkpoints()[0], until.to_string());
        }
        assert_eq!(made.checkpoints().len(), 2, "the last two are kept");
        let result = made.run(SMALL, every, None).unwrap();
        assert_eq!(made.log(), log, "every {every}");
        assert_eq!(result.metrics, expected.metrics);
        assert_eq!((result.samples, result.updates), (expected.samples, expected.updates));
        assert!(made.notices.is_empty() && !made.has("events.interrupted-1.jsonl"));
    }
}

#[test]
fn a_finished_run_is_left_alone() {
    let mut made = Made::new();
    made.run(SMALL, 10, None).unwrap();
    let log = made.log();
    assert!(matches!(made.run(SMALL, 10, None), Err(Error::BadData { .. })));
    let config = made.folder.config().unwrap();
    assert!(matches!(made.folder.status(&config.check().unwrap()), Ok(Status::Finished(_))));
    assert_eq!(made.log(), log);
    let text = fs::read_to_string(made.folder.path().join("config.toml")).unwrap();
    assert!(text.starts_with("# command: dpcl run\n"), "{text}");
}

#[test]
fn a_damaged_checkpoint_is_passed_over() {
    let (log, _) = whole();
    let mut made = Made::new();
    made.interrupted(10, 35);
    assert_eq!(made.checkpoints(), ["35", "30"]);
    flip(&made.folder.checkpoints()[0], 5000);
    made.run(SMALL, 1000, None).unwrap();
    assert!(
        made.notices.len() == 1 && made.notices[0].contains("35.ckpt is a damaged"),
        "{:?}",
        made.notices
    );
    assert_eq!(made.log(), log);
    assert!(made.has("checkpoint/35.aside"));
}

#[test]
fn a_run_without_a_good_checkpoint_starts_over_and_loses_nothing() {
    let (log, _) = whole();
    let mut made = Made::new();
    made.interrupted(10, 35);
    for path in made.folder.checkpoints() {
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    }
    let before = made.log();
    made.run(SMALL, 1000, None).unwrap();
    assert!(made.notices.iter().any(|notice| notice.contains("starts over")), "{:?}", made.notices);
    assert_eq!(made.log(), log);
    assert_eq!(fs::read_to_string(made.folder.path().join("events.interrupted-1.jsonl")).unwrap(), before);
}

#[test]
fn the_log_may_be_damaged_after_a_checkpoint_but_not_before() {
    let (log, _) = whole();
    for (damage, aside) in [("tail", false), ("between", false), ("head", true), ("gone", true)] {
        let mut made = Made::new();
        made.interrupted(10, 35);
        let path = made.folder.log_path();
        let mut bytes = fs::read(&path).unwrap();
        match damage {
            "tail" => bytes.extend(b"{\"event\":\"progress\",\"samp\xff\xff"),
            // Between the older checkpoint's place and the newer one's.
            "between" => bytes.truncate(bytes.len() - 1),
            "head" => bytes[50] ^= 1,
            _ => bytes.clear(),
        }
        fs::write(&path, bytes).unwrap();
        made.run(SMALL, 1000, None).unwrap();
        assert_eq!(made.log(), log, "{damage}");
        assert_eq!(made.has("events.interrupted-1.jsonl"), aside, "{damage}");
        assert_eq!(made.notices.is_empty(), damage == "tail", "{damage}: {:?}", made.notices);
    }
}

#[test]
fn checkpoints_of_another_configuration_or_program_are_refused() {
    let mut made = Made::new();
    made.interrupted(10, 35);
    let other = SMALL.replace("memory = 10", "memory = 11");
    assert!(matches!(made.run(&other, 10, None), Err(Error::OtherConfig { key, .. }) if key == "memory"));

    let newest = made.folder.checkpoints()[0].clone();
    let mut checkpoint = Checkpoint::read(&newest).unwrap();
    checkpoint.config.settings.lr = Some(0.5);
    checkpoint.write(&newest).unwrap();
    let refused = made.run(SMALL, 10, None).unwrap_err();
    assert!(
        matches!(&refused, Error::OtherConfig { key, path } if key == "lr" && *path == newest),
        "{refused}"
    );

    checkpoint.config.settings.lr = Some(0.002);
    checkpoint.program = "0.0.7".into();
    checkpoint.write(&newest).unwrap();
    let refused = made.run(SMALL, 10, None).unwrap_err();
    assert!(refused.to_string().contains("made by dpcl 0.0.7"), "{refused}");
    assert!(refused.hint().unwrap().contains("go on with dpcl 0.0.7"));
}

#[test]
fn two_processes_do_not_share_a_folder() {
    let mut made = Made::new();
    let claim = made.folder.claim().unwrap();
    assert!(matches!(made.run(SMALL, 10, None), Err(Error::Claimed { .. })));
    drop(claim);
    made.run(SMALL, 10, None).unwrap();
}

#[test]
fn a_checkpoint_that_cannot_be_written_stops_the_run_and_harms_nothing() {
    let (log, _) = whole();
    let mut made = Made::new();
    made.interrupted(10, 35);
    // A folder in the way of the next file: it cannot be replaced by a file.
    let obstacle = made.folder.path().join("checkpoint/45.ckpt");
    fs::create_dir_all(obstacle.join("inside")).unwrap();
    let refused = made.run(SMALL, 10, None).unwrap_err();
    let Error::CheckpointNotWritten { path, earlier, .. } = &refused else { panic!("{refused}") };
    assert_eq!(*path, obstacle);
    let earlier = earlier.clone().unwrap();
    assert!(refused.hint().unwrap().contains(&earlier.display().to_string()));
    Checkpoint::read(&earlier).unwrap();
    fs::remove_dir_all(obstacle).unwrap();
    made.run(SMALL, 10, None).unwrap();
    assert_eq!(made.log(), log);
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_is_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut made = Made::new();
    fs::create_dir_all(made.folder.path()).unwrap();
    fs::set_permissions(made.folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(made.folder.path().join("probe"), "").is_ok() {
        // Permissions do not bind the superuser.
        return;
    }
    let refused = made.run(SMALL, 10, None).unwrap_err();
    assert!(matches!(&refused, Error::Io { path, .. } if path.starts_with(made.folder.path())), "{refused}");
    assert!(refused.hint().unwrap().contains("permissions"));
}

#[test]
fn a_loss_that_is_no_number_stops_with_the_last_good_checkpoint() {
    let mut made = Made::new();
    let wild = SMALL.replace("lr = 0.002", "lr = 1e30");
    let refused = made.run(&wild, 1, None).unwrap_err();
    let Error::RanAway { samples, updates, classes, checkpoint, .. } = &refused else { panic!("{refused}") };
    assert_eq!(*samples, 8, "the first full buffer");
    assert!((1..=8).contains(updates) && !classes.is_empty());
    assert_eq!(checkpoint.as_deref(), Some(&*made.folder.path().join("checkpoint/7.ckpt")));
    assert!(refused.hint().unwrap().contains("7.ckpt"));
    assert_eq!(Learner::load(checkpoint.as_ref().unwrap()).unwrap().samples(), 7);
}

#[test]
fn a_learner_is_taken_further_on_new_classes() {
    let mut first = Made::new();
    first.run(SMALL, 1000, None).unwrap();
    let path = first.folder.checkpoints()[0].clone();
    let met = Learner::load(&path).unwrap().labels().to_vec();

    let text =
        SMALL.replace("classes = 4", "classes = 8") + &format!("seed = 5\nfrom = '{}'\n", path.display());
    let mut second = Made::new();
    let result = second.run(&text, 1000, None).unwrap();
    assert_eq!((result.samples, result.updates), (128, 128), "counted from where this run began");
    let learner = Learner::load(&second.folder.checkpoints()[0]).unwrap();
    assert_eq!(learner.samples(), 64 + 128);
    assert_eq!(learner.labels()[..4], met[..]);
    assert!(learner.labels().len() > 4);
    assert!(learner.labels().iter().all(|label| matches!(label, Label::Number(_))));
    let log = second.log();

    // Stopped and taken up after the file has gone, it goes on from its own checkpoint.
    let mut third = Made::new();
    assert!(matches!(third.run(&text, 10, Some(50)), Err(Error::Interrupted)));
    let recorded = fs::read_to_string(third.folder.path().join("config.toml")).unwrap();
    fs::remove_file(&path).unwrap();
    third.run(&recorded, 10, None).unwrap();
    assert_eq!(third.log(), log);

    let other = text.replace("width = 4", "width = 6");
    first.run(SMALL, 1000, None).unwrap_err();
    fs::copy(&second.folder.checkpoints()[0], &path).unwrap();
    let refused = Made::new().run(&other, 10, None).unwrap_err();
    assert!(refused.to_string().contains("does not fit the configuration"), "{refused}");
    let refused = Made::new().run(&recorded, 10, None).unwrap_err();
    assert!(
        refused.to_string().contains("is not the checkpoint that this run was to begin with"),
        "{refused}"
    );
}
