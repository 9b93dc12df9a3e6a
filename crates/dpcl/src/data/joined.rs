//! Images of several sources in one row, each by its place in its own.

use std::sync::Arc;

use super::{Image, ImageSource};
use crate::error::Result;

/// Chosen images of several sources.
#[derive(Default)]
pub struct Joined {
    sources: Vec<Arc<dyn ImageSource>>,
    places: Vec<(usize, usize)>,
}

impl Joined {
    /// Adds the images at some positions of a source after those that are there.
    pub fn add(&mut self, source: Arc<dyn ImageSource>, positions: impl IntoIterator<Item = usize>) {
        let number = self.sources.len();
        self.sources.push(source);
        self.places.extend(positions.into_iter().map(|position| (number, position)));
    }

    /// How many images there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

impl ImageSource for Joined {
    fn image(&self, index: usize) -> Result<Image> {
        let (source, position) = self.places[index];
        self.sources[source].image(position)
    }

    fn file_name(&self, index: usize) -> Option<String> {
        let (source, position) = self.places[index];
        self.sources[source].file_name(position)
    }

    fn stored_extent(&self, index: usize) -> Option<Result<[usize; 2]>> {
        let (source, position) = self.places[index];
        self.sources[source].stored_extent(position)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Packed, *};

    #[test]
    fn images_come_in_the_order_they_were_added() {
        let source = |values: [u8; 3]| {
            let pixels = values.iter().flat_map(|&value| [value; 3]).collect();
            Arc::new(Packed::colour(1, pixels)) as Arc<dyn ImageSource>
        };
        let mut joined = Joined::default();
        joined.add(source([1, 2, 3]), [2, 0]);
        joined.add(source([4, 5, 6]), 0..2);
        let values: Vec<u8> = (0..joined.len()).map(|index| joined.image(index).unwrap().pixels[0]).collect();
        assert_eq!(values, [3, 1, 4, 5]);
    }
}
