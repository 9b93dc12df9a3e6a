//! The distribution of one class's weights in one head, gathered from snapshots taken during training.
//!
//! A snapshot φ moves the mean w̄ and the mean of squares s and leaves a deviation column φ − w̄ (the new mean) behind;
//! of those the last A are kept. The weights are then taken to be normal with mean w̄ and covariance
//! ½ diag(v) + D Dᵀ / (2(A − 1)), v = max(s − w̄², 0) (SWAG, Maddox et al. 2019).

use std::collections::VecDeque;

use crate::{
    error::{Error, Result},
    state::{Array, Elements, State},
};

/// Running mean, mean of squares and recent deviations of one weight vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Gaussian {
    /// Deviation columns kept, 0 or at least 2.
    rank: usize,
    /// How many snapshots count, the last ones; 0 counts all.
    window: usize,
    count: u64,
    mean: Vec<f64>,
    squares: Vec<f64>,
    deviations: VecDeque<Vec<f32>>,
    /// The snapshots inside the window; empty without one.
    recent: VecDeque<Vec<f32>>,
}

impl Gaussian {
    /// No snapshot yet.
    pub fn new(rank: usize, window: usize) -> Self {
        Self {
            rank,
            window,
            count: 0,
            mean: Vec::new(),
            squares: Vec::new(),
            deviations: VecDeque::new(),
            recent: VecDeque::new(),
        }
    }

    /// Takes in a snapshot.
    pub fn collect(&mut self, snapshot: &[f32]) {
        if self.window > 0 {
            push(&mut self.recent, snapshot.to_vec(), self.window);
            self.mean = average(&self.recent, |number| number);
            self.squares = average(&self.recent, |number| number * number);
        } else {
            self.mean.resize(snapshot.len(), 0.0);
            self.squares.resize(snapshot.len(), 0.0);
            let count = self.count as f64;
            for ((mean, squares), &number) in self.mean.iter_mut().zip(&mut self.squares).zip(snapshot) {
                let number = f64::from(number);
                *mean = (count * *mean + number) / (count + 1.0);
                *squares = (count * *squares + number * number) / (count + 1.0);
            }
        }
        self.count += 1;
        if self.rank > 0 {
            let deviation =
                snapshot.iter().zip(&self.mean).map(|(&number, mean)| (f64::from(number) - mean) as f32);
            let kept = if self.window > 0 { self.rank.min(self.window) } else { self.rank };
            push(&mut self.deviations, deviation.collect(), kept);
        }
    }

    /// Snapshots taken in.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean of the snapshots (w̄).
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Their variance, number by number (v).
    pub fn variance(&self) -> impl Iterator<Item = f64> {
        self.mean.iter().zip(&self.squares).map(|(mean, squares)| (squares - mean * mean).max(0.0))
    }

    /// Deviation columns, oldest first (D).
    pub fn deviations(&self) -> &VecDeque<Vec<f32>> {
        &self.deviations
    }

    /// Numbers held in deviation columns and in the snapshots of a window.
    pub fn history(&self) -> u64 {
        self.deviations.iter().chain(&self.recent).map(|column| column.len() as u64).sum()
    }

    /// What each deviation column is multiplied by: 1 / √(2(A − 1)). Missing columns count as zero.
    pub fn column_scale(&self) -> f64 {
        if self.rank < 2 { 0.0 } else { 1.0 / (2.0 * (self.rank - 1) as f64).sqrt() }
    }

    /// One draw; asks `normal` for a number per weight, then for one per deviation column.
    pub fn draw(&self, normal: &mut dyn FnMut() -> f64) -> Vec<f32> {
        let mut drawn: Vec<f64> = self
            .mean
            .iter()
            .zip(self.variance())
            .map(|(mean, variance)| mean + (variance / 2.0).sqrt() * normal())
            .collect();
        for column in &self.deviations {
            let strength = normal() * self.column_scale();
            drawn.iter_mut().zip(column).for_each(|(sum, &number)| *sum += strength * f64::from(number));
        }
        drawn.into_iter().map(|number| number as f32).collect()
    }

