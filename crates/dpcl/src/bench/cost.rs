//! What learning a sample costs, method by method, beside plain replay: time, arithmetic, numbers kept, memory.
//!
//! Every method learns the same short stream of made-up images from its beginning to its end, work at task ends and
//! at the stream's end included; nothing is evaluated. Each time plain replay learns it as well, so that whatever
//! else the machine does meanwhile slows both. Multiply-adds are counted where they are done, in the kernels.
//!
//! A short stream is not a long one: methods that train at task ends cost more with every task, and those that go
//! through their memory more with a larger one.

use std::time::Instant;

use serde::Serialize;

use super::Timing;
use crate::{
    config::Config,
    data::Image,
    error::{Error, Result},
    learner::{Learner, Shape},
    process,
    random::Random,
    state::{Elements, State},
};

/// The method that others are measured by.
pub const REFERENCE: &str = "er";

/// The stream and what every method learns it with.
#[derive(Clone, Debug, PartialEq)]
pub struct CostBench {
    /// Network name.
    pub model: String,
    /// Training batch.
    pub batch: usize,
    /// Training steps a sample.
    pub updates: f64,
    /// Slots of the memory.
    pub memory: usize,
    /// Height and width of the images.
    pub size: usize,
    /// Tasks, of [`CLASSES`] classes each.
    pub tasks: usize,
    /// Samples of a task.
    pub samples: usize,
    /// Threads; 0 uses every core.
    pub threads: usize,
    /// Times that each stream is learned and counted; one more comes before them.
    pub rounds: usize,
}

/// Classes of a task.
pub const CLASSES: usize = 5;

/// What a sample costs with a method.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Name of the method.
    pub method: String,
    /// Milliseconds of learning a sample: all its training steps, and its share of what is done at task ends.
    pub sample_ms: Timing,
    /// How many times that of plain replay in the same round.
    pub sample_times: Ratios,
    /// Training steps taken, a sample.
    pub steps: f64,
    /// Multiply-adds of convolutions and linear layers, a sample.
    pub multiply_adds: f64,
    /// How many times those of plain replay.
    pub multiply_adds_times: f64,
    /// Numbers learned by gradients and those kept beside them at a fixed size, stored images and moments left out.
    pub model_parameters: u64,
    /// How many times those of plain replay.
    pub model_times: f64,
    /// Bytes of all that a learner keeps: weights, moments, stored images and what else its future depends on.
    pub kept_bytes: u64,
    /// How many times those of plain replay.
    pub kept_times: f64,
    /// Peak resident memory of a process that learned the stream once and did nothing else, where one did.
    pub peak_memory_bytes: Option<u64>,
    /// How many times that of plain replay.
    pub peak_memory_times: Option<f64>,
    /// What the complexity table of the DPCL paper says, where it has the method.
    pub paper: Option<PaperCost>,
}

/// Middle, least and most of several quotients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratios {
    /// Half of them were below.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
}

/// A row of the paper's complexity table, as multiples of ER's: ResNet34, on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PaperCost {
    /// Time of one training step on CIFAR-100.
    pub step_times: f64,
    /// Size of the model on ImageNet-100.
    pub model_times: f64,
    /// Memory of the GPU in training on ImageNet-100: activations too, and no stored images.
    pub memory_times: f64,
}

/// Seconds of one step, size of the model and memory in training, by method.
const PAPER: [(&str, f64, f64, f64); 10] = [
    ("er", 0.012, 1.0, 1.0),
    ("ewc++", 0.027, 2.0, 1.23),
    ("der++", 0.019, 1.0, 1.53),
    ("bic", 0.015, 1.01, 1.02),
    ("mir", 0.029, 1.0, 1.96),
    ("clib", 0.061, 1.0, 4.32),
    ("er-cpr", 0.015, 1.0, 1.0),
    ("dro", 0.038, 1.0, 3.46),
    ("oddl", 0.032, 2.14, 3.31),
    ("dpcl", 0.017, 1.03, 1.06),
];

