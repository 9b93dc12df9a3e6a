//! The losses of rows against an independent implementation, the training pass against its parts one by one, and which
//! row goes to which memory slot.

use burn::tensor::{Device, TensorData};
use serde_json::{Map, Value, json};

use super::*;
use crate::{
    augment::cutmix::{Area, Mix},
    config::Config,
    inner::reference::{Case, cases, cases_named, close},
    memory::Sample,
    model::{Architecture, Growth, Model, cross_entropy, floats, mixed_cross_entropy},
    perturb::{BscConfig, DEEPEST, Mixing, NoiseKind, Term, class_means},
    random::Random,
    rate::{Constant, Rate},
};

const SIZE: usize = 16;

/// Every number of a nested list, in order.
fn flat(value: &Value) -> Vec<f32> {
    match value {
        Value::Array(parts) => parts.iter().flat_map(flat).collect(),
        number => vec![number.as_f64().unwrap() as f32],
    }
}

/// Tracked logits from a list by head, row and class.
fn logits(value: &Value) -> Tensor<3> {
    let shape = [value, &value[0], &value[0][0]].map(|part| part.as_array().unwrap().len());
    Tensor::from_data(TensorData::new(flat(value), shape), &Device::flex()).autodiff().require_grad()
}

/// A batch of these labels, whose images do not matter.
fn labelled(labels: Vec<usize>) -> Batch {
    Batch { labels, size: SIZE, ..Batch::default() }
}

fn check_loss(case: &Case, losses: &RowLosses, logits: &Tensor<3>) {
    let loss = losses.mean();
    let check = |key: &str, found: Vec<f32>| {
        close(found, flat(&case.expected[key]), &case.tolerance, &format!("{}.{key}", case.name));
    };
    check("loss", floats(loss.clone()));
    check("gradient_logits", floats(logits.grad(&loss.backward()).unwrap()));
}

/// Share of each row in each class, and its losses against its own label and its partner's, from the terms.
fn taken_apart(terms: &[Term], rows: usize, classes: usize) -> (Vec<Vec<f64>>, [Vec<f64>; 2]) {
    let mut shares = vec![vec![0.0; classes]; rows];
    for (index, term) in terms.iter().enumerate() {
        shares[index % rows][term.class] += term.weight;
    }
    let losses = |terms: &[Term]| terms.iter().map(|term| term.loss).collect();
    (shares, [losses(&terms[..rows]), losses(&terms[rows..])])
}

#[test]
fn golden_mixed_label_losses() {
    let key = "logits_heads_rows_classes";
    let mut met = 0;
    for case in cases("pfi.json").iter().filter(|case| case.input.get(key).is_some()) {
        let logits = logits(&case.input[key]);
        let mixing = Mixing { coefficient: case.input("zeta"), partners: case.input("permutation") };
        let losses = RowLosses::new(logits.clone(), &labelled(case.input("labels")), Some(mixing));
        check_loss(case, &losses, &logits);
        let [_, rows, classes] = logits.dims();
        let (shares, [own, partner]) = taken_apart(&losses.terms(), rows, classes);
        case.check("soft_labels", shares);
        case.check("head_mean_ce_y", own);
        case.check("head_mean_ce_partner", partner);
        met += 1;
    }
    assert!(met > 3, "{met} cases have logits");
}

#[test]
fn golden_losses_of_batches_that_were_cut_and_mixed() {
    for case in cases_named("cutmix.json", "loss_") {
        let logits = logits(&json!([case.input["logits"]]));
        // Where the images were cut does not matter to the loss, only how much is left of them.
        let area = Area { left: 0, right: 0, top: 0, bottom: 0 };
        let coefficient = case.input("lambda_corrected");
        let mix = Mix { first: 0, area, coefficient, permutation: case.input("permutation") };
        let batch = Batch { mixes: vec![mix], ..labelled(case.input("labels")) };
        let losses = RowLosses::new(logits.clone(), &batch, None);
        check_loss(&case, &losses, &logits);
        let terms = losses.terms();
        let (own, partner) = terms.split_at(batch.labels.len());
        let row = |(own, partner): (&Term, &Term)| own.weight * own.loss + partner.weight * partner.loss;
        case.check("rows", own.iter().zip(partner).map(row).collect::<Vec<f64>>());
    }
}

