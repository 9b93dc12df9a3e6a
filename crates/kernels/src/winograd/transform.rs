//! The line and tile transforms of Winograd's F(4×4, 3×3) with the points 0, ±3/4, ±3/2 and infinity.
//!
//! These points keep every constant of the input and output transforms exact in single precision and the growth of numbers
//! small: the result's error is about five times that of the direct sum, 10⁻⁶ of the largest value, where the usual points
//! 0, ±1, ±2 give 4·10⁻⁶. Every transform works on vectors of channels.

use crate::simd::Simd;

/// Outputs of a tile along a side.
pub(crate) const SIDE: usize = 4;

/// Inputs of a tile along a side.
pub(crate) const SPAN: usize = 6;

/// Products of a tile.
pub(crate) const POINTS: usize = SPAN * SPAN;

const P: f32 = 0.75;
const Q: f32 = 1.5;
const PP: f32 = P * P;
const QQ: f32 = Q * Q;
/// Weights of the points ±P and ±Q, and of zero.
const KP: f32 = 1.0 / (2.0 * PP * (PP - QQ));
const KQ: f32 = 1.0 / (2.0 * QQ * (QQ - PP));
const K0: f32 = 1.0 / (PP * QQ);

/// A line of input numbers to the six points.
#[inline(always)]
fn input_line<S: Simd>(simd: S, d: [S::Vector; 6]) -> [S::Vector; 6] {
    let (product, sum) = (simd.splat(PP * QQ), simd.splat(-(PP + QQ)));
    let (minus_pp, minus_qq) = (simd.splat(-PP), simd.splat(-QQ));
    let even_p = simd.mul_add(d[2], minus_qq, d[4]);
    let odd_p = simd.mul_add(d[1], minus_qq, d[3]);
    let even_q = simd.mul_add(d[2], minus_pp, d[4]);
    let odd_q = simd.mul_add(d[1], minus_pp, d[3]);
    [
        simd.mul_add(d[0], product, simd.mul_add(d[2], sum, d[4])),
        simd.mul_add(odd_p, simd.splat(P), even_p),
        simd.mul_add(odd_p, simd.splat(-P), even_p),
        simd.mul_add(odd_q, simd.splat(Q), even_q),
        simd.mul_add(odd_q, simd.splat(-Q), even_q),
        simd.mul_add(d[1], product, simd.mul_add(d[3], sum, d[5])),
    ]
}

/// A line of products back to four outputs.
#[inline(always)]
fn output_line<S: Simd>(simd: S, m: [S::Vector; 6]) -> [S::Vector; 4] {
    let (even_p, odd_p) = (simd.add(m[1], m[2]), simd.sub(m[1], m[2]));
    let (even_q, odd_q) = (simd.add(m[3], m[4]), simd.sub(m[3], m[4]));
    [
        simd.add(m[0], simd.add(even_p, even_q)),
        simd.mul_add(odd_p, simd.splat(P), simd.mul(odd_q, simd.splat(Q))),
        simd.mul_add(even_p, simd.splat(PP), simd.mul(even_q, simd.splat(QQ))),
        simd.mul_add(odd_p, simd.splat(P * PP), simd.mul_add(odd_q, simd.splat(Q * QQ), m[5])),
    ]
}

/// The transpose of [`output_line`]: a line of output gradients to the six points.
#[inline(always)]
fn gradient_line<S: Simd>(simd: S, y: [S::Vector; 4]) -> [S::Vector; 6] {
    let even_p = simd.mul_add(y[2], simd.splat(PP), y[0]);
    let odd_p = simd.mul_add(y[3], simd.splat(PP), y[1]);
    let even_q = simd.mul_add(y[2], simd.splat(QQ), y[0]);
    let odd_q = simd.mul_add(y[3], simd.splat(QQ), y[1]);
    [
        y[0],
        simd.mul_add(odd_p, simd.splat(P), even_p),
        simd.mul_add(odd_p, simd.splat(-P), even_p),
        simd.mul_add(odd_q, simd.splat(Q), even_q),
        simd.mul_add(odd_q, simd.splat(-Q), even_q),
        y[3],
    ]
}

/// A line of kernel numbers to the six points.
#[inline(always)]
fn weight_line<S: Simd>(simd: S, g: [S::Vector; 3]) -> [S::Vector; 6] {
    let even_p = simd.mul_add(g[2], simd.splat(KP * PP), simd.mul(g[0], simd.splat(KP)));
    let even_q = simd.mul_add(g[2], simd.splat(KQ * QQ), simd.mul(g[0], simd.splat(KQ)));
    [
        simd.mul(g[0], simd.splat(K0)),
        simd.mul_add(g[1], simd.splat(KP * P), even_p),
        simd.mul_add(g[1], simd.splat(-KP * P), even_p),
        simd.mul_add(g[1], simd.splat(KQ * Q), even_q),
        simd.mul_add(g[1], simd.splat(-KQ * Q), even_q),
        g[2],
    ]
}

/// The transpose of [`weight_line`]: gradients at the six points to those of the kernel line.
#[inline(always)]
fn weight_gradient_line<S: Simd>(simd: S, u: [S::Vector; 6]) -> [S::Vector; 3] {
    let (even_p, odd_p) = (simd.add(u[1], u[2]), simd.sub(u[1], u[2]));
    let (even_q, odd_q) = (simd.add(u[3], u[4]), simd.sub(u[3], u[4]));
    let base = simd.mul_add(even_p, simd.splat(KP), simd.mul(even_q, simd.splat(KQ)));
    let high = simd.mul_add(even_p, simd.splat(KP * PP), simd.mul_add(even_q, simd.splat(KQ * QQ), u[5]));
    [
        simd.mul_add(u[0], simd.splat(K0), base),
        simd.mul_add(odd_p, simd.splat(KP * P), simd.mul(odd_q, simd.splat(KQ * Q))),
        high,
    ]
}

