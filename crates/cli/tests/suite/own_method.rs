//! Methods of other crates: named, listed, run, saved, resumed and held to the contract like those that come with the
//! program. One of them is told task ids.

use std::{path::Path, process::Command, sync::atomic::AtomicBool};

use dpcl::{
    Config, Error, Image, Learner, Result, Run, Shape, Watch, contract,
    method::{
        Arrival, Batch, Core, Knowledge, MethodInfo, Persist, REHEARSAL, Rehearsal, Rehearse, Replay, Sample,
        Scores, State, Training, batch_loss, forward, scores,
    },
    methods,
};
use dpcl_report::record::Event;

#[path = "../../examples/own_method.rs"]
mod example;

/// Experience replay that notes the task of every class and, told a task, answers with its classes only.
#[derive(Default)]
struct TaskMask {
    /// The task each class was met in.
    tasks: Vec<usize>,
}

static TASK_MASK: MethodInfo = MethodInfo {
    name: "task-mask",
    about: "experience replay that answers within the task it is told",
    knowledge: Knowledge::TaskIds,
    section: "task-mask",
    build: |setup| Ok(Rehearsal::boxed(Replay::new(setup)?, TaskMask::default())),
    ..REHEARSAL
};

impl Rehearse for TaskMask {
    fn arrive(&mut self, _core: &Core, Arrival { sample, task }: Arrival) -> Option<Sample> {
        if sample.class == self.tasks.len() {
            self.tasks.push(task.expect("the loop tells the task of every sample"));
        }
        Some(sample)
    }

    fn step(&mut self, training: &mut Training<'_>, batch: Batch) -> Result<f64> {
        let mut pass = training.model.pass();
        let loss = batch_loss(forward(&mut pass, &batch), &batch);
        training.step(pass, &loss, &batch)
    }

    fn predict(&self, core: &Core, images: &[Image], task: Option<usize>) -> Result<Vec<Scores>> {
        let mut answers = scores(core.logits(images));
        if let Some(task) = task {
            for answer in &mut answers {
                let own = answer.probabilities.iter_mut().zip(&self.tasks);
                own.filter(|(_, of)| **of != task).for_each(|(probability, _)| *probability = 0.0);
                let sum: f32 = answer.probabilities.iter().sum();
                answer
                    .probabilities
                    .iter_mut()
                    .for_each(|probability| *probability /= sum.max(f32::MIN_POSITIVE));
            }
        }
        Ok(answers)
    }
}

impl Persist for TaskMask {
    fn save(&self, state: &mut State) {
        state.put("tasks", &self.tasks);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.tasks = state.get("tasks")?;
        Ok(())
    }
}

/// Registers both; again and again is as good as once.
fn register() {
    methods::register(&example::ER_FOCAL).unwrap();
    methods::register(&TASK_MASK).unwrap();
}

#[test]
fn the_example_keeps_what_methods_promise() {
    register();
    contract::check("method = 'er-focal'").unwrap();
}

#[test]
fn a_method_that_is_told_tasks_keeps_what_methods_promise() {
    register();
    contract::check("method = 'task-mask'").unwrap();
}

