//! A classifier and an autoencoder that learned the same samples, and learn no more.

use burn::tensor::Tensor;

use super::raster::Raster;
use crate::{
    data::Picture,
    error::Result,
    memory::Sample,
    method::Core,
    model::{Autoencoder, Network, floats, matrix},
    state::{Persist, State},
};

/// A frozen pair.
pub(super) struct Component {
    pub network: Network,
    pub autoencoder: Autoencoder,
}

/// The class that a network gives each of some samples as they are stored.
pub(super) fn labels(network: &Network, core: &Core, samples: &[Sample]) -> Vec<usize> {
    if samples.is_empty() {
        return Vec::new();
    }
    let images = core.model.images(core.batcher.stored(samples.iter()), core.batcher.size());
    let logits = network.logits(images);
    let [_, _, classes] = logits.dims();
    floats(logits).chunks(classes).map(first_largest).collect()
}

fn first_largest(logits: &[f32]) -> usize {
    (0..logits.len()).rev().max_by(|&one, &other| logits[one].total_cmp(&logits[other])).unwrap_or(0)
}

/// Pictures as autoencoders see them, [rows, numbers].
pub(super) fn pixels<'a>(
    raster: Raster,
    core: &Core,
    pictures: impl Iterator<Item = &'a Picture>,
) -> Tensor<2> {
    let numbers: Vec<f32> = pictures.flat_map(|picture| raster.shrunk(picture)).collect();
    let rows = numbers.len() / raster.numbers();
    matrix(numbers, [rows, raster.numbers()], &core.model.device())
}

/// Which of some autoencoders tells each image with the smallest loss; the first of equal ones. A loss that is not
/// finite counts as endless, whatever the sign that arithmetic gave to what is not a number.
pub(super) fn nearest(losses: &[Vec<f32>]) -> Vec<usize> {
    let of = |component: usize, row: usize| -> f32 {
        let loss = losses[component][row];
        if loss.is_finite() { loss } else { f32::INFINITY }
    };
    let row = |row: usize| {
        let components = 0..losses.len();
        components.min_by(|&one, &other| of(one, row).total_cmp(&of(other, row))).unwrap_or(0)
    };
    (0..losses.first().map_or(0, Vec::len)).map(row).collect()
}

impl Persist for Component {
    fn save(&self, state: &mut State) {
        state.save_part("network", &self.network);
        state.save_part("autoencoder", &self.autoencoder);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        state.load_part("network", &mut self.network)?;
        state.load_part("autoencoder", &mut self.autoencoder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_loss_and_the_largest_logit_win_and_the_first_of_equal_ones() {
        let losses = [vec![1.0, 3.0, 2.0], vec![2.0, 1.0, 2.0], vec![3.0, f32::NAN, 2.0]];
        assert_eq!(nearest(&losses), [0, 1, 0]);
        for endless in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(nearest(&[vec![endless], vec![7.0]]), [1], "{endless}");
            assert_eq!(nearest(&[vec![7.0], vec![endless]]), [0], "{endless}");
            assert_eq!(nearest(&[vec![endless], vec![endless]]), [0], "{endless}");
        }
        assert_eq!(first_largest(&[0.5, 2.0, 2.0, -1.0]), 1);
        assert_eq!(first_largest(&[-3.0]), 0);
    }
}
