//! The pictures of a data set as they lie on disk, before they are made to its size.

use super::{Dataset, Findings, Unreadable};

/// How large the pictures are, and which are none.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Pictures {
    /// How many could be looked at.
    pub count: usize,
    /// Height and width of the one with the fewest pixels.
    pub smallest: [usize; 2],
    /// Height and width of the one with the most.
    pub largest: [usize; 2],
    /// How many are wider than high.
    pub wide: usize,
    /// How many are higher than wide.
    pub tall: usize,
    /// Those that cannot be read: found by their beginnings, or when mean and deviation were measured.
    pub unreadable: Vec<Unreadable>,
}

impl Pictures {
    fn add(&mut self, [height, width]: [usize; 2]) {
        let pixels = |[height, width]: [usize; 2]| height.saturating_mul(width);
        if self.count == 0 || pixels([height, width]) < pixels(self.smallest) {
            self.smallest = [height, width];
        }
        if pixels([height, width]) > pixels(self.largest) {
            self.largest = [height, width];
        }
        self.count += 1;
        self.wide += usize::from(width > height);
        self.tall += usize::from(height > width);
    }
}

/// Looks at the beginning of every picture of a data set whose images are files; `None` for other sets.
pub fn pictures(dataset: &Dataset) -> Option<Pictures> {
    let Findings { unreadable, .. } = &dataset.findings;
    let mut found = Pictures { unreadable: unreadable.clone(), ..Pictures::default() };
    for split in [&dataset.train, &dataset.test] {
        for position in 0..split.labels.len() {
            match split.images.stored_extent(position)? {
                Ok(extent) => found.add(extent),
                Err(error) => {
                    let file = split.images.file_name(position).unwrap_or_default();
                    if !found.unreadable.iter().any(|known| known.file == file) {
                        found.unreadable.push(Unreadable { file, problem: error.whole_without_path() });
                    }
                }
            }
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::{
        super::{OnBadImage, Opening, open_as},
        *,
    };

    #[test]
    fn real_sizes_and_every_bad_file_are_found() {
        let root = tempfile::tempdir().unwrap();
        for (file, width, height) in
            [("a/1.png", 40, 30), ("a/2.jpg", 8, 90), ("b/1.png", 16, 16), ("b/2.png", 300, 200)]
        {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            image::RgbImage::new(width, height).save(path).unwrap();
        }
        std::fs::write(root.path().join("a/3.png"), "no image").unwrap();
        let whole = std::fs::read(root.path().join("b/2.png")).unwrap();
        std::fs::write(root.path().join("b/3.png"), &whole[..whole.len() - 20]).unwrap();
        let opening = Opening { on_bad_image: OnBadImage::Skip, ..Opening::default() };
        let set = open_as("folder", Some(root.path()), &opening).unwrap();
        let found = pictures(&set).unwrap();
        assert_eq!((found.smallest, found.largest), ([16, 16], [200, 300]));
        assert_eq!((found.count, found.wide, found.tall), (5, 3, 1), "one is cut off behind its beginning");
        let bad: Vec<&str> = found.unreadable.iter().map(|bad| bad.file.as_str()).collect();
        assert_eq!(bad, ["a/3.png", "b/3.png"]);
        assert_eq!(pictures(&super::super::open("fashion-mini", None, None).unwrap()), None);
    }
}
