//! Directions in which most of what is given lies: the leading right singular vectors of a matrix, by the
//! eigen-decomposition of its Gram matrix in double precision.

use faer::{Mat, Side};

/// Orthonormal directions, the leading one first.
pub(super) struct Leading {
    /// Row-major, [width, count]: a column a direction.
    pub columns: Vec<f32>,
    /// How many.
    pub count: usize,
}

/// The fewest leading directions of `rows` (row-major, each `width` long) that hold at least `share` of their squared
/// length; none where the rows are nothing, or not finite.
pub(super) fn leading(rows: &[f32], width: usize, share: f64) -> Option<Leading> {
    if !rows.iter().all(|number| number.is_finite()) {
        return None;
    }
    let rows = Mat::from_fn(rows.len() / width, width, |row, column| f64::from(rows[row * width + column]));
    let (squares, vectors) = decompose(&rows)?;
    let count = enough(&squares, share)?;
    let vectors = vectors.subcols(0, count);
    let directions = if vectors.nrows() == width {
        vectors.to_owned()
    } else {
        // From the left singular vectors to the right ones, and to length 1; the leading ones stay first.
        (rows.transpose() * vectors).qr().compute_thin_Q()
    };
    let columns = (0..width * count).map(|at| directions[(at / count, at % count)] as f32).collect();
    Some(Leading { columns, count })
}

/// Eigenvalues and eigenvectors of the smaller Gram matrix, rows · rowsᵀ or rowsᵀ · rows, the largest first: the squared
/// singular values, and the left or right singular vectors.
pub(super) fn decompose(rows: &Mat<f64>) -> Option<(Vec<f64>, Mat<f64>)> {
    let tall = rows.nrows() >= rows.ncols();
    let gram = if tall { rows.transpose() * rows } else { rows * rows.transpose() };
    let side = gram.nrows();
    // The decomposition has its values in ascending order.
    let eigen = gram.self_adjoint_eigen(Side::Lower).ok()?;
    let (values, vectors) = (eigen.S().column_vector(), eigen.U());
    let squares = (0..side).rev().map(|at| values[at].max(0.0)).collect();
    Some((squares, Mat::from_fn(side, side, |row, column| vectors[(row, side - 1 - column)])))
}

/// How many of these squares, descending, make `share` of their sum; none where that is nothing.
fn enough(squares: &[f64], share: f64) -> Option<usize> {
    let total: f64 = squares.iter().sum();
    if total <= 0.0 {
        return None;
    }
    let mut sum = 0.0;
    let reached = |square: &f64| {
        sum += square;
        sum >= share * total
    };
    Some(squares.iter().position(reached).map_or(squares.len(), |last| last + 1))
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::{super::MOST_SHARE, *};
    use crate::{
        inner::reference::cases_named,
        model::{floats, matrix},
        random::Random,
    };

    /// M·Mᵀ of a basis, row by row.
    fn projector(columns: &[f32], width: usize, count: usize) -> Vec<Vec<f32>> {
        let basis = matrix(columns.to_vec(), [width, count], &Device::flex());
        floats(basis.clone().matmul(basis.transpose())).chunks(width).map(<[f32]>::to_vec).collect()
    }

    #[test]
    fn golden_fsdgpm_basis() {
        for case in cases_named("losses.json", "fsdgpm.basis_size") {
            let rows: Vec<Vec<f32>> = case.input("rows");
            let width = rows[0].len();
            let exact = Mat::from_fn(rows.len(), width, |row, column| f64::from(rows[row][column]));
            let (squares, _) = decompose(&exact).unwrap();
            case.check("singular_values", squares.iter().map(|square| square.sqrt()).collect::<Vec<f64>>());
            let found = leading(&rows.concat(), width, case.input("threshold")).unwrap();
            case.check("k", found.count);
            case.check("projector", projector(&found.columns, width, found.count));
        }
    }

    fn numbers(count: usize, name: &str) -> Vec<f32> {
        let mut random = Random::named(3, name);
        (0..count).map(|_| random.normal() as f32).collect()
    }

    #[test]
    fn the_decomposition_leaves_no_residual_and_is_orthonormal() {
        for (count, width) in [(200, 60), (60, 200), (64, 64), (1, 30), (30, 1)] {
            let numbers = numbers(count * width, "rows");
            let rows = Mat::from_fn(count, width, |row, column| f64::from(numbers[row * width + column]));
            let gram = if count >= width { rows.transpose() * &rows } else { &rows * rows.transpose() };
            let (squares, vectors) = decompose(&rows).unwrap();
            let side = count.min(width);
            assert!(squares.is_sorted_by(|one, other| one >= other) && squares.len() == side);
            let turned = &gram * &vectors;
            for column in 0..side {
                for row in 0..side {
                    let residual = turned[(row, column)] - squares[column] * vectors[(row, column)];
                    assert!(residual.abs() < 1e-12 * squares[0], "{count} × {width}: {residual}");
                }
            }

            let found = leading(&numbers, width, MOST_SHARE).unwrap();
            assert_eq!(found.count, side, "rows by chance need every direction");
            let basis = matrix(found.columns, [width, side], &Device::flex());
            let products = floats(basis.clone().transpose().matmul(basis));
            for (at, product) in products.into_iter().enumerate() {
                let expected = if at / side == at % side { 1.0 } else { 0.0 };
                assert!((product - expected).abs() < 1e-5, "{count} × {width}: {product}");
            }
        }
    }

    #[test]
    fn few_rows_and_many_lead_in_the_same_directions() {
        // Ten rows in which three directions are strong, and the same ten again and again.
        let width = 40;
        let strong = numbers(3 * width, "strong");
        let weights = numbers(10 * 3, "weights");
        let weak = numbers(10 * width, "weak");
        let row = |row: usize| {
            let weights = &weights[3 * row..3 * row + 3];
            (0..width).map(move |at| (at, weights))
        };
        let rows: Vec<f32> = (0..10)
            .flat_map(|index| row(index).map(move |(at, weights)| (index, at, weights)))
            .map(|(index, at, weights)| {
                let strong: f32 =
                    weights.iter().enumerate().map(|(of, weight)| weight * strong[of * width + at]).sum();
                strong + 0.01 * weak[index * width + at]
            })
            .collect();
        let few = leading(&rows, width, 0.99).unwrap();
        let many = leading(&rows.repeat(5), width, 0.99).unwrap();
        assert_eq!((few.count, many.count), (3, 3));
        let [few, many] = [few, many].map(|found| projector(&found.columns, width, 3).concat());
        assert!(few.iter().zip(&many).all(|(few, many)| (few - many).abs() < 1e-4));
    }

    #[test]
    fn nothing_and_what_is_not_finite_leads_nowhere() {
        assert!(leading(&[0.0; 12], 4, 0.97).is_none());
        assert!(leading(&[], 4, 0.97).is_none());
        assert!(leading(&[1.0, f32::NAN, 0.0, 1.0], 2, 0.97).is_none());
        assert!(leading(&[1.0, f32::INFINITY, 0.0, 1.0], 2, 0.97).is_none());
        // One direction is enough for rows that all lie in it.
        assert_eq!(leading(&[3.0, 4.0, 6.0, 8.0, -3.0, -4.0], 2, MOST_SHARE).unwrap().count, 1);
    }
}
