//! Batches: how stream samples and memory samples become one block of floats.
//!
//! A [`Batch`] holds images, labels and memory slots; no task, no position in the stream. A [`Recipe`] says which stored samples it
//! holds. Batches are made ahead on a second thread, each random stream drawn in the same order as if they were made one
//! by one.

use std::{ops::Range, sync::mpsc::sync_channel};

use serde::{Deserialize, Serialize};

use crate::{
    augment::{CutMix, Mix, Pipeline},
    data::{Image, Picture},
    error::Result,
    memory::{Drawn, Memory, Sample},
    random::Random,
    state::{Persist, State},
};

/// Augmented, normalised images and their labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// rows · size · size · 3 floats, channels last.
    pub images: Vec<f32>,
    /// Height and width of the images.
    pub size: usize,
    /// Class of each row.
    pub labels: Vec<usize>,
    /// Memory slot of each memory row; they follow the stream rows.
    pub slots: Vec<usize>,
    /// How many memory rows, the last ones, were left out of cutting and mixing.
    pub beside: usize,
    /// How rows were cut and mixed: all together, or in groups that follow each other. Other rows were not.
    pub mixes: Vec<Mix>,
    /// Stored samples of which some are still to join.
    pub candidates: Option<Candidates>,
}

/// Stored samples made ready before it is known which of them a step learns from.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidates {
    /// Augmented, normalised floats of each, one after the other.
    augmented: Vec<f32>,
    /// Normalised floats of each as it is stored.
    pub clean: Vec<f32>,
    /// Class of each.
    pub classes: Vec<usize>,
    /// Memory slot of each.
    pub slots: Vec<usize>,
    /// How many are to join.
    pub wanted: usize,
    /// How the batch will be cut and mixed once they have.
    mixes: Vec<Mix>,
}

impl Batch {
    /// Labels of the images mixed into each mixed row.
    pub fn partners(&self, mix: &Mix) -> Vec<usize> {
        mix.permutation.iter().map(|&row| self.labels[mix.first + row]).collect()
    }

    /// Labels mixed into a group of rows and the weight of its own, if it was cut and mixed, which all of it was or none.
    pub fn mixed(&self, group: &Range<usize>) -> Option<(Vec<usize>, f64)> {
        let mix = self.mixes.iter().find(|mix| mix.rows().contains(&group.start))?;
        let partners = self.partners(mix)[group.start - mix.first..group.end - mix.first].to_vec();
        Some((partners, mix.coefficient))
    }

    /// The rows in groups of which all were cut and mixed alike, or none.
    pub fn groups(&self) -> Vec<Range<usize>> {
        let mut ends: Vec<usize> = self.mixes.iter().flat_map(|mix| [mix.first, mix.rows().end]).collect();
        ends.push(self.labels.len());
        let mut start = 0;
        let group = |end: usize| std::mem::replace(&mut start, end)..end;
        ends.into_iter().map(group).filter(|group| !group.is_empty()).collect()
    }

    /// How many rows come from the stream.
    pub fn stream_rows(&self) -> usize {
        self.labels.len() - self.slots.len()
    }

    /// The batch with the `chosen` candidates in it, cut and mixed if it is to be.
    #[must_use]
    pub fn joined(mut self, chosen: &[usize]) -> Self {
        let Some(candidates) = self.candidates.take() else { return self };
        let length = self.size * self.size * 3;
        for &candidate in chosen {
            self.images.extend_from_slice(&candidates.augmented[candidate * length..][..length]);
            self.labels.push(candidates.classes[candidate]);
            self.slots.push(candidates.slots[candidate]);
        }
        self.mixes = candidates.mixes;
        apply(&self.mixes, &mut self.images, self.size);
        self
    }

    /// The same rows as they were before they were cut and mixed.
    #[must_use]
    pub fn unmixed(&self) -> Self {
        let mut unmixed = self.clone();
        let inverses: Vec<Mix> = std::mem::take(&mut unmixed.mixes).iter().map(Mix::inverse).collect();
        apply(&inverses, &mut unmixed.images, self.size);
        unmixed
    }
}

/// Which stored samples a batch holds beside the stream's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Rows that are cut and mixed, together with the stream rows unless `apart`.
    pub mixed: usize,
    /// Further rows, a draw of their own, which are never cut and mixed.
    pub beside: usize,
    /// Stored samples of which the step chooses the mixed rows; 0 draws the rows themselves.
    pub candidates: usize,
    /// Whether the rows of the stream and those of the memory are cut and mixed apart, each by chance of their own.
    pub apart: bool,
}

impl Recipe {
    /// That many rows, cut and mixed with the stream's.
    pub fn plain(rows: usize) -> Self {
        Self { mixed: rows, beside: 0, candidates: 0, apart: false }
    }

    /// Draws what one batch needs.
    pub fn draw(self, memory: &mut Memory) -> Ingredients {
        let mut draw = |count: usize| if count > 0 { memory.draw(count) } else { Vec::new() };
        let choose = (self.candidates > 0).then_some(self.mixed);
        let drawn = draw(self.candidates.max(self.mixed));
        Ingredients { drawn, choose, beside: draw(self.beside), apart: self.apart }
    }
}

/// The stored samples of one batch.
#[derive(Default)]
pub struct Ingredients {
    drawn: Vec<Drawn>,
    /// How many of the drawn ones the step is to choose; all of them if nobody chooses.
    choose: Option<usize>,
    beside: Vec<Drawn>,
    /// Whether stream and memory are cut and mixed apart.
    apart: bool,
}

impl Ingredients {
    /// Stored samples that a method has drawn itself, none of which is cut and mixed.
    pub fn beside(drawn: Vec<Drawn>) -> Self {
        Self { drawn: Vec::new(), choose: None, beside: drawn, apart: false }
    }
}

