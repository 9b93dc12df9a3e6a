//! Projections against golden vectors, soft weights by hand and their gradient against differences, and what is refused.

use burn::tensor::{Device, TensorData};

use super::{
    subspace::{Subspace, sharpened},
    *,
};
use crate::{
    augment::{CutMix, Pipeline},
    batch::Batcher,
    data::{Image, Policy},
    inner::reference::{Case, cases_named},
    model::{Architecture, Growth, floats, matrix},
};

fn table(case: &Case, key: &str) -> Tensor<2> {
    let rows: Vec<Vec<f32>> = case.input(key);
    matrix(rows.concat(), [rows.len(), rows[0].len()], &Device::flex())
}

fn in_rows(tensor: Tensor<2>) -> Vec<Vec<f32>> {
    let [_, columns] = tensor.dims();
    floats(tensor).chunks(columns).map(<[f32]>::to_vec).collect()
}

#[test]
fn golden_fsdgpm_projection() {
    for prefix in ["fsdgpm.sheet", "fsdgpm.random", "fsdgpm.full_basis"] {
        for case in cases_named("losses.json", prefix) {
            let layer = Subspace::new(table(&case, "basis_fan_in_by_k"));
            let soft: Vec<f32> = case.input("lambda");
            let count = soft.len();
            let soft = matrix(soft, [count, 1], &Device::flex());
            // Their gradients are [out, fan-in].
            let gradient = table(&case, "gradient_rows_by_fan_in").transpose();
            let within = layer.within(gradient.clone(), soft);
            case.check("perturbation", in_rows(within.clone().transpose()));
            case.check("perturbation_clamped", in_rows(within.clone().clamp(-2.0, 2.0).transpose()));
            case.check("update_direction", in_rows((gradient - within).transpose()));
        }
    }
}

#[test]
fn golden_fsdgpm_sigmoid() {
    for case in cases_named("losses.json", "fsdgpm.sigmoid") {
        let soft: Vec<f64> = case.input("lambda");
        case.check("after", soft.into_iter().map(sharpened).collect::<Vec<f64>>());
    }
}

const SIZE: usize = 16;

fn core() -> Core {
    let pipeline = Pipeline { padding: 0, flip: false, policy: Policy::None, mean: [0.5; 3], std: [0.25; 3] };
    let batcher = Batcher::new(pipeline, CutMix { probability: 0.0, alpha: 1.0 }, SIZE, 1);
    let architecture = Architecture::named("slim", Some(4), 1e-6, 0.1).unwrap();
    let mut core = Core {
        model: Model::new(architecture, 1, 2, &Device::flex()),
        batcher,
        growth: Growth { keep_bias: true, keep_moments: true },
    };
    (0..3).for_each(|_| core.grow());
    core
}

fn samples(count: usize) -> Vec<Sample> {
    let mut random = Random::named(3, "samples");
    let mut sample = |class: usize| {
        let pixels: Vec<u8> = (0..SIZE * SIZE * 3).map(|_| random.below(256) as u8).collect();
        Sample::new(Image { height: SIZE, width: SIZE, pixels: pixels.into() }, class)
    };
    (0..count).map(|index| sample(index % 3)).collect()
}

fn method(keys: FsDgpmKeys) -> FsDgpm {
    let subspaces = Subspaces::new(Device::flex());
    FsDgpm { keys, subspaces, tasks: 0, chance: Random::named(1, "subspaces") }
}

fn memory(count: usize) -> Memory {
    let mut memory = Memory::new("reservoir", 20, 1).unwrap();
    for sample in samples(count) {
        memory.offer(&sample, None);
    }
    memory
}

fn batch(core: &mut Core, rows: usize) -> Batch {
    core.batcher.of(&samples(rows))
}

#[test]
fn bases_fit_their_layers_and_one_stored_sample_makes_them_too() {
    let core = core();
    for stored in [1, 20] {
        let mut method = method(FsDgpmKeys::default());
        method.task_end(&core, &memory(stored));
        method.subspaces.check_loaded(&core.model).unwrap();
        let layers = method.subspaces.sizes();
        assert_eq!(layers.len(), 21, "the convolutions and the head");
        for (name, [fan, count]) in layers {
            assert!((1..=fan).contains(&count), "{name}: {count} of {fan}");
            assert!(name != "heads.weight" || count <= stored, "{count} directions of {stored} rows");
        }
    }
}

#[test]
fn an_empty_memory_and_no_images_make_no_bases() {
    let core = core();
    let mut method = method(FsDgpmKeys::default());
    method.task_end(&core, &memory(0));
    method.keys.images = 0;
    method.task_end(&core, &memory(5));
    assert_eq!((method.subspaces.count(), method.tasks), (0, 2));
}

