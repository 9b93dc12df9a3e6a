//! Contact sheets: images in rows, each row with its name beside it. The letters are those of the crate `font8x8`.

use std::sync::Arc;

use font8x8::{BASIC_FONTS, GREEK_FONTS, LATIN_FONTS, UnicodeFonts as _};

use super::{Dataset, Image, inspect::tile};

/// Height and width of a letter.
const LETTER: usize = 8;

/// Letters of the longest name that is shown whole.
const LONGEST: usize = 20;

/// Pixels around a name.
const MARGIN: usize = 4;

/// Colours of names and of what they stand on.
const INK: u8 = 0;
const PAPER: u8 = 255;

/// The first `per_class` training images of the first `max_classes` classes that can be read, one row a class under its
/// name; black where a class has fewer.
pub fn contact_sheet(dataset: &Dataset, per_class: usize, max_classes: usize) -> Image {
    let shown = dataset.classes.iter().take(max_classes);
    let mut rows: Vec<(String, Vec<Image>)> = shown.map(|name| (name.clone(), Vec::new())).collect();
    for (position, &label) in dataset.train.labels.iter().enumerate() {
        if let Some((_, images)) = rows.get_mut(label)
            && images.len() < per_class
            && let Ok(image) = dataset.train.images.image(position)
        {
            images.push(image);
        }
    }
    let black = plain(dataset.size, dataset.size, 0);
    named_rows(&rows, per_class, &black)
}

/// Rows of up to `columns` images, each with its name at its left; `blank` where a row has fewer.
pub fn named_rows(rows: &[(String, Vec<Image>)], columns: usize, blank: &Image) -> Image {
    let height = rows.iter().flat_map(|(_, images)| images).chain([blank]).map(|image| image.height).max();
    let height = height.unwrap_or(0).max(LETTER + MARGIN);
    // Letters of eight pixels cannot be read beside images of hundreds.
    let scale = (height / 48).max(1);
    let shown: Vec<Vec<char>> = rows.iter().map(|(name, _)| cut(name)).collect();
    let width = shown.iter().map(Vec::len).max().unwrap_or(0) * LETTER * scale + 2 * MARGIN;
    let names: Vec<Image> = shown.iter().map(|name| written(name, height, width, scale)).collect();
    let row = |(_, images): &(String, Vec<Image>)| {
        let blanks = std::iter::repeat_n(blank.clone(), columns.saturating_sub(images.len()));
        images.iter().take(columns).cloned().chain(blanks).collect::<Vec<_>>()
    };
    let cells: Vec<Image> = rows.iter().flat_map(row).map(|image| lowest(image, height)).collect();
    beside(&tile(&names, 1), &tile(&cells, columns))
}

/// A name's letters, its middle left out where it is too long.
fn cut(name: &str) -> Vec<char> {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= LONGEST {
        return letters;
    }
    let half = (LONGEST - 2) / 2;
    [&letters[..half], &['.', '.'], &letters[letters.len() - half..]].concat()
}

/// Letters on one line in the middle of an image of that size.
fn written(letters: &[char], height: usize, width: usize, scale: usize) -> Image {
    let mut pixels = vec![PAPER; height * width * 3];
    let (top, left) = (height.saturating_sub(LETTER * scale) / 2, MARGIN);
    for (place, &letter) in letters.iter().enumerate() {
        let fonts =
            [BASIC_FONTS.get(letter), LATIN_FONTS.get(letter), GREEK_FONTS.get(letter), BASIC_FONTS.get('?')];
        let Some(glyph) = fonts.into_iter().flatten().next() else { continue };
        for (row, column) in
            (0..LETTER * scale).flat_map(|row| (0..LETTER * scale).map(move |column| (row, column)))
        {
            if (glyph[row / scale] >> (column / scale)) & 1 == 1 {
                let start = ((top + row) * width + left + place * LETTER * scale + column) * 3;
                pixels[start..start + 3].fill(INK);
            }
        }
    }
    Image { height, width, pixels: pixels.into() }
}

/// The image with black below it up to a height.
fn lowest(image: Image, height: usize) -> Image {
    if image.height >= height {
        return image;
    }
    let mut pixels = image.pixels.to_vec();
    pixels.resize(height * image.width * 3, 0);
    Image { height, width: image.width, pixels: pixels.into() }
}

/// Two images of one height side by side.
fn beside(left: &Image, right: &Image) -> Image {
    let lines = |image: &Image| image.pixels.chunks(image.width * 3).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let pixels: Vec<u8> =
        lines(left).into_iter().zip(lines(right)).flat_map(|(left, right)| [left, right].concat()).collect();
    Image {
        height: left.height.min(right.height),
        width: left.width + right.width,
        pixels: Arc::from(pixels),
    }
}

fn plain(height: usize, width: usize, value: u8) -> Image {
    Image { height, width, pixels: vec![value; height * width * 3].into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red(image: &Image, row: usize, column: usize) -> u8 {
        image.pixels[(row * image.width + column) * 3]
    }

    #[test]
    fn every_row_has_its_name_beside_its_images() {
        let rows = [("i".to_owned(), vec![plain(16, 16, 7)]), ("wide".to_owned(), vec![plain(16, 16, 9); 2])];
        let sheet = named_rows(&rows, 2, &plain(16, 16, 0));
        let names = 4 * LETTER + 2 * MARGIN + 4;
        assert_eq!((sheet.height, sheet.width), (2 * 18 + 2, names + 2 * 18 + 2));
        assert_eq!([red(&sheet, 10, names + 3), red(&sheet, 10, names + 21)], [7, 0]);
        assert_eq!([red(&sheet, 28, names + 3), red(&sheet, 28, names + 21)], [9, 9]);
        let ink = |row: usize| {
            let dark =
                |line: usize| (2..names - 2).filter(|&column| red(&sheet, line, column) == INK).count();
            (row * 18 + 2..row * 18 + 18).map(dark).sum::<usize>()
        };
        assert!(ink(0) > 5 && ink(1) > 3 * ink(0), "{} {}", ink(0), ink(1));
    }

    #[test]
    fn letters_are_those_of_the_name() {
        let image = written(&['I'], 12, 16, 1);
        let glyph: Vec<String> = (2..10)
            .map(|row| {
                (4..12).map(|column| if red(&image, row, column) == INK { '#' } else { '.' }).collect()
            })
            .collect();
        let expected =
            [".####...", "..##....", "..##....", "..##....", "..##....", "..##....", ".####...", "........"];
        assert_eq!(glyph, expected);
        assert_eq!(
            written(&['\u{4e00}'], 12, 16, 1),
            written(&['?'], 12, 16, 1),
            "a letter that is not drawn"
        );
    }

    #[test]
    fn long_names_are_cut_in_the_middle() {
        let name: String = cut("a-very-long-name-of-a-class-42").into_iter().collect();
        assert_eq!(name, "a-very-lo..-class-42");
        assert_eq!(cut("cat").len(), 3);
    }
}