    /// Writes everything under `prefix`. Running sums keep all their bits, so they are stored as bytes.
    pub fn save(&self, prefix: &str, state: &mut State) {
        state.put(&format!("{prefix}.count"), &self.count);
        for (name, numbers) in [("mean", &self.mean), ("squares", &self.squares)] {
            let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            state.put_array(&format!("{prefix}.{name}"), Array::bytes([numbers.len(), 8], bytes));
        }
        for (name, columns) in [("deviations", &self.deviations), ("recent", &self.recent)] {
            let shape = [columns.len(), self.mean.len()];
            let numbers = columns.iter().flatten().copied().collect();
            state.put_array(&format!("{prefix}.{name}"), Array::floats(shape, numbers));
        }
    }

    /// Reads back what [`Gaussian::save`] wrote; what was kept under a wider window is dropped at the next snapshot.
    ///
    /// # Errors
    /// When an entry is missing or has another form.
    pub fn load(&mut self, prefix: &str, state: &State) -> Result<()> {
        self.count = state.get_counted(&format!("{prefix}.count"))?;
        self.mean = load_doubles(&format!("{prefix}.mean"), state)?;
        let squares = load_doubles(&format!("{prefix}.squares"), state)?;
        if squares.len() != self.mean.len() {
            let problem = format!("has {} numbers for {} weights", squares.len(), self.mean.len());
            return Err(Error::BadState { key: format!("{prefix}.squares"), problem });
        }
        self.squares = squares;
        self.deviations = load_columns(&format!("{prefix}.deviations"), self.mean.len(), state)?;
        self.recent = load_columns(&format!("{prefix}.recent"), self.mean.len(), state)?;
        if self.window == 0 && !self.recent.is_empty() {
            // The mean stands for the snapshots of a window, and for no others.
            self.count = self.recent.len() as u64;
            self.recent.clear();
        }
        Ok(())
    }
}

fn push(ring: &mut VecDeque<Vec<f32>>, newest: Vec<f32>, capacity: usize) {
    // One that was loaded may be longer.
    while ring.len() >= capacity {
        ring.pop_front();
    }
    ring.push_back(newest);
}

fn average(snapshots: &VecDeque<Vec<f32>>, of: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut sum = vec![0.0; snapshots.back().map_or(0, Vec::len)];
    for snapshot in snapshots {
        sum.iter_mut().zip(snapshot).for_each(|(sum, &number)| *sum += of(f64::from(number)));
    }
    let count = snapshots.len() as f64;
    sum.into_iter().map(|sum| sum / count).collect()
}

fn load_doubles(key: &str, state: &State) -> Result<Vec<f64>> {
    match &state.array(key)?.elements {
        Elements::U8(bytes) if bytes.len() % 8 == 0 => Ok(bytes
            .chunks_exact(8)
            .map(|chunk| f64::from_le_bytes(chunk.try_into().expect("chunks are eight bytes long")))
            .collect()),
        _ => Err(Error::BadState { key: key.into(), problem: "is not a list of 64-bit floats".into() }),
    }
}

