//! DPCL as a whole: its gradient, what is left of it with everything switched off, every branch taken, every reading
//! resumed exactly, and what it refuses.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::sync::atomic::AtomicBool;

use burn::tensor::{Device, Tensor, TensorData};
use dpcl::model::{Architecture, Growth, Model, Weights, floats, matrix, mixed_cross_entropy};
use dpcl::perturb::{Disturbance, NoiseKind, Pfi, PfiConfig};
use dpcl::random::Random;
use dpcl::state::State;
use dpcl::{Config, Error, Image, Learner, Run, Shape, Watch};
use dpcl_report::record::Event;

const SIZE: usize = 16;

/// Images of four classes: a bright quarter, and noise.
fn samples(count: usize) -> Vec<(Image, usize)> {
    let mut random = Random::named(9, "samples");
    let sample = |index: usize| {
        // Two classes at first, then the other two.
        let class = index % 2 + 2 * usize::from(index >= count / 2);
        let bright = |row: usize, column: usize| {
            (row < SIZE / 2) == (class < 2) && (column < SIZE / 2) == class.is_multiple_of(2)
        };
        let mut pixel = |index: usize| {
            let level = if bright(index / 3 / SIZE, index / 3 % SIZE) { 150 } else { 40 };
            level + random.below(100) as u8
        };
        let pixels: Vec<u8> = (0..SIZE * SIZE * 3).map(&mut pixel).collect();
        (Image { height: SIZE, width: SIZE, pixels: pixels.into() }, class)
    };
    (0..count).map(sample).collect()
}

fn config(text: &str) -> Config {
    let common = "model = 'slim'\nwidth = 4\nmemory = 12\nbatch = 8\nupdates = 1.0\nautoaugment = 'none'\nlr = 0.002\n";
    Config::from_toml(&format!("{common}{text}")).unwrap()
}

fn learner(config: &Config) -> Learner {
    Learner::new(config, Shape { channels: 3, height: SIZE, width: SIZE }).unwrap()
}

fn state(learner: &Learner) -> State {
    learner.state()
}

fn refusal(text: &str) -> String {
    let shape = Shape { channels: 3, height: SIZE, width: SIZE };
    match Learner::new(&config(text), shape) {
        Err(Error::BadKey { key, problem }) => format!("{key}: {problem}"),
        Err(other) => panic!("{text}: {other}"),
        Ok(_) => panic!("{text}: accepted"),
    }
}

/// A network of two heads and three classes on small images, and a frozen disturbance at one depth.
struct Frozen {
    model: Model,
    images: Tensor<4>,
    labels: Vec<usize>,
    disturbance: Disturbance,
}

impl Frozen {
    fn new(depth: usize, noise: NoiseKind) -> Self {
        let architecture = Architecture::named("slim", Some(4), 1e-6, 0.1).unwrap();
        let mut model = Model::new(architecture, 2, 4, &Device::flex());
        for _ in 0..3 {
            model.grow(Growth { keep_bias: true, keep_moments: true });
        }
        let mut random = Random::named(depth as u64, "frozen");
        let images = (0..6 * SIZE * SIZE * 3).map(|_| random.normal() as f32).collect();
        let images = model.images(images, SIZE);
        let config = PfiConfig { layers: vec![depth], noise, ..PfiConfig::default() };
        let factors = [1.0, 0.4, 1.2, 0.0, 0.9, 1.3];
        let disturbance = Pfi::new(config, 3).draw(&factors);
        Self { model, images, labels: vec![0, 1, 2, 2, 1, 0], disturbance }
    }

    fn loss(&self, pass: &mut dpcl::model::Pass<'_>) -> Tensor<1> {
        let Self { images, labels, disturbance, .. } = self;
        let mut change = |depth, activations| disturbance.apply(depth, activations);
        let features = pass.features_with(images.clone(), &mut change);
        let partners: Vec<usize> = disturbance.mixing.partners.iter().map(|&row| labels[row]).collect();
        mixed_cross_entropy(pass.logits(features), labels, &partners, disturbance.mixing.coefficient)
    }