#[test]
fn the_share_grows_with_tasks_up_to_all_but_rounding() {
    let mut method = method(FsDgpmKeys::default());
    let shares = [0, 1, 5, 10, 100].map(|tasks| {
        method.tasks = tasks;
        method.share()
    });
    assert_eq!(shares, [0.97, 0.973, 0.985, MOST_SHARE, MOST_SHARE]);
}

#[test]
fn parts_of_the_stream_are_rounded_up() {
    let mut core = core();
    for (rows, steps, expected) in [(5, 2, 2), (4, 2, 2), (1, 2, 1), (5, 4, 3), (3, 9, 3)] {
        let method = method(FsDgpmKeys { inner_steps: steps, ..FsDgpmKeys::default() });
        let batch = batch(&mut core, rows);
        let places = method.perturbed(&core.model, &batch, &Soft::new());
        assert_eq!(places.len(), expected, "{rows} rows in {steps} steps");
    }
}

/// How far every number of a place lies from θ.
fn distances(place: &Shift) -> Vec<f32> {
    place
        .encoder
        .iter()
        .chain(&place.heads)
        .flatten()
        .flat_map(|shift| floats(shift.clone().inner()))
        .collect()
}

#[test]
fn places_lie_further_and_further_and_no_element_goes_beyond_its_bound() {
    let mut core = core();
    let batch = batch(&mut core, 4);
    let method = method(FsDgpmKeys { clip: 0.01, e1: 0.5, ..FsDgpmKeys::default() });
    let places = method.perturbed(&core.model, &batch, &Soft::new());
    let [first, second] = [&places[0], &places[1]].map(distances);
    let bound = |steps: f32| 0.01 * 0.5 * steps * 1.0001;
    assert!(first.iter().all(|shift| shift.abs() <= bound(1.0)));
    assert!(first.iter().any(|shift| shift.abs() > bound(0.99)), "some are cut");
    assert!(second.iter().all(|shift| shift.abs() <= bound(2.0)));
    assert!(second.iter().any(|shift| shift.abs() > bound(1.5)));
}

/// Loss of a batch at the place that one step of the perturbation leads to, with these soft weights.
fn loss_at(
    method: &FsDgpm,
    core: &Core,
    batch: &Batch,
    soft: &Soft,
    pass: &mut crate::model::Pass,
) -> Tensor<1> {
    let places = method.perturbed(&core.model, batch, soft);
    pass.shift(&places[0]);
    let logits = forward(pass, batch);
    cross_entropy(logits, &batch.labels)
}

#[test]
fn soft_weights_have_the_gradient_of_the_loss() {
    let mut core = core();
    let batch = batch(&mut core, 4);
    let mut method = method(FsDgpmKeys { inner_steps: 1, e1: 1.0, clip: 1e9, ..FsDgpmKeys::default() });
    method.task_end(&core, &memory(20));

    let mut pass = core.model.pass();
    let soft = method.subspaces.track(&mut pass);
    let loss = loss_at(&method, &core, &batch, &soft, &mut pass);
    let gradients = pass.backward(&loss).further.remove(0);
    let slopes: Vec<f32> = gradients.iter().flatten().flat_map(|gradient| floats(gradient.clone())).collect();
    assert_eq!(slopes.len(), soft.values().map(|soft| soft.dims()[0]).sum::<usize>());
    let length = slopes.iter().map(|slope| f64::from(*slope).powi(2)).sum::<f64>().sqrt();
    assert!(length > 1e-3, "{length}");

    // Along the gradient itself, where the slope is its length.
    let at = |step: f64| {
        let moved: Soft = soft
            .iter()
            .zip(&gradients)
            .map(|((name, soft), gradient)| {
                let gradient = gradient.clone().unwrap();
                (name.clone(), soft.clone().inner() + gradient.mul_scalar(step / length))
            })
            .collect();
        let loss = loss_at(&method, &core, &batch, &moved, &mut core.model.pass());
        f64::from(floats(loss)[0])
    };
    let slope = |step: f64| (at(step) - at(-step)) / (2.0 * step);
    let found = [0.01, 0.03, 0.1].map(slope);
    assert!(found.iter().any(|slope| (slope - length).abs() < 0.05 * length), "{found:?} for {length}");
}

