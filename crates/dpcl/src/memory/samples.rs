//! Labelled images that are kept: the one form in which stored, waiting and set-aside samples are saved.

use std::ops::Deref;

use crate::{
    data::{FloatImage, Image, Picture},
    error::{Error, Result},
    state::{Array, Elements, Persist, State},
};

/// A labelled image.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The raw, unaugmented image.
    pub image: Picture,
    /// Its class, numbered in order of first arrival.
    pub class: usize,
}

impl Sample {
    /// An image of a class.
    pub fn new(image: impl Into<Picture>, class: usize) -> Self {
        Self { image: image.into(), class }
    }
}

/// Samples in order. Saved as `classes` and `images` [count, height, width, 3] in bytes; samples whose images are floats
/// have theirs in `float_images` instead, at the positions in `floats`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples(pub Vec<Sample>);

impl Deref for Samples {
    type Target = Vec<Sample>;

    fn deref(&self) -> &Vec<Sample> {
        &self.0
    }
}

impl From<&[Sample]> for Samples {
    fn from(samples: &[Sample]) -> Self {
        Self(samples.to_vec())
    }
}

impl Persist for Samples {
    fn save(&self, state: &mut State) {
        let classes: Vec<usize> = self.iter().map(|sample| sample.class).collect();
        state.put("classes", &classes);
        let (mut bytes, mut shape) = (Vec::new(), vec![0, 0, 0, 3]);
        let (mut floats, mut float_shape, mut positions) = (Vec::new(), vec![0, 0, 0, 3], Vec::new());
        for (position, sample) in self.iter().enumerate() {
            match &sample.image {
                Picture::Bytes(image) => {
                    bytes.extend_from_slice(&image.pixels);
                    shape = vec![shape[0] + 1, image.height, image.width, 3];
                }
                Picture::Floats(image) => {
                    floats.extend_from_slice(&image.pixels);
                    float_shape = vec![float_shape[0] + 1, image.height, image.width, 3];
                    positions.push(position);
                }
            }
        }
        state.put_array("images", Array::bytes(shape, bytes));
        if !positions.is_empty() {
            state.put_array("float_images", Array::floats(float_shape, floats));
            state.put("floats", &positions);
        }
    }

    fn load(&mut self, state: &State) -> Result<()> {
        let classes: Vec<usize> = state.get("classes")?;
        let Elements::U8(bytes) = &state.array("images")?.elements else { return Err(not_images("images")) };
        let images = images("images", state, bytes)?;
        let mut images = images
            .into_iter()
            .map(|(height, width, pixels)| Picture::Bytes(Image { height, width, pixels: pixels.into() }));
        let mut pictures = Vec::new();
        if state.arrays.contains_key("float_images") {
            let Elements::F32(numbers) = &state.array("float_images")?.elements else {
                return Err(not_images("float_images"));
            };
            let floats = self::images("float_images", state, numbers)?;
            let positions: Vec<usize> = state.get("floats")?;
            if positions.len() != floats.len() {
                return Err(not_images("floats"));
            }
            for ((height, width, pixels), position) in floats.into_iter().zip(positions) {
                let before = position.checked_sub(pictures.len()).ok_or_else(|| not_images("floats"))?;
                pictures.extend(images.by_ref().take(before));
                if pictures.len() != position {
                    return Err(not_images("floats"));
                }
                pictures.push(Picture::Floats(FloatImage { height, width, pixels: pixels.into() }));
            }
        }
        pictures.extend(images);
        if pictures.len() != classes.len() {
            let problem = format!("holds {} images and {} classes", pictures.len(), classes.len());
            return Err(Error::BadState { key: "classes".into(), problem });
        }
        self.0 = pictures.into_iter().zip(classes).map(|(image, class)| Sample { image, class }).collect();
        Ok(())
    }
}

/// The images of an array [count, height, width, 3], each with its rows and columns.
fn images<'a, T>(key: &str, state: &State, elements: &'a [T]) -> Result<Vec<(usize, usize, &'a [T])>> {
    let &[count, height, width, 3] = &state.array(key)?.shape[..] else { return Err(not_images(key)) };
    if elements.len() != count * height * width * 3 {
        return Err(not_images(key));
    }
    let length = (height * width * 3).max(1);
    Ok(elements.chunks(length).map(|pixels| (height, width, pixels)).collect())
}

fn not_images(key: &str) -> Error {
    Error::BadState { key: key.into(), problem: "is not a list of RGB images".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(value: u8) -> Image {
        Image { height: 1, width: 2, pixels: vec![value; 6].into() }
    }

    fn floats(value: f32) -> FloatImage {
        FloatImage { height: 1, width: 2, pixels: vec![value; 6].into() }
    }

    fn saved(samples: &Samples) -> State {
        let mut state = State::default();
        samples.save(&mut state);
        state
    }

    #[test]
    fn samples_of_both_kinds_survive_saving_in_their_order() {
        let plain = Samples(vec![Sample::new(bytes(1), 0), Sample::new(bytes(2), 3)]);
        let (one, other) = (Sample::new(floats(0.25), 1), Sample::new(floats(-1.5), 2));
        let mixed = Samples(vec![plain[0].clone(), one.clone(), plain[1].clone(), other.clone()]);
        for samples in [Samples::default(), plain, mixed, Samples(vec![one, other])] {
            let mut restored = Samples::default();
            restored.load(&saved(&samples)).unwrap();
            assert_eq!(restored, samples);
        }
    }

    #[test]
    fn positions_that_are_not_those_of_the_floats_are_refused() {
        let mut state = saved(&Samples(vec![Sample::new(bytes(1), 0), Sample::new(floats(0.5), 3)]));
        for positions in [vec![], vec![0, 1], vec![5], vec![1, 1]] {
            state.put("floats", &positions);
            assert!(Samples::default().load(&state).is_err(), "{positions:?}");
        }
    }

    #[test]
    fn images_without_classes_are_refused() {
        let mut state = saved(&Samples(vec![Sample::new(bytes(1), 0), Sample::new(bytes(2), 3)]));
        state.put("classes", &[0_usize]);
        let error = Samples::default().load(&state).unwrap_err().to_string();
        assert!(error.contains("holds 2 images and 1 classes"), "{error}");
    }
}
