//! Methods that are told the task of every sample: what they answer with it and without, what later tasks leave alone.

use crate::quarters::{SHAPE, config, learner, samples};
use dpcl::{Config, Error, Image, Learner, Prediction, Run, Watch, method::State};
use dpcl_report::record::{EvaluationKind, Event};
use std::sync::atomic::AtomicBool;

/// Methods that are told.
const TOLD: [&str; 2] = ["ccll", "ctn"];

fn made(text: &str) -> Learner {
    learner(&config(text))
}

/// Learns samples of a task, and that it has ended.
fn learn(learner: &mut Learner, task: usize, samples: &[(Image, usize)]) {
    for (image, class) in samples {
        learner.observe_in(task, image, *class).unwrap();
    }
    learner.task_end().unwrap();
}

fn images(samples: &[(Image, usize)]) -> Vec<Image> {
    samples.iter().map(|(image, _)| image.clone()).collect()
}

/// The probability of a class, none where it is not among the answers.
fn probability(prediction: &Prediction, class: usize) -> f32 {
    let own = prediction.probabilities.iter().find(|(label, _)| *label == class.into());
    own.map_or(f32::NAN, |(_, probability)| *probability)
}

fn arrays(learner: &Learner, chosen: impl Fn(&str) -> bool) -> State {
    let mut state = learner.state().part("core.model.encoder");
    state.arrays.retain(|name, _| chosen(name));
    state
}

#[test]
fn a_sample_without_its_task_is_refused_with_a_way_out() {
    for method in TOLD {
        let mut learner = made(&format!("method = '{method}'"));
        let error = learner.observe(&samples(2)[0].0, 0_usize).unwrap_err();
        assert_eq!(error.to_string(), format!("`{method}` must be told the task of every sample"));
        assert!(error.hint().unwrap().contains("observe_in"));
        assert_eq!((learner.samples(), learner.labels().len()), (0, 0), "nothing was learned");
        assert!(matches!(learner.predict(&samples(2)[0].0), Err(Error::NoClassYet)));
    }
}

#[test]
fn with_its_task_an_image_is_one_of_the_tasks_classes() {
    let samples = samples(48);
    for method in TOLD {
        let mut learner = made(&format!("method = '{method}'"));
        for (task, samples) in samples.chunks(24).enumerate() {
            learn(&mut learner, task, samples);
        }
        let images = images(&samples);
        for task in [0, 1] {
            for answer in learner.predict_all_in(task, &images).unwrap() {
                let own: f32 = [0, 1].map(|class| probability(&answer, 2 * task + class)).iter().sum();
                assert!((own - 1.0).abs() < 1e-6, "{method}: {answer:?}");
                assert_eq!(answer.probabilities.len(), 4);
            }
        }
        let without = learner.predict_all(&images).unwrap();
        assert!(without.iter().all(|answer| (0..4).all(|class| probability(answer, class) > 0.0)));
        assert_eq!(learner.predict_all_in(7, &images).unwrap(), without, "{method}: nobody met task 7");
    }
}

#[test]
fn learners_that_are_told_go_on_exactly() {
    let samples = samples(80);
    for method in TOLD {
        let text = format!("method = '{method}'");
        let mut whole = made(&text);
        // A task that comes again is among them, and samples of it wait when it is put away.
        learn(&mut whole, 3, &samples[..20]);
        learn(&mut whole, 1, &samples[40..57]);
        for (image, class) in &samples[20..22] {
            whole.observe_in(3, image, *class).unwrap();
        }
        let mut resumed = made(&text);
        resumed.restore(&whole.state()).unwrap();
        for learner in [&mut whole, &mut resumed] {
            learn(learner, 3, &samples[22..33]);
            learn(learner, 5, &samples[57..]);
            learner.finish().unwrap();
        }
        assert!(whole.state() == resumed.state(), "{method}");
        let images = images(&samples[..6]);
        assert_eq!(whole.predict_all(&images).unwrap(), resumed.predict_all(&images).unwrap());
    }
}

