//! What the library promises to those who use it, in one program.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod attacks;
mod averaged;
mod bad_images;
mod baselines;
mod contract;
mod data_files;
mod diverged;
mod dpcl_disagreement;
mod dpcl_method;
mod dpcl_readings;
mod evolution;
mod extremes;
mod faults;
mod licences;
mod loaded_counts;
mod mixture;
mod quarters;
mod resume;
mod small;
mod subspaces;
mod task_aware;
mod tidy;
