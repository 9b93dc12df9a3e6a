//! Changes of tone: blends with a plainer version of the image, and functions of single bytes.
//!
//! A blend is `factor·x + (1 − factor)·plain` in f32, clipped to 0..=255 and cut to a whole number: factor 1 is the
//! image, 0 the plain version, and factors outside 0..1 go beyond either.

use super::canvas::{Canvas, Table, table};

/// How a factor mixes an image with its plain version.
#[derive(Clone, Copy)]
struct Blend {
    image: f32,
    plain: f32,
}

impl Blend {
    fn new(factor: f64) -> Self {
        Self { image: factor as f32, plain: (1.0 - factor) as f32 }
    }

    fn of(self, image: u8, plain: f32) -> u8 {
        // The cast saturates at both ends and cuts the fraction.
        (self.image * f32::from(image) + self.plain * plain) as u8
    }
}

/// Blends with black.
pub(super) fn brightness(canvas: &mut Canvas, factor: f64) {
    let blend = Blend::new(factor);
    canvas.map(&table(|value| blend.of(value, 0.0)));
}

/// Blends every pixel with its own grey.
pub(super) fn saturation(canvas: &mut Canvas, factor: f64) {
    let blend = Blend::new(factor);
    for pixel in canvas.pixels_mut().as_chunks_mut::<3>().0 {
        let plain = f32::from(grey(*pixel));
        *pixel = pixel.map(|value| blend.of(value, plain));
    }
}

/// Blends with the mean grey of the image.
pub(super) fn contrast(canvas: &mut Canvas, factor: f64) {
    let pixels = canvas.pixels().as_chunks::<3>().0;
    let total: u64 = pixels.iter().map(|&pixel| u64::from(grey(pixel))).sum();
    let mean = (total as f64 / pixels.len().max(1) as f64) as f32;
    let blend = Blend::new(factor);
    canvas.map(&table(|value| blend.of(value, mean)));
}

/// Blends with a smoothed version, whose outermost pixels, lacking neighbours, are the image's own.
pub(super) fn sharpness(canvas: &mut Canvas, factor: f64) {
    let (height, width) = (canvas.height(), canvas.width());
    let blend = Blend::new(factor);
    canvas.redraw(|source, target| {
        // Blending a byte with itself may round it down by one, so the border is blended too.
        let with_itself = table(|value| blend.of(value, f32::from(value)));
        for (target, &value) in target.iter_mut().zip(source) {
            *target = with_itself[usize::from(value)];
        }
        let stride = width * 3;
        for y in 1..height.saturating_sub(1) {
            let [above, here, below] = [y - 1, y, y + 1].map(|row| &source[row * stride..][..stride]);
            let target = &mut target[y * stride..][..stride];
            for at in 3..stride.saturating_sub(3) {
                let sum: u32 = [above, here, below]
                    .iter()
                    .map(|row| u32::from(row[at - 3]) + u32::from(row[at]) + u32::from(row[at + 3]))
                    .sum();
                // Weights 1 around 5, over 13. Thirteen is odd, so no quotient lies halfway.
                let smooth = (2 * (sum + 4 * u32::from(here[at])) + 13) / 26;
                target[at] = blend.of(here[at], smooth as f32);
            }
        }
    });
}

/// Keeps the `bits` high bits of every byte.
pub(super) fn posterize(canvas: &mut Canvas, bits: u32) {
    let mask = !(0xff_u16 >> bits.min(8)) as u8;
    canvas.map(&table(|value| value & mask));
}

/// Inverts what is at least as bright as `threshold`.
pub(super) fn solarize(canvas: &mut Canvas, threshold: f64) {
    canvas.map(&table(|value| if f64::from(value) >= threshold { 255 - value } else { value }));
}

/// The negative.
pub(super) fn invert(canvas: &mut Canvas) {
    canvas.map(&table(|value| 255 - value));
}

/// Stretches each channel to the whole range; a channel of one value stays.
pub(super) fn auto_contrast(canvas: &mut Canvas) {
    let tables = canvas.histograms().map(|counts| {
        let low = counts.iter().position(|&count| count > 0).unwrap_or(0);
        let high = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
        if low == high {
            return table(|value| value);
        }
        let scale = (1.0 / (high - low) as f32) * 255.0;
        table(|value| ((f32::from(value) - low as f32) * scale) as u8)
    });
    canvas.map_channels(&tables);
}

/// Spreads each channel's values so that all become about equally frequent.
pub(super) fn equalize(canvas: &mut Canvas) {
    let tables = canvas.histograms().map(|counts| equalizing_table(&counts));
    canvas.map_channels(&tables);
}

