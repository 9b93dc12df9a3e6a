//! What every method promises, checked on each registered one by itself: it beats chance, repeats bit for bit, stays in
//! its memory budget, resumes exactly, and evaluation changes nothing.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::{path::Path, sync::atomic::AtomicBool};

use dpcl::{
    Checkpoint, Config, Error, Image, Learner, Progress, Run, Shape, Watch,
    data::Dataset,
    method::Answers,
    methods::METHODS,
    run::{Moment, Standing},
    state::State,
};
use dpcl_report::record::{Event, RunResult, Uncertainty};

/// A method in a small run that still trains: four classes of the built-in images in two tasks.
struct Subject {
    name: &'static str,
    answers: Answers,
    config: Config,
}

/// Every registered method, and DPCL as its paper has it.
fn subjects() -> impl Iterator<Item = Subject> {
    const LITERAL: &str = include_str!("../../../presets/dpcl-literal.toml");
    let subject = |name, answers, keys: &str| {
        let small = "classes = 4\ntasks = 2\nper_class = 40\nmodel = 'slim'\nwidth = 6\nmemory = 24\n\
                     updates = 1.0\neval_period = 40\nautoaugment = 'none'\nlr = 0.002";
        Subject { name, answers, config: Config::from_toml(&format!("{small}\n{keys}")).unwrap() }
    };
    let registered = METHODS
        .iter()
        .map(move |info| subject(info.name, info.answers, &format!("method = '{}'", info.name)));
    registered.chain([subject("dpcl-literal", Answers::AnyTime, LITERAL)])
}

fn record(config: &Config) -> (Vec<Event>, RunResult) {
    let run = Run::open(config).unwrap();
    let mut events = Vec::new();
    let mut keep = |event: &Event| {
        events.push(event.clone());
        Ok(())
    };
    let (mut taken, mut planned) = (0, 0);
    let mut progress = |progress: &Progress| (taken, planned) = (progress.updates, progress.planned);
    let stop = AtomicBool::new(false);
    let mut watch =
        Watch { event: &mut keep, progress: &mut progress, keep: &mut |_, _| Ok(()), stop: &stop };
    let result = run.execute(&mut watch).unwrap();
    assert!(taken <= planned && 10 * taken > 9 * planned, "{taken} of {planned} steps that were foreseen");
    (events, result)
}

fn samples(config: &Config) -> (Dataset, Vec<(Image, usize)>) {
    let run = Run::open(config).unwrap();
    let order = run.schedule().tasks.iter().flat_map(|task| task.samples.clone());
    let dataset = dpcl::data::open("fashion-mini", None, None).unwrap();
    let samples = order
        .map(|position| (dataset.train.images.image(position).unwrap(), dataset.train.labels[position]))
        .collect();
    (dataset, samples)
}

fn learner(config: &Config) -> Learner {
    Learner::new(config, Shape { channels: 3, height: 32, width: 32 }).unwrap()
}

fn state(learner: &Learner) -> State {
    learner.state()
}

#[test]
fn every_method_beats_chance_and_repeats_bit_for_bit() {
    for Subject { name, answers, config } in subjects() {
        let (events, result) = record(&config);
        let chance = 0.25;
        let last = result.metrics.a_last.unwrap();
        assert!(last > chance + 0.05, "{name}: {last}");
        assert_eq!(result.samples, 160, "{name}");
        assert_eq!(result.metrics.fm.is_some(), answers != Answers::End, "{name}: forgetting");
        assert_eq!(result.metrics.a_auc.is_some(), answers != Answers::End, "{name}: any time");
        let summaries: Vec<&Uncertainty> = events
            .iter()
            .filter_map(|event| match event {
                Event::Uncertainty(uncertainty) => Some(uncertainty),
                _ => None,
            })
            .collect();
        let evaluated = if answers == Answers::End { 1 } else { 2 };
        assert_eq!(summaries.len(), evaluated, "{name}: one a task end");
        let risk = dpcl_report::uncertainty::risk_coverage(&summaries[evaluated - 1].by_confidence);
        assert!((risk[risk.len() - 1].1 - (1.0 - last)).abs() < 1e-12, "{name}: all answered");

        let (again, repeated) = record(&config);
        assert_eq!(events, again, "{name}: same seed, same record");
        assert_eq!(result.metrics, repeated.metrics, "{name}");
    }
}

#[test]
fn another_seed_is_another_run() {
    for Subject { name, config: first, .. } in subjects() {
        let mut second = first.clone();
        second.settings.seed = 2;
        assert_ne!(record(&first).0, record(&second).0, "{name}");
    }
}

#[test]
fn every_method_stays_in_its_memory_budget() {
    for Subject { name, config, .. } in subjects() {
        let (_, samples) = samples(&config);
        let mut learner = learner(&config);
        for (image, class) in &samples[..80] {
            learner.observe(image, *class).unwrap();
            let Some(memory) = learner.memory() else { continue };
            assert!(memory.slots().len() <= 24, "{name}");
            assert_eq!(memory.histogram().iter().sum::<usize>(), memory.slots().len(), "{name}");
        }
    }
}

#[test]
fn every_method_resumes_exactly() {
    for Subject { name, config, .. } in subjects() {
        let (dataset, samples) = samples(&config);
        let mut whole = learner(&config);
        let mut first = learner(&config);
        // 45 samples leave a partly filled stream buffer behind.
        for (image, class) in &samples[..45] {
            whole.observe(image, *class).unwrap();
            first.observe(image, *class).unwrap();
        }
        let mut second = learner(&config);
        second.restore(&state(&first)).unwrap();
        drop(first);
        for (image, class) in &samples[45..100] {
            whole.observe(image, *class).unwrap();
            second.observe(image, *class).unwrap();
        }
        assert!(state(&whole) == state(&second), "{name}: resumed state differs");
        let image = dataset.test.images.image(0).unwrap();
        assert_eq!(whole.predict(&image).unwrap(), second.predict(&image).unwrap(), "{name}");
    }
}

