//! The step between points against golden vectors and by hand, the energy, and where images evolve to.

use burn::tensor::{Device, Tensor, TensorData};

use super::{
    stein::{distances, median},
    *,
};
use crate::{
    inner::reference::{Case, cases_named},
    model::{Architecture, Growth, cross_entropy, matrix},
};

fn rows_of(case: &Case, key: &str) -> (Vec<f64>, usize) {
    let rows: Vec<Vec<f64>> = case.input(key);
    let count = rows.len();
    (rows.concat(), count)
}

fn in_rows(numbers: &[f64], rows: usize) -> Vec<Vec<f64>> {
    numbers.chunks(numbers.len() / rows).map(<[f64]>::to_vec).collect()
}

#[test]
fn golden_dro_kernel() {
    for prefix in ["dro.kernel", "dro.step", "dro.one_point"] {
        for case in cases_named("losses.json", prefix) {
            let (points, rows) = rows_of(&case, "points");
            case.check("median", median(distances(&points, rows)));
            let points = Points::new(&points, rows);
            case.check("bandwidth", points.bandwidth);
            case.check("kernel", in_rows(&points.kernel, rows));
        }
    }
}

#[test]
fn golden_dro_step() {
    for prefix in ["dro.step", "dro.one_point"] {
        for case in cases_named("losses.json", prefix) {
            let (points, rows) = rows_of(&case, "points");
            let (gradient, _) = rows_of(&case, "energy_gradient");
            let points = Points::new(&points, rows);
            case.check("repulsion", in_rows(&points.repulsion(), rows));
            let after = points.step(&gradient, case.input("step"), false);
            case.check("points_after", in_rows(&after, rows));
        }
    }
}

#[test]
fn golden_dro_energy() {
    for case in cases_named("losses.json", "dro.energy") {
        let device = Device::flex();
        let read = |key: &str| -> (Vec<f32>, [usize; 2]) {
            let rows: Vec<Vec<f32>> = case.input(key);
            (rows.concat(), [rows.len(), rows[0].len()])
        };
        let images = |key: &str| {
            let (numbers, [rows, length]) = read(key);
            Tensor::<4>::from_data(TensorData::new(numbers, [rows, 1, 1, length]), &device)
        };
        let (weight, shape) = read("weight");
        let weight = matrix(weight, shape, &device).transpose();
        let bias: Vec<f32> = case.input("bias");
        let classes = bias.len();
        let stored = images("memory_points");
        let points = images("points").autodiff().require_grad();

        let [rows, _, _, length] = points.dims();
        let flat: Tensor<2> = points.clone().reshape([rows, length]);
        let logits = flat.matmul(weight) + matrix(bias, [1, classes], &device);
        let loss = cross_entropy(logits.reshape([1, rows, classes]), &case.input::<Vec<usize>>("labels"));
        case.check("ce", floats(loss.clone())[0]);
        let energy = energy(loss, points.clone(), stored, case.input("gamma"));
        case.check("energy", floats(energy.clone())[0]);
        let gradient = floats(points.grad(&energy.backward()).unwrap());
        case.check("gradient", gradient.chunks(length).map(<[f32]>::to_vec).collect::<Vec<_>>());
    }
}

#[test]
fn points_attract_each_other_as_coded_and_repel_each_other_once_the_sign_is_fixed() {
    // Two near points and one far away, which makes the median √0.01 = 0.1 of 0, 0, 0, 0.1, 0.1, 10, 10, 9.9, 9.9.
    let points = [0.0, 0.1, 10.0];
    let at = Points::new(&points, 3);
    assert_eq!(median(distances(&points, 3)), 0.1);
    let still = [0.0; 3];
    let coded = at.step(&still, 1e-2, false);
    assert!(coded[0] > 0.0 && coded[1] < 0.1 && coded[2] == 10.0, "{coded:?}");
    let fixed = at.step(&still, 1e-2, true);
    assert!(fixed[0] < 0.0 && fixed[1] > 0.1 && fixed[2] == 10.0, "{fixed:?}");
}

