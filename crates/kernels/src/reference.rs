//! Slow and plain double-precision definitions that the tests hold the kernels to.

use crate::block::BlockOptions;
use crate::geometry::ConvGeometry;

/// Repeatable numbers of mixed sign, roughly in −1..1.
pub(crate) fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Calls `visit(input place, weight row, output pixel)` for every multiplication of one channel pair.
fn visit(geometry: &ConvGeometry, mut visit: impl FnMut(usize, usize, usize)) {
    let ConvGeometry { batch, height, width, channels_in, kernel, stride, padding, .. } = *geometry;
    let (rows, columns) = (geometry.out_height(), geometry.out_width());
    for pixel in 0..batch * rows * columns {
        let (image, row, column) = (pixel / columns / rows, pixel / columns % rows, pixel % columns);
        for tap in 0..kernel * kernel {
            let y = (row * stride + tap / kernel).wrapping_sub(padding);
            let x = (column * stride + tap % kernel).wrapping_sub(padding);
            if y < height && x < width {
                visit(((image * height + y) * width + x) * channels_in, tap * channels_in, pixel);
            }
        }
    }
}

/// The convolution's output.
pub(crate) fn convolve(geometry: &ConvGeometry, input: &[f64], weight: &[f64]) -> Vec<f64> {
    let (inputs, outputs) = (geometry.channels_in, geometry.channels_out);
    let mut result = vec![0.0; geometry.output_len()];
    visit(geometry, |place, row, pixel| {
        for i in 0..inputs {
            for o in 0..outputs {
                result[pixel * outputs + o] += input[place + i] * weight[(row + i) * outputs + o];
            }
        }
    });
    result
}

/// Gradients of the convolution's input and weight.
pub(crate) fn convolve_backward(
    geometry: &ConvGeometry,
    input: &[f64],
    weight: &[f64],
    gradient: &[f64],
) -> (Vec<f64>, Vec<f64>) {
    let (inputs, outputs) = (geometry.channels_in, geometry.channels_out);
    let (mut dx, mut dw) = (vec![0.0; geometry.input_len()], vec![0.0; geometry.weight_len()]);
    visit(geometry, |place, row, pixel| {
        for i in 0..inputs {
            for o in 0..outputs {
                let given = gradient[pixel * outputs + o];
                dx[place + i] += given * weight[(row + i) * outputs + o];
                dw[(row + i) * outputs + o] += given * input[place + i];
            }
        }
    });
    (dx, dw)
}

/// Everything the forward pass of a block produces.
pub(crate) struct Forward {
    pub(crate) convolved: Vec<f64>,
    pub(crate) mean: Vec<f64>,
    pub(crate) variance: Vec<f64>,
    pub(crate) output: Vec<f64>,
}

/// Forward pass of a block.
pub(crate) fn block_forward(
    geometry: &ConvGeometry,
    input: &[f64],
    weight: &[f64],
    scale: &[f64],
    shift: &[f64],
    residual: Option<&[f64]>,
    options: BlockOptions,
) -> Forward {
    let channels = geometry.channels_out;
    let convolved = convolve(geometry, input, weight);
    let pixels = geometry.out_pixels() as f64;
    let sum = |f: &dyn Fn(usize, f64) -> f64| {
        let mut sums = vec![0.0; channels];
        convolved.iter().enumerate().for_each(|(i, &z)| sums[i % channels] += f(i % channels, z) / pixels);
        sums
    };
    let mean = sum(&|_, z| z);
    let variance = sum(&|c, z| (z - mean[c]).powi(2));
    let positive = |on: bool, value: f64| if on { value.max(0.0) } else { value };
    let output = convolved.iter().enumerate().map(|(i, &z)| {
        let c = i % channels;
        let deviation = (variance[c] + f64::from(options.epsilon)).sqrt();
        let value = positive(options.relu, (z - mean[c]) / deviation * scale[c] + shift[c]);
        residual.map_or(value, |residual| positive(options.relu_after, value + residual[i]))
    });
    let output = output.collect();
    Forward { convolved, mean, variance, output }
}

/// Gradients of a block.
pub(crate) struct Backward {
    pub(crate) input: Vec<f64>,
    pub(crate) weight: Vec<f64>,
    pub(crate) scale: Vec<f64>,
    pub(crate) shift: Vec<f64>,
    pub(crate) residual: Vec<f64>,
}

/// Backward pass of a block.
#[expect(clippy::too_many_arguments, reason = "the operands of one fused operator")]
pub(crate) fn block_backward(
    geometry: &ConvGeometry,
    input: &[f64],
    weight: &[f64],
    scale: &[f64],
    shift: &[f64],
    forward: &Forward,
    options: BlockOptions,
    with_residual: bool,
    gradient: &[f64],
) -> Backward {
    let channels = geometry.channels_out;
    let pixels = geometry.out_pixels() as f64;
    let after = options.relu_after && with_residual;
    let residual: Vec<f64> = gradient
        .iter()
        .zip(&forward.output)
        .map(|(&g, &y)| if after && y <= 0.0 { 0.0 } else { g })
        .collect();
    let inverse: Vec<f64> =
        forward.variance.iter().map(|v| 1.0 / (v + f64::from(options.epsilon)).sqrt()).collect();
    let (mut dscale, mut dshift) = (vec![0.0; channels], vec![0.0; channels]);
    let mut masked = residual.clone();
    for (i, masked) in masked.iter_mut().enumerate() {
        let c = i % channels;
        let normal = (forward.convolved[i] - forward.mean[c]) * inverse[c];
        if options.relu && normal * scale[c] + shift[c] <= 0.0 {
            *masked = 0.0;
        }
        dshift[c] += *masked;
        dscale[c] += *masked * normal;
    }
    let dz: Vec<f64> = (0..masked.len())
        .map(|i| {
            let c = i % channels;
            let normal = (forward.convolved[i] - forward.mean[c]) * inverse[c];
            scale[c] * inverse[c] * (masked[i] - dshift[c] / pixels - normal * dscale[c] / pixels)
        })
        .collect();
    let (input, weight) = convolve_backward(geometry, input, weight, &dz);
    Backward { input, weight, scale: dscale, shift: dshift, residual }
}

/// The same numbers in double precision.
pub(crate) fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

/// # Panics
/// When a value differs from the expected one by more than `tolerance` times the largest expected magnitude.
pub(crate) fn assert_close(what: &str, values: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(values.len(), expected.len(), "{what}: lengths differ");
    let largest = expected.iter().fold(0.1_f64, |largest, value| largest.max(value.abs()));
    for (index, (&value, &expected)) in values.iter().zip(expected).enumerate() {
        let error = (f64::from(value) - expected).abs() / largest;
        assert!(
            error <= tolerance,
            "{what}[{index}]: {value} instead of {expected} (error {error:.2e} of {largest})"
        );
    }
}