#[test]
fn soft_weights_descend_with_momentum_and_go_through_the_sigmoid() {
    let core = core();
    let mut method = method(FsDgpmKeys::default());
    method.task_end(&core, &memory(20));
    let before = method.subspaces.sizes();
    let total: usize = before.values().map(|[_, count]| count).sum();
    let slopes = |value: f32| -> Gradients {
        let of = |&[_, count]: &[usize; 2]| Some(matrix(vec![value; count], [count, 1], &Device::flex()));
        before.values().map(of).collect()
    };
    let held = |method: &FsDgpm| -> f64 {
        f64::from(floats(method.subspaces.soft().into_values().next().unwrap())[0])
    };

    method.subspaces.descend(slopes(3.0), 1e9, 0.1);
    // 1 − 0.1·3, then 1 / (1 + e⁻⁷).
    let first = 1.0 / (1.0 + (-7.0_f64).exp());
    assert!((held(&method) - first).abs() < 1e-6);
    method.subspaces.descend(slopes(1.0), 1e9, 0.1);
    // The momentum is 0.9·3 + 1.
    let second = 1.0 / (1.0 + (-10.0 * (first - 0.37)).exp());
    assert!((held(&method) - second).abs() < 1e-5);

    method.subspaces.descend(slopes(f32::NAN), 1e9, 0.1);
    assert!((held(&method) - second).abs() < 1e-5, "what is not finite is passed over");
    method.subspaces.descend(slopes(1e6), 2.0, 0.1);
    let momentum = 0.9 * 3.7 + 2.0 / (total as f64).sqrt();
    let third = 1.0 / (1.0 + (-10.0 * (second - 0.1 * momentum)).exp());
    assert!((held(&method) - third).abs() < 1e-5, "the norm of all together is 2");
}

#[test]
fn what_is_held_is_left_out_of_gradients() {
    let mut core = core();
    let batch = batch(&mut core, 4);
    let mut method = method(FsDgpmKeys::default());
    method.task_end(&core, &memory(20));
    let mut pass = core.model.pass();
    let logits = forward(&mut pass, &batch);
    let mut outcome = pass.backward(&cross_entropy(logits, &batch.labels));
    let before = outcome.encoder.clone();
    method.subspaces.leave_out(&core.model, &mut outcome);

    let names: Vec<String> =
        core.model.encoder().weights().iter().map(|weight| weight.name.clone()).collect();
    for (name, (before, after)) in names.iter().zip(before.into_iter().zip(outcome.encoder)) {
        let [before, after] = [before, after].map(Option::unwrap);
        let key = format!("encoder.{name}");
        let length = |tensor: Tensor<2>| floats(tensor.square().sum())[0].sqrt();
        if !method.subspaces.sizes().contains_key(&key) {
            assert_eq!(floats(before), floats(after), "{name}");
            continue;
        }
        let held = method.subspaces.within(&key, after.clone(), &method.subspaces.soft());
        assert!(length(held) < 1e-4 * length(before.clone()), "{name}: nothing within is left");
        assert!(length(after) < length(before), "{name}");
    }
}

#[test]
fn a_basis_that_is_not_the_layers_is_refused() {
    let core = core();
    let mut method = method(FsDgpmKeys::default());
    method.task_end(&core, &memory(20));
    let mut state = State::default();
    method.subspaces.save(&mut state);
    let refusal = |name: &str, shape: [usize; 2]| {
        let mut state = state.clone();
        let data = |length: usize| vec![0.5; length];
        let array = |shape: &[usize]| crate::state::Array::floats(shape, data(shape.iter().product()));
        state.put_array(&format!("{name}.basis"), array(&shape));
        for kind in ["soft", "momentum"] {
            state.put_array(&format!("{name}.{kind}"), array(&shape[1..]));
        }
        if !state.values["layers"].to_string().contains(name) {
            state.put("layers", &[name]);
        }
        let mut restored = Subspaces::new(Device::flex());
        let loaded = restored.load(&state).and_then(|()| restored.check_loaded(&core.model));
        loaded.map_err(|error| error.to_string())
    };
    // The stem takes windows of 3 × 3 pixels with 3 colours.
    let name = "encoder.stem.conv.weight";
    assert_eq!(refusal(name, [27, 27]), Ok(()), "all directions of a layer can be held");
    let larger = refusal(name, [27, 28]).unwrap_err();
    assert!(larger.contains("is 27 × 28, but the layer's input has 27 dimensions"), "{larger}");
    assert!(refusal(name, [26, 3]).is_err() && refusal(name, [27, 0]).is_err());
    let nowhere = refusal("encoder.stem.bn.weight", [1, 1]).unwrap_err();
    assert!(nowhere.contains("is of no layer of the network"), "{nowhere}");

    let mut restored = Subspaces::new(Device::flex());
    state.put_array("heads.weight.soft", crate::state::Array::floats([1], vec![1.0]));
    state.put_array("heads.weight.momentum", crate::state::Array::floats([2], vec![1.0; 2]));
    assert!(restored.load(&state).is_err(), "as many soft weights as directions");
}

#[test]
fn all_of_a_layer_can_be_held() {
    let data = TensorData::new(vec![1.0_f32, 0.0, 0.0, 1.0], [2, 2]);
    let layer = Subspace::new(Tensor::from_data(data, &Device::flex()));
    let gradient = matrix(vec![3.0, 4.0, -1.0, 2.0], [2, 2], &Device::flex());
    assert_eq!(floats(layer.within(gradient, layer.soft())), [3.0, 4.0, -1.0, 2.0]);
}
