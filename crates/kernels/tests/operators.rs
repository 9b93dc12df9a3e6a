//! Our operators on tensors against the same operators composed of stock Burn ones: values, gradients, threads.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use burn::tensor::{Device, Tensor, TensorData};
use dpcl_kernels::{AdamStep, ConvSpec, PerturbMix, set_threads, stock};

/// Numbers that repeat nowhere and need no generator.
fn numbers(length: usize, phase: f32) -> Vec<f32> {
    (0..length)
        .map(|index| (index as f32 * 0.618 + phase).sin() * 0.8 + (index as f32 * 0.11).cos() * 0.3)
        .collect()
}

fn tensor<const D: usize>(shape: [usize; D], phase: f32) -> Tensor<D> {
    let data = TensorData::new(numbers(shape.iter().product(), phase), shape);
    Tensor::from_data(data, &Device::flex())
}

fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.try_into_vec_as::<f32>().unwrap()
}

fn assert_near(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let norm = expected.iter().map(|x| x * x).sum::<f32>().sqrt();
    let error = found.iter().zip(expected).map(|(a, b)| (a - b) * (a - b)).sum::<f32>().sqrt();
    // Some gradients are zero by symmetry, such as that of a 1×1 kernel on one channel before a batch norm.
    assert!(error < 1e-3 * norm + 1e-4, "{what}: off by {error} of {norm}");
}

#[derive(Clone, Copy, Debug)]
struct Case {
    batch: usize,
    size: [usize; 2],
    channels: [usize; 2],
    kernel: usize,
    stride: usize,
    residual: bool,
    relu_after_sum: bool,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let shapes = [
        (1, [5, 7], [1, 3]),
        (2, [8, 8], [3, 20]),
        (3, [4, 4], [20, 20]),
        (2, [9, 6], [33, 17]),
        (2, [16, 16], [20, 40]),
        (4, [4, 4], [64, 64]),
    ];
    for (batch, size, channels) in shapes {
        for (kernel, stride) in [(1, 1), (1, 2), (3, 1), (3, 2), (7, 2)] {
            for (residual, relu_after_sum) in [(false, false), (true, false), (true, true)] {
                cases.push(Case { batch, size, channels, kernel, stride, residual, relu_after_sum });
            }
        }
    }
    cases
}

impl Case {
    fn spec(&self) -> ConvSpec {
        ConvSpec {
            kernel: self.kernel,
            stride: self.stride,
            relu: true,
            relu_after_sum: self.relu_after_sum,
            epsilon: 1e-6,
        }
    }

    fn operands(&self) -> (Tensor<4>, [Tensor<2>; 3], Tensor<4>) {
        let [height, width] = self.size;
        let [inputs, outputs] = self.channels;
        let out = self.size.map(|side| side.div_ceil(self.stride));
        (
            tensor([self.batch, height, width, inputs], 0.1),
            [
                tensor([self.kernel * self.kernel * inputs, outputs], 0.7),
                tensor([1, outputs], 1.3).add_scalar(1.0),
                tensor([1, outputs], 2.1),
            ],
            tensor([self.batch, out[0], out[1], outputs], 3.3),
        )
    }

    /// Output, mean, variance and the gradients of every operand.
    fn block(&self, ours: bool) -> Vec<Vec<f32>> {
        let (x, parameters, residual) = self.operands();
        let x = x.autodiff().require_grad();
        let [weight, scale, shift] = parameters.map(|parameter| parameter.autodiff().require_grad());
        let residual = residual.autodiff().require_grad();
        let added = self.residual.then(|| residual.clone());
        let block = if ours { dpcl_kernels::conv_block } else { stock::conv_block };
        let output = block(x.clone(), weight.clone(), scale.clone(), shift.clone(), added, &self.spec());
        let upstream = tensor(output.y.dims(), 5.5);
        let gradients = (output.y.clone() * upstream.autodiff()).sum().backward();
        let mut found = vec![floats(output.y.inner()), floats(output.mean), floats(output.variance)];
        found.push(floats(x.grad(&gradients).unwrap()));
        found.extend([weight, scale, shift].map(|parameter| floats(parameter.grad(&gradients).unwrap())));
        if self.residual {
            found.push(floats(residual.grad(&gradients).unwrap()));
        }
        found
    }
}

const PARTS: [&str; 8] = ["y", "mean", "variance", "dx", "dweight", "dscale", "dshift", "dresidual"];

#[test]
fn the_block_agrees_with_stock_operators() {
    for case in cases() {
        for ((found, expected), part) in case.block(true).iter().zip(case.block(false)).zip(PARTS) {
            assert_near(found, &expected, &format!("{part} of {case:?}"));
        }
    }
}