/// Applies a line transform down the columns and then along the rows of a square of vectors. Written out place by place:
/// arrays indexed in loops would live in memory instead of registers.
macro_rules! tile_transform {
    (
        $(#[$doc:meta])* $name:ident, $line:ident, $from:literal => $to:literal,
        columns $columns:tt, rows $rows:tt, results $results:tt
    ) => {
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<S: Simd>(
            simd: S,
            load: impl Fn(usize) -> S::Vector,
            mut store: impl FnMut(usize, S::Vector),
        ) {
            let half = tile_transform!(@columns simd, load, $line, $from, $rows, $columns);
            tile_transform!(@rows simd, store, $line, $to, half, $columns, $results, $results);
        }
    };
    (@columns $simd:ident, $load:ident, $line:ident, $from:literal, $rows:tt, [$($column:literal)*]) => {
        [$(tile_transform!(@column $simd, $load, $line, $from, $column, $rows)),*]
    };
    (@column $simd:ident, $load:ident, $line:ident, $from:literal, $column:literal, [$($row:literal)*]) => {
        $line($simd, [$($load($row * $from + $column)),*])
    };
    (@rows $simd:ident, $store:ident, $line:ident, $to:literal, $half:ident, $columns:tt, $results:tt, [$($row:literal)*]) => {
        $(tile_transform!(@row $simd, $store, $line, $to, $half, $row, $columns, $results);)*
    };
    (
        @row $simd:ident, $store:ident, $line:ident, $to:literal, $half:ident, $row:literal,
        [$($column:literal)*], [$($result:literal)*]
    ) => {
        let line = $line($simd, [$($half[$column][$row]),*]);
        $($store($row * $to + $result, line[$result]);)*
    };
}

tile_transform!(
    /// 6×6 inputs to 36 points.
    input_tile, input_line, 6 => 6, columns [0 1 2 3 4 5], rows [0 1 2 3 4 5], results [0 1 2 3 4 5]
);
tile_transform!(
    /// 36 products to 4×4 outputs.
    output_tile, output_line, 6 => 4, columns [0 1 2 3 4 5], rows [0 1 2 3 4 5], results [0 1 2 3]
);
tile_transform!(
    /// 4×4 output gradients to 36 points.
    gradient_tile, gradient_line, 4 => 6, columns [0 1 2 3], rows [0 1 2 3], results [0 1 2 3 4 5]
);
tile_transform!(
    /// 3×3 weights to 36 points.
    weight_tile, weight_line, 3 => 6, columns [0 1 2], rows [0 1 2], results [0 1 2 3 4 5]
);
tile_transform!(
    /// 36 point gradients to 3×3 weight gradients.
    weight_gradient_tile, weight_gradient_line, 6 => 3, columns [0 1 2 3 4 5], rows [0 1 2 3 4 5], results [0 1 2]
);

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::reference::numbers;
    use crate::simd::Portable;

    fn apply(
        input: &[f32],
        outputs: usize,
        f: impl Fn(&dyn Fn(usize) -> f32, &mut dyn FnMut(usize, f32)),
    ) -> Vec<f32> {
        let result = RefCell::new(vec![0.0; outputs]);
        f(&|place| input[place], &mut |place, value| result.borrow_mut()[place] = value);
        result.into_inner()
    }

    fn lane(vector: <Portable as Simd>::Vector) -> f32 {
        let mut lanes = [0.0; 4];
        // SAFETY: a portable vector has four lanes.
        unsafe { Portable.store(lanes.as_mut_ptr(), vector) };
        lanes[0]
    }

    macro_rules! scalar {
        ($name:ident, $input:expr, $outputs:expr) => {
            apply(&$input, $outputs, |load, store| {
                $name(
                    Portable,
                    |place| Portable.splat(load(place)),
                    |place, value| store(place, lane(value)),
                );
            })
        };
    }

    #[test]
    fn a_tile_is_a_correlation() {
        let (input, weight) = (numbers(36, 1), numbers(9, 2));
        let (v, u) = (scalar!(input_tile, input, 36), scalar!(weight_tile, weight, 36));
        let products: Vec<f32> = v.iter().zip(&u).map(|(v, u)| v * u).collect();
        let output = scalar!(output_tile, products, 16);
        for (place, output) in output.iter().enumerate() {
            let expected: f32 =
                (0..9).map(|tap| weight[tap] * input[(place / 4 + tap / 3) * 6 + place % 4 + tap % 3]).sum();
            assert!((output - expected).abs() < 1e-5, "{output} {expected}");
        }
    }

    #[test]
    fn gradients_are_transposes() {
        let (gradient, products) = (numbers(16, 3), numbers(36, 4));
        let inner = |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
        let left = inner(&scalar!(gradient_tile, gradient, 36), &products);
        assert!((left - inner(&gradient, &scalar!(output_tile, products, 16))).abs() < 1e-3);
        let weight = numbers(9, 5);
        let left = inner(&scalar!(weight_gradient_tile, products, 9), &weight);
        assert!((left - inner(&products, &scalar!(weight_tile, weight, 36))).abs() < 1e-4);
    }
}