/// Makes batches; owns the random streams they are made with.
#[derive(Clone)]
pub struct Batcher {
    pipeline: Pipeline,
    cutmix: CutMix,
    /// Whether rows are mixed with rows of their own half only.
    in_halves: bool,
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
        Self { pipeline, cutmix, in_halves: false, size, chance }
    }

    /// Rows of the stream are cut and mixed among themselves, and so are those of the memory.
    #[must_use]
    pub fn in_halves(self, in_halves: bool) -> Self {
        Self { in_halves, ..self }
    }

    /// Height and width of the images.
    pub fn size(&self) -> usize {
        self.size
    }

    /// All `stream` samples, then the stored ones, freshly augmented, cut and mixed when chance says so.
    pub fn make(&mut self, stream: &[Sample], ingredients: &Ingredients) -> Batch {
        let Ingredients { drawn, choose, .. } = ingredients;
        match choose {
            Some(wanted) => self.with_candidates(stream, ingredients, (*wanted).min(drawn.len())),
            None => self.whole(stream, ingredients),
        }
    }

    /// A batch of these samples and nothing else.
    pub fn of(&mut self, samples: &[Sample]) -> Batch {
        self.whole(samples, &Ingredients::default())
    }

    fn whole(&mut self, stream: &[Sample], ingredients: &Ingredients) -> Batch {
        let Ingredients { drawn, beside, apart, .. } = ingredients;
        let memory = || drawn.iter().chain(beside);
        let samples = || stream.iter().chain(memory().map(|drawn| &drawn.sample));
        let mut images = self.augmented(samples());
        let mixes = self.mixing(stream.len(), drawn.len(), *apart);
        apply(&mixes, &mut images, self.size);
        Batch {
            images,
            size: self.size,
            labels: samples().map(|sample| sample.class).collect(),
            slots: memory().map(|drawn| drawn.slot).collect(),
            beside: beside.len(),
            mixes,
            candidates: None,
        }
    }

    fn with_candidates(&mut self, stream: &[Sample], ingredients: &Ingredients, wanted: usize) -> Batch {
        let Ingredients { drawn, apart, .. } = ingredients;
        let samples = || drawn.iter().map(|drawn| &drawn.sample);
        let images = self.augmented(stream.iter());
        let candidates = Candidates {
            augmented: self.augmented(samples()),
            clean: self.stored(samples()),
            classes: samples().map(|sample| sample.class).collect(),
            slots: drawn.iter().map(|drawn| drawn.slot).collect(),
            wanted,
            mixes: self.mixing(stream.len(), wanted, *apart),
        };
        let labels = stream.iter().map(|sample| sample.class).collect();
        Batch { images, size: self.size, labels, candidates: Some(candidates), ..Batch::default() }
    }

    /// Freshly augmented, normalised floats of samples.
    fn augmented<'a>(&mut self, samples: impl Iterator<Item = &'a Sample> + Clone) -> Vec<f32> {
        let Self { pipeline, chance, size, .. } = self;
        rows(*size, samples, |sample, out| pipeline.train(&sample.image, &mut chance.augmentation, out))
    }

    /// Freshly augmented, normalised floats of images by chance from elsewhere; training's own draws are untouched.
    pub fn augmented_by<'a>(
        &self,
        images: impl Iterator<Item = &'a Picture> + Clone,
        random: &mut Random,
    ) -> Vec<f32> {
        rows(self.size, images, |image, out| self.pipeline.train(image, random, out))
    }

    /// Whether a batch of these many rows of stream and memory is cut and mixed and, if so, how.
    fn mixing(&mut self, stream: usize, memory: usize, apart: bool) -> Vec<Mix> {
        let Self { cutmix, size, chance, .. } = self;
        let mut draw = |groups: &[usize]| cutmix.draw(groups, *size, *size, &mut chance.cutmix);
        if apart {
            let mut draw = |first: usize, rows: usize| {
                let mix = if rows > 0 { draw(&[rows]) } else { None };
                mix.map(|mix| Mix { first, ..mix })
            };
            let halves = [draw(0, stream), draw(stream, memory)];
            return halves.into_iter().flatten().collect();
        }
        let groups = if self.in_halves { &[stream, memory][..] } else { &[stream + memory] };
        draw(groups).into_iter().collect()
    }

    /// Clean, normalised floats of images for evaluation.
    pub fn clean(&self, images: &[Image]) -> Vec<f32> {
        rows(self.size, images.iter(), |image, out| self.pipeline.test(image, out))
    }

    /// Clean, normalised floats of samples as they are stored.
    pub fn stored<'a>(&self, samples: impl Iterator<Item = &'a Sample> + Clone) -> Vec<f32> {
        rows(self.size, samples, |sample, out| match &sample.image {
            Picture::Bytes(image) => self.pipeline.test(image, out),
            Picture::Floats(image) => self.pipeline.test_floats(image, out),
        })
    }
}

/// Cuts and mixes the rows of a batch of images of `size` × `size`.
fn apply(mixes: &[Mix], images: &mut [f32], size: usize) {
    let length = size * size * 3;
    for mix in mixes {
        let rows = mix.rows();
        mix.apply(&mut images[rows.start * length..rows.end * length], size, size);
    }
}

/// Images of `size` × `size` as one block of floats, each written by `write`.
fn rows<T>(
    size: usize,
    items: impl Iterator<Item = T> + Clone,
    mut write: impl FnMut(T, &mut [f32]),
) -> Vec<f32> {
    let length = size * size * 3;
    let mut floats = vec![0.0; items.clone().count() * length];
    items.zip(floats.chunks_exact_mut(length)).for_each(|(item, out)| write(item, out));
    floats
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
mod tests;
