//! What a layer's weight is multiplied with: the windows of its input, one a place of its output.

use super::{LayerView, floats};

impl LayerView<'_> {
    /// Places of the output, over all rows of the batch; each has a window of the input.
    pub fn places(&self) -> usize {
        let [rows, height, width, _] = self.output.dims();
        rows * height * width
    }

    /// The windows at some places, one after the other, each as long as the weight has rows and in their order: kernel row,
    /// kernel column, input channel. What lies in the padding is 0.
    ///
    /// # Panics
    /// When a place is none of the output's.
    pub fn windows(&self, places: &[usize]) -> Vec<f32> {
        let [rows, height, width, channels] = self.input.dims();
        let [_, out_height, out_width, _] = self.output.dims();
        let (kernel, stride, padding) =
            (self.layer.spec.kernel, self.layer.spec.stride, self.layer.spec.padding());
        let input = floats(self.input.clone());
        let mut windows = Vec::with_capacity(places.len() * kernel * kernel * channels);
        for place in places {
            let (row, top, left) =
                (place / (out_height * out_width), place / out_width % out_height, place % out_width);
            assert!(row < rows, "place {place} lies in the output");
            for step in 0..kernel * kernel {
                let inside = |start: usize, step: usize, extent: usize| {
                    (start * stride + step).checked_sub(padding).filter(|&at| at < extent)
                };
                let (y, x) = (inside(top, step / kernel, height), inside(left, step % kernel, width));
                match y.zip(x) {
                    Some((y, x)) => {
                        let start = ((row * height + y) * width + x) * channels;
                        windows.extend_from_slice(&input[start..start + channels]);
                    }
                    None => windows.extend(std::iter::repeat_n(0.0, channels)),
                }
            }
        }
        windows
    }
}