#[test]
fn registered_methods_are_listed_and_their_keys_checked() {
    register();
    assert!(methods::all().iter().any(|info| info.name == "er-focal"));
    let gamma = |value: &str| {
        let keys = format!("method = 'er-focal'\n[focal]\ngamma = {value}");
        Config::from_toml(&keys)
            .and_then(|config| config.check())
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    assert_eq!(gamma("0.5"), Ok(()));
    assert!(gamma("-1.0").unwrap_err().contains("`focal.gamma`"));
}

#[test]
fn a_name_that_is_taken_is_refused() {
    static SECOND_ER: MethodInfo = MethodInfo { name: "er", section: "second", ..REHEARSAL };
    static NAMELESS: MethodInfo = MethodInfo { name: "", section: "nameless", ..REHEARSAL };
    static LIKE_A_KEY: MethodInfo = MethodInfo { name: "third", section: "batch", ..REHEARSAL };
    assert!(methods::register(&LIKE_A_KEY).unwrap_err().to_string().contains("`batch`"));
    assert!(methods::register(&SECOND_ER).unwrap_err().to_string().contains("`er`"));
    assert!(methods::register(&NAMELESS).is_err());
}

#[test]
fn answers_with_task_ids_and_without_are_both_on_record() {
    register();
    let text = "method = 'task-mask'\nclasses = 4\ntasks = 2\nper_class = 20\nmodel = 'slim'\nwidth = 4\nmemory = 12\n\
                updates = 1.0\neval_period = 20\nautoaugment = 'none'\nlr = 0.002";
    let run = Run::open(&Config::from_toml(text).unwrap()).unwrap();
    let mut events = Vec::new();
    let mut event = |event: &Event| {
        events.push(event.clone());
        Ok(())
    };
    let stop = AtomicBool::new(false);
    let mut watch =
        Watch { event: &mut event, progress: &mut |_| {}, keep: &mut |_, _, _| Ok(()), stop: &stop };
    let result = run.execute(&mut watch).unwrap();
    let evaluations = events.iter().filter(|event| matches!(event, Event::Evaluation { .. })).count();
    let told = events.iter().filter(|event| matches!(event, Event::TaskAware { .. })).count();
    assert!(told == evaluations && told > 3, "{told} of {evaluations}");
    let (without, with) = (result.metrics.acc.unwrap(), result.metrics.acc_task_ids.unwrap());
    assert!(with > without, "two classes to choose from instead of four: {with} and {without}");
    assert!(result.metrics.fm_task_ids.is_some());
    assert_eq!(result.knowledge, "task-ids");
}

#[test]
fn a_sample_without_its_task_is_refused_and_others_never_hear_of_one() {
    register();
    let keys =
        |method: &str| format!("method = '{method}'\nmodel = 'slim'\nwidth = 4\nmemory = 4\nbatch = 4");
    let shape = Shape { channels: 3, height: 16, width: 16 };
    let learner = |method: &str| Learner::new(&Config::from_toml(&keys(method)).unwrap(), shape).unwrap();
    let image = Image { height: 16, width: 16, pixels: vec![90; 16 * 16 * 3].into() };
    let mut told = learner("task-mask");
    assert!(matches!(told.observe(&image, "cat"), Err(Error::NoTask { method }) if method == "task-mask"));
    assert_eq!((told.samples(), told.labels().len()), (0, 0), "nothing was learned");
    told.observe_in(0, &image, "cat").unwrap();
    told.observe_in(1, &image, "dog").unwrap();
    let best = |task| told.predict_all_in(task, std::slice::from_ref(&image)).unwrap().remove(0).label;
    assert_eq!((best(0), best(1)), ("cat".into(), "dog".into()));
    assert_eq!(told.predict(&image).unwrap().probabilities.len(), 2);

    let (mut one, mut other) = (learner("er"), learner("er"));
    for task in 0..8 {
        one.observe(&image, "cat").unwrap();
        other.observe_in(task, &image, "cat").unwrap();
    }
    assert!(one.state() == other.state());
}

#[test]
fn a_learner_is_not_taken_further_with_task_ids() {
    register();
    let refused = Config::from_toml("method = 'task-mask'\nfrom = 'some.ckpt'").unwrap().check().unwrap_err();
    assert!(matches!(&refused, Error::FromWithTasks { method } if method == "task-mask"), "{refused:?}");
    let told = refused.to_string();
    assert!(told.contains("`from`") && told.contains("`task-mask`"), "{told}");
    assert!(refused.hint().unwrap().contains("without `--from`"));
    Config::from_toml("method = 'er'\nfrom = 'some.ckpt'").unwrap().check().unwrap();
}

#[test]
fn the_example_is_the_whole_command() {
    // Examples are built beside the tests' own folder.
    let folder = Path::new(env!("CARGO_BIN_EXE_dpcl")).parent().unwrap().join("examples");
    let program = folder.join("own_method");
    let listed = Command::new(&program).args(["list", "methods"]).output();
    let listed =
        listed.expect("the example is built by `cargo test`, or by `cargo build --release --examples`");
    assert!(String::from_utf8_lossy(&listed.stdout).contains("er-focal"), "{listed:?}");
    let place = crate::support::Place::new();
    let arguments = "run --method er-focal --first-tasks 1 --per-class 8 --set width=4 --name own";
    let run = |arguments: &str| {
        let output =
            Command::new(&program).args(arguments.split(' ')).current_dir(place.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(arguments);
    let events = place.read("runs/own/er-focal-seed1/events.jsonl");
    // Cut off before its result: the same command goes on from the checkpoint.
    std::fs::remove_file(place.path().join("runs/own/er-focal-seed1/result.json")).unwrap();
    run(arguments);
    assert_eq!(place.read("runs/own/er-focal-seed1/events.jsonl"), events);
    assert!(place.has("runs/own/er-focal-seed1/result.json"));
}