#[test]
fn the_block_gives_the_same_bits_on_any_number_of_threads() {
    for case in cases() {
        let found = [1, 2, 4].map(|threads| {
            set_threads(threads);
            case.block(true)
        });
        set_threads(0);
        assert!(found[0] == found[1] && found[0] == found[2], "{case:?}");
    }
}

#[test]
fn scaled_blocks_agree_with_stock_operators() {
    for case in cases() {
        let run = |conv: fn(
            Tensor<4>,
            Tensor<2>,
            Tensor<2>,
            Tensor<2>,
            Option<Tensor<4>>,
            &ConvSpec,
        ) -> Tensor<4>| {
            let (x, [weight, scale, shift], residual) = case.operands();
            floats(conv(x, weight, scale, shift, case.residual.then_some(residual), &case.spec()))
        };
        assert_near(&run(dpcl_kernels::conv_scaled), &run(stock::conv_scaled), &format!("{case:?}"));
    }
}

#[test]
fn scaled_blocks_refuse_to_be_differentiated() {
    let case = cases()[0];
    for tracked in 0..5 {
        let refused = std::panic::catch_unwind(|| {
            let (mut x, mut parameters, mut residual) = case.operands();
            match tracked {
                0 => x = x.autodiff().require_grad(),
                1 => residual = residual.autodiff().require_grad(),
                at => parameters[at - 2] = parameters[at - 2].clone().autodiff().require_grad(),
            }
            let [weight, scale, shift] = parameters;
            dpcl_kernels::conv_scaled(x, weight, scale, shift, Some(residual), &case.spec())
        });
        let Err(message) = refused else { panic!("operand {tracked} was taken") };
        let message = message.downcast::<String>().unwrap();
        assert!(message.contains("use a training pass, or `.inner()`"), "{message}");
    }
}

#[test]
fn constants_leave_the_other_gradients_of_the_block_alone() {
    for case in cases() {
        let expected = case.block(true);
        for constant in 0..4 {
            let (x, parameters, residual) = case.operands();
            let x = if constant == 0 { x } else { x.autodiff().require_grad() };
            let mut at = 0;
            let parameters = parameters.map(|parameter| {
                at += 1;
                if at == constant { parameter } else { parameter.autodiff().require_grad() }
            });
            let [weight, scale, shift] = parameters.clone();
            let added = case.residual.then_some(residual);
            let output = dpcl_kernels::conv_block(x.clone(), weight, scale, shift, added, &case.spec());
            let upstream = tensor(output.y.dims(), 5.5);
            let gradients = (output.y * upstream.autodiff()).sum().backward();
            let mut found = vec![x.grad(&gradients).map(floats)];
            found.extend(parameters.map(|parameter| parameter.grad(&gradients).map(floats)));
            for (at, found) in found.into_iter().enumerate() {
                let expected = (at != constant).then(|| expected[3 + at].clone());
                assert!(found == expected, "{} of {case:?} without {}", PARTS[3 + at], PARTS[3 + constant]);
            }
        }
    }
}

fn check_pool<const D: usize>(ours: fn(Tensor<4>) -> Tensor<D>, stock: fn(Tensor<4>) -> Tensor<D>) {
    for shape in [[1, 5, 7, 1], [2, 8, 8, 20], [3, 4, 4, 33]] {
        let [found, expected] = [ours, stock].map(|pool| {
            let x = tensor(shape, 0.4).autodiff().require_grad();
            let y = pool(x.clone());
            let gradients = (y.clone() * tensor(y.dims(), 1.9).autodiff()).sum().backward();
            (floats(y.inner()), floats(x.grad(&gradients).unwrap()))
        });
        assert_near(&found.0, &expected.0, &format!("pooled {shape:?}"));
        assert_near(&found.1, &expected.1, &format!("gradient {shape:?}"));
    }
}

#[test]
fn pools_agree_with_stock_operators() {
    check_pool(dpcl_kernels::max_pool, stock::max_pool);
    check_pool(dpcl_kernels::average_pool, stock::average_pool);
}