#[test]
fn what_calibrated_tasks_answer_is_not_changed_by_later_ones() {
    let samples = samples(96);
    let (first, second) = samples.split_at(48);
    let mut learner = made("method = 'ccll'");
    learn(&mut learner, 0, &first[..30]);
    let images = images(&samples);
    let zero = learner.predict_all_in(0, &images).unwrap();
    learn(&mut learner, 1, &second[..29]);
    let one = learner.predict_all_in(1, &images).unwrap();
    learn(&mut learner, 2, &[&first[30..], &second[29..]].concat());
    let same = |now: Vec<Prediction>, then: &[Prediction]| {
        now.iter().zip(then).all(|(now, then)| {
            let then: Vec<f32> = then.probabilities.iter().map(|(_, probability)| *probability).collect();
            now.probabilities[..then.len()].iter().map(|(_, probability)| *probability).eq(then)
        })
    };
    assert!(same(learner.predict_all_in(0, &images).unwrap(), &zero));
    assert!(same(learner.predict_all_in(1, &images).unwrap(), &one));
}

#[test]
fn forgetting_with_task_ids_is_exactly_zero() {
    let text = "method = 'ccll'\nclasses = 6\ntasks = 3\nper_class = 20\nmodel = 'slim'\nwidth = 4\nupdates = 1.0\n\
                batch = 16\neval_period = 0\nautoaugment = 'none'\nlr = 0.002\nthreads = 1";
    let run = Run::open(&Config::from_toml(text).unwrap()).unwrap();
    let mut ends = Vec::new();
    let mut event = |event: &Event| {
        if let Event::TaskAware { kind: EvaluationKind::TaskEnd(_), classes, .. } = event {
            ends.push(classes.clone());
        }
        Ok(())
    };
    let stop = AtomicBool::new(false);
    let mut watch =
        Watch { event: &mut event, progress: &mut |_| {}, keep: &mut |_, _, _| Ok(()), stop: &stop };
    let result = run.execute(&mut watch).unwrap();
    assert_eq!(result.metrics.fm_task_ids, Some(0.0));
    assert_eq!(result.updates, 120, "what waits at a task end is learned before it is evaluated");
    for (end, counts) in ends.iter().enumerate() {
        assert_eq!(counts.len(), 2 * (end + 1));
        for count in counts {
            assert!(ends[2].contains(count), "{count:?} at the end of task {end}");
        }
    }
}

#[test]
fn calibration_leaves_the_convolutions_of_the_first_task_alone() {
    let samples = samples(48);
    let mut learner = made("method = 'ccll'");
    learn(&mut learner, 0, &samples[..24]);
    let convolution = |name: &str| name.contains("conv");
    let statistic = |name: &str| name.contains("running_");
    let scale = |name: &str| name.contains(".bn") && name.ends_with("weight");
    let before = [arrays(&learner, convolution), arrays(&learner, statistic), arrays(&learner, scale)];
    let base = learner.parameters();
    learn(&mut learner, 1, &samples[24..]);
    assert!(before[0].arrays.len() == 20 && arrays(&learner, convolution) == before[0]);
    assert!(arrays(&learner, statistic) != before[1] && arrays(&learner, scale) != before[2]);
    // In 300 channels: kernels of nine, one gate a channel, which looks at 4, 8, 16 and again 16 channels; batch norms
    // of the task put aside and its two columns.
    let modules = 300 * (9 + 1) + 20 * 4 + 40 * 8 + 80 * 16 + 160 * 16;
    let held = learner.parameters();
    assert_eq!(held.network - base.network, modules + 2 * 300 + 2 * (32 + 1));
    assert_eq!((held.state, held.history), (0, 0));

    // The first task again: its batch norms and columns learn on, the convolutions do not.
    learn(&mut learner, 0, &samples[..24]);
    assert!(arrays(&learner, convolution) == before[0]);
    assert!(arrays(&learner, scale) != before[2]);
    assert_eq!(learner.parameters(), held);
}

#[test]
fn a_class_of_two_tasks_has_a_column_in_each_and_the_larger_counts() {
    let samples = samples(96);
    let of = |class: usize| samples.iter().filter(move |(_, own)| *own == class).cloned();
    let together = |classes: [usize; 2]| -> Vec<(Image, usize)> {
        of(classes[0]).zip(of(classes[1])).flat_map(|(one, other)| [one, other]).collect()
    };
    let mut learner = made("method = 'ccll'");
    learn(&mut learner, 0, &together([0, 1]));
    learn(&mut learner, 1, &together([1, 2]));
    let images = images(&samples[..12]);
    let [zero, one] = [0, 1].map(|task| learner.predict_all_in(task, &images).unwrap());
    let without = learner.predict_all(&images).unwrap();
    for ((zero, one), without) in zero.iter().zip(&one).zip(&without) {
        assert_eq!((probability(zero, 2), probability(one, 0)), (0.0, 0.0));
        assert!(probability(zero, 1) > 0.0 && probability(one, 1) > 0.0);
        // Of the logits a, b of task 0 and b′, c of task 1 without the id a, max(b, b′), c are left.
        let ratio = |answer: &Prediction, over: usize, under: usize| {
            f64::from(probability(answer, over)) / f64::from(probability(answer, under))
        };
        let (from_zero, from_one) = (ratio(zero, 1, 0), ratio(one, 1, 2));
        let (left, right) = (ratio(without, 1, 0), ratio(without, 1, 2));
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-3 * expected;
        assert!(near(left, from_zero) || near(right, from_one), "{zero:?} {one:?} {without:?}");
        assert!(left > 0.999 * from_zero && right > 0.999 * from_one);
    }
}