impl PaperCost {
    /// That of a method.
    pub fn of(method: &str) -> Option<Self> {
        let seconds_of_er = PAPER[0].1;
        let &(_, seconds, model_times, memory_times) = PAPER.iter().find(|(name, ..)| *name == method)?;
        Some(Self { step_times: seconds / seconds_of_er, model_times, memory_times })
    }
}

/// One stream learned.
#[derive(Default)]
struct Learned {
    seconds: f64,
    multiply_adds: u64,
    steps: u64,
    model_parameters: u64,
    kept_bytes: u64,
}

impl Cost {
    /// With the peak memory of processes that learned with the method and with plain replay.
    #[must_use]
    pub fn with_peaks(self, own: u64, reference: u64) -> Self {
        let known = |bytes: u64| Some(bytes).filter(|&bytes| bytes > 0);
        let times = known(own).zip(known(reference)).map(|(own, reference)| own as f64 / reference as f64);
        Self { peak_memory_bytes: known(own), peak_memory_times: times, ..self }
    }
}

impl CostBench {
    /// Measures a method in turn with plain replay.
    ///
    /// # Errors
    /// When the method or the network has no such name, a number is out of its range, or training runs away.
    pub fn run(&self, method: &str) -> Result<Cost> {
        let configs = [self.config(REFERENCE)?, self.config(method)?];
        let samples = self.stream();
        let mut rounds: Vec<[Learned; 2]> = Vec::new();
        for round in 0..=self.rounds.max(1) {
            let learn = |place: usize| self.learn(&configs[place], &samples);
            // Who goes first takes turns: what comes second finds the machine warmer.
            let pair = if round % 2 == 0 {
                let reference = learn(0)?;
                [reference, learn(1)?]
            } else {
                let own = learn(1)?;
                [learn(0)?, own]
            };
            if round > 0 {
                rounds.push(pair);
            }
        }
        Ok(self.cost(method, &rounds))
    }

    fn cost(&self, method: &str, rounds: &[[Learned; 2]]) -> Cost {
        let count = (self.tasks * self.samples) as f64;
        let [reference, own] = &rounds[0];
        let times = |of: fn(&Learned) -> u64| of(own) as f64 / of(reference) as f64;
        let ratios = sorted(rounds.iter().map(|[reference, own]| own.seconds / reference.seconds));
        let sample = sorted(rounds.iter().map(|[_, own]| own.seconds * 1e3 / count));
        Cost {
            method: method.to_owned(),
            sample_ms: Timing { median: sample[sample.len() / 2], min: sample[0] },
            sample_times: Ratios {
                median: ratios[ratios.len() / 2],
                min: ratios[0],
                max: ratios[ratios.len() - 1],
            },
            steps: own.steps as f64 / count,
            multiply_adds: own.multiply_adds as f64 / count,
            multiply_adds_times: times(|learned| learned.multiply_adds),
            model_parameters: own.model_parameters,
            model_times: times(|learned| learned.model_parameters),
            kept_bytes: own.kept_bytes,
            kept_times: times(|learned| learned.kept_bytes),
            peak_memory_bytes: None,
            peak_memory_times: None,
            paper: PaperCost::of(method),
        }
    }

    /// Learns the stream once and gives the peak resident memory of this process, which should do nothing else; 0
    /// where the system does not tell.
    ///
    /// # Errors
    /// As for [`CostBench::run`].
    pub fn peak_memory(&self, method: &str) -> Result<u64> {
        self.learn(&self.config(method)?, &self.stream())?;
        Ok(process::peak_memory_bytes())
    }

