//! Perturbed interpolation, disagreement, and the memory and rate that follow it, against an independent implementation.
//! The losses of mixed rows and of classes are compared where they are computed, in `rehearsal/double`.

use super::reference::{Case, cases, cases_named, close};
use crate::answers::{Scores, entropy};
use crate::config::Value as _;
use crate::memory::{Chance, Keep, Memory, Offer, Pim, Place, Sample, Scheme, View};
use crate::model::floats;
use crate::perturb::{ClassLosses, Mixing, PfiConfig, Term, mix, perturb};
use crate::rate::{Lag, Pima, Rate, Rule};
use burn::tensor::{Device, Tensor, TensorData};
use dpcl_kernels::{PerturbMix, perturb_mix};
use serde_json::{Value, json};

/// Every number of a nested list, in order.
fn flat(value: &Value) -> Vec<f32> {
    match value {
        Value::Array(parts) => parts.iter().flat_map(flat).collect(),
        number => vec![number.as_f64().unwrap() as f32],
    }
}

fn input(case: &Case, key: &str) -> Vec<f32> {
    flat(&case.input[key])
}

fn activations(case: &Case, device: &Device) -> Tensor<4> {
    let (numbers, rows) = (input(case, "h"), case.input["h"].as_array().unwrap().len());
    let columns = numbers.len() / rows;
    Tensor::from_data(TensorData::new(numbers, [rows, columns, 1, 1]), device)
}

fn check(case: &Case, key: &str, found: Vec<f32>) {
    close(found, flat(&case.expected[key]), &case.tolerance, &format!("{}.{key}", case.name));
}

/// Losses as they would be after rows of classes 0, 1, … with the given running losses.
fn factors(case: &Case) -> Vec<f64> {
    let running: Vec<f64> = case.input("lbar_of_rows");
    let first: Vec<bool> = case.input("first_met");
    let mut losses = ClassLosses::new(0.1);
    let known = running.iter().enumerate().filter(|(row, _)| !first[*row]);
    losses.absorb(known.map(|(class, &loss)| Term { class, weight: 1.0, loss }));
    losses.factors(&(0..running.len()).collect::<Vec<_>>())
}

/// Factor 1 + μₘξₘ and shift μₐξₐ of every activation.
fn noise(scales: &[(f32, f32)], product: &[f32], sum: &[f32], like: &Tensor<4>) -> (Tensor<4>, Tensor<4>) {
    let length = product.len() / scales.len();
    let factor = product.iter().enumerate().map(|(index, xi)| 1.0 + scales[index / length].0 * xi).collect();
    let shift = sum.iter().enumerate().map(|(index, xi)| scales[index / length].1 * xi).collect();
    let tensor = |numbers: Vec<f32>| Tensor::from_data(TensorData::new(numbers, like.dims()), &like.device());
    (tensor(factor), tensor(shift))
}

#[test]
fn golden_pfi_perturbs_then_mixes() {
    let device = Device::flex();
    for case in cases("pfi.json").iter().filter(|case| case.name != "nfm_alternative") {
        let factors = factors(case);
        close(&factors, &case.expected["nu"], &case.tolerance, &case.name);
        let (sigma_a, sigma_m) = (case.input("sigma_a"), case.input("sigma_m"));
        let scales = PfiConfig { sigma_a, sigma_m, ..PfiConfig::default() }.scales(&factors);
        check(case, "mu_m", scales.iter().map(|scale| scale.0).collect());
        check(case, "mu_a", scales.iter().map(|scale| scale.1).collect());

        let mixing = Mixing { coefficient: case.input("zeta"), partners: case.input("permutation") };
        let leaf = activations(case, &device).autodiff().require_grad();
        let (factor, shift) = noise(&scales, &input(case, "xi_m"), &input(case, "xi_a"), &leaf);
        let perturbed = perturb(leaf.clone(), factor, shift);
        check(case, "perturbed", floats(perturbed.clone()));
        let mixed = mix(perturbed, &mixing);
        check(case, "mixed", floats(mixed.clone()));

        let shape = mixed.dims();
        let upstream = (0..shape.iter().product()).map(|k: usize| (k as f32).cos()).collect();
        let upstream = Tensor::<4>::from_data(TensorData::new(upstream, shape), &mixed.device());
        let gradients = (mixed * upstream).sum().backward();
        check(case, "gradient_h", floats(leaf.grad(&gradients).unwrap()));
    }
}

