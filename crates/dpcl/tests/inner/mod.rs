//! Tests of what the library does not show: parts against golden vectors, noise against its moments, gradients against
//! differences. They lie here and are compiled into the library's own test program.

mod clib_bic;
mod dpcl_gradient;
mod gdumb;
mod golden_augment;
mod golden_balanced;
mod golden_bsc;
mod golden_clib;
mod golden_dpcl;
mod golden_losses;
mod golden_memory;
mod golden_model;
mod golden_stream;
mod moments;
mod nfm_noise;
mod paper_noise;
pub mod quotients;
pub mod reference;
mod start_weights;
