//! CutMix (Yun et al. 2019): every image of a batch gets a rectangle of another one, and its loss follows the areas.
//!
//! One rectangle and one pairing serve a whole batch, or a group of its rows. With coefficient λ the loss of row i is
//! `λ·CE(row i, label i) + (1 − λ)·CE(row i, label of its partner)`; computing it is the method's business.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::random::Random;

/// How often and how much batches are mixed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CutMix {
    /// Share of training steps whose batch is mixed, 0..=1; 0 turns CutMix off.
    pub probability: f64,
    /// Both parameters of the Beta distribution of the share of the image that stays, above 0; 1 is uniform.
    pub alpha: f64,
}

impl Default for CutMix {
    fn default() -> Self {
        Self { probability: 0.5, alpha: 1.0 }
    }
}

impl CutMix {
    /// Refuses values that cannot be run; `key` is where these settings stand in the configuration.
    ///
    /// # Errors
    /// When the probability is outside 0..=1 or alpha is not positive.
    pub fn check(&self, key: &str) -> Result<()> {
        if !(0.0..=1.0).contains(&self.probability) {
            let problem = format!("{} is not a probability between 0 and 1", self.probability);
            return Err(Error::bad_key(format!("{key}.probability"), problem));
        }
        if !(self.alpha > 0.0 && self.alpha.is_finite()) {
            let problem = format!("{} is not a positive number", self.alpha);
            return Err(Error::bad_key(format!("{key}.alpha"), problem));
        }
        Ok(())
    }

    /// Decides whether a batch is mixed and, if so, how; `groups` are the numbers of images that are mixed among
    /// themselves, one group after the other. The images must not be empty.
    pub fn draw(&self, groups: &[usize], height: usize, width: usize, random: &mut Random) -> Option<Mix> {
        if !random.chance(self.probability) {
            return None;
        }
        let share = random.beta(self.alpha, self.alpha);
        let mut permutation = Vec::new();
        for &rows in groups {
            let first = permutation.len();
            permutation.extend(random.permutation(rows).into_iter().map(|partner| first + partner));
        }
        let (column, row) = (random.below(width), random.below(height));
        let area = Area::around((row, column), share, height, width);
        Some(Mix { first: 0, area, coefficient: area.share_outside(height, width), permutation })
    }
}

/// A rectangle of pixels; the right and bottom ends are excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// First column.
    pub left: usize,
    /// Column after the last.
    pub right: usize,
    /// First row.
    pub top: usize,
    /// Row after the last.
    pub bottom: usize,
}

impl Area {
    /// The rectangle about (row, column) `centre` that would leave `share` of the image outside, cut at the edges.
    pub fn around(centre: (usize, usize), share: f64, height: usize, width: usize) -> Self {
        let ratio = (1.0 - share).sqrt();
        let (top, bottom) = span(centre.0, ratio, height);
        let (left, right) = span(centre.1, ratio, width);
        Self { left, right, top, bottom }
    }

    /// The share of the image that lies outside; the mixing coefficient once the edges have cut the rectangle.
    pub fn share_outside(&self, height: usize, width: usize) -> f64 {
        let inside = (self.right - self.left) * (self.bottom - self.top);
        1.0 - inside as f64 / (height * width) as f64
    }
}

fn span(centre: usize, ratio: f64, extent: usize) -> (usize, usize) {
    let half = (extent as f64 * ratio) as usize / 2;
    (centre.saturating_sub(half), (centre + half).min(extent))
}

/// How the rows of a batch, or a group of them, are mixed.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// The first of the rows in the batch; the others follow it.
    pub first: usize,
    /// What is replaced.
    pub area: Area,
    /// Weight of a row's own label; its partner's label gets the rest.
    pub coefficient: f64,
    /// The partner of each row, counted from the first.
    pub permutation: Vec<usize>,
}

impl Mix {
    /// Which rows of the batch are mixed.
    pub fn rows(&self) -> Range<usize> {
        self.first..self.first + self.permutation.len()
    }

    /// The mix that undoes this one: each area went to exactly one other row, from where it comes back.
    pub fn inverse(&self) -> Self {
        let mut permutation = vec![0; self.permutation.len()];
        for (row, &partner) in self.permutation.iter().enumerate() {
            permutation[partner] = row;
        }
        Self { permutation, ..self.clone() }
    }