/// Rᵢ is what Σⱼ Kᵢⱼ loses as zᵢ moves, the bandwidth held.
#[test]
fn repulsion_is_the_slope_of_the_kernel() {
    // Two near points; the others are far, so that the median is and the kernel reaches the near ones.
    let points = [0.3, -0.2, 0.1, 1.2, 0.1, -0.4, 9.0, 1.0, 2.0, -8.0, 5.0, 1.0, 2.0, -9.0, 7.0];
    let at = Points::new(&points, 5);
    let summed = |points: &[f64], row: usize| -> f64 {
        let of_row = &distances(points, 5)[5 * row..][..5];
        of_row.iter().map(|distance| (-distance * distance / at.bandwidth).exp()).sum()
    };
    let moved = |position: usize, step: f64| {
        let mut points = points;
        points[position] += step;
        summed(&points, position / 3)
    };
    let repulsion = at.repulsion();
    for (position, force) in repulsion.iter().enumerate() {
        let slope = (moved(position, 1e-5) - moved(position, -1e-5)) / 2e-5;
        assert!((force + slope).abs() < 1e-8, "{position}: {force} and {slope}");
    }
    assert!(repulsion[..6].iter().all(|force| force.abs() > 0.1), "{repulsion:?}");
}

#[test]
fn points_in_one_place_move_together_and_do_not_push() {
    let points = [1.0, 1.0, 1.0, 3.0];
    let at = Points::new(&points, 4);
    assert_eq!(at.bandwidth, 0.0, "ten of sixteen distances are nothing");
    assert_eq!(at.repulsion(), [0.0; 4]);
    // A quarter of the step; the three in one place share their slopes, the fourth has its own.
    let moved = at.step(&[1.0, 2.0, 3.0, 4.0], 0.4, false);
    assert!(moved.iter().zip([0.4, 0.4, 0.4, 2.6]).all(|(found, expected)| (found - expected).abs() < 1e-12));
}

const SIZE: usize = 16;

/// A network that knows two classes, and a batch of two stream rows and `rows` memory rows.
fn network_and_batch(rows: usize) -> (Model, Batch) {
    let architecture = Architecture::named("slim", Some(4), 1e-6, 0.1).unwrap();
    let mut model = Model::new(architecture, 1, 2, &Device::flex());
    (0..2).for_each(|_| model.grow(Growth { keep_bias: true, keep_moments: true }));
    let mut random = Random::named(5, "images");
    let images = (0..(2 + rows) * SIZE * SIZE * 3).map(|_| random.normal() as f32).collect();
    let labels = (0..2 + rows).map(|row| row % 2).collect();
    let slots = (0..rows).collect();
    (model, Batch { images, size: SIZE, labels, slots, ..Batch::default() })
}

fn dro(keys: DroKeys) -> Dro {
    Dro { keys, noise: Random::named(1, "evolution") }
}

/// Cross-entropy of the memory rows where they evolve to.
fn loss_there(keys: DroKeys, rows: usize) -> f32 {
    let (model, batch) = network_and_batch(rows);
    let mut pass = model.pass();
    let features = pass.features(dro(keys).evolved(&model, &batch).unwrap());
    floats(rows_loss(pass.logits(features), &batch, 2..2 + rows))[0]
}

