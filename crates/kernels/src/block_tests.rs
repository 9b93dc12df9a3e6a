//! The fused block against its double-precision definition, finite differences, and itself on other numbers of threads.

use proptest::prelude::*;

use super::*;
use crate::evaluate::conv_evaluate;
use crate::pool::scope_threads;
use crate::reference::{self, Backward, Expected, Forward, numbers, wide};

fn geometry(
    batch: usize,
    size: [usize; 2],
    channels: [usize; 2],
    kernel: usize,
    stride: usize,
) -> ConvGeometry {
    ConvGeometry {
        batch,
        height: size[0],
        width: size[1],
        channels_in: channels[0],
        channels_out: channels[1],
        kernel,
        stride,
        padding: kernel / 2,
    }
}

fn shapes() -> Vec<ConvGeometry> {
    if cfg!(miri) {
        return vec![
            geometry(1, [3, 4], [2, 5], 3, 1),
            geometry(2, [4, 3], [1, 3], 3, 2),
            geometry(1, [2, 2], [3, 4], 1, 2),
        ];
    }
    vec![
        geometry(1, [5, 7], [1, 1], 3, 1),
        geometry(2, [5, 7], [3, 20], 3, 1),
        geometry(3, [5, 7], [20, 33], 3, 2),
        geometry(2, [8, 8], [20, 20], 3, 1),
        geometry(1, [6, 9], [33, 5], 1, 2),
        geometry(2, [4, 4], [64, 64], 3, 1),
        geometry(4, [4, 4], [160, 160], 3, 1),
        geometry(2, [8, 8], [80, 160], 3, 2),
        geometry(2, [9, 8], [40, 80], 1, 2),
        geometry(1, [15, 13], [3, 64], 7, 2),
        geometry(1, [9, 9], [5, 17], 7, 1),
        geometry(20, [2, 2], [7, 16], 3, 1),
        geometry(1, [1, 1], [64, 100], 1, 1),
        geometry(1, [40, 40], [4, 16], 3, 1),
        geometry(16, [4, 4], [256, 256], 3, 1),
        geometry(3, [9, 10], [16, 48], 3, 1),
        geometry(8, [7, 7], [144, 160], 3, 1),
        geometry(40, [8, 8], [17, 16], 3, 1),
        geometry(2, [14, 14], [64, 64], 3, 1),
    ]
}

struct Case {
    geometry: ConvGeometry,
    options: BlockOptions,
    input: Vec<f32>,
    weight: Vec<f32>,
    scale: Vec<f32>,
    shift: Vec<f32>,
    residual: Option<Vec<f32>>,
    gradient: Vec<f32>,
}

#[derive(Clone, PartialEq, Debug, Default)]
struct Outcome {
    convolved: Vec<f32>,
    mean: Vec<f32>,
    variance: Vec<f32>,
    inverse_deviation: Vec<f32>,
    output: Vec<f32>,
    d_input: Vec<f32>,
    d_weight: Vec<f32>,
    d_scale: Vec<f32>,
    d_shift: Vec<f32>,
    d_residual: Vec<f32>,
}

impl Case {
    fn new(geometry: ConvGeometry, relu: bool, residual: bool, relu_after: bool, seed: u64) -> Self {
        let channels = geometry.channels_out;
        Self {
            geometry,
            options: BlockOptions { epsilon: 1e-3, relu, relu_after },
            input: numbers(geometry.input_len(), seed + 1),
            weight: numbers(geometry.weight_len(), seed + 2),
            scale: numbers(channels, seed + 3).iter().map(|value| 1.0 + 0.5 * value).collect(),
            shift: numbers(channels, seed + 4),
            residual: residual.then(|| numbers(geometry.output_len(), seed + 5)),
            gradient: numbers(geometry.output_len(), seed + 6),
        }
    }

