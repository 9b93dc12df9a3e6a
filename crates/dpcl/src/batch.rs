//! Batches: how stream samples and memory samples become one block of floats.
//!
//! A [`Batch`] holds images and labels, nothing else; no task, no position. Batches are made ahead on a second thread,
//! each random stream drawn in the same order as if they were made one by one.

use std::sync::mpsc::sync_channel;

use serde::{Deserialize, Serialize};

use crate::{
    augment::{CutMix, Mix, Pipeline},
    data::Image,
    error::Result,
    memory::{Drawn, Sample},
    random::Random,
    state::{Persist, State},
};

/// Augmented, normalised images and their labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// rows · size · size · 3 floats, channels last.
    pub images: Vec<f32>,
    /// Class of each row.
    pub labels: Vec<usize>,
    /// Memory slot of each memory row; they follow the stream rows.
    pub slots: Vec<usize>,
    /// How the rows, or the first of them, were cut and mixed, if they were.
    pub mix: Option<Mix>,
}

impl Batch {
    /// Labels of the images mixed into each mixed row.
    pub fn partners(&self, mix: &Mix) -> Vec<usize> {
        mix.permutation.iter().map(|&row| self.labels[row]).collect()
    }
}

/// Makes batches; owns the random streams they are made with.
#[derive(Clone)]
pub struct Batcher {
    pipeline: Pipeline,
    cutmix: CutMix,
    size: usize,
    chance: Chances,
}

#[derive(Clone, Serialize, Deserialize)]
struct Chances {
    augmentation: Random,
    cutmix: Random,
}

impl Batcher {
    /// A maker of batches of `size` × `size` images.
    pub fn new(pipeline: Pipeline, cutmix: CutMix, size: usize, seed: u64) -> Self {
        let chance = Chances {
            augmentation: Random::named(seed, "augmentation"),
            cutmix: Random::named(seed, "cutmix"),
        };
        Self { pipeline, cutmix, size, chance }
    }

    /// Height and width of the images.
    pub fn size(&self) -> usize {
        self.size
    }

    /// All `stream` samples, then the `drawn` memory samples, freshly augmented, cut and mixed when chance says so.
    pub fn replay(&mut self, stream: &[Sample], drawn: &[Drawn]) -> Batch {
        self.replay_beside(stream, drawn, &[])
    }

    /// The same with further memory samples at the end, which are augmented but never cut and mixed.
    pub fn replay_beside(&mut self, stream: &[Sample], drawn: &[Drawn], beside: &[Drawn]) -> Batch {
        let memory = || drawn.iter().chain(beside);
        let samples = || stream.iter().chain(memory().map(|drawn| &drawn.sample));
        let mut images = self.augmented(samples());
        let mix = self.mixing(stream.len() + drawn.len());
        if let Some(mix) = &mix {
            let mixed = mix.permutation.len() * self.size * self.size * 3;
            mix.apply(&mut images[..mixed], self.size, self.size);
        }
        let labels = samples().map(|sample| sample.class).collect();
        Batch { images, labels, slots: memory().map(|drawn| drawn.slot).collect(), mix }
    }

    /// Freshly augmented, normalised floats of samples.
    pub fn augmented<'a>(&mut self, samples: impl Iterator<Item = &'a Sample> + Clone) -> Vec<f32> {
        let length = self.size * self.size * 3;
        let mut images = vec![0.0; samples.clone().count() * length];
        for (sample, out) in samples.zip(images.chunks_exact_mut(length)) {
            self.pipeline.train(&sample.image, &mut self.chance.augmentation, out);
        }
        images
    }

    /// Freshly augmented, normalised floats of images by chance from elsewhere; training's own draws are untouched.
    pub fn perturbed<'a>(
        &self,
        images: impl Iterator<Item = &'a Image> + Clone,
        random: &mut Random,
    ) -> Vec<f32> {
        let length = self.size * self.size * 3;
        let mut floats = vec![0.0; images.clone().count() * length];
        for (image, out) in images.zip(floats.chunks_exact_mut(length)) {
            self.pipeline.train(image, random, out);
        }
        floats
    }

    /// Whether a batch of `rows` images is cut and mixed and, if so, how.
    pub fn mixing(&mut self, rows: usize) -> Option<Mix> {
        self.cutmix.draw(rows, self.size, self.size, &mut self.chance.cutmix)
    }

    /// Clean, normalised floats of images for evaluation.
    pub fn clean(&self, images: &[Image]) -> Vec<f32> {
        let length = self.size * self.size * 3;
        let mut floats = vec![0.0; images.len() * length];
        for (image, out) in images.iter().zip(floats.chunks_exact_mut(length)) {
            self.pipeline.test(image, out);
        }
        floats
    }
}

impl Persist for Batcher {
    fn save(&self, state: &mut State) {
        state.put("chance", &self.chance);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.chance = state.get("chance")?;
        Ok(())
    }
}

/// How many batches may wait for the learner.
const AHEAD: usize = 2;

/// Makes `count` things on a second thread, a little ahead of `consume`, which runs here and in order.
///
/// # Errors
/// The first error of `consume`; what was made ahead is dropped.
pub fn ahead<T: Send>(
    count: usize,
    mut make: impl FnMut() -> T + Send,
    mut consume: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    if count <= 1 {
        return (0..count).try_for_each(|_| consume(make()));
    }
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(AHEAD);
        scope.spawn(move || (0..count).try_for_each(|_| sender.send(make())));
        receiver.into_iter().try_for_each(&mut consume)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn things_made_ahead_arrive_in_order_and_stop_on_error() {
        let mut next = 0;
        let mut met = Vec::new();
        let make = || {
            next += 1;
            next
        };
        ahead(5, make, |thing| {
            met.push(thing);
            Ok(())
        })
        .unwrap();
        assert_eq!(met, [1, 2, 3, 4, 5]);

        let mut made = 0;
        let outcome = ahead(100, || made += 1, |()| Err(Error::NoClassYet));
        assert!(matches!(outcome, Err(Error::NoClassYet)));
        assert!(made < 100, "the maker stops when nobody listens");
    }
}