    fn value(&self) -> f64 {
        f64::from(floats(self.loss(&mut self.model.pass()))[0])
    }
}

fn shift(weights: &mut Weights, direction: &[Vec<f32>], step: f32) {
    for (position, direction) in direction.iter().enumerate() {
        let old = weights.value(position).clone();
        let (shape, device) = (old.dims(), old.device());
        weights.set(position, old + matrix(direction.iter().map(|d| step * d).collect(), shape, &device));
    }
}

#[test]
fn the_gradient_is_that_of_the_loss_at_every_depth() {
    for (depth, noise) in
        [0, 1, 2, 3, 4].into_iter().flat_map(|d| [(d, NoiseKind::Paper), (d, NoiseKind::Nfm)])
    {
        let mut frozen = Frozen::new(depth, noise);
        let mut pass = frozen.model.pass();
        let loss = frozen.loss(&mut pass);
        let outcome = pass.backward(&loss);
        let gradients = |gradients: dpcl::model::Gradients| -> Vec<Vec<f32>> {
            gradients.into_iter().map(|gradient| floats(gradient.expect("every weight has one"))).collect()
        };
        let (encoder, heads) = (gradients(outcome.encoder), gradients(outcome.heads));

        // Along the gradient itself the loss must change at the rate of its squared norm; a random direction is added
        // so that a gradient of the wrong size in a few weights does not hide.
        let mut random = Random::named(1, "direction");
        let norm = encoder.iter().chain(&heads).flatten().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
        let mut tilt = |parts: &[Vec<f32>]| -> Vec<Vec<f32>> {
            let mut one = |g: &f32| (f64::from(*g) / norm + 0.01 * random.normal()) as f32;
            parts.iter().map(|part| part.iter().map(&mut one).collect()).collect()
        };
        let (along_encoder, along_heads) = (tilt(&encoder), tilt(&heads));
        let expected: f64 = encoder
            .iter()
            .chain(&heads)
            .flatten()
            .zip(along_encoder.iter().chain(&along_heads).flatten())
            .map(|(gradient, direction)| f64::from(*gradient) * f64::from(*direction))
            .sum();

        let step = 1e-4;
        let mut at = |step: f32| {
            shift(frozen.model.encoder_mut().weights_mut(), &along_encoder, step);
            shift(frozen.model.heads.weights_mut(), &along_heads, step);
            let value = frozen.value();
            shift(frozen.model.encoder_mut().weights_mut(), &along_encoder, -step);
            shift(frozen.model.heads.weights_mut(), &along_heads, -step);
            value
        };
        let found = (at(step) - at(-step)) / (2.0 * f64::from(step));
        let error = (found - expected).abs() / expected.abs();
        assert!(error < 2e-2, "depth {depth} {noise:?}: {found} for {expected}, off by {error}");
    }
}

#[test]
fn a_frozen_disturbance_acts_at_its_depth_only_and_always_alike() {
    let frozen = Frozen::new(2, NoiseKind::Paper);
    let activations =
        Tensor::<4>::from_data(TensorData::new(vec![0.5_f32; 6 * 4], [6, 2, 2, 1]), &Device::flex());
    let untouched = floats(frozen.disturbance.apply(1, activations.clone()));
    assert_eq!(untouched, floats(activations.clone()));
    let once = floats(frozen.disturbance.apply(2, activations.clone()));
    assert_ne!(once, untouched);
    assert_eq!(once, floats(frozen.disturbance.apply(2, activations)));
}

