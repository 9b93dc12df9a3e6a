//! Made-up records with the shape of real ones: accuracies that rise while a task is learned and fall afterwards,
//! seeds that differ a little. No learning and no chance: the same plan always gives the same record.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test and example uses a part of it, and should stop if it fails"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dpcl_report::metrics::metrics;
use dpcl_report::read::Record;
use dpcl_report::record::{
    BadImages, CONFIG_FILE, ClassCount, ERROR_FILE, EVENTS_FILE, EvaluationKind, Event, FORMAT, Parameters,
    RESULT_FILE, RunResult,
};
use dpcl_report::uncertainty::{Answer, summarise};

/// A method and a stream to make records of.
#[derive(Clone)]
pub struct Plan {
    pub label: &'static str,
    pub knowledge: &'static str,
    pub scenario: &'static str,
    pub classes: Vec<String>,
    pub tasks: usize,
    pub samples_per_task: u64,
    /// Samples between periodic evaluations; 0 for none.
    pub period: u64,
    /// Accuracy a class comes to while it is learned.
    pub peak: f64,
    /// Share of it that is left long afterwards.
    pub kept: f64,
    /// Slots in memory; 0 for none.
    pub memory: usize,
    pub online: bool,
    /// Seconds of learning per thousand updates.
    pub slowness: f64,
    /// Heads that answer; one cannot disagree.
    pub heads: u64,
}

impl Plan {
    /// Two classes in each of three short tasks, one evaluation within each.
    pub fn small(label: &'static str, peak: f64, kept: f64) -> Self {
        let classes = ["cat & dog", "<b>ox</b>", "\"hen\"", "eel", "fly", "yak"];
        Self {
            label,
            knowledge: "none",
            scenario: "disjoint",
            classes: classes.map(str::to_owned).to_vec(),
            tasks: 3,
            samples_per_task: 20,
            period: 15,
            peak,
            kept,
            memory: 12,
            online: false,
            slowness: 2.0,
            heads: 1,
        }
    }

    /// The whole record of a finished run.
    pub fn record(&self, seed: u64) -> Record {
        let mut events = vec![self.start()];
        let end = self.tasks as u64 * self.samples_per_task;
        let step = (end / 120).max(5);
        for samples in 1..=end {
            let task = ((samples - 1) / self.samples_per_task) as usize;
            events.extend(self.new_class(task, samples));
            if samples % step == 0 {
                events.push(self.progress(seed, samples));
            }
            if self.period > 0 && samples % self.period == 0 {
                events.push(self.evaluation(seed, samples, EvaluationKind::Period));
            }
            if samples % self.samples_per_task == 0 {
                events.push(Event::TaskEnd { task, samples });
                let evaluation = self.evaluation(seed, samples, EvaluationKind::TaskEnd(task));
                let uncertainty = self.uncertainty(seed, &evaluation);
                events.extend([evaluation, uncertainty]);
                events.extend(self.slots(seed, task, samples));
            }
        }
        if self.online {
            events.push(Event::Online { samples: end, correct: (end as f64 * self.peak * 0.5) as u64 });
        }
        if self.memory > 0 {
            events.push(Event::Glimpse { png: include_str!("glimpse.base64").into() });
        }
        let result = self.result(seed, end, &events);
        let config_text = self.config(seed);
        let config = config_text.parse().unwrap();
        let path = PathBuf::from(format!("out/demo/{}-seed{seed}", self.label));
        Record { path, config_text, config, events, result: Some(result), failure: None, altered: false }
    }

    /// A run that stopped after some of its events.
    pub fn cut_record(&self, seed: u64, events: usize, failure: Option<&str>) -> Record {
        let mut record = self.record(seed);
        record.events.truncate(events);
        record.result = None;
        record.failure = failure.map(str::to_owned);
        record
    }

    fn per_task(&self) -> usize {
        self.classes.len() / self.tasks
    }

    fn start(&self) -> Event {
        let task = |task: usize| (task * self.per_task()..(task + 1) * self.per_task()).collect();
        Event::Start {
            format: FORMAT,
            classes: self.classes.clone(),
            task_classes: (0..self.tasks).map(task).collect(),
            task_samples: vec![self.samples_per_task as usize; self.tasks],
        }
    }

    fn new_class(&self, task: usize, samples: u64) -> Option<Event> {
        let place = ((samples - 1) % self.samples_per_task) as usize;
        let class = task * self.per_task() + place;
        (place < self.per_task()).then_some(Event::NewClass { samples, class })
    }

    fn progress(&self, seed: u64, samples: u64) -> Event {
        let within = (samples % self.samples_per_task) as f64 / self.samples_per_task as f64;
        let noise = noise(seed, samples, 1) * 0.12;
        let loss = (2.2 - self.peak) * (-3.0 * within).exp() + 0.25 + noise.abs();
        let rate = 3e-4 * 0.9999_f64.powf(within * self.samples_per_task as f64 * 3.0);
        Event::Progress { samples, updates: samples * 3, loss, rate, counters: BTreeMap::new() }
    }

    fn evaluation(&self, seed: u64, samples: u64, kind: EvaluationKind) -> Event {
        let met =
            (samples.div_ceil(self.samples_per_task) as usize * self.per_task()).min(self.classes.len());
        let classes = (0..met)
            .map(|class| {
                let accuracy = self.accuracy(seed, samples, class).clamp(0.0, 1.0);
                ClassCount { class, correct: (accuracy * 100.0).round() as u64, total: 100 }
            })
            .collect();
        Event::Evaluation { samples, updates: samples * 3, kind, classes }
    }

