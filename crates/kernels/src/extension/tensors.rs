//! Between Burn's CPU tensors and slices of numbers.

use burn::backend::TensorMetadata;

use super::Cpu;
use crate::{ConvSpec, geometry::ConvGeometry, pooling::ImageShape, recycle::Buffer};

pub(super) fn geometry(x: &Cpu, weight: &Cpu, spec: &ConvSpec) -> ConvGeometry {
    let [batch, height, width, channels_in] = dims(x);
    let [_, channels_out] = dims(weight);
    ConvGeometry {
        batch,
        height,
        width,
        channels_in,
        channels_out,
        kernel: spec.kernel,
        stride: spec.stride,
        padding: spec.padding(),
    }
}

pub(super) fn image_shape(x: &Cpu) -> ImageShape {
    let [batch, height, width, channels] = dims(x);
    ImageShape { batch, height, width, channels }
}

pub(super) fn dims<const D: usize>(tensor: &Cpu) -> [usize; D] {
    tensor.shape().dims()
}

/// The numbers of a contiguous tensor.
pub(super) fn slice(tensor: &Cpu) -> &[f32] {
    tensor.as_slice::<f32>().expect("operators make their inputs contiguous f32 first")
}

/// The numbers of a contiguous tensor, to change; copied first if another tensor shares them.
pub(super) fn slice_mut(tensor: &mut Cpu) -> &mut [f32] {
    let (start, end) =
        tensor.layout().contiguous_offsets().expect("operators make their inputs contiguous first");
    &mut tensor.storage_mut()[start..end]
}

/// The same of a tensor that may not be contiguous yet.
pub(super) fn contiguous_mut(tensor: &mut Cpu) -> &mut [f32] {
    if !tensor.is_contiguous() {
        *tensor = tensor.to_contiguous();
    }
    slice_mut(tensor)
}

pub(super) fn tensor<const D: usize>(buffer: Buffer, shape: [usize; D]) -> Cpu {
    buffer.into_tensor(shape)
}