#[test]
fn golden_class_losses() {
    for case in cases("class_loss_ema.json") {
        let mut running = ClassLosses::new(case.input("kappa"));
        for (step, iteration) in case.input::<Vec<Value>>("iterations").iter().enumerate() {
            let read = |key: &str| serde_json::from_value::<Vec<usize>>(iteration[key].clone()).unwrap();
            let logits = logits(&iteration["logits_heads_rows_classes"]);
            let coefficient = iteration["zeta"].as_f64().unwrap();
            let mixing = Mixing { coefficient, partners: read("permutation") };
            let losses = RowLosses::new(logits, &labelled(read("labels")), Some(mixing));
            running.absorb(losses.terms());

            let expected = &case.expected["after_each_iteration"][step];
            let context = format!("{} iteration {step}", case.name);
            let means = class_means(losses.terms());
            let batch: Map<String, Value> =
                means.iter().map(|(class, (_, loss))| (class.to_string(), json!(loss))).collect();
            close(batch, &expected["batch_class_loss"], &case.tolerance, &context);
            let averages: Map<String, Value> = (0..10)
                .filter_map(|class| Some((class.to_string(), json!(running.average(class)?))))
                .collect();
            assert_eq!(averages.len(), expected["lbar"].as_object().unwrap().len(), "{context}");
            close(averages, &expected["lbar"], &case.tolerance, &context);
            close(floats(losses.mean())[0], &expected["mixed_loss"], &case.tolerance, &context);
            let whole: f64 = means.values().map(|(weight, loss)| weight * loss).sum();
            let rows = losses.labels.len() as f64;
            close(whole / rows, &expected["mixed_loss"], &case.tolerance, &context);
        }
    }
}

fn network() -> Model {
    let architecture = Architecture::named("slim", Some(4), 1e-6, 0.1).unwrap();
    let mut model = Model::new(architecture, 2, 4, &Device::flex());
    for _ in 0..3 {
        model.grow(Growth { keep_bias: true, keep_moments: true });
    }
    model
}

fn batch() -> Batch {
    let mut random = Random::named(5, "batch");
    let images = (0..6 * SIZE * SIZE * 3).map(|_| random.normal() as f32).collect();
    Batch { images, ..labelled(vec![0, 1, 2, 2, 1, 0]) }
}

fn setup() -> Setup {
    Config::from_toml("method = 'dpcl'\nseed = 3").unwrap().check().unwrap()
}

fn double(pfi: Option<PfiConfig>, bsc: Option<BscConfig>) -> DoublePerturbation {
    let keys = DoubleKeys {
        pfi: pfi.is_some(),
        interpolation: pfi.unwrap_or_default(),
        bsc: bsc.is_some(),
        classifiers: bsc.unwrap_or_default(),
        pima: PimaConfig { gamma: 0.25, ..PimaConfig::default() },
    };
    let mut double = DoublePerturbation::new(&setup(), &keys).unwrap();
    // Two classes have been trained on, the third is in its first batch.
    double.losses.absorb([(0, 2.0), (1, 0.3)].map(|(class, loss)| Term { class, weight: 1.0, loss }));
    double
}

/// The loss and its gradients, all of them in a row.
fn outcome(pass: Pass, loss: &Tensor<1>) -> (f64, Vec<f32>) {
    let outcome = pass.backward(loss);
    let gradients = outcome.encoder.into_iter().chain(outcome.heads);
    (outcome.loss, gradients.flat_map(|gradient| floats(gradient.unwrap())).collect())
}

#[test]
fn a_training_pass_is_disturbed_by_how_hard_the_classes_are_and_mixes_labels_as_it_mixes_rows() {
    let (model, batch) = (network(), batch());
    let [first, second] = [2.0_f64.atan(), 0.3_f64.atan()];
    let factors = [first, second, 1.0, 1.0, second, first];
    for (depth, noise) in (0..=DEEPEST).flat_map(|depth| [(depth, NoiseKind::Paper), (depth, NoiseKind::Nfm)])
    {
        let config = PfiConfig { layers: vec![depth], noise, ..PfiConfig::default() };
        let mut double = double(Some(config.clone()), None);
        let mut pass = model.pass();
        let forward = double.forward(&mut pass, &batch);
        assert_eq!((double.counts.steps, double.counts.first_met), (1, 1));

        // The same draws, taken apart.
        let disturbance = Pfi::new(config, 3).draw(&factors);
        let mut plain = model.pass();
        let images = model.images(batch.images.clone(), SIZE);
        let features = plain.features_with(images, &mut |depth, x| disturbance.apply(depth, x));
        let logits = plain.logits(features.clone());
        assert_eq!(floats(forward.features.clone()), floats(features), "depth {depth} {noise:?}");
        assert_eq!(floats(forward.logits.clone()), floats(logits.clone()), "depth {depth} {noise:?}");
        let Mixing { coefficient, partners } = &disturbance.mixing;
        let partners: Vec<usize> = partners.iter().map(|&row| batch.labels[row]).collect();
        let loss = mixed_cross_entropy(logits, &batch.labels, &partners, *coefficient);
        let found = outcome(pass, &forward.losses.mean());
        assert!(found == outcome(plain, &loss), "loss or gradients, depth {depth} {noise:?}");
    }
}

#[test]
fn without_perturbation_a_training_pass_is_a_plain_one() {
    let (model, batch) = (network(), batch());
    let mut pass = model.pass();
    let forward = double(None, None).forward(&mut pass, &batch);
    let mut plain = model.pass();
    let features = plain.features(model.images(batch.images.clone(), SIZE));
    let loss = cross_entropy(plain.logits(features), &batch.labels);
    assert!(forward.losses.terms().iter().all(|term| term.weight == 1.0));
    assert!(outcome(pass, &forward.losses.mean()) == outcome(plain, &loss));
}