#[test]
fn golden_pfi_without_noise_at_coefficient_one_is_the_identity_bit_for_bit() {
    let case = cases_named("pfi.json", "identity").remove(0);
    let h = activations(&case, &Device::flex());
    let mixing = Mixing { coefficient: 1.0, partners: case.input("permutation") };
    let partner = mixing.partners.clone();
    let off =
        PerturbMix { multiplicative: vec![0.0; 3], additive: vec![0.0; 3], partner, share: 1.0, key: 5 };
    assert_eq!(floats(perturb_mix(h.clone(), off)), floats(h.clone()));
    assert_eq!(floats(mix(h.clone(), &mixing)), floats(h));
}

#[test]
fn golden_nfm_mixes_then_perturbs() {
    let case = cases_named("pfi.json", "nfm_alternative").remove(0);
    let mixing = Mixing { coefficient: case.input("lambda"), partners: case.input("permutation") };
    let mixed = mix(activations(&case, &Device::flex()), &mixing);
    check(&case, "mixed", floats(mixed.clone()));
    let product = |level: &str, beta: &str| (case.input::<f64>(level) * case.input::<f64>(beta)) as f32;
    let scale = (product("level_m", "beta25_multiplicative"), product("level_a", "beta25_additive"));
    let (factor, shift) = noise(&[scale; 3], &input(&case, "uniform"), &input(&case, "normal"), &mixed);
    check(&case, "perturbed", floats(perturb(mixed, factor, shift)));
}

#[test]
fn golden_disagreement() {
    for case in cases("mi.json") {
        let heads: Vec<Vec<f64>> = case.input("p_heads_classes");
        let scores = Scores::of(&heads);
        case.check("pbar", &scores.probabilities);
        case.check("entropy_pbar", scores.entropy);
        case.check("entropy_heads", heads.iter().map(|head| entropy(head)).collect::<Vec<_>>());
        case.check("information", scores.disagreement);
    }
}

/// Hands out given uniform numbers in order.
struct Given(Vec<f64>);

impl Chance for Given {
    fn uniform(&mut self) -> f64 {
        self.0.remove(0)
    }
}

#[test]
fn golden_pim() {
    type Entry = (String, usize, f64);
    for case in cases("pim.json").iter().filter(|case| case.input.get("offers").is_some()) {
        let mut scheme = Pim::new(Keep::High, case.input("admit_new_class"));
        let mut memory: Vec<Entry> = case.input("start");
        for (step, newcomer) in case.input::<Vec<Entry>>("offers").into_iter().enumerate() {
            let (classes, history): (Vec<usize>, Vec<f64>) =
                memory.iter().map(|(_, class, history)| (*class, *history)).unzip();
            let view = View { classes: &classes, history: &history, capacity: case.input("size") };
            let offer = Offer { class: newcomer.1, disagreement: newcomer.2 };
            let (action, slot) = match scheme.place(view, offer, &mut Given(Vec::new())) {
                Place::Append => {
                    memory.push(newcomer);
                    ("append", Some(memory.len() - 1))
                }
                Place::Replace(slot) => {
                    memory[slot] = newcomer;
                    ("replace", Some(slot))
                }
                Place::Refuse => ("reject", None),
            };
            let found = json!({ "action": action, "slot": slot, "memory": memory });
            let expected = &case.expected["after_each_offer"][step];
            close(found, expected, &case.tolerance, &format!("{} offer {step}", case.name));
        }
    }
}

fn memory_with_history(history: &[f64]) -> Memory {
    let image = crate::Image { height: 1, width: 1, pixels: vec![0; 3].into() };
    let mut memory = Memory::new("pim", history.len(), 1).unwrap();
    for &value in history {
        memory.offer(&Sample::new(image.clone(), 0), Some(value));
    }
    memory
}

#[test]
fn golden_history_average() {
    let case = cases_named("pim.json", "history_ema").remove(0);
    let mut memory = memory_with_history(&[case.input("history")]);
    let found: Vec<f64> = case
        .input::<Vec<f64>>("information")
        .into_iter()
        .map(|value| {
            memory.rehearsed(&[0], &[value], case.input("gamma"));
            memory.history()[0]
        })
        .collect();
    case.check("history_after_each", found);
}

fn pima(case: &Case) -> Pima {
    let bounds: (f64, f64) = case.input("clamp");
    let rule = Rule::read(&case.input("rule")).unwrap();
    Pima::new(case.input("eta0"), case.input("omega"), bounds, rule, Lag::Iteration)
}

