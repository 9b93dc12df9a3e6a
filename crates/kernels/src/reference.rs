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

/// Sums that a kernel should find.
pub(crate) struct Expected {
    pub(crate) values: Vec<f64>,
    /// What rounding is measured against, one for all or one a channel: the largest value, or the largest that the same
    /// terms give when their signs are random. Where terms happen to cancel, their rounding does not.
    sizes: Vec<f64>,
}

impl Expected {
    /// Sums and, for each, the sum of its terms' squares.
    pub(crate) fn new(values: Vec<f64>, squares: &[f64]) -> Self {
        let largest = values.iter().fold(0.1_f64, |largest, value| largest.max(value.abs()));
        let size = squares.iter().fold(largest, |size, squares| size.max(squares.sqrt()));
        Self { values, sizes: vec![size] }
    }

    /// The same with the size of the terms of each channel.
    fn by_channel(values: Vec<f64>, terms: impl Iterator<Item = f64>) -> Self {
        let Self { values, sizes } = Self::new(values, &[]);
        Self { values, sizes: terms.map(|term| sizes[0].max(term)).collect() }
    }

    /// What the rounding of a value is measured against.
    pub(crate) fn size(&self, index: usize) -> f64 {
        self.sizes[index % self.sizes.len()]
    }

    /// # Panics
    /// When a value differs from the expected one by more than `tolerance` times their size.
    pub(crate) fn check(&self, what: &str, found: &[f32], tolerance: f64) {
        assert_eq!(found.len(), self.values.len(), "{what}: lengths differ");
        for (index, (&found, &expected)) in found.iter().zip(&self.values).enumerate() {
            let size = self.size(index);
            let error = (f64::from(found) - expected).abs() / size;
            assert!(
                error <= tolerance,
                "{what}[{index}]: {found} instead of {expected} (error {error:.2e} of {size})"
            );
        }
    }
}

/// Everything the forward pass of a block produces.
pub(crate) struct Forward {
    pub(crate) convolved: Expected,
    pub(crate) mean: Expected,
    pub(crate) variance: Expected,
    pub(crate) output: Expected,
    /// How far the nearest argument of a ReLU on the way to each output lies from zero, where its slope jumps.
    pub(crate) from_kink: Vec<f64>,
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
    let slope: Vec<f64> =
        (0..channels).map(|c| scale[c] / (variance[c] + f64::from(options.epsilon)).sqrt()).collect();

    let mut from_kink = vec![f64::INFINITY; convolved.len()];
    let mut output = Vec::with_capacity(convolved.len());
    for (i, (&z, from_kink)) in convolved.iter().zip(&mut from_kink).enumerate() {
        let c = i % channels;
        let mut positive = |on: bool, value: f64| {
            if !on {
                return value;
            }
            *from_kink = from_kink.min(value.abs());
            value.max(0.0)
        };
        let value = positive(options.relu, (z - mean[c]) * slope[c] + shift[c]);
        output.push(residual.map_or(value, |residual| positive(options.relu_after, value + residual[i])));
    }

    let squares_of_mean = sum(&|_, z| z * z / pixels);
    let convolved = Expected::new(convolved, &convolve(geometry, &squares(input), &squares(weight)));
    // An error of the convolution grows with the slope of its channel.
    let terms_of_output = slope.iter().map(|slope| slope.abs() * convolved.size(0));
    let output = Expected::by_channel(output, terms_of_output);
    Forward {
        convolved,
        mean: Expected::new(mean, &squares_of_mean),
        variance: Expected::new(variance, &[]),
        output,
        from_kink,
    }
}

fn squares(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value * value).collect()
}

/// Gradients of a block.
pub(crate) struct Backward {
    pub(crate) input: Expected,
    pub(crate) weight: Expected,
    pub(crate) scale: Expected,
    pub(crate) shift: Expected,
    pub(crate) residual: Expected,
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
        .zip(&forward.output.values)
        .map(|(&g, &y)| if after && y <= 0.0 { 0.0 } else { g })
        .collect();
    let inverse: Vec<f64> =
        forward.variance.values.iter().map(|v| 1.0 / (v + f64::from(options.epsilon)).sqrt()).collect();
    let normal =
        |i: usize| (forward.convolved.values[i] - forward.mean.values[i % channels]) * inverse[i % channels];
    let [mut dscale, mut dshift, mut dscale_squares, mut dshift_squares] =
        [(); 4].map(|()| vec![0.0; channels]);
    let mut masked = residual.clone();
    for (i, masked) in masked.iter_mut().enumerate() {
        let c = i % channels;
        if options.relu && normal(i) * scale[c] + shift[c] <= 0.0 {
            *masked = 0.0;
        }
        dshift[c] += *masked;
        dscale[c] += *masked * normal(i);
        dshift_squares[c] += masked.powi(2);
        dscale_squares[c] += (*masked * normal(i)).powi(2);
    }
    let (mut dz, mut dz_squares) = (Vec::new(), Vec::new());
    for (i, &masked) in masked.iter().enumerate() {
        let c = i % channels;
        let terms = [masked, -dshift[c] / pixels, -normal(i) * dscale[c] / pixels];
        let terms = terms.map(|term| scale[c] * inverse[c] * term);
        dz.push(terms.iter().sum());
        dz_squares.push(squares(&terms).iter().sum());
    }
    let (dx, dw) = convolve_backward(geometry, input, weight, &dz);
    let (dx_squares, dw_squares) =
        convolve_backward(geometry, &squares(input), &squares(weight), &dz_squares);
    Backward {
        input: Expected::new(dx, &dx_squares),
        weight: Expected::new(dw, &dw_squares),
        scale: Expected::new(dscale, &dscale_squares),
        shift: Expected::new(dshift, &dshift_squares),
        residual: Expected::new(residual, &[]),
    }
}

/// The same numbers in double precision.
pub(crate) fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}
