//! Training that ran away: noticed at evaluations and checkpoints though the loss stays finite, named by step, and never
//! taken up again.

use std::{
    fs,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

use dpcl::{
    Checkpoint, Config, Error, Learner, Run, Shape,
    checkpoint::Flaw,
    folder::{Every, RunFolder},
    method::{Array, Elements},
    run::Recording,
};

use crate::small::{SIDE, built_in, plain};

fn recorded(text: &str, every: u64, place: &Path) -> Result<(), Error> {
    let folder = RunFolder::at(place.join("run"));
    Run::open(&Config::from_toml(text).unwrap())?.record(Recording {
        folder: &folder,
        claim: &folder.claim()?,
        command: None,
        every: Every::Samples(every),
        progress: &mut |_| {},
        notice: &mut |_| {},
        stop: &AtomicBool::new(false),
    })?;
    Ok(())
}

const SMALL: &str = "method = 'er'\nclasses = 4\ntasks = 2\nper_class = 16\nmodel = 'slim'\nwidth = 4\nmemory = 10\n\
                     updates = 1.0\nautoaugment = 'none'\n";

#[test]
fn a_rate_that_blows_up_the_weights_ends_the_run_with_the_step() {
    for (text, every) in [
        ("lr = 1e10\neval_period = 8\n", 1_000),
        ("lr = 1e10\neval_period = 0\n", 8),
        ("mean = [1e38, 1e38, 1e38]\nlr = 0.001\neval_period = 8\n", 1_000),
    ] {
        let place = tempfile::tempdir().unwrap();
        let error = recorded(&format!("{SMALL}{text}"), every, place.path()).unwrap_err();
        match &error {
            Error::Diverged { samples, updates, .. } => {
                assert!(*samples <= 16 && *updates <= 16, "{text}: {error}");
            }
            Error::RanAway { .. } => {}
            other => panic!("{text}: {other}"),
        }
        assert!(error.to_string().contains("step"), "{error}");
        assert!(error.hint().unwrap().contains("lower `lr`"), "{error:?}");
        assert!(!place.path().join("run/result.json").exists());
        for file in fs::read_dir(place.path().join("run/checkpoint")).into_iter().flatten() {
            let checkpoint = Checkpoint::read(&file.unwrap().path()).unwrap();
            assert!(checkpoint.state.not_finite().is_none());
        }
    }
}

/// A learner's checkpoint with one number of an array replaced.
fn altered(array: &str, number: f32) -> Checkpoint {
    let shape = Shape { channels: 3, height: SIDE, width: SIDE };
    let mut learner = Learner::new(&built_in("batch = 2\nmemory = 2"), shape).unwrap();
    for class in 0..2_u8 {
        learner.observe(&plain(SIDE, class * 90), i64::from(class)).unwrap();
    }
    learner.check_finite().unwrap();
    let mut checkpoint = Checkpoint::of(&learner);
    let found = checkpoint.state.arrays.get_mut(array).unwrap();
    let Array { shape, elements: Elements::F32(elements) } = &**found else { panic!("{array} holds bytes") };
    let mut elements = elements.clone();
    *elements.last_mut().unwrap() = number;
    *found = Arc::new(Array::floats(shape.clone(), elements));
    checkpoint
}

#[test]
fn a_checkpoint_that_is_not_finite_is_neither_written_nor_read() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("some.ckpt");
    for array in [
        "core.model.encoder.stem.conv.weight",
        "core.model.encoder.stem.bn.running_var",
        "core.model.heads.bias",
    ] {
        for number in [f32::NAN, f32::INFINITY] {
            let checkpoint = altered(array, number);
            let error = checkpoint.write(&path).unwrap_err();
            assert!(matches!(&error, Error::NotFinite { what } if what.contains(array)), "{error}");
            assert!(!path.exists());

            let mut bytes = Vec::new();
            checkpoint.write_to(&mut bytes).unwrap();
            let error = Checkpoint::from_bytes(&bytes, &path).unwrap_err();
            assert!(
                matches!(&error, Error::BadCheckpoint { flaw: Flaw::NotFinite(name), .. } if name == array),
                "{error}"
            );
            assert!(error.hint().unwrap().contains("from before"), "{error:?}");

            fs::write(&path, &bytes).unwrap();
            let config = format!("weights = '{}'", path.display());
            let shape = Shape { channels: 3, height: SIDE, width: SIDE };
            let taken = Learner::new(&built_in(&config), shape);
            assert!(taken.is_err(), "{array} in weights to start from");
            fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn an_answer_that_is_no_number_is_an_error() {
    // Past the reader's check: what a library user may hold in memory.
    let learner = altered("core.model.heads.bias", f32::NAN).learner().unwrap();
    assert!(matches!(learner.check_finite(), Err(Error::NotFinite { .. })));
    let error = learner.predict(&plain(SIDE, 7)).unwrap_err();
    assert!(error.to_string().contains("the probability of an answer is not finite"), "{error}");
}