fn load_columns(key: &str, length: usize, state: &State) -> Result<VecDeque<Vec<f32>>> {
    let count = state.array(key)?.shape.first().copied().unwrap_or(0);
    let numbers = state.floats(key, &[count, length])?;
    Ok(numbers.chunks_exact(length.max(1)).map(<[f32]>::to_vec).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    impl Gaussian {
        /// A distribution with known mean, variance `v` and deviation columns, oldest first.
        pub fn known(rank: usize, mean: Vec<f64>, variance: &[f64], deviations: Vec<Vec<f32>>) -> Self {
            let squares = mean.iter().zip(variance).map(|(mean, variance)| variance + mean * mean).collect();
            Self { count: 1, mean, squares, deviations: deviations.into(), ..Self::new(rank, 0) }
        }

        /// Mean of the squares of the snapshots (s).
        pub fn squares(&self) -> &[f64] {
            &self.squares
        }
    }

    fn covariance(gaussian: &Gaussian) -> [[f64; 2]; 2] {
        let mut sigma = [[0.0; 2]; 2];
        for (index, variance) in gaussian.variance().enumerate() {
            sigma[index][index] = variance / 2.0;
        }
        let scale = gaussian.column_scale().powi(2);
        for column in gaussian.deviations() {
            for (row, &left) in column.iter().enumerate() {
                for (index, &right) in column.iter().enumerate() {
                    sigma[row][index] += scale * f64::from(left) * f64::from(right);
                }
            }
        }
        sigma
    }

    fn collected() -> Gaussian {
        let mut gaussian = Gaussian::new(3, 0);
        for snapshot in [[1.0, 2.0], [3.0, 2.0], [2.0, 5.0], [4.0, -1.0]] {
            gaussian.collect(&snapshot);
        }
        gaussian
    }

    #[test]
    fn draws_have_the_covariance_they_should() {
        let gaussian = collected();
        assert_eq!(covariance(&gaussian), [[1.4375, -1.125], [-1.125, 5.5]]);
        let mut random = Random::named(5, "gaussian");
        let (mut found, draws) = ([[0.0; 2]; 2], 100_000);
        for _ in 0..draws {
            let drawn = gaussian.draw(&mut || random.normal());
            let off = [f64::from(drawn[0]) - 2.5, f64::from(drawn[1]) - 2.0];
            for row in 0..2 {
                for column in 0..2 {
                    found[row][column] += off[row] * off[column] / f64::from(draws);
                }
            }
        }
        for (found, expected) in found.iter().flatten().zip(covariance(&gaussian).iter().flatten()) {
            assert!((found - expected).abs() < 0.03 * expected.abs(), "{found} for {expected}");
        }
    }

    #[test]
    fn a_window_forgets_what_lies_before_it() {
        let (mut windowed, mut fresh) = (Gaussian::new(3, 2), Gaussian::new(3, 0));
        for snapshot in [[9.0, 9.0], [2.0, 5.0], [4.0, -1.0]] {
            windowed.collect(&snapshot);
        }
        for snapshot in [[2.0, 5.0], [4.0, -1.0]] {
            fresh.collect(&snapshot);
        }
        assert_eq!(windowed.mean(), [3.0, 2.0]);
        assert_eq!(windowed.mean(), fresh.mean());
        assert_eq!(windowed.squares(), fresh.squares());
        assert_eq!(windowed.count(), 3);
        assert_eq!(windowed.deviations().len(), 2, "nor do columns reach further back");
    }

    #[test]
    fn a_distribution_taken_further_with_another_window_keeps_to_it() {
        let mut wide = Gaussian::new(4, 4);
        [[9.0, 9.0], [8.0, 8.0], [2.0, 5.0], [4.0, -1.0]].iter().for_each(|snapshot| wide.collect(snapshot));
        let mut state = State::default();
        wide.save("row", &mut state);
        let taken_further = |window: usize| {
            let mut gaussian = Gaussian::new(4, window);
            gaussian.load("row", &state).unwrap();
            gaussian.collect(&[0.0, 0.0]);
            gaussian
        };
        let narrow = taken_further(2);
        assert_eq!(narrow.mean(), [2.0, -0.5]);
        assert_eq!((narrow.recent.len(), narrow.deviations().len()), (2, 2));
        let all = taken_further(0);
        assert_eq!(all.mean(), [23.0 / 5.0, 21.0 / 5.0]);
        assert_eq!((all.recent.len(), all.count()), (0, 5));
    }

    #[test]
    fn a_saved_distribution_continues_exactly() {
        for window in [0, 2] {
            let mut whole = Gaussian::new(3, window);
            whole.collect(&[0.1, 0.7]);
            whole.collect(&[0.3, 0.2]);
            let mut state = State::default();
            whole.save("row", &mut state);
            let mut restored = Gaussian::new(3, window);
            restored.load("row", &state).unwrap();
            whole.collect(&[0.35, 0.11]);
            restored.collect(&[0.35, 0.11]);
            assert_eq!(whole, restored);
        }
    }
}
