//! A step of Stein variational gradient descent: points move by each other's gradients, weighed by a kernel, and by a
//! force between them. It knows numbers only; what they are points of does not matter.

/// Shortens the kernel's reach; the authors' code has it, their paper does not.
const REACH: f64 = 0.05;

/// Points of equal length, one after the other, and what lies between them.
pub(super) struct Points<'a, T> {
    points: &'a [T],
    rows: usize,
    /// What squared distances are divided by (h); 0 where most points are in one place.
    pub bandwidth: f64,
    /// Kᵢⱼ, row by row.
    pub kernel: Vec<f64>,
}

impl<'a, T: Copy + Into<f64>> Points<'a, T> {
    /// `rows` points, at least one.
    pub fn new(points: &'a [T], rows: usize) -> Self {
        let distances = distances(points, rows);
        let median = median(distances.clone());
        let bandwidth = REACH * median * median / ((rows + 1) as f64).ln();
        // As the bandwidth goes to 0, only what lies in one place is still near.
        let near = |distance: f64| match bandwidth > 0.0 {
            true => (-distance * distance / bandwidth).exp(),
            false => f64::from(u8::from(distance == 0.0)),
        };
        let kernel = distances.into_iter().map(near).collect();
        Self { points, rows, bandwidth, kernel }
    }

    fn point(&self, row: usize) -> &'a [T] {
        let length = self.points.len() / self.rows;
        &self.points[row * length..][..length]
    }

    /// Rᵢ = (2/h) Σⱼ Kᵢⱼ·(zᵢ − zⱼ), away from the other points; nothing where the bandwidth is 0.
    pub fn repulsion(&self) -> Vec<f64> {
        let mut repulsion = vec![0.0; self.points.len()];
        if self.bandwidth <= 0.0 {
            return repulsion;
        }
        let length = self.points.len() / self.rows;
        for (row, away) in repulsion.chunks_exact_mut(length).enumerate() {
            for other in (0..self.rows).filter(|&other| other != row) {
                let weight = 2.0 / self.bandwidth * self.kernel[row * self.rows + other];
                for ((sum, own), other) in away.iter_mut().zip(self.point(row)).zip(self.point(other)) {
                    *sum += weight * ((*own).into() - (*other).into());
                }
            }
        }
        repulsion
    }

    /// z − (s/n)·(K·G + R), or with −R, which is away from each other.
    pub fn step(&self, gradient: &[T], step: f64, apart: bool) -> Vec<f64> {
        let length = self.points.len() / self.rows;
        let scale = step / self.rows as f64;
        let along = if apart { -scale } else { scale };
        let moved = self.points.iter().zip(self.repulsion());
        let mut moved: Vec<f64> = moved.map(|(point, force)| (*point).into() - along * force).collect();
        for (row, point) in moved.chunks_exact_mut(length).enumerate() {
            for (other, slope) in gradient.chunks_exact(length).enumerate() {
                let weight = scale * self.kernel[row * self.rows + other];
                point.iter_mut().zip(slope).for_each(|(number, slope)| *number -= weight * (*slope).into());
            }
        }
        moved
    }
}

/// ‖zᵢ − zⱼ‖ of all pairs, those of points with themselves included, row by row.
pub(super) fn distances<T: Copy + Into<f64>>(points: &[T], rows: usize) -> Vec<f64> {
    let length = points.len() / rows;
    let point = |row: usize| &points[row * length..][..length];
    let mut distances = vec![0.0; rows * rows];
    for row in 0..rows {
        for other in row + 1..rows {
            let differences =
                point(row).iter().zip(point(other)).map(|(one, other)| (*one).into() - (*other).into());
            let square: f64 = differences.map(|difference: f64| difference * difference).sum();
            distances[row * rows + other] = square.sqrt();
            distances[other * rows + row] = square.sqrt();
        }
    }
    distances
}

/// The middle number, or the mean of the two in the middle; there is at least one.
pub(super) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    if numbers.len().is_multiple_of(2) {
        f64::midpoint(numbers[middle - 1], numbers[middle])
    } else {
        numbers[middle]
    }
}
