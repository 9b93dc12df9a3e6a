//! Any bytes as idx_labels.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| dpcl_fuzz::data::idx_labels(bytes));