#[test]
fn channels_convolved_by_themselves_agree_with_stock_operators() {
    for shape in [[1, 5, 7, 1], [2, 8, 8, 20], [3, 1, 4, 33]] {
        for constant in [None, Some(0), Some(1)] {
            let [found, expected] = [dpcl_kernels::depthwise_add, stock::depthwise_add].map(|convolve| {
                let (mut x, mut kernel) = (tensor(shape, 0.2), tensor([9, shape[3]], 0.9));
                if constant != Some(0) {
                    x = x.autodiff().require_grad();
                }
                if constant != Some(1) {
                    kernel = kernel.autodiff().require_grad();
                }
                let y = convolve(x.clone(), kernel.clone());
                let gradients = (y.clone() * tensor(shape, 4.2).autodiff()).sum().backward();
                [Some(floats(y.inner())), x.grad(&gradients).map(floats), kernel.grad(&gradients).map(floats)]
            });
            for (at, (found, expected)) in found.into_iter().zip(expected).enumerate() {
                assert_eq!(found.is_some(), expected.is_some(), "{at} of {shape:?}");
                if let (Some(found), Some(expected)) = (found, expected) {
                    assert_near(&found, &expected, &format!("{at} of {shape:?} without {constant:?}"));
                }
            }
        }
    }
}

#[test]
fn linear_agrees_with_stock_operators() {
    for (rows, features, outputs) in [(1, 1, 1), (3, 7, 5), (16, 160, 100)] {
        let [found, expected] = [true, false].map(|ours| {
            let operands =
                [tensor([rows, features], 0.2), tensor([features, outputs], 0.9), tensor([1, outputs], 1.7)]
                    .map(|operand| operand.autodiff().require_grad());
            let [x, weight, bias] = operands.clone();
            let y = if ours { dpcl_kernels::linear(x, weight, bias) } else { stock::linear(x, weight, bias) };
            let gradients = (y.clone() * tensor([rows, outputs], 4.2).autodiff()).sum().backward();
            let mut found = vec![floats(y.inner())];
            found.extend(operands.map(|operand| floats(operand.grad(&gradients).unwrap())));
            found
        });
        for (found, expected) in found.iter().zip(&expected) {
            assert_near(found, expected, &format!("{rows} × {features} × {outputs}"));
        }
    }
}

#[test]
fn perturbing_agrees_with_stock_operators() {
    let change = PerturbMix {
        multiplicative: vec![0.2, 0.1, 0.0],
        additive: vec![0.4, 0.3, 0.5],
        partner: vec![1, 1, 0],
        share: 0.3,
        key: 99,
    };
    let [found, expected] = [true, false].map(|ours| {
        let x = tensor([3, 4, 5, 6], 0.3).autodiff().require_grad();
        let y = if ours {
            dpcl_kernels::perturb_mix(x.clone(), change.clone())
        } else {
            stock::perturb_mix(x.clone(), &change)
        };
        let gradients = (y.clone() * tensor(y.dims(), 2.5).autodiff()).sum().backward();
        (floats(y.inner()), floats(x.grad(&gradients).unwrap()))
    });
    assert_near(&found.0, &expected.0, "rows");
    assert_near(&found.1, &expected.1, "gradient");
}

#[test]
fn adam_agrees_with_stock_operators() {
    let step = AdamStep { rate: 3e-4, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, count: 3 };
    let operands =
        || (tensor([7, 9], 0.1), tensor([7, 9], 0.5), tensor([7, 9], 0.8), tensor([7, 9], 1.1).abs());
    let (parameter, gradient, first, second) = operands();
    let ours = dpcl_kernels::adam(parameter, gradient, (first, second), &step);
    let (parameter, gradient, first, second) = operands();
    let expected = stock::adam(parameter, gradient, (first, second), &step);
    assert_near(&floats(ours.0), &floats(expected.0), "parameter");
    assert_near(&floats(ours.1.0), &floats(expected.1.0), "first moment");
    assert_near(&floats(ours.1.1), &floats(expected.1.1), "second moment");
}

#[test]
fn gradients_of_the_block_agree_with_finite_differences() {
    let case = Case {
        batch: 2,
        size: [6, 5],
        channels: [3, 4],
        kernel: 3,
        stride: 1,
        residual: true,
        relu_after_sum: false,
    };
    let loss = |x: Tensor<4>| -> f64 {
        let (_, [weight, scale, shift], residual) = case.operands();
        let output = dpcl_kernels::conv_block(x, weight, scale, shift, Some(residual), &case.spec());
        let upstream = numbers(output.y.dims().iter().product(), 5.5);
        floats(output.y).iter().zip(upstream).map(|(y, up)| f64::from(y * up)).sum()
    };
    let gradient = &case.block(true)[3];
    let (x, _, _) = case.operands();
    let direction = tensor(x.dims(), 9.1);
    let slope: f64 = gradient.iter().zip(floats(direction.clone())).map(|(g, d)| f64::from(g * d)).sum();
    let step = 1e-3;
    let ahead = loss(x.clone() + direction.clone().mul_scalar(step));
    let behind = loss(x - direction.mul_scalar(step));
    let found = (ahead - behind) / (2.0 * step);
    assert!((found - slope).abs() < 1e-2 * slope.abs().max(1.0), "{found} against {slope}");
}
