//! Times one training step and one evaluation batch of a network, for comparison with other programs; and what a
//! sample costs with each method ([`cost`]); and how fast a configuration learns and answers ([`pace`]).

pub mod cost;
pub mod pace;

use std::time::Instant;

use serde::Serialize;

use crate::{
    error::Result,
    model::{Architecture, Growth, Model, cross_entropy, floats},
    process,
    random::Random,
};

/// What to time.
#[derive(Clone, Debug, PartialEq)]
pub struct StepBench {
    /// Network name.
    pub model: String,
    /// Training batch.
    pub batch: usize,
    /// Height and width of the images.
    pub size: usize,
    /// Threads; 0 uses every core.
    pub threads: usize,
    /// Steps counted; a warm-up comes before them.
    pub steps: usize,
    /// Images in an evaluation batch.
    pub eval_batch: usize,
    /// Use stock Burn operators instead of our kernels.
    pub stock: bool,
    /// Also time a network that keeps its average, step for step beside one that does not.
    pub average: bool,
}

/// Middle and best of several timings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Timing {
    /// Half of the timings were below.
    pub median: f64,
    /// The shortest.
    pub min: f64,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepTiming {
    /// Network name.
    pub model: String,
    /// Training batch.
    pub batch: usize,
    /// Height and width of the images.
    pub size: usize,
    /// Threads used.
    pub threads: usize,
    /// Instruction set, or "stock".
    pub isa: String,
    /// Milliseconds of a training step: forward, backward, Adam.
    pub train_ms: Timing,
    /// The same with an average kept, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub averaged_ms: Option<Timing>,
    /// Milliseconds an image takes in evaluation.
    pub eval_ms_per_image: Timing,
    /// Billions of operations a second in the median training step, convolutions only, two to a multiply-add.
    pub gflops: f64,
    /// Peak resident memory of this process.
    pub peak_memory_bytes: u64,
}

/// Outputs of the timed head.
const CLASSES: usize = 100;
/// Horizon of the timed average; its length costs nothing.
const HORIZON: u64 = 1000;
/// Uncounted steps.
const WARM_UP: usize = 3;

impl StepBench {
    /// Runs the benchmark.
    ///
    /// # Errors
    /// When no network has that name.
    pub fn run(&self) -> Result<StepTiming> {
        dpcl_kernels::set_threads(process::threads(self.threads));
        dpcl_kernels::use_stock(self.stock);
        let architecture = Architecture::named(&self.model, None, 1e-6, 0.1)?;
        let network = || {
            let mut model = Model::new(architecture, 1, 1, &burn::tensor::Device::flex());
            (0..CLASSES).for_each(|_| model.grow(Growth { keep_bias: true, keep_moments: true }));
            model
        };
        let (mut model, mut averaged) = (network(), self.average.then(|| network().averaged(HORIZON)));
        let mut random = Random::named(1, "bench");
        let labels: Vec<usize> = (0..self.batch).map(|_| random.below(CLASSES)).collect();
        let pixels = self.size * self.size * 3;
        let images: Vec<f32> = (0..self.batch * pixels).map(|_| random.normal() as f32).collect();
        let step = |model: &mut Model| {
            let mut pass = model.pass();
            let features = pass.features(model.images(images.clone(), self.size));
            let loss = cross_entropy(pass.logits(features), &labels);
            let outcome = pass.backward(&loss);
            model.update(outcome, 3e-4);
            floats(loss);
        };
        let mut steps: Vec<Box<dyn FnMut()>> = vec![Box::new(|| step(&mut model))];
        if let Some(averaged) = &mut averaged {
            steps.push(Box::new(|| step(averaged)));
        }
        let train = timings(self.steps, &mut steps);
        drop(steps);
        let images: Vec<f32> = (0..self.eval_batch * pixels).map(|_| random.normal() as f32).collect();
        let mut answer = || {
            floats(model.answering().logits(model.images(images.clone(), self.size)));
        };
        let evaluate = timings(self.steps.div_ceil(4), &mut [Box::new(&mut answer)])[0];
        dpcl_kernels::use_stock(false);
        let per_image = |milliseconds: f64| milliseconds / self.eval_batch as f64;
        let operations = 6.0 * architecture.multiply_adds(self.size) as f64 * self.batch as f64;
        Ok(StepTiming {
            model: self.model.clone(),
            batch: self.batch,
            size: self.size,
            threads: process::threads(self.threads),
            isa: if self.stock { "stock".into() } else { dpcl_kernels::isa_name().into() },
            train_ms: train[0],
            averaged_ms: train.get(1).copied(),
            eval_ms_per_image: Timing { median: per_image(evaluate.median), min: per_image(evaluate.min) },
            gflops: operations / (train[0].median * 1e6),
            peak_memory_bytes: process::peak_memory_bytes(),
        })
    }
}

/// The instruction set and its register-only multiply-add rate in GFLOP/s.
pub fn peak(threads: usize) -> (&'static str, f64) {
    dpcl_kernels::set_threads(process::threads(threads));
    (dpcl_kernels::isa_name(), dpcl_kernels::fma_peak_gflops())
}

/// The number of threads that a setting stands for: 0 is every core.
pub fn threads(setting: usize) -> usize {
    process::threads(setting)
}

/// The instruction set that everything here runs on.
pub fn isa() -> &'static str {
    dpcl_kernels::isa_name()
}

/// Times `count` calls of each in milliseconds, in turn, after some that do not count.
fn timings(count: usize, bodies: &mut [Box<dyn FnMut() + '_>]) -> Vec<Timing> {
    let mut times = vec![Vec::with_capacity(count); bodies.len()];
    for round in 0..WARM_UP + count.max(1) {
        for (body, times) in bodies.iter_mut().zip(&mut times) {
            let begin = Instant::now();
            body();
            if round >= WARM_UP {
                times.push(begin.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    let timing = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        Timing { median: times[times.len() / 2], min: times[0] }
    };
    times.into_iter().map(timing).collect()
}
