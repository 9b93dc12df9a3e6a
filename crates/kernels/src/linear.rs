//! Matrix products, and the linear layer built on them.
//!
//! A product with an untransposed left matrix is a 1×1 correlation whose pixels are the rows; one with a transposed left
//! matrix is the weight gradient of such a correlation.

use crate::correlate::{Correlation, input_gradient};
use crate::geometry::ConvGeometry;
use crate::isa::Isa;
use crate::panel::{Panels, pack};
use crate::scratch::Scratch;
use crate::weight_gradient::weight_gradient;
use crate::work;

/// A 1×1 convolution over `rows` single pixels.
fn as_convolution(rows: usize, inputs: usize, outputs: usize) -> ConvGeometry {
    ConvGeometry {
        batch: rows,
        height: 1,
        width: 1,
        channels_in: inputs,
        channels_out: outputs,
        kernel: 1,
        stride: 1,
        padding: 0,
    }
}

/// The sizes and transposes of a matrix product `c = op(a) · op(b)`, all matrices row-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    /// Rows of `op(a)` and of `c`.
    pub rows: usize,
    /// Columns of `op(b)` and of `c`.
    pub columns: usize,
    /// Columns of `op(a)` and rows of `op(b)`.
    pub inner: usize,
    /// `a` is stored as `[inner, rows]` instead of `[rows, inner]`.
    pub transpose_a: bool,
    /// `b` is stored as `[columns, inner]` instead of `[inner, columns]`.
    pub transpose_b: bool,
}

/// The matrix product `c = op(a) · op(b)`.
///
/// # Panics
/// When a slice does not have the length its shape says, or a size is zero.
pub fn multiply(product: Product, a: &[f32], b: &[f32], c: &mut [f32]) {
    let Product { rows, columns, inner, transpose_a, transpose_b } = product;
    assert!(
        a.len() == rows * inner && b.len() == inner * columns && c.len() == rows * columns,
        "{product:?}"
    );
    if !(transpose_a && transpose_b) {
        work::did(rows * columns * inner);
    }
    let isa = Isa::active();
    match (transpose_a, transpose_b) {
        (false, false) => {
            let geometry = as_convolution(rows, inner, columns);
            geometry.check();
            let panels = Panels::new(isa, columns);
            let packed = pack(&panels, b, inner);
            Correlation::forward(&geometry, a, &panels, packed.as_slice()).run(isa, c, None);
        }
        (false, true) => input_gradient(isa, &as_convolution(rows, columns, inner), a, b, c),
        (true, false) => {
            let mut copy = Scratch::take(b.len());
            copy.copy_from_slice(b);
            weight_gradient(isa, &as_convolution(inner, rows, columns), a, &copy, c);
        }
        (true, true) => {
            let mut turned = Scratch::take(a.len());
            for (index, value) in turned.iter_mut().enumerate() {
                *value = a[index % inner * rows + index / inner];
            }
            multiply(Product { transpose_a: false, ..product }, &turned, b, c);
        }
    }
}

/// `output = input · weight + bias`: `input` `[rows, features]`, `weight` `[features, outputs]`, `bias` `[outputs]`, `output`
/// `[rows, outputs]`. Several heads are one matrix with their outputs next to each other.
///
/// # Panics
/// When the lengths do not fit together.
pub fn linear_forward(rows: usize, input: &[f32], weight: &[f32], bias: &[f32], output: &mut [f32]) {
    let product = sizes(rows, input, bias.len());
    multiply(product, input, weight, output);
    for row in output.chunks_exact_mut(bias.len()) {
        row.iter_mut().zip(bias).for_each(|(value, bias)| *value += bias);
    }
}

fn sizes(rows: usize, input: &[f32], outputs: usize) -> Product {
    assert!(rows > 0 && input.len().is_multiple_of(rows), "the input has a whole number of features a row");
    Product { rows, columns: outputs, inner: input.len() / rows, transpose_a: false, transpose_b: false }
}

/// Gradients of [`linear_forward`]: `output_gradient` is `[rows, outputs]`, the others are in the shape of what they belong to.
///
/// # Panics
/// When the lengths do not fit together.
pub fn linear_backward(
    rows: usize,
    input: &[f32],
    weight: &[f32],
    output_gradient: &[f32],
    input_gradient: Option<&mut [f32]>,
    weight_gradient: &mut [f32],
    bias_gradient: &mut [f32],
) {
    let outputs = bias_gradient.len();
    let Product { inner: features, .. } = sizes(rows, input, outputs);
    assert_eq!(output_gradient.len(), rows * outputs, "the output gradient is [rows, outputs]");
    bias_gradient.fill(0.0);
    for row in output_gradient.chunks_exact(outputs) {
        bias_gradient.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    let weights =
        Product { rows: features, columns: outputs, inner: rows, transpose_a: true, transpose_b: false };
    multiply(weights, input, output_gradient, weight_gradient);
    if let Some(gradient) = input_gradient {
        let inputs =
            Product { rows, columns: features, inner: outputs, transpose_a: false, transpose_b: true };
        multiply(inputs, output_gradient, weight, gradient);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: f32) -> Vec<f32> {
        (0..count).map(|i| ((i as f32 + seed) * 12.9898).sin()).collect()
    }

    #[test]
    fn all_transposes_agree_with_the_definition() {
        let shapes: &[(usize, usize, usize)] = if cfg!(miri) {
            &[(3, 5, 2)]
        } else {
            &[(1, 1, 1), (3, 5, 2), (17, 33, 20), (16, 100, 160), (70, 9, 513)]
        };
        for isa in Isa::supported() {
            for &(rows, columns, inner) in shapes {
                let (a, b) = (numbers(rows * inner, 0.1), numbers(inner * columns, 0.7));
                for (transpose_a, transpose_b) in [(false, false), (false, true), (true, false), (true, true)]
                {
                    let mut c = vec![9.0; rows * columns];
                    let product = Product { rows, columns, inner, transpose_a, transpose_b };
                    isa.scope(|| multiply(product, &a, &b, &mut c));
                    for (index, &value) in c.iter().enumerate() {
                        let (row, column) = (index / columns, index % columns);
                        let expected: f64 = (0..inner)
                            .map(|k| {
                                let a = a[if transpose_a { k * rows + row } else { row * inner + k }];
                                let b =
                                    b[if transpose_b { column * inner + k } else { k * columns + column }];
                                f64::from(a) * f64::from(b)
                            })
                            .sum();
                        assert!(
                            (f64::from(value) - expected).abs() < 1e-5 * (1.0 + expected.abs()),
                            "{isa} {product:?} {value} {expected}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn linear_layer_by_hand() {
        let mut output = [0.0; 2];
        linear_forward(1, &[1.0, 2.0], &[1.0, 10.0, 3.0, 20.0], &[0.5, -0.5], &mut output);
        assert_eq!(output, [7.5, 49.5]);
        let (mut dx, mut dw, mut db) = ([0.0; 2], [0.0; 4], [0.0; 2]);
        let weight = [1.0, 10.0, 3.0, 20.0];
        linear_backward(1, &[1.0, 2.0], &weight, &[1.0, -1.0], Some(&mut dx), &mut dw, &mut db);
        assert_eq!((dx, dw, db), ([-9.0, -17.0], [1.0, -1.0, 2.0, -2.0], [1.0, -1.0]));
    }
}