#[test]
fn with_everything_off_it_is_experience_replay_bit_for_bit() {
    let plain = "method = 'er'\ncutmix_prob = 0.0";
    let bare = "method = 'dpcl'\nmemory_scheme = 'reservoir'\nrate = 'exp-reset'\nhead_keep_adam = false\n\
                [dpcl]\npfi = false\nheads = 1\npredict = 'current'\nperiod = 3";
    let (mut er, mut dpcl) = (learner(&config(plain)), learner(&config(bare)));
    let samples = samples(48);
    for (image, class) in &samples {
        let (one, other) = (er.observe(image, *class).unwrap(), dpcl.observe(image, *class).unwrap());
        assert_eq!(one, other, "losses and rates");
    }
    let (er_state, dpcl_state) = (state(&er), state(&dpcl));
    for part in ["core", "method.memory", "method.rate"] {
        assert!(!er_state.part(part).values.is_empty());
        assert!(er_state.part(part) == dpcl_state.part(part), "{part} differs");
    }
    for (image, _) in &samples[..8] {
        assert_eq!(er.predict(image).unwrap(), dpcl.predict(image).unwrap());
    }
}

#[test]
fn every_branch_is_taken_in_a_small_run() {
    let text = "method = 'dpcl'\nclasses = 4\ntasks = 2\nper_class = 40\nmodel = 'slim'\nwidth = 4\nmemory = 16\n\
                updates = 1.0\neval_period = 0\nautoaugment = 'none'\nlr = 0.002\n[dpcl]\nperiod = 3";
    let run = Run::open(&Config::from_toml(text).unwrap()).unwrap();
    let mut counters = std::collections::BTreeMap::new();
    let mut keep = |event: &Event| {
        if let Event::Progress { counters: new, .. } = event {
            counters = new.clone();
        }
        Ok(())
    };
    let stop = AtomicBool::new(false);
    let mut watch = Watch { event: &mut keep, progress: &mut |_| {}, keep: &mut |_, _| Ok(()), stop: &stop };
    run.execute(&mut watch).unwrap();

    for name in [
        "rate_ups",
        "rate_downs",
        "memory_accepts",
        "memory_refusals",
        "pfi_depth_0",
        "pfi_depth_1",
        "pfi_depth_2",
    ] {
        assert!(counters[name] > 0.0, "{name}: {counters:?}");
    }
    assert_eq!(counters["first_met"], 4.0);
    assert_eq!(counters["collections"], (160 / 3) as f64);
    assert_eq!(counters["memory_accepts"] + counters["memory_refusals"], 160.0);
    assert_eq!(counters["pfi_depth_3"] + counters["pfi_depth_4"], 0.0, "the default depths are 0, 1 and 2");
}

#[test]
fn every_reading_learns_and_resumes_exactly() {
    let readings = [
        "",
        "noise = 'nfm'\nlayers = [0, 1, 2, 3, 4]",
        "bsc_window = 2\nrank = 0\npredict = 'mean'",
        "mi_pass = 'clean'\nloss_source = 'clean'\nlr_lag = 'collection'",
        "mi_heads = 'current'\nlr_rule = 'alg3'\npim_keep = 'low'\npim_admit_new_class = false",
        "heads = 1\ndraws = 3",
        "pfi = false\npredict = 'current'",
    ];
    let samples = samples(40);
    for reading in readings {
        let config = config(&format!("method = 'dpcl'\n[dpcl]\nperiod = 4\n{reading}"));
        let (mut whole, mut first) = (learner(&config), learner(&config));
        for (image, class) in &samples[..22] {
            whole.observe(image, *class).unwrap();
            first.observe(image, *class).unwrap();
        }
        let mut second = learner(&config);
        second.restore(&state(&first)).unwrap();
        for (image, class) in &samples[22..] {
            whole.observe(image, *class).unwrap();
            second.observe(image, *class).unwrap();
            second.predict(image).unwrap();
        }
        assert!(state(&whole) == state(&second), "{reading}");
        let answer = whole.predict(&samples[0].0).unwrap();
        assert_eq!(answer, second.predict(&samples[0].0).unwrap(), "{reading}");
        assert!(answer.entropy >= answer.disagreement, "{reading}");
        assert!(whole.memory().unwrap().history().iter().any(|&value| value > 0.0), "{reading}");
    }
}