    fn config(&self, method: &str) -> Result<Config> {
        for (key, number) in [("tasks", self.tasks), ("samples", self.samples), ("size", self.size)] {
            if number == 0 {
                return Err(Error::bad_key(key, "must be at least 1"));
            }
        }
        let Self { model, batch, updates, memory, tasks, threads, .. } = self;
        let mut config = Config::from_toml(&format!("method = '{method}'\nmodel = '{model}'"))?;
        let settings = &mut config.settings;
        (settings.batch, settings.updates, settings.memory) = (Some(*batch), Some(*updates), Some(*memory));
        (settings.tasks, settings.threads, settings.size) = (Some(*tasks), *threads, Some(self.size));
        Ok(config)
    }

    /// Images of noise, the classes of each task in turn.
    fn stream(&self) -> Vec<(usize, Image, i64)> {
        let mut random = Random::named(1, "bench-cost");
        let mut sample = |task: usize, number: usize| {
            let pixels: Vec<u8> = (0..self.size * self.size * 3).map(|_| random.below(256) as u8).collect();
            let image = Image { height: self.size, width: self.size, pixels: pixels.into() };
            (task, image, (task * CLASSES + number % CLASSES) as i64)
        };
        (0..self.tasks)
            .flat_map(|task| (0..self.samples).map(move |number| (task, number)))
            .map(|(task, number)| sample(task, number))
            .collect()
    }

    fn learn(&self, config: &Config, samples: &[(usize, Image, i64)]) -> Result<Learned> {
        let shape = Shape { channels: 3, height: self.size, width: self.size };
        let mut learner = Learner::new(config, shape)?;
        let (begin, before) = (Instant::now(), dpcl_kernels::multiply_adds());
        for of_task in samples.chunks(self.samples) {
            for (task, image, class) in of_task {
                learner.observe_in(*task, image, *class)?;
            }
            learner.task_end()?;
        }
        learner.finish()?;
        let parameters = learner.parameters();
        Ok(Learned {
            seconds: begin.elapsed().as_secs_f64(),
            multiply_adds: dpcl_kernels::multiply_adds() - before,
            steps: learner.updates(),
            model_parameters: parameters.network + parameters.state,
            kept_bytes: bytes(&learner.state()),
        })
    }
}

/// Bytes of a state's arrays; single numbers and generators are not worth counting.
fn bytes(state: &State) -> u64 {
    let bytes = |elements: &Elements| match elements {
        Elements::F32(elements) => 4 * elements.len(),
        Elements::U8(elements) => elements.len(),
    };
    state.arrays.values().map(|array| bytes(&array.elements) as u64).sum()
}

