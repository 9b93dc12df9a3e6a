//! Any bytes as tar.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| dpcl_fuzz::data::tar(bytes));
