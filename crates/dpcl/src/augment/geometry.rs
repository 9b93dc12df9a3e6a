//! Changes of place: crop after padding, mirror, shift, shear, turn.
//!
//! Whatever comes from outside the image is black. Sampling is nearest neighbour, about the image centre.

use super::canvas::Canvas;
use crate::data::{FloatImage, Image};

const BLACK: [u8; 3] = [0; 3];

/// Loads the window of the image's own size whose top left corner lies at (`top`, `left`) of the image surrounded
/// by `padding` black pixels on every side, mirrored left to right if asked.
pub(super) fn load_window(
    canvas: &mut Canvas,
    image: &Image,
    padding: usize,
    (top, left): (usize, usize),
    mirrored: bool,
) {
    let (height, width) = (image.height, image.width);
    canvas.resize(height, width);
    let (rows, columns) = (inside(top, padding, height), inside(left, padding, width));

    let target = canvas.pixels_mut();
    target.fill(0);
    for y in rows.clone() {
        let source = &image.pixels[(y + top - padding) * width * 3..][..width * 3];
        let target = &mut target[y * width * 3..][..width * 3];
        let from = columns.start + left - padding;
        let count = columns.len() * 3;
        target[columns.start * 3..][..count].copy_from_slice(&source[from * 3..][..count]);
        if mirrored {
            target.as_chunks_mut::<3>().0.reverse();
        }
    }
}

/// The same window of an image of floats.
pub(super) fn window(
    image: &FloatImage,
    padding: usize,
    (top, left): (usize, usize),
    mirrored: bool,
) -> Vec<f32> {
    let FloatImage { height, width, pixels } = image;
    let mut window = vec![0.0; pixels.len()];
    for y in inside(top, padding, *height) {
        for x in inside(left, padding, *width) {
            let source = ((y + top - padding) * width + x + left - padding) * 3;
            let target = (y * width + if mirrored { width - 1 - x } else { x }) * 3;
            window[target..target + 3].copy_from_slice(&pixels[source..source + 3]);
        }
    }
    window
}

/// Which window positions show the image, not the padding, along one axis.
fn inside(offset: usize, padding: usize, extent: usize) -> std::ops::Range<usize> {
    let first = padding.saturating_sub(offset).min(extent);
    let last = (extent + padding).saturating_sub(offset).min(extent);
    first..last.max(first)
}

/// Moves the picture by whole pixels, right and down when positive.
pub(super) fn shift(canvas: &mut Canvas, right: isize, down: isize) {
    let (height, width) = (canvas.height(), canvas.width());
    canvas.redraw(|source, target| {
        target.fill(0);
        for y in 0..height {
            let Some(from) = y.checked_add_signed(-down).filter(|&from| from < height) else { continue };
            let source = &source[from * width * 3..][..width * 3];
            let target = &mut target[y * width * 3..][..width * 3];
            let kept = width.saturating_sub(right.unsigned_abs()) * 3;
            if right >= 0 {
                target[width * 3 - kept..].copy_from_slice(&source[..kept]);
            } else {
                target[..kept].copy_from_slice(&source[width * 3 - kept..]);
            }
        }
    });
}

/// Draws at every (x, y), measured from the centre, the pixel at (`xx`·x + `xy`·y, `yx`·x + `yy`·y).
pub(super) fn warp(canvas: &mut Canvas, [xx, xy, yx, yy]: [f64; 4]) {
    let (height, width) = (canvas.height(), canvas.width());
    let (centre_y, centre_x) = (centre(height), centre(width));
    canvas.redraw(|source, target| {
        let source = source.as_chunks::<3>().0;
        let target = target.as_chunks_mut::<3>().0;
        for (row, line) in target.chunks_exact_mut(width).enumerate() {
            let y = row as f64 - centre_y;
            for (column, pixel) in line.iter_mut().enumerate() {
                let x = column as f64 - centre_x;
                let from_x = nearest(xx * x + xy * y + centre_x, width);
                let from_y = nearest(yx * x + yy * y + centre_y, height);
                *pixel = match (from_y, from_x) {
                    (Some(y), Some(x)) => source[y * width + x],
                    _ => BLACK,
                };
            }
        }
    });
}