fn sorted(numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{methods::METHODS, model::Architecture};

    fn bench() -> CostBench {
        CostBench {
            model: "slim".into(),
            batch: 8,
            updates: 1.0,
            memory: 16,
            size: 8,
            tasks: 2,
            samples: 8,
            threads: 1,
            rounds: 1,
        }
    }

    #[test]
    fn work_is_that_of_the_passes_taken() {
        let bench = CostBench { tasks: 1, samples: 4, ..bench() };
        let cost = bench.run("finetune").unwrap();
        assert_eq!(cost.steps, 1.0);
        // Four steps on all four rows: forward and two gradients each, but none of the images; there are as many
        // columns as classes were met.
        let architecture = Architecture::named("slim", None, 1e-6, 0.1).unwrap();
        let stem = 8 * 8 * 9 * 3 * architecture.width as u64;
        let encoder = 3 * architecture.multiply_adds(8) - stem;
        let head = 3 * (architecture.features() * 4) as u64;
        assert_eq!(cost.multiply_adds, 4.0 * (encoder + head) as f64);
    }

    #[test]
    fn evolved_and_perturbed_replay_take_the_passes_they_say() {
        // Four steps on four rows alone, which know four classes, then four beside as many stored ones, which know five.
        let bench = CostBench { tasks: 1, samples: 8, ..bench() };
        let work = |method: &str| bench.run(method).unwrap().multiply_adds * 8.0;
        let architecture = Architecture::named("slim", None, 1e-6, 0.1).unwrap();
        let encoder = architecture.multiply_adds(8) as f64;
        let head = |columns: usize| (architecture.features() * columns) as f64;
        let stem = (8 * 8 * 9 * 3 * architecture.width) as f64;
        // A row forward and back, but not to its image.
        let row = |columns: usize| 3.0 * (encoder + head(columns)) - stem;
        let er = 4.0 * (4.0 * row(4) + 8.0 * row(5));
        assert_eq!(work("er"), er);
        // Stored rows go forward and back to the image five times, where no weight of the encoder learns and a head's
        // backward pass makes both of its gradients, and are learned there too.
        assert_eq!(work("dro"), er + 4.0 * 4.0 * (5.0 * (2.0 * encoder + 3.0 * head(5)) + row(5)));
        // Two places, each found by half of the stream's rows; what is stored is looked at once when the task ends.
        assert_eq!(work("fs-dgpm"), 2.0 * er + 4.0 * 4.0 * (row(4) + row(5)) + 8.0 * encoder);
    }

    #[test]
    fn plain_replay_is_its_own_measure() {
        let cost = bench().run("er").unwrap();
        assert_eq!((cost.multiply_adds_times, cost.model_times, cost.kept_times), (1.0, 1.0, 1.0));
        assert!(cost.sample_times.median > 0.0 && cost.sample_ms.min <= cost.sample_ms.median);
        assert_eq!(cost.paper.map(|paper| paper.step_times), Some(1.0));
        // Weights and two moments of each, running statistics, images.
        let images = 16 * 8 * 8 * 3;
        assert!(cost.kept_bytes > 12 * cost.model_parameters + images, "{cost:?}");
        let smaller = CostBench { memory: 4, ..bench() }.run("er").unwrap();
        assert_eq!(cost.kept_bytes - smaller.kept_bytes, 12 * 8 * 8 * 3);
    }

    #[test]
    fn every_method_can_be_measured_and_known_ones_cost_what_they_do() {
        let work = |method: &str| bench().run(method).unwrap().multiply_adds_times;
        for info in METHODS {
            let cost = bench().run(info.name).unwrap();
            assert!(cost.multiply_adds > 0.0 && cost.steps > 0.0 && cost.kept_bytes > 0, "{cost:?}");
        }
        // Without replay there are fewer rows; another teacher or a choice of what to rehearse are further passes.
        assert!(work("finetune") < 1.0 && work("mir") > 1.0 && work("er-cpr") >= 1.0);
        let ewc = bench().run("ewc++").unwrap();
        assert!(ewc.model_times > 1.9, "{ewc:?}");
    }

    #[test]
    fn peaks_that_nobody_tells_are_left_out() {
        let peaks = |own, reference| {
            let cost = bench().cost("er", &[[(); 2].map(|()| Learned::default())]).with_peaks(own, reference);
            (cost.peak_memory_bytes, cost.peak_memory_times)
        };
        assert_eq!(peaks(6, 4), (Some(6), Some(1.5)));
        assert_eq!((peaks(6, 0), peaks(0, 4)), ((Some(6), None), (None, None)));
        let peak = bench().peak_memory("finetune").unwrap();
        assert!(!cfg!(target_os = "linux") || peak > 1 << 20, "{peak}");
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let refused = |bench: CostBench, method: &str| bench.run(method).unwrap_err().to_string();
        assert!(refused(bench(), "nothing").contains("nothing"));
        assert!(refused(CostBench { samples: 0, ..bench() }, "er").contains("`samples`"));
        assert!(refused(CostBench { batch: 1, ..bench() }, "er").contains("`batch`"));
    }

    #[test]
    fn the_papers_rows_are_multiples_of_its_first() {
        let clib = PaperCost::of("clib").unwrap();
        assert!((clib.step_times - 61.0 / 12.0).abs() < 1e-12);
        assert_eq!((clib.model_times, clib.memory_times, PaperCost::of("gdumb")), (1.0, 4.32, None));
    }
}