#[test]
fn ablations_are_configuration() {
    let samples = samples(24);
    for text in [
        "[dpcl]\npfi = false",
        "memory_scheme = 'rm'\nrate = 'exp-reset'\n[dpcl]\nbsc = false",
        "memory_scheme = 'reservoir'\nrate = 'exp-reset'",
        "memory_scheme = 'reservoir'\nrate = 'constant'\ncutmix_prob = 0.5\n[dpcl]\npfi = false",
    ] {
        let mut learner = learner(&config(&format!("method = 'dpcl'\n{text}")));
        for (image, class) in &samples {
            learner.observe(image, *class).unwrap();
        }
        assert_eq!(learner.predict(&samples[0].0).unwrap().probabilities.len(), 4, "{text}");
    }
}

#[test]
fn many_images_are_answered_with_the_same_draws_as_one() {
    let mut learner = learner(&config("method = 'dpcl'\n[dpcl]\nperiod = 2"));
    let samples = samples(32);
    for (image, class) in &samples {
        learner.observe(image, *class).unwrap();
    }
    let images: Vec<Image> = samples[..5].iter().map(|(image, _)| image.clone()).collect();
    for (image, together) in images.iter().zip(learner.predict_all(&images).unwrap()) {
        let alone = learner.predict(image).unwrap();
        for ((_, one), (_, other)) in alone.probabilities.iter().zip(&together.probabilities) {
            assert!((one - other).abs() < 1e-4, "{one} and {other}");
        }
    }
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    assert_eq!(
        refusal("method = 'er'\nmemory_scheme = 'pim'"),
        "memory_scheme: `pim` needs heads that disagree, which `er` as configured has not; try `rm`"
    );
    assert_eq!(
        refusal("method = 'dpcl'\nmemory_scheme = 'rm'\n[dpcl]\nbsc = false"),
        "rate: `pima` needs heads that disagree, which `dpcl` as configured has not; try `exp-reset`"
    );
    assert!(refusal("method = 'dpcl'\n[dpcl]\nheads = 1\ndraws = 1").starts_with("memory_scheme: "));
    assert!(refusal("method = 'dpcl'\ncutmix_prob = 0.5").contains("dpcl.pfi"));
    assert_eq!(refusal("method = 'dpcl'\n[dpcl]\nomega = 0.9"), "dpcl.omega: must be above 1, not 0.9");
    assert_eq!(
        refusal("method = 'dpcl'\n[dpcl]\nlayers = [0, 5]"),
        "dpcl.layers: must name depths between 0 and 4, not [0, 5]"
    );
    assert!(refusal("method = 'dpcl'\n[dpcl]\nrank = 1").starts_with("dpcl.rank: "));
    assert!(refusal("method = 'dpcl'\n[dpcl]\nsigma = 1.0").starts_with("dpcl.sigma: unknown field"));
    assert!(refusal("method = 'dpcl'\n[dpcl]\nperiod = 'often'").starts_with("dpcl.period: "));
}

#[test]
fn a_resolved_configuration_names_every_key() {
    let resolved = config("method = 'dpcl'").resolve().unwrap();
    assert_eq!(resolved.settings.memory_scheme.as_deref(), Some("pim"));
    assert_eq!(resolved.settings.rate.as_deref(), Some("pima"));
    assert_eq!(resolved.settings.head_keep_adam, Some(true));
    assert_eq!(resolved.settings.cutmix_prob, Some(0.0));
    let keys = &resolved.sections["dpcl"];
    assert_eq!(keys["layers"].as_array().unwrap().len(), 3);
    assert_eq!(keys["predict"].as_str(), Some("posterior"));
    assert_eq!(Config::from_toml(&resolved.to_toml()).unwrap().resolve().unwrap(), resolved);
}