    fn run(&self) -> Outcome {
        let (geometry, channels) = (&self.geometry, self.geometry.channels_out);
        let big = || vec![7.0; geometry.output_len()];
        let small = || vec![7.0; channels];
        let mut o = Outcome {
            convolved: big(),
            mean: small(),
            variance: small(),
            inverse_deviation: small(),
            output: big(),
            d_input: vec![7.0; geometry.input_len()],
            d_weight: vec![7.0; geometry.weight_len()],
            d_scale: small(),
            d_shift: small(),
            d_residual: big(),
        };
        let out = BlockForward {
            convolved: &mut o.convolved,
            mean: &mut o.mean,
            variance: &mut o.variance,
            inverse_deviation: &mut o.inverse_deviation,
            output: &mut o.output,
        };
        let residual = self.residual.as_deref();
        conv_block_forward(
            geometry,
            &self.input,
            &self.weight,
            &self.scale,
            &self.shift,
            residual,
            self.options,
            out,
        );
        let after = self.options.relu_after && self.residual.is_some();
        let saved = BlockSaved {
            input: &self.input,
            weight: &self.weight,
            scale: &self.scale,
            shift: &self.shift,
            convolved: &o.convolved,
            mean: &o.mean,
            inverse_deviation: &o.inverse_deviation,
            output: after.then_some(&o.output),
        };
        let gradients = BlockGradients {
            input: Some(&mut o.d_input),
            weight: Some(&mut o.d_weight),
            scale: &mut o.d_scale,
            shift: &mut o.d_shift,
        };
        o.d_residual.copy_from_slice(&self.gradient);
        conv_block_backward(geometry, saved, self.options, &mut o.d_residual, gradients);
        o
    }

    /// Holds forward and backward pass on every instruction set to the definition.
    ///
    /// Where a ReLU's argument is zero but for rounding, either slope is right: no gradient is sent there.
    fn check(mut self, tolerance: f64) {
        let g = self.geometry;
        let (input, weight, scale, shift) =
            (wide(&self.input), wide(&self.weight), wide(&self.scale), wide(&self.shift));
        let residual = self.residual.as_deref().map(wide);
        let forward =
            reference::block_forward(&g, &input, &weight, &scale, &shift, residual.as_deref(), self.options);
        for (index, gradient) in self.gradient.iter_mut().enumerate() {
            let rounding = 5.0 * tolerance * forward.output.size(index);
            if forward.from_kink[index] <= rounding {
                *gradient = 0.0;
            }
        }
        let gradient = wide(&self.gradient);
        let with = residual.is_some();
        let backward = reference::block_backward(
            &g,
            &input,
            &weight,
            &scale,
            &shift,
            &forward,
            self.options,
            with,
            &gradient,
        );
        for isa in Isa::supported() {
            let outcome = isa.scope(|| self.run());
            outcome.check(&forward, &backward, tolerance);
        }
    }
}

impl Outcome {
    fn check(&self, forward: &Forward, backward: &Backward, tolerance: f64) {
        forward.convolved.check("convolved", &self.convolved, tolerance);
        forward.mean.check("mean", &self.mean, tolerance);
        forward.variance.check("variance", &self.variance, tolerance);
        forward.output.check("output", &self.output, 5.0 * tolerance);
        backward.shift.check("shift gradient", &self.d_shift, 10.0 * tolerance);
        backward.scale.check("scale gradient", &self.d_scale, 10.0 * tolerance);
        backward.residual.check("residual gradient", &self.d_residual, 10.0 * tolerance);
        backward.weight.check("weight gradient", &self.d_weight, 10.0 * tolerance);
        backward.input.check("input gradient", &self.d_input, 10.0 * tolerance);
    }
}