#[test]
fn rows_become_harder_and_langevin_as_coded_makes_them_easier() {
    let still = loss_there(DroKeys { steps: 0, ..DroKeys::default() }, 4);
    // Long steps and little noise beside the slope: what is asked is the direction.
    let keys =
        |evolution, fix_sign| DroKeys { evolution, fix_sign, step: 10.0, gamma: 0.0, ..DroKeys::default() };
    for rows in [1, 4] {
        let still = loss_there(DroKeys { steps: 0, ..DroKeys::default() }, rows);
        assert!(loss_there(keys(Evolution::Svgd, false), rows) > still, "{rows} rows");
    }
    assert!(loss_there(keys(Evolution::Svgd, true), 4) > still);

    let (model, batch) = network_and_batch(4);
    let stored = batch.images[2 * SIZE * SIZE * 3..].to_vec();
    let slope = dro(DroKeys { gamma: 0.0, ..DroKeys::default() }).slope(&model, &batch, stored.clone());
    let climbs = |fix_sign: bool| {
        let keys = keys(Evolution::Langevin, fix_sign);
        let [moved, noise] =
            [slope.clone(), vec![0.0; slope.len()]].map(|slope| dro(keys).moved(&stored, &slope, 4));
        // The energy is −CE: along its slope the loss falls.
        let along =
            moved.iter().zip(&noise).zip(&slope).map(|((moved, noise), slope)| (moved - noise) * slope);
        along.sum::<f32>() < 0.0
    };
    assert!(climbs(true) && !climbs(false));
}

#[test]
fn the_noise_of_langevin_is_normal_and_as_wide_as_the_step_says() {
    let mut dro = dro(DroKeys { evolution: Evolution::Langevin, step: 0.02, ..DroKeys::default() });
    let still = vec![0.0; 20_000];
    let moved = dro.moved(&still, &still, 4);
    let mean = moved.iter().sum::<f32>() / 2e4;
    let variance = moved.iter().map(|number| number * number).sum::<f32>() / 2e4;
    assert!(mean.abs() < 7e-3 && (variance - 0.04).abs() < 2e-3, "{mean}, {variance}");
    assert_ne!(moved, dro.moved(&still, &still, 4), "each step has noise of its own");
}

#[test]
fn a_heavy_distance_holds_rows_where_they_are_stored() {
    let (model, batch) = network_and_batch(8);
    // With s·2γ/n² = 1 each step takes back what the one before went.
    let gamma = 64.0 / 2e-4;
    let evolved = floats(dro(DroKeys { gamma, ..DroKeys::default() }).evolved(&model, &batch).unwrap());
    let stored = &batch.images[2 * SIZE * SIZE * 3..];
    assert!(evolved.iter().zip(stored).all(|(evolved, stored)| (evolved - stored).abs() <= 1e-6));
}

#[test]
fn the_default_steps_are_hardly_seen() {
    let (model, batch) = network_and_batch(8);
    let stored = &batch.images[2 * SIZE * SIZE * 3..];
    let away = |step: f64| {
        let evolved = dro(DroKeys { step, ..DroKeys::default() }).evolved(&model, &batch).unwrap();
        floats(evolved).iter().zip(stored).fold(0.0_f32, |most, (z, x)| most.max((z - x).abs()))
    };
    let default = away(DroKeys::default().step);
    // Numbers of a normalised image are about 1, and floats there lie 1.2e-7 apart.
    assert!(default < 1e-5 && away(1e-2) > 10.0 * default, "{default}");
}

#[test]
fn nothing_evolves_without_memory_rows_or_weight() {
    let (model, batch) = network_and_batch(0);
    assert!(dro(DroKeys::default()).evolved(&model, &batch).is_none());
    let (model, batch) = network_and_batch(2);
    assert!(dro(DroKeys { beta: 0.0, ..DroKeys::default() }).evolved(&model, &batch).is_none());
}

#[test]
fn the_slope_is_that_of_a_pass_that_learns() {
    let (model, batch) = network_and_batch(3);
    let stored = batch.images[2 * SIZE * SIZE * 3..].to_vec();
    let found = dro(DroKeys::default()).slope(&model, &batch, stored.clone());

    let mut pass = model.pass();
    let images = pass.images(stored, SIZE);
    let images = pass.track_images(images);
    let features = pass.features(images);
    let loss = rows_loss(pass.logits(features), &batch, 2..5);
    let expected = floats(pass.backward(&loss).images.remove(0).unwrap());
    // At the stored images themselves the distance has no slope.
    assert!(
        found
            .iter()
            .zip(&expected)
            .all(|(found, expected)| (found + expected).abs() <= 1e-6 * expected.abs())
    );
    assert!(expected.iter().any(|slope| slope.abs() > 1e-4));
}