/// Fails unless a configuration is refused by that key and for that reason.
fn refused(text: &str, key: &str, reason: &str) {
    match config(text).check() {
        Err(Error::BadKey { key: found, problem }) => {
            assert_eq!(found, key, "{problem}");
            assert!(problem.contains(reason), "{problem}");
        }
        other => panic!("expected a refusal of {text}, got {other:?}"),
    }
}

#[test]
fn what_a_method_cannot_have_is_refused_with_the_reason() {
    let ccll = |keys: &str| format!("method = 'ccll'\n{keys}");
    refused(&ccll("average = 10"), "average", "go on moving");
    refused(&ccll("teacher = 1.0\naverage = 10"), "teacher", "freezes its network");
    refused(&ccll("memory_scheme = 'reservoir'"), "memory_scheme", "keeps nothing");
    refused(&ccll("[ccll]\nchannel_group = 0"), "ccll.channel_group", "at least 1");
    refused(&ccll("[ccll]\ngate = -1.0"), "ccll.gate", "at least 0");
    let ctn = |keys: &str| format!("method = 'ctn'\n{keys}");
    refused(&ctn("teacher = 1.0\naverage = 10"), "teacher", "the answers it stores");
    refused(&ctn("memory_scheme = 'reservoir'"), "memory_scheme", "a ring for each task");
    refused(&ctn("memory_scheme = 'none'"), "memory_scheme", "a ring for each task");
    refused(&ctn("[ctn]\nsemantic = 1.0"), "ctn.semantic", "below 1");
    refused(&ctn("[ctn]\ninner = 0"), "ctn.inner", "at least 1");
    for method in TOLD {
        let keys = |keys: &str| format!("method = '{method}'\n{keys}");
        refused(&keys("asymmetric = true"), "asymmetric", "`er-ace` has it");
        refused(&keys("rebuild = true"), "rebuild", "does not rebuild");
        refused(&keys("rate = 'pima'"), "rate", "heads that disagree");
        refused(&keys("rate = 'clib'"), "rate", "losses measured");
    }
    let mut none = config("method = 'ctn'");
    none.settings.memory = Some(0);
    assert!(none.check().unwrap_err().to_string().contains("`memory`: must be at least 1"));
}

/// Fails unless a learner of a method refuses the state, altered, and names the entry.
fn refuses(method: &str, whole: &State, key: &str, change: &dyn Fn(&mut State)) {
    let mut state = whole.clone();
    change(&mut state);
    let mut learner = Learner::new(&config(&format!("method = '{method}'")), SHAPE).unwrap();
    let error = learner.restore(&state).map_err(|error| error.to_string()).unwrap_err();
    assert!(error.contains(key), "{key}: {error}");
}

/// The state of a learner that has met two tasks, and samples of the second wait.
fn in_the_second(method: &str) -> State {
    let samples = samples(48);
    let mut learner = made(&format!("method = '{method}'"));
    learn(&mut learner, 0, &samples[..24]);
    for (image, class) in &samples[24..27] {
        learner.observe_in(1, image, *class).unwrap();
    }
    learner.state()
}

#[test]
fn a_calibrated_state_that_does_not_go_together_is_refused() {
    let whole = in_the_second("ccll");
    let refused = |key: &str, change: &dyn Fn(&mut State)| refuses("ccll", &whole, key, change);
    refused("method.learning", &|state| state.put("method.learning", &2));
    refused("method.learning", &|state| state.put("method.learning", &None::<usize>));
    refused("method.tasks", &|state| state.put("method.task1.number", &0));
    refused("method.task0.classes", &|state| state.put("method.task0.classes", &[0, 0]));
    refused("method.task0.classes", &|state| state.put("method.task0.classes", &[0]));
    refused("method.task1.classes", &|state| state.put("method.task1.classes", &[3]));
    refused("method.waiting.task", &|state| state.put("method.waiting.task", &0));
    refused("method.waiting.task", &|state| state.put("method.waiting.classes", &[0, 1, 0]));
    refused("labels", &|state| state.put("method.known", &3));
    refused("method.task2", &|state| state.put("method.tasks", &3));
    refused("spatial", &|state| {
        state.arrays.remove("method.task1.calibration.stem.conv.spatial");
    });
}