/// Makes a run up to a moment (of several equal ones, the one of the given number), or from a checkpoint on; adds to
/// the text of its log. Gives the bytes of a checkpoint taken at that moment, or the result.
fn part(
    run: &Run,
    from: Option<&[u8]>,
    log: &mut String,
    until: Option<(Moment, usize)>,
) -> Result<RunResult, Vec<u8>> {
    let (earlier, mut added) = (log.clone(), String::new());
    let (mut taken, mut met) = (Vec::new(), 0);
    let mut event = |event: &Event| {
        added += &(serde_json::to_string(event).unwrap() + "\n");
        Ok(())
    };
    let mut keep = |moment, snapshot: &dyn Fn() -> Checkpoint| {
        let here = until.is_some_and(|(until, _)| until == moment);
        met += usize::from(here);
        if !here || until.is_some_and(|(_, number)| met != number + 1) {
            return Ok(());
        }
        snapshot().write_to(&mut taken).unwrap();
        Err(Error::Interrupted)
    };
    let stop = AtomicBool::new(false);
    let mut watch = Watch { event: &mut event, progress: &mut |_| {}, keep: &mut keep, stop: &stop };
    let path = Path::new("some.ckpt");
    let result = match from {
        Some(bytes) => {
            let checkpoint = Checkpoint::from_bytes(bytes, path).unwrap();
            run.resume(checkpoint, path, earlier.as_bytes(), &mut watch)
        }
        None => run.execute(&mut watch),
    };
    if let Some(bytes) = from {
        let checkpoint = Checkpoint::from_bytes(bytes, path).unwrap();
        log.truncate(Standing::of(&checkpoint, path).unwrap().log.bytes as usize);
    }
    log.push_str(&added);
    match result {
        Err(Error::Interrupted) => Err(taken),
        result => Ok(result.unwrap()),
    }
}

#[test]
fn every_method_cut_off_and_resumed_leaves_the_same_record() {
    // In the middle of a buffer, around the end of the first task, at an evaluation, at the end.
    let cuts = [
        (Moment::Sample(1), 0),
        (Moment::Sample(45), 0),
        (Moment::Sample(79), 0),
        (Moment::Sample(80), 0),
        (Moment::Sample(80), 0),
        (Moment::Sample(81), 0),
        (Moment::Sample(120), 0),
        (Moment::Sample(160), 1),
        (Moment::End(160), 0),
    ];
    for Subject { name, mut config, .. } in subjects() {
        config.settings.online = true;
        let run = Run::open(&config).unwrap();
        let (mut whole, mut log) = (String::new(), String::new());
        let expected = part(&run, None, &mut whole, None).unwrap();
        let mut checkpoint: Option<Vec<u8>> = None;
        for cut in cuts {
            checkpoint = Some(part(&run, checkpoint.as_deref(), &mut log, Some(cut)).unwrap_err());
            // What came after the checkpoint and was not written to its end.
            log.push_str("{\"event\":\"progr");
        }
        let result = part(&run, checkpoint.as_deref(), &mut log, None).unwrap();
        assert_eq!(log, whole, "{name}");
        let timeless = |result: &RunResult| RunResult {
            train_seconds: 0.0,
            eval_seconds: 0.0,
            peak_memory_bytes: 0,
            ..result.clone()
        };
        assert_eq!(timeless(&result), timeless(&expected), "{name}");
    }
}

#[test]
fn evaluation_changes_nothing() {
    for Subject { name, config, .. } in subjects() {
        let (dataset, samples) = samples(&config);
        let mut watched = learner(&config);
        let mut left_alone = learner(&config);
        for (image, class) in &samples[..60] {
            watched.observe(image, *class).unwrap();
            left_alone.observe(image, *class).unwrap();
            watched.predict(&dataset.test.images.image(3).unwrap()).unwrap();
        }
        assert!(state(&watched) == state(&left_alone), "{name}: predicting left a trace");
    }
}

#[test]
fn evaluating_more_often_does_not_change_training() {
    for Subject { name, config: seldom, .. } in subjects() {
        let mut often = seldom.clone();
        often.settings.eval_period = Some(16);
        let training = |events: Vec<Event>| -> Vec<Event> {
            events.into_iter().filter(|event| matches!(event, Event::Progress { .. })).collect()
        };
        assert_eq!(training(record(&seldom).0), training(record(&often).0), "{name}");
    }
}

#[test]
fn probabilities_are_probabilities() {
    for Subject { name, config, .. } in subjects() {
        let (dataset, samples) = samples(&config);
        let mut learner = learner(&config);
        let image = dataset.test.images.image(0).unwrap();
        assert!(matches!(learner.predict(&image), Err(Error::NoClassYet)), "{name}");
        for (image, class) in &samples[..30] {
            learner.observe(image, *class).unwrap();
        }
        learner.flush().unwrap();
        let answer = learner.predict(&image).unwrap();
        let total: f32 = answer.probabilities.iter().map(|(_, probability)| probability).sum();
        assert!((total - 1.0).abs() < 1e-4, "{name}: {total}");
        assert_eq!(answer.probabilities.len(), learner.labels().len());
        assert!(answer.disagreement >= 0.0);
    }
}