fn equalizing_table(counts: &[u32; 256]) -> Table {
    let total: u32 = counts.iter().sum();
    let last = counts.iter().rev().find(|&&count| count > 0).copied().unwrap_or(0);
    let step = (total - last) / 255;
    if step == 0 {
        return table(|value| value);
    }
    let mut darker = 0;
    let mut result = [0; 256];
    for (entry, count) in result.iter_mut().zip(counts) {
        *entry = ((step / 2 + darker) / step).min(255) as u8;
        darker += count;
    }
    result
}

/// Luminance as a whole number.
fn grey([red, green, blue]: [u8; 3]) -> u8 {
    (0.2989 * f32::from(red) + 0.587 * f32::from(green) + 0.114 * f32::from(blue)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Image;
    use proptest::prelude::*;

    fn canvas(height: usize, width: usize, pixels: &[u8]) -> Canvas {
        Canvas::of(&Image { height, width, pixels: pixels.into() })
    }

    fn after(pixels: &[u8], change: impl Fn(&mut Canvas)) -> Vec<u8> {
        let mut canvas = canvas(1, pixels.len() / 3, pixels);
        change(&mut canvas);
        canvas.pixels().to_vec()
    }

    #[test]
    fn blends_are_cut_and_clipped() {
        // Grey of (100, 50, 200): 29.89 + 29.35 + 22.8 = 82.04 → 82.
        let pixel = [100, 50, 200];
        assert_eq!(after(&pixel, |canvas| brightness(canvas, 1.5)), [150, 75, 255]);
        assert_eq!(after(&pixel, |canvas| brightness(canvas, 0.25)), [25, 12, 50]);
        assert_eq!(after(&pixel, |canvas| saturation(canvas, 0.0)), [82, 82, 82]);
        assert_eq!(after(&pixel, |canvas| saturation(canvas, 1.5)), [109, 34, 255]);
        assert_eq!(after(&pixel, |canvas| contrast(canvas, 2.0)), [118, 18, 255]);
    }

    #[test]
    fn sharpness_at_factor_zero_is_the_smoothed_image() {
        // One bright pixel of 130 in the middle of 3 × 3: 5/13 of it stays.
        let mut pixels = [0; 27];
        pixels[12..15].fill(130);
        let mut canvas = canvas(3, 3, &pixels);
        sharpness(&mut canvas, 0.0);
        pixels[12..15].fill(50);
        assert_eq!(canvas.pixels(), pixels);
    }

    #[test]
    fn auto_contrast_stretches_each_channel_by_itself() {
        let pixels = [10, 7, 0, 20, 7, 255, 15, 7, 9];
        assert_eq!(after(&pixels, auto_contrast), [0, 7, 0, 255, 7, 255, 127, 7, 9]);
    }

    #[test]
    fn equalize_follows_the_cumulative_counts() {
        // 510 dark, 255 middle and 255 bright pixels of 1020: step 3, and (1 + 510) / 3 = 170, (1 + 765) / 3 = 255.
        let pixels: Vec<u8> = [(3, 510), (4, 255), (5, 255)]
            .into_iter()
            .flat_map(|(value, count)| std::iter::repeat_n(value, count * 3))
            .collect();
        let found = after(&pixels, equalize);
        assert_eq!((found[0], found[510 * 3], found[765 * 3]), (0, 170, 255));
    }

    proptest! {
        #[test]
        fn some_changes_are_none(pixels in prop::collection::vec(any::<u8>(), 75)) {
            let identities: [&dyn Fn(&mut Canvas); 5] = [
                &|canvas| posterize(canvas, 8),
                &|canvas| solarize(canvas, 256.0),
                &|canvas| saturation(canvas, 1.0),
                &|canvas| { invert(canvas); invert(canvas); },
                &|canvas| sharpness(canvas, 1.0),
            ];
            for change in identities {
                let mut canvas = canvas(5, 5, &pixels);
                change(&mut canvas);
                prop_assert_eq!(canvas.pixels(), &pixels);
            }
        }

        #[test]
        fn a_plain_image_has_nothing_to_stretch(pixel in any::<[u8; 3]>()) {
            let pixels = pixel.repeat(1_024);
            prop_assert_eq!(&after(&pixels, equalize), &pixels);
            prop_assert_eq!(&after(&pixels, auto_contrast), &pixels);
        }

        #[test]
        fn posterize_keeps_high_bits(pixels in prop::collection::vec(any::<u8>(), 30), bits in 0_u32..8) {
            for (before, after) in pixels.iter().zip(after(&pixels, |canvas| posterize(canvas, bits))) {
                prop_assert_eq!(u32::from(after), u32::from(*before) >> (8 - bits) << (8 - bits));
            }
        }
    }
}