    /// Right answers are surer than wrong ones, on the whole.
    fn uncertainty(&self, seed: u64, evaluation: &Event) -> Event {
        let Event::Evaluation { samples, classes, .. } = evaluation else { unreachable!("made just before") };
        let mut answers = Vec::new();
        for count in classes {
            for image in 0..count.total {
                let correct = image < count.correct;
                let chance = noise(seed, image, count.class as u64).abs();
                let confidence = if correct { 1.0 - 0.7 * chance * chance } else { 0.95 - 0.65 * chance };
                let apart = 1.0 - confidence + 0.2 * noise(seed, image, 9).abs();
                let disagreement = if self.heads > 1 { apart } else { 0.0 };
                answers.push(Answer { correct, confidence, entropy: 2.0 - 2.0 * confidence, disagreement });
            }
        }
        Event::Uncertainty(summarise(*samples, &answers))
    }

    fn accuracy(&self, seed: u64, samples: u64, class: usize) -> f64 {
        let task = (class / self.per_task()) as f64;
        let age = samples as f64 / self.samples_per_task as f64 - task;
        let hard = 0.75 + 0.25 * noise(7, class as u64, 2);
        let learned = self.peak * hard * (1.0 - (-4.0 * age.min(1.0)).exp());
        let left = self.kept + (1.0 - self.kept) * (-2.2 * (age - 1.0).max(0.0)).exp();
        let crowd = 1.0 / (1.0 + 0.07 * (samples as f64 / self.samples_per_task as f64 - 1.0).max(0.0));
        learned * left * crowd + 0.03 * noise(seed, samples, class as u64)
    }

    fn slots(&self, seed: u64, task: usize, samples: u64) -> Option<Event> {
        let met = (task + 1) * self.per_task();
        let fair = self.memory as f64 / met as f64;
        let of_class = |class: usize| (fair * (1.0 + 0.3 * noise(seed, class as u64, 3))).round() as usize;
        (self.memory > 0).then(|| Event::Memory {
            samples,
            slots: (0..met).map(|class| (class, of_class(class))).collect(),
        })
    }

    fn result(&self, seed: u64, samples: u64, events: &[Event]) -> RunResult {
        let updates = samples * 3;
        RunResult {
            format: FORMAT,
            method: self.label.into(),
            label: self.label.into(),
            dataset: "cifar100".into(),
            scenario: self.scenario.into(),
            model: "slim".into(),
            seed,
            metrics: metrics(events),
            updates,
            samples,
            bad_images: BadImages::default(),
            train_seconds: updates as f64 / 1000.0 * self.slowness * (1.0 + 0.02 * noise(seed, 1, 4)),
            eval_seconds: updates as f64 / 1000.0 * 0.9,
            multiply_adds: None,
            peak_memory_bytes: 380_000_000 + (self.slowness * 2e7) as u64 + seed * 1_000_000,
            parameters: Some(Parameters {
                network: 171_000 + 3_220 * self.heads,
                state: 6_440 * (self.heads - 1),
                history: 64_400 * (self.heads - 1),
            }),
            isa: "avx2".into(),
            threads: 2,
            knowledge: self.knowledge.into(),
            answers: "any-time".into(),
            version: "0.1.0".into(),
            setting: BTreeMap::new(),
            group: BTreeMap::new(),
            absent: BTreeMap::new(),
            remarks: Vec::new(),
            checksum: String::new(),
        }
    }

    fn config(&self, seed: u64) -> String {
        format!(
            "# command: dpcl run small --method {label} --seeds {seed}\n\
             method = \"{label}\"\nseed = {seed}\ndataset = \"cifar100\"\nscenario = \"{scenario}\"\ntasks = {tasks}\n\
             model = \"slim\"\nmemory = {memory}\nmemory_scheme = \"reservoir\"\nbatch = 16\nupdates = 3.0\n\
             eval_period = {period}\n\n[{label:?}]\ncutmix = true\n",
            period = self.period,
            label = self.label,
            scenario = self.scenario,
            tasks = self.tasks,
            memory = self.memory
        )
    }
}

/// The record of a run whose average answered, each class of each evaluation `more` images better than the weights that
/// learn.
pub fn averaged(mut record: Record, more: u64) -> Record {
    let mut events = Vec::new();
    for event in std::mem::take(&mut record.events) {
        let Event::Evaluation { samples, updates, kind, classes } = event.clone() else {
            events.push(event);
            continue;
        };
        let better =
            |count: &ClassCount| ClassCount { correct: (count.correct + more).min(count.total), ..*count };
        let answered = classes.iter().map(better).collect();
        events.push(Event::Evaluation { samples, updates, kind, classes: answered });
        events.push(Event::Unaveraged { samples, updates, kind, classes, uncertainty: None });
    }
    record.result.as_mut().unwrap().metrics = metrics(&events);
    Record { events, ..record }
}

/// Writes a record as a run would, below `out`.
pub fn write(record: &Record, out: &Path) -> PathBuf {
    let folder = out.join(record.path.strip_prefix("out").unwrap_or(&record.path));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(CONFIG_FILE), &record.config_text).unwrap();
    let lines: String =
        record.events.iter().map(|event| serde_json::to_string(event).unwrap() + "\n").collect();
    std::fs::write(folder.join(EVENTS_FILE), lines).unwrap();
    if let Some(result) = &record.result {
        std::fs::write(folder.join(RESULT_FILE), serde_json::to_string_pretty(result).unwrap()).unwrap();
    }
    if let Some(failure) = &record.failure {
        std::fs::write(folder.join(ERROR_FILE), failure).unwrap();
    }
    folder
}

/// Between -1 and 1, the same for the same arguments (a multiply-and-shift mix, not a generator).
fn noise(a: u64, b: u64, c: u64) -> f64 {
    let mut mixed = a.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b.wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (c << 32);
    for _ in 0..3 {
        mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb);
    }
    (mixed >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}
