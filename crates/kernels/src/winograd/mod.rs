//! Winograd convolution for 3×3 kernels with stride 1 and padding 1: a quarter of the multiplications of the direct sum.
//!
//! Each 4×4 tile of outputs is computed from its 6×6 inputs through 36 points; at each point the tiles of the batch form a
//! matrix product over channels. The error this adds is described in [`transform`].

pub(crate) mod forward;
pub(crate) mod gradient;
pub(crate) mod grid;
pub(crate) mod output;
mod product;
pub(crate) mod transform;
pub(crate) mod weights;

use crate::geometry::ConvGeometry;
use transform::{POINTS, SIDE};

/// Whether the transforms pay for themselves on this shape, `inputs` and `outputs` being the channels of the product.
pub(crate) fn pays(geometry: &ConvGeometry) -> bool {
    let ConvGeometry { batch, height, width, channels_in, channels_out, kernel, stride, padding } = *geometry;
    if kernel != 3 || stride != 1 || padding != 1 || channels_in.min(channels_out) < 16 {
        return false;
    }
    let tiles = height.div_ceil(SIDE) * width.div_ceil(SIDE);
    let fill = (9 * height * width) as f64 / (POINTS * tiles) as f64;
    fill > 1.8 && batch * tiles >= 8
}