#[test]
fn a_step_that_is_not_perturbed_is_a_plain_one() {
    let (model, batch) = (network(), batch());
    let never = PfiConfig { probability: 0.0, ..PfiConfig::default() };
    let losses = [double(Some(never), None), double(None, None)].map(|mut double| {
        let mut pass = model.pass();
        let forward = double.forward(&mut pass, &batch);
        assert!(forward.losses.terms().iter().all(|term| term.weight == 1.0));
        outcome(pass, &forward.losses.mean())
    });
    assert!(losses[0] == losses[1]);
}

#[test]
fn a_batch_whose_images_are_mixed_is_not_perturbed() {
    let area = Area { left: 2, right: 6, top: 2, bottom: 6 };
    let clean = batch();
    let permutation = (0..clean.labels.len()).rev().collect();
    let cut = Batch { mixes: vec![Mix { first: 0, area, coefficient: 0.75, permutation }], ..clean.clone() };
    let model = network();
    let mut both = double(Some(PfiConfig::default()), None);
    let losses = |double: &mut DoublePerturbation, batch: &Batch| {
        let mut pass = model.pass();
        let forward = double.forward(&mut pass, batch);
        outcome(pass, &forward.losses.mean())
    };
    assert!(losses(&mut both, &cut) == losses(&mut double(None, None), &cut));
    // Nor was chance asked for it: the next batch is perturbed as the first would have been.
    assert!(losses(&mut both, &clean) == losses(&mut double(Some(PfiConfig::default()), None), &clean));
}

#[test]
fn running_statistics_can_follow_the_rows_as_they_are() {
    let batch = batch();
    let stepped = |pfi: Option<PfiConfig>| {
        let mut model = network();
        let mut pass = model.pass();
        let forward = double(pfi, None).forward(&mut pass, &batch);
        let outcome = pass.backward(&forward.losses.mean());
        model.update(outcome, 1e-3);
        let mut state = State::default();
        model.save(&mut state);
        state.arrays
    };
    for layers in [vec![0], vec![2]] {
        let pfi = |statistics| Some(PfiConfig { statistics, layers: layers.clone(), ..PfiConfig::default() });
        let plain = stepped(None);
        let [mixed, clean] =
            [Statistics::Mixed, Statistics::Clean].map(|statistics| stepped(pfi(statistics)));
        for (name, found) in &clean {
            // Only what is kept differs: the step is the one that the perturbed rows lead to.
            let same = if name.contains(".running_") { &plain } else { &mixed };
            assert!(*found == same[name], "{name}, {layers:?}");
        }
        let deep = "encoder.group3.block0.bn1.running_mean";
        assert!(mixed[deep] != plain[deep], "{layers:?}");
    }
}

/// A rate that remembers what it heard.
struct Listener {
    heard: Vec<Option<f64>>,
    collected: usize,
    rate: Constant,
}

impl Persist for Listener {
    fn save(&self, state: &mut State) {
        self.rate.save(state);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.rate.load(state)
    }
}

impl Rate for Listener {
    fn rate(&self) -> f64 {
        self.rate.rate()
    }

    fn rehearsed(&mut self, change: Option<f64>) {
        self.heard.push(change);
    }

    fn collected(&mut self) {
        self.collected += 1;
    }
}

#[test]
fn what_memory_rows_showed_goes_to_their_slots_and_is_told_the_rate() {
    let mut memory = Memory::new("pim", 4, 1).unwrap();
    let image = Image { height: 1, width: 1, pixels: vec![0; 3].into() };
    for history in [0.1, 0.2, 0.3, 0.4] {
        memory.offer(&Sample::new(image.clone(), 0), Some(history));
    }
    let config = BscConfig { heads: 2, period: 2, ..BscConfig::default() };
    let mut double = double(None, Some(config));
    let mut rate = Listener { heard: Vec::new(), collected: 0, rate: Constant::new(0.1) };

    // Three rows of the stream, then slots 2 and 0.
    let batch = Batch { slots: vec![2, 0], ..labelled(vec![0; 5]) };
    let rows = [0.91, 0.92, 0.93, 0.7, 0.5];
    let mut model = network();
    let objective = Objective::new(&setup()).unwrap();
    let mut training = Training {
        model: &mut model,
        memory: &mut memory,
        rate: &mut rate,
        objective: &objective,
        asked: std::cell::Cell::default(),
        left: 0,
    };
    for steps in [1, 2, 3] {
        double.counts.steps = steps;
        let measured = (steps == 1).then_some(&rows[..]);
        double.report(&mut training, &batch, measured);
    }
    // γ is a quarter: 0.1 + (0.5 − 0.1) / 4 and 0.3 + (0.7 − 0.3) / 4.
    close(memory.history(), [0.2, 0.2, 0.4, 0.4], &json!(1e-12), "history");
    let heard: Vec<f64> = rate.heard.iter().map(|change| change.unwrap()).collect();
    close(heard, [0.4 + 0.4], &json!(1e-12), "change");
    assert_eq!((rate.collected, double.heads.collections()), (1, Some(1)), "every second step");
}
