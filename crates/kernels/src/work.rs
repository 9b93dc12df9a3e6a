//! How much arithmetic the operators did: multiply-adds of convolutions and matrix products, by their definitions.
//!
//! Faster ways to the same numbers (Winograd) count as what they stand for. Whatever an operator does to each number
//! beside that (norms, ReLUs, pooling, noise, optimisers) is not counted, and neither are stock operators.

use std::cell::Cell;

use crate::geometry::ConvGeometry;

thread_local! {
    /// Operators are called from the thread that trains and share their work out themselves, so that a count here is
    /// whole, and learners of two threads do not count each other's work.
    static MULTIPLY_ADDS: Cell<u64> = const { Cell::new(0) };
}

/// Multiply-adds of all operators that this thread has called so far, forward and backward.
pub fn multiply_adds() -> u64 {
    MULTIPLY_ADDS.get()
}

/// Counts some more.
pub(crate) fn did(multiply_adds: usize) {
    MULTIPLY_ADDS.set(MULTIPLY_ADDS.get().wrapping_add(multiply_adds as u64));
}

/// Counts a convolution, or one of its two gradients: as many multiply-adds each.
pub(crate) fn convolved(geometry: &ConvGeometry) {
    did(geometry.output_len() * geometry.weight_rows());
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Tensor};

    use super::*;
    use crate::{ConvSpec, conv_block, conv_scaled, depthwise_add, linear};

    fn ones<const D: usize>(shape: [usize; D]) -> Tensor<D> {
        Tensor::ones(shape, &Device::flex())
    }

    /// What was done from the first call on, and what of that in the backward pass.
    fn counted<const D: usize>(forward: impl FnOnce() -> Tensor<D>) -> [u64; 2] {
        let begin = multiply_adds();
        let output = forward();
        let between = multiply_adds();
        if output.is_autodiff() {
            output.sum().backward();
        }
        [between - begin, multiply_adds() - between]
    }

    /// A convolution of 2 images of 6 × 6 pixels, 3 channels to 5; whether the image learns, and whether the kernel.
    fn block(kernel: usize, stride: usize, [image, weight]: [bool; 2]) -> [u64; 2] {
        let spec = ConvSpec { kernel, stride, relu: true, relu_after_sum: false, epsilon: 1e-5 };
        let learns = |tensor: Tensor<2>| tensor.autodiff().require_grad();
        let of = |tensor: Tensor<2>| if weight { learns(tensor) } else { tensor.autodiff() };
        let x = ones([2, 6, 6, 3]).autodiff();
        let x = if image { x.require_grad() } else { x };
        counted(|| {
            let [scale, shift] = [0; 2].map(|_| learns(ones([1, 5])));
            conv_block(x, of(ones([kernel * kernel * 3, 5])), scale, shift, None, &spec).y
        })
    }

    #[test]
    fn each_gradient_of_a_convolution_counts_as_much_as_the_convolution() {
        for (kernel, stride, once) in [(3, 1, 2 * 36 * 9 * 15), (3, 2, 2 * 9 * 9 * 15), (1, 2, 2 * 9 * 15)] {
            assert_eq!(block(kernel, stride, [true, true]), [once, 2 * once]);
            assert_eq!(block(kernel, stride, [false, true]), [once, once]);
            assert_eq!(block(kernel, stride, [true, false]), [once, once]);
            assert_eq!(block(kernel, stride, [false, false]), [once, 0]);
            let spec = ConvSpec { kernel, stride, relu: false, relu_after_sum: false, epsilon: 0.0 };
            let [scale, shift] = [0; 2].map(|_| ones([1, 5]));
            let evaluated = counted(|| {
                conv_scaled(ones([2, 6, 6, 3]), ones([kernel * kernel * 3, 5]), scale, shift, None, &spec)
            });
            assert_eq!(evaluated, [once, 0]);
        }
    }

    #[test]
    fn matrix_products_and_convolutions_of_single_channels_count() {
        let tracked = |shape| ones::<2>(shape).autodiff().require_grad();
        assert_eq!(counted(|| linear(tracked([7, 4]), tracked([4, 5]), tracked([1, 5]))), [140, 280]);
        let x = ones([2, 3, 3, 4]).autodiff().require_grad();
        assert_eq!(counted(|| depthwise_add(x, tracked([9, 4]))), [648, 1296]);
    }

    #[test]
    fn other_threads_count_for_themselves() {
        let begin = multiply_adds();
        std::thread::spawn(|| did(5)).join().unwrap();
        did(7);
        assert_eq!(multiply_adds() - begin, 7);
    }
}