fn centre(extent: usize) -> f64 {
    (extent as f64 - 1.0) / 2.0
}

/// The pixel whose centre is nearest, if there is one.
fn nearest(coordinate: f64, extent: usize) -> Option<usize> {
    let shifted = coordinate.round_ties_even();
    (shifted >= 0.0 && shifted < extent as f64).then_some(shifted as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A grey image whose bytes are given row by row.
    fn image(rows: &[&[u8]]) -> Image {
        let pixels: Vec<u8> = rows.iter().flat_map(|row| row.iter()).flat_map(|&value| [value; 3]).collect();
        Image { height: rows.len(), width: rows[0].len(), pixels: pixels.into() }
    }

    fn loaded(rows: &[&[u8]]) -> Canvas {
        Canvas::of(&image(rows))
    }

    fn greys(canvas: &Canvas) -> Vec<u8> {
        let pixels = canvas.pixels().as_chunks::<3>().0;
        assert!(pixels.iter().all(|[red, green, blue]| red == green && green == blue));
        pixels.iter().map(|pixel| pixel[0]).collect()
    }

    fn window(padding: usize, corner: (usize, usize), mirrored: bool) -> Vec<u8> {
        let mut canvas = loaded(&[&[99; 4], &[99; 4]]);
        load_window(&mut canvas, &image(&[&[1, 2, 3], &[4, 5, 6]]), padding, corner, mirrored);
        greys(&canvas)
    }

    #[test]
    fn the_window_slides_over_the_padded_image() {
        assert_eq!(window(0, (0, 0), false), [1, 2, 3, 4, 5, 6]);
        assert_eq!(window(1, (1, 1), false), [1, 2, 3, 4, 5, 6]);
        assert_eq!(window(1, (0, 0), false), [0, 0, 0, 0, 1, 2]);
        assert_eq!(window(1, (2, 2), false), [5, 6, 0, 0, 0, 0]);
        assert_eq!(window(1, (1, 0), true), [2, 1, 0, 5, 4, 0]);
        assert_eq!(window(9, (0, 18), false), [0; 6]);
    }

    #[test]
    fn a_shift_moves_right_and_down() {
        let rows: [&[u8]; 2] = [&[1, 2, 3], &[4, 5, 6]];
        let shifted = |right, down| {
            let mut canvas = loaded(&rows);
            shift(&mut canvas, right, down);
            greys(&canvas)
        };
        assert_eq!(shifted(1, 0), [0, 1, 2, 0, 4, 5]);
        assert_eq!(shifted(-2, 0), [3, 0, 0, 6, 0, 0]);
        assert_eq!(shifted(0, 1), [0, 0, 0, 1, 2, 3]);
        assert_eq!(shifted(0, -1), [4, 5, 6, 0, 0, 0]);
        assert_eq!(shifted(7, 0), [0; 6]);
        assert_eq!(shifted(0, -9), [0; 6]);
    }

    #[test]
    fn a_quarter_turn_goes_counter_clockwise() {
        let mut canvas = loaded(&[&[1, 2], &[3, 4]]);
        let (sine, cosine) = 90_f64.to_radians().sin_cos();
        warp(&mut canvas, [cosine, -sine, sine, cosine]);
        assert_eq!(greys(&canvas), [2, 4, 1, 3]);
    }

    #[test]
    fn a_shear_leaves_the_middle_row_and_moves_the_others_apart() {
        let mut canvas = loaded(&[&[1, 2, 3], &[4, 5, 6], &[7, 8, 9]]);
        warp(&mut canvas, [1.0, 1.0, 0.0, 1.0]);
        assert_eq!(greys(&canvas), [0, 1, 2, 4, 5, 6, 8, 9, 0]);
    }
}
