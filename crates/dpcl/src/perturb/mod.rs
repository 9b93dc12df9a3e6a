//! Perturbations: small values that any method can hold.
//!
//! [`Pfi`] disturbs and mixes images or activations while training, with a strength that [`ClassLosses`] sets class by
//! class. [`Bsc`] follows the weights of several heads through training and answers from their distributions. None of them knows what its numbers are used for.

mod bsc;
mod class_loss;
mod gaussian;
mod noise;
mod pfi;

pub use bsc::{Bsc, BscConfig, DrawnHeads, Middle, Predict};
#[cfg(test)]
pub use class_loss::class_means;
pub use class_loss::{ClassLosses, Term};
pub use gaussian::Gaussian;
pub use noise::Normals;
#[cfg(test)]
pub use pfi::{DEEPEST, mix, perturb};
pub use pfi::{Disturbance, Mixing, NoiseKind, Pfi, PfiConfig, Statistics, some_depth};