#[test]
fn a_modulated_state_that_does_not_go_together_is_refused() {
    let whole = in_the_second("ctn");
    let refused = |key: &str, change: &dyn Fn(&mut State)| refuses("ctn", &whole, key, change);
    let task = |number: usize, classes: &[usize]| serde_json::json!({ "number": number, "classes": classes });
    let tasks = |one, other| move |state: &mut State| state.put("method.tasks", &[&one, &other]);
    refused("method.tasks", &tasks(task(0, &[0, 1]), task(0, &[2, 3])));
    refused("method.tasks", &tasks(task(0, &[0, 0]), task(1, &[2, 3])));
    refused("method.tasks", &tasks(task(0, &[]), task(1, &[2, 3])));
    refused("method.tasks", &tasks(task(0, &[0, 1]), task(1, &[2, 4])));
    refused("method.rings.slots", &tasks(task(0, &[1]), task(1, &[2, 3])));
    refused("method.waiting.task", &tasks(task(0, &[0, 1]), task(1, &[2])));
    refused("method.present", &|state| state.put("method.present", &2));
    refused("method.controller.tasks", &|state| {
        state.put("method.tasks", &[task(0, &[0, 1])]);
        state.put("method.present", &0);
    });
    refused("method.controller.tasks", &|state| state.put("method.controller.tasks", &9));
    refused("method.rings.slots", &|state| {
        state.put("method.rings.slots", &serde_json::json!({ "tasks": [[[1], [0]], [[], []]], "free": [5] }));
    });
    refused("method.target", &|state| state.put("method.target_widths", &[2]));
    refused("method.waiting.task", &|state| state.put("method.waiting.task", &0));
    refused("film", &|state| {
        state.arrays.remove("method.controller.film.weight");
    });
}

#[test]
fn tasks_share_the_memory_and_a_method_has_its_own_initial_rate() {
    let samples = samples(96);
    // Twelve slots for two tasks, then for three: of each task one slot or more is semantic.
    let mut learner = made("method = 'ctn'\ntasks = 2");
    let classes = |learner: &Learner| learner.memory().unwrap().histogram();
    learn(&mut learner, 0, &samples[..24]);
    assert_eq!(classes(&learner).iter().sum::<usize>(), 6);
    learn(&mut learner, 1, &samples[48..72]);
    let shares = classes(&learner);
    assert_eq!((shares[0] + shares[1], shares[2] + shares[3]), (6, 6));
    learn(&mut learner, 2, &samples[24..48]);
    let shares = classes(&learner);
    assert_eq!((shares[0] + shares[1], shares[2] + shares[3]), (8, 4));

    let rate = |text: &str| Config::from_toml(text).unwrap().check().unwrap().lr;
    assert_eq!(
        [rate("method = 'ctn'"), rate("method = 'er'"), rate("method = 'ctn'\nlr = 0.5")],
        [0.01, 3e-4, 0.5]
    );
}

#[test]
fn a_class_of_two_modulated_tasks_is_answered_by_both() {
    let samples = samples(96);
    let of = |class: usize| samples.iter().filter(move |(_, own)| *own == class).cloned();
    let together = |classes: [usize; 2]| -> Vec<(Image, usize)> {
        of(classes[0]).zip(of(classes[1])).flat_map(|(one, other)| [one, other]).collect()
    };
    let mut learner = made("method = 'ctn'");
    learn(&mut learner, 0, &together([0, 1]));
    learn(&mut learner, 1, &together([1, 2]));
    let images = images(&samples[..6]);
    let [zero, one] = [0, 1].map(|task| learner.predict_all_in(task, &images).unwrap());
    for (zero, one) in zero.iter().zip(&one) {
        assert_eq!((probability(zero, 2), probability(one, 0)), (0.0, 0.0));
        assert!(probability(zero, 1) > 0.0 && probability(one, 1) > 0.0);
        assert_ne!(probability(zero, 1), probability(one, 1));
    }
    assert!(learner.predict_all(&images).unwrap().iter().all(|answer| answer.probabilities.len() == 3));
}