    /// Replaces the area of every image by its partner's, as both were before the call.
    ///
    /// `images` holds as many images as the permutation has entries, each height × width × channels.
    pub fn apply(&self, images: &mut [f32], height: usize, width: usize) {
        let rows = self.permutation.len();
        if rows == 0 {
            return;
        }
        let image = images.len() / rows;
        let channels = image / (height * width);
        let line = (self.area.right - self.area.left) * channels;
        let lines = self.area.bottom - self.area.top;

        let start =
            |row: usize, y: usize| row * image + ((self.area.top + y) * width + self.area.left) * channels;
        let mut pieces = Vec::with_capacity(rows * lines * line);
        for row in 0..rows {
            for y in 0..lines {
                pieces.extend_from_slice(&images[start(row, y)..][..line]);
            }
        }
        for (row, &partner) in self.permutation.iter().enumerate() {
            for y in 0..lines {
                let piece = &pieces[(partner * lines + y) * line..][..line];
                images[start(row, y)..][..line].copy_from_slice(piece);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_undoes_a_mix() {
        let cutmix = CutMix { probability: 1.0, alpha: 1.0 };
        let mut random = Random::named(4, "cutmix");
        let images: Vec<f32> = (0..5 * 8 * 8 * 3).map(|value| value as f32).collect();
        for _ in 0..20 {
            let mix = cutmix.draw(&[5], 8, 8, &mut random).unwrap();
            let mut mixed = images.clone();
            mix.apply(&mut mixed, 8, 8);
            mix.inverse().apply(&mut mixed, 8, 8);
            assert_eq!(mixed, images);
        }
    }

    fn area_of(share: f64, column: usize, row: usize) -> (Area, f64) {
        let area = Area::around((row, column), share, 32, 32);
        (area, area.share_outside(32, 32))
    }

    #[test]
    fn a_half_in_the_middle_is_cut_to_even_width() {
        // √0.5 · 32 = 22.6, so 22 wide.
        let (area, coefficient) = area_of(0.5, 16, 16);
        assert_eq!(area, Area { left: 5, right: 27, top: 5, bottom: 27 });
        assert_eq!(coefficient, 0.527_343_75);
    }

    #[test]
    fn edges_cut_the_area_and_raise_the_coefficient() {
        let (area, coefficient) = area_of(0.5, 3, 30);
        assert_eq!(area, Area { left: 0, right: 14, top: 19, bottom: 32 });
        assert_eq!(coefficient, 0.822_265_625);
        assert_eq!(area_of(0.75, 0, 0).1, 0.9375);
        assert_eq!(area_of(0.99, 16, 16).1, 0.996_093_75);
        assert_eq!(area_of(0.0, 16, 16).1, 0.0);
        assert_eq!(area_of(1.0, 5, 5).1, 1.0);
    }

    #[test]
    fn partners_give_what_they_had_before() {
        // Two images of 1 × 2 pixels and 2 channels that swap their second pixel.
        let mut batch = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        let area = Area { left: 1, right: 2, top: 0, bottom: 1 };
        let mix = Mix { first: 0, area, coefficient: 0.5, permutation: vec![1, 0] };
        mix.apply(&mut batch, 1, 2);
        assert_eq!(batch, [1.0, 2.0, 7.0, 8.0, 5.0, 6.0, 3.0, 4.0]);
    }

    #[test]
    fn the_probability_is_how_often_batches_are_mixed() {
        let mut random = Random::named(1, "cutmix");
        let mixed = |probability, random: &mut Random| {
            let cutmix = CutMix { probability, alpha: 1.0 };
            (0..4_000).filter(|_| cutmix.draw(&[4], 8, 8, random).is_some()).count()
        };
        assert_eq!(mixed(0.0, &mut random), 0);
        assert_eq!(mixed(1.0, &mut random), 4_000);
        assert!((1_850..2_150).contains(&mixed(0.5, &mut random)));
    }

    #[test]
    fn bad_settings_name_their_key() {
        let error = CutMix { probability: 1.5, alpha: 1.0 }.check("cutmix").unwrap_err();
        assert_eq!(
            error.to_string(),
            "configuration key `cutmix.probability`: 1.5 is not a probability between 0 and 1"
        );
        assert!(CutMix { probability: 0.5, alpha: 0.0 }.check("cutmix").is_err());
        assert!(CutMix { probability: f64::NAN, alpha: 1.0 }.check("cutmix").is_err());
        assert!(CutMix::default().check("cutmix").is_ok());
    }

    #[test]
    fn groups_are_mixed_among_themselves() {
        let cutmix = CutMix { probability: 1.0, alpha: 1.0 };
        let mut random = Random::named(4, "groups");
        for _ in 0..50 {
            let Mix { permutation, .. } = cutmix.draw(&[3, 4], 8, 8, &mut random).unwrap();
            let (mut first, mut second) = (permutation[..3].to_vec(), permutation[3..].to_vec());
            first.sort_unstable();
            second.sort_unstable();
            assert_eq!((first, second), (vec![0, 1, 2], vec![3, 4, 5, 6]));
        }
    }
}