#[test]
fn blocks_agree_with_the_definition_on_every_instruction_set() {
    for (index, shape) in shapes().into_iter().enumerate() {
        let residual = index % 3 > 0;
        Case::new(shape, index % 4 != 3, residual, index % 3 == 2, index as u64).check(1e-5);
    }
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    for isa in Isa::supported() {
        for shape in shapes() {
            let case = Case::new(shape, true, true, true, 11);
            let one = isa.scope(|| scope_threads(1, || case.run()));
            for threads in [2, 4] {
                assert!(
                    isa.scope(|| scope_threads(threads, || case.run())) == one,
                    "{isa} {threads} {shape:?}"
                );
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "hundreds of evaluations")]
fn gradients_agree_with_finite_differences() {
    let shape = geometry(2, [4, 5], [2, 3], 3, 1);
    let case = Case::new(shape, false, false, false, 3);
    let outcome = case.run();
    let loss = |input: &[f64], weight: &[f64], scale: &[f64], shift: &[f64]| -> f64 {
        let forward = reference::block_forward(&shape, input, weight, scale, shift, None, case.options);
        forward.output.values.iter().zip(&case.gradient).map(|(y, &g)| y * f64::from(g)).sum()
    };
    let base = [wide(&case.input), wide(&case.weight), wide(&case.scale), wide(&case.shift)];
    let found = [&outcome.d_input, &outcome.d_weight, &outcome.d_scale, &outcome.d_shift];
    for which in 0..4 {
        for place in 0..base[which].len() {
            let moved = |by: f64| {
                let mut values = base.clone();
                values[which][place] += by;
                loss(&values[0], &values[1], &values[2], &values[3])
            };
            let slope = (moved(1e-4) - moved(-1e-4)) / 2e-4;
            let error = (slope - f64::from(found[which][place])).abs();
            assert!(error < 1e-3 * (1.0 + slope.abs()), "operand {which} place {place}: {slope}");
        }
    }
}

#[test]
fn evaluation_with_folded_norm_agrees_with_the_definition() {
    for isa in Isa::supported() {
        for shape in shapes() {
            let channels = shape.channels_out;
            let case = Case::new(shape, true, true, true, 5);
            let (mean, variance) = (
                numbers(channels, 8),
                numbers(channels, 9).iter().map(|v| v.abs() + 0.5).collect::<Vec<_>>(),
            );
            let factor: Vec<f32> = case
                .scale
                .iter()
                .zip(&variance)
                .map(|(scale, variance)| scale / (variance + 1e-5).sqrt())
                .collect();
            let shift: Vec<f32> = (0..channels).map(|c| case.shift[c] - mean[c] * factor[c]).collect();
            let mut output = vec![7.0; shape.output_len()];
            let residual = case.residual.as_deref().expect("the case has one");
            isa.scope(|| {
                let (input, weight) = (&case.input, &case.weight);
                conv_evaluate(
                    &shape,
                    input,
                    weight,
                    &factor,
                    &shift,
                    true,
                    Some(residual),
                    true,
                    &mut output,
                );
            });
            let expected: Vec<f64> = reference::convolve(&shape, &wide(&case.input), &wide(&case.weight))
                .iter()
                .enumerate()
                .map(|(i, z)| {
                    let c = i % channels;
                    let deviation = (f64::from(variance[c]) + 1e-5).sqrt();
                    let value = (z - f64::from(mean[c])) / deviation * f64::from(case.scale[c])
                        + f64::from(case.shift[c]);
                    (value.max(0.0) + f64::from(residual[i])).max(0.0)
                })
                .collect();
            Expected::new(expected, &[]).check("evaluation", &output, 1e-5);
        }
    }
}

/// Forward and backward through Winograd's transforms on the smallest shape that uses them.
#[test]
fn the_smallest_winograd_block_agrees_with_the_definition() {
    Case::new(geometry(2, [7, 6], [16, 16], 3, 1), true, true, false, 31).check(1e-5);
}

#[test]
fn statistics_survive_a_large_mean() {
    let side = if cfg!(miri) { 4 } else { 16 };
    let shape = geometry(4, [side, side], [1, 1], 1, 1);
    let mut case = Case::new(shape, false, false, false, 21);
    case.input.iter_mut().for_each(|value| *value = 1000.0 + 0.01 * *value);
    case.weight = vec![1.0];
    let outcome = case.run();
    let exact: Vec<f64> = wide(&case.input);
    let mean = exact.iter().sum::<f64>() / exact.len() as f64;
    let variance = exact.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / exact.len() as f64;
    assert!(
        (f64::from(outcome.variance[0]) / variance - 1.0).abs() < 1e-4,
        "{} {variance}",
        outcome.variance[0]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 60 }))]

    #[test]
    fn any_shape_agrees_with_the_definition(
        batch in 1..4_usize, height in 1..10_usize, width in 1..10_usize, inputs in 1..40_usize, outputs in 1..70_usize,
        kernel in 0..3_usize, stride in 1..3_usize, relu: bool, residual: bool, after: bool, seed in 0..1000_u64,
    ) {
        let small = cfg!(miri);
        let (inputs, outputs) = if small { (inputs % 3 + 1, outputs % 5 + 1) } else { (inputs, outputs) };
        let shape = geometry(batch, [height, width], [inputs, outputs], [1, 3, 7][kernel], stride);
        Case::new(shape, relu, residual, after, seed).check(2e-5);
    }
}
