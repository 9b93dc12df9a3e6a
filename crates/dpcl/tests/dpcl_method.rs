//! DPCL as a whole: its gradient, what is left of it with everything switched off, every branch taken, every reading
//! resumed exactly, and what it refuses.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::sync::atomic::AtomicBool;

use burn::tensor::{Device, Tensor, TensorData};
use dpcl::model::{Architecture, Growth, Model, Weight, floats, matrix, mixed_cross_entropy};
use dpcl::perturb::{Disturbance, NoiseKind, Pfi, PfiConfig};
use dpcl::random::Random;
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

/// The parts that follow disagreement, as the paper has them.
const PIMA: &str = "method = 'dpcl'\nmemory_scheme = 'pim'\nrate = 'pima'\n";

const LETTER: &str = include_str!("../../../presets/dpcl-literal.toml");

fn config(text: &str) -> Config {
    let common = "model = 'slim'\nwidth = 4\nmemory = 12\nbatch = 8\nupdates = 1.0\nautoaugment = 'none'\nlr = 0.002\n";
    Config::from_toml(&format!("{common}{text}")).unwrap()
}

fn learner(config: &Config) -> Learner {
    Learner::new(config, Shape { channels: 3, height: SIZE, width: SIZE }).unwrap()
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

/// A weight matrix by its number; those of the heads follow those of the encoder.
fn weight(model: &mut Model, number: usize) -> &mut Weight {
    let encoder = model.encoder().weights().iter().count();
    match number.checked_sub(encoder) {
        None => model.encoder_mut().weights_mut().iter_mut().nth(number).unwrap(),
        Some(number) => model.heads.weights_mut().iter_mut().nth(number).unwrap(),
    }
}

/// Steps of the difference quotients. Single precision leaves some 4e-7 of a loss unsure, which is 1e-3 of a
/// slope; a longer step more often meets a point where a ReLU turns and the loss has no slope. Hence four
/// tries, each in another direction: a wrong gradient is wrong in all of them.
const STEPS: [f64; 4] = [2e-4, 1e-4, 4e-4, 2e-4];

/// How far a slope may be off: a share of the norm of the matrix's gradient, 0.03 to 2 here, and noise.
const SLOPE_BOUND: (f64, f64) = (2e-2, 2e-3);

#[test]
fn the_gradient_is_that_of_the_loss_at_every_depth() {
    let mut random = Random::named(1, "direction");
    for (depth, noise) in
        [0, 1, 2, 3, 4].into_iter().flat_map(|d| [(d, NoiseKind::Paper), (d, NoiseKind::Nfm)])
    {
        let mut frozen = Frozen::new(depth, noise);
        let mut pass = frozen.model.pass();
        let loss = frozen.loss(&mut pass);
        let outcome = pass.backward(&loss);
        for (number, gradient) in outcome.encoder.into_iter().chain(outcome.heads).enumerate() {
            let gradient = floats(gradient.expect("every weight has one"));
            let norm = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
            let Weight { name, value: old, .. } = weight(&mut frozen.model, number).clone();
            let mut slopes = |step: f64| {
                // Along itself a gradient with parts missing looks right, so half of the way is by chance.
                let chance = (gradient.len() as f64).sqrt().recip();
                let mut along =
                    |g: &f32| (f64::from(*g) / norm.max(f64::MIN_POSITIVE) + chance * random.normal()) as f32;
                let direction: Vec<f32> = gradient.iter().map(&mut along).collect();
                let products = gradient.iter().zip(&direction).map(|(g, d)| f64::from(*g) * f64::from(*d));
                let expected: f64 = products.sum();
                let direction = matrix(direction, old.dims(), &old.device());
                let mut at = |step: f64| {
                    let moved = old.clone() + direction.clone().mul_scalar(step);
                    weight(&mut frozen.model, number).value = moved;
                    frozen.value()
                };
                ((at(step) - at(-step)) / (2.0 * step), expected)
            };
            let (bound, mut tried) = (SLOPE_BOUND.0 * norm + SLOPE_BOUND.1, Vec::new());
            let right = STEPS.into_iter().any(|step| {
                let (found, expected) = slopes(step);
                tried.push((found, expected));
                (found - expected).abs() < bound
            });
            weight(&mut frozen.model, number).value = old;
            assert!(right, "depth {depth} {noise:?} {name}: found and expected {tried:?}, bound {bound}");
        }
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
    let samples = samples(48);
    let mut er = learner(&config("method = 'er'\ncutmix_prob = 0.0"));
    let learned: Vec<_> = samples.iter().map(|(image, class)| er.observe(image, *class).unwrap()).collect();
    let er_state = er.state();
    // With so small a second parameter Beta gives exactly 1: rows keep all of themselves.
    let still = "sigma_a = 0.0\nsigma_m = 0.0\nalpha = 1.0\nbeta = 1e-300\nlayers = [0, 1, 2, 3, 4]\n";
    for (pfi, keys) in [(false, ""), (true, "noise = 'paper'"), (true, "noise = 'nfm'")] {
        let bare = format!(
            "method = 'dpcl'\nmemory_scheme = 'reservoir'\nrate = 'exp-reset'\nhead_keep_adam = false\n\
             [dpcl]\nheads = 1\npredict = 'current'\nperiod = 3\npfi = {pfi}\n{still}{keys}"
        );
        let mut dpcl = learner(&config(&bare));
        for ((image, class), expected) in samples.iter().zip(&learned) {
            assert_eq!(dpcl.observe(image, *class).unwrap(), *expected, "losses and rates, {pfi} {keys}");
        }
        assert_eq!(dpcl.counters().get("pfi_depth_1").is_some_and(|&steps| steps > 0.0), pfi);
        let dpcl_state = dpcl.state();
        for part in ["core", "method.memory", "method.rate"] {
            assert!(!er_state.part(part).values.is_empty());
            assert!(er_state.part(part) == dpcl_state.part(part), "{part} differs, {pfi} {keys}");
        }
        for (image, _) in &samples[..8] {
            assert_eq!(er.predict(image).unwrap(), dpcl.predict(image).unwrap());
        }
    }
}

#[test]
fn every_branch_is_taken_in_a_small_run() {
    let text = format!(
        "{PIMA}classes = 4\ntasks = 2\nper_class = 40\nmodel = 'slim'\nwidth = 4\nmemory = 16\nupdates = 1.0\n\
         eval_period = 0\nautoaugment = 'none'\nlr = 0.002\n[dpcl]\nperiod = 3\nnoise = 'paper'"
    );
    let run = Run::open(&Config::from_toml(&text).unwrap()).unwrap();
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
        "noise = 'paper'\nlayers = [0, 1, 2, 3, 4]\nbsc_window = 0",
        "bsc_window = 2\nrank = 0\npredict = 'mean'",
        "noise = 'paper'\nmi_pass = 'clean'\nloss_source = 'clean'\nlr_lag = 'collection'",
        "mi_heads = 'current'\nlr_rule = 'alg3'\npim_keep = 'low'\npim_admit_new_class = false",
        "heads = 1\ndraws = 3",
        "pfi = false\npredict = 'current'",
    ];
    let samples = samples(40);
    for reading in readings {
        let config = config(&format!("{PIMA}[dpcl]\nperiod = 4\n{reading}"));
        let (mut whole, mut first) = (learner(&config), learner(&config));
        for (image, class) in &samples[..22] {
            whole.observe(image, *class).unwrap();
            first.observe(image, *class).unwrap();
        }
        let mut second = learner(&config);
        second.restore(&first.state()).unwrap();
        for (image, class) in &samples[22..] {
            whole.observe(image, *class).unwrap();
            second.observe(image, *class).unwrap();
            second.predict(image).unwrap();
        }
        assert!(whole.state() == second.state(), "{reading}");
        let answer = whole.predict(&samples[0].0).unwrap();
        assert_eq!(answer, second.predict(&samples[0].0).unwrap(), "{reading}");
        assert!(answer.entropy >= answer.disagreement, "{reading}");
        assert!(whole.memory().unwrap().history().iter().any(|&value| value > 0.0), "{reading}");
    }
}

#[test]
fn what_it_keeps_beside_replay_is_counted() {
    let samples = samples(24);
    let count = |text: &str| {
        let mut learner = learner(&config(text));
        samples.iter().for_each(|(image, class)| drop(learner.observe(image, *class).unwrap()));
        learner.parameters()
    };
    let er = count("method = 'er'");
    assert_eq!((er.state, er.history), (0, 0));
    // Four classes on eight times the width in features, and their biases.
    let row = 4 * 32 + 4;
    let dpcl = count("method = 'dpcl'\n[dpcl]\nheads = 3\nperiod = 4\nrank = 2\nbsc_window = 0");
    assert_eq!(dpcl.network, er.network + 2 * row, "two heads more");
    assert_eq!(dpcl.state, 2 * 3 * row, "a mean and a mean of squares for each of three heads");
    assert_eq!(dpcl.history, 2 * 3 * row, "two deviation columns");
    let windowed = count("method = 'dpcl'\n[dpcl]\nheads = 3\nperiod = 4\nrank = 0\nbsc_window = 3");
    assert_eq!(windowed.history, 3 * 3 * row, "three snapshots");
}

#[test]
fn ablations_are_configuration() {
    let samples = samples(24);
    for text in [
        "memory_scheme = 'pim'\nrate = 'pima'\n[dpcl]\npfi = false",
        "memory_scheme = 'rm'\nrate = 'exp-reset'\n[dpcl]\nbsc = false",
        "memory_scheme = 'reservoir'\nrate = 'exp-reset'\n[dpcl]\nnoise = 'paper'\nbsc_window = 0",
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
        refusal("method = 'dpcl'\nrate = 'pima'\n[dpcl]\nbsc = false"),
        "rate: `pima` needs heads that disagree, which `dpcl` as configured has not; try `exp-reset`"
    );
    assert!(refusal(&format!("{PIMA}[dpcl]\nheads = 1\ndraws = 1")).starts_with("memory_scheme: "));
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
    assert_eq!(resolved.settings.memory_scheme.as_deref(), Some("reservoir"));
    assert_eq!(resolved.settings.rate.as_deref(), Some("exp-reset"));
    assert_eq!(resolved.settings.head_keep_adam, Some(false));
    assert_eq!(resolved.settings.cutmix_prob, Some(0.0));
    let keys = &resolved.sections["dpcl"];
    assert_eq!(keys["layers"].as_array().unwrap().len(), 3);
    assert_eq!(keys["predict"].as_str(), Some("posterior"));
    assert_eq!(Config::from_toml(&resolved.to_toml()).unwrap().resolve().unwrap(), resolved);
}

#[test]
fn a_key_left_out_is_the_methods_default_whatever_else_is_said() {
    let keys = |text: &str| config(text).resolve().unwrap().sections.remove("dpcl").unwrap();
    let (all, some) = (keys("method = 'dpcl'"), keys("method = 'dpcl'\n[dpcl]\nsigma_a = 0.3\nheads = 2"));
    assert_eq!((all["noise"].as_str(), all["bsc_window"].as_integer()), (Some("nfm"), Some(20)));
    for (key, value) in &all {
        let said = ["sigma_a", "heads"].contains(&key.as_str());
        assert_eq!(said, some[key] != *value, "{key}");
    }
    // Methods that share these keys start them from the paper's values.
    let clib = config("method = 'clib'").resolve().unwrap().sections.remove("clib").unwrap();
    assert_eq!((clib["noise"].as_str(), clib["bsc_window"].as_integer()), (Some("paper"), Some(0)));
}

#[test]
fn the_letter_of_the_paper_leaves_nothing_to_the_defaults() {
    let letter = Config::from_toml(LETTER).unwrap();
    let resolved = letter.resolve().unwrap();
    let names = |config: &Config| config.sections["dpcl"].keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&letter), names(&resolved));
    let (said, settled) = (&letter.settings, &resolved.settings);
    assert_eq!((&said.memory_scheme, &said.rate), (&settled.memory_scheme, &settled.rate));
    assert_eq!((said.head_keep_adam, said.cutmix_prob), (Some(true), Some(0.0)));
}

#[test]
fn the_default_differs_from_the_letter_of_the_paper_at_five_keys() {
    let keys = |text: &str| {
        let mut keys = Config::from_toml(text).unwrap().resolve().unwrap().to_table();
        let own = keys.remove("dpcl").unwrap();
        let own = own.as_table().unwrap().iter();
        keys.extend(own.map(|(key, value)| (format!("dpcl.{key}"), value.clone())));
        keys.remove("label");
        keys
    };
    let (default, letter) = (keys("method = 'dpcl'"), keys(LETTER));
    let mut differing: Vec<&String> = default.keys().chain(letter.keys()).collect();
    differing.retain(|key| default.get(*key) != letter.get(*key));
    differing.sort_unstable();
    differing.dedup();
    assert_eq!(differing, ["dpcl.bsc_window", "dpcl.noise", "head_keep_adam", "memory_scheme", "rate"]);
}