#[test]
fn golden_adaptive_rate() {
    for case in cases_named("lr_schedules.json", "dpcl.random") {
        let mut rate = pima(&case);
        for (step, collection) in case.input::<Vec<Value>>("collections").iter().enumerate() {
            let list = |key: &str| serde_json::from_value::<Vec<f64>>(collection[key].clone()).unwrap();
            let (information, before) = (list("info"), list("hist_before"));
            let mut memory = memory_with_history(&before);
            let slots: Vec<usize> = (0..before.len()).collect();
            let change = memory.rehearsed(&slots, &information, case.input("gamma"));
            rate.rehearsed(change);
            rate.collected();
            let found = json!({ "eta": rate.rate(), "hist_after": memory.history() });
            let expected = &case.expected["after_each"][step];
            close(found, expected, &case.tolerance, &format!("{} collection {step}", case.name));
        }
    }
}

#[test]
fn golden_adaptive_rate_meets_its_bounds() {
    let moves = |case: &Case, order: [(&str, f64); 2]| {
        let mut rate = pima(case);
        let mut found = Vec::new();
        for (key, change) in order {
            for _ in 0..case.input::<usize>(key) {
                rate.rehearsed(Some(change));
                rate.collected();
                found.push(rate.rate());
            }
        }
        case.check("eta", found);
    };
    moves(&cases_named("lr_schedules.json", "dpcl.sixty_two").remove(0), [("down", -1.0), ("up", 1.0)]);
    moves(&cases_named("lr_schedules.json", "dpcl.fifteen").remove(0), [("up", 1.0), ("down", -1.0)]);
}

#[test]
fn one_operator_perturbs_and_mixes_by_the_same_formula() {
    let (device, shape) = (Device::flex(), [3, 5, 2, 2]);
    let change = |levels: [Vec<f32>; 2], share| {
        let [multiplicative, additive] = levels;
        PerturbMix { multiplicative, additive, partner: vec![2, 1, 0], share, key: 11 }
    };
    // Unit levels on ones and on zeros show the noise itself.
    let ones = perturb_mix(Tensor::ones(shape, &device), change([vec![1.0; 3], vec![0.0; 3]], 1.0));
    let product = floats(ones.add_scalar(-1.0));
    let sum = floats(perturb_mix(Tensor::zeros(shape, &device), change([vec![0.0; 3], vec![1.0; 3]], 1.0)));

    let scales = [(0.2, 0.4), (0.0, 0.3), (0.1, 0.0)];
    let numbers: Vec<f32> = (0..60).map(|index| (index as f32 * 0.7).sin()).collect();
    let h = Tensor::<4>::from_data(TensorData::new(numbers, shape), &device);
    let (factor, shift) = noise(&scales, &product, &sum, &h);
    let mixing = Mixing { coefficient: 0.35, partners: vec![2, 1, 0] };
    let expected = floats(mix(perturb(h.clone(), factor, shift), &mixing));
    let (multiplicative, additive) = scales.into_iter().unzip();
    let found = floats(perturb_mix(h, change([multiplicative, additive], 0.35)));
    close(found, expected, &json!(1e-5), "perturb_mix");
}

#[test]
fn noise_has_the_moments_of_the_sheet() {
    // Each row twenty thousand times the same number: mean and variance over the copies.
    let (copies, coefficient) = (20_000, 0.3_f64);
    let (h, scales) = ([1.5_f32, -0.8], [(0.2_f32, 0.4_f32), (0.1, 0.3)]);
    let numbers: Vec<f32> = h.iter().flat_map(|&number| vec![number; copies]).collect();
    let tensor = Tensor::<4>::from_data(TensorData::new(numbers, [2, copies, 1, 1]), &Device::flex());
    let (multiplicative, additive) = scales.into_iter().unzip();
    let share = coefficient as f32;
    let change = PerturbMix { multiplicative, additive, partner: vec![1, 0], share, key: 3 };
    let mixed = floats(perturb_mix(tensor, change));
    for (row, mixed) in mixed.chunks_exact(copies).enumerate() {
        let own = |row: usize| (f64::from(h[row]), f64::from(scales[row].0), f64::from(scales[row].1));
        let ((h1, m1, a1), (h2, m2, a2)) = (own(row), own(1 - row));
        let expected = coefficient * h1 + (1.0 - coefficient) * h2;
        let spread = coefficient.powi(2) * (m1 * m1 * h1 * h1 + a1 * a1)
            + (1.0 - coefficient).powi(2) * (m2 * m2 * h2 * h2 + a2 * a2);
        let mean = mixed.iter().map(|&x| f64::from(x)).sum::<f64>() / copies as f64;
        let variance = mixed.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / copies as f64;
        assert!((mean - expected).abs() < 0.01, "{mean} for {expected}");
        assert!((variance / spread - 1.0).abs() < 0.05, "{variance} for {spread}");
    }
}
