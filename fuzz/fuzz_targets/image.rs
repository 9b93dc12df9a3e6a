//! Any bytes as image.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| dpcl_fuzz::data::image(bytes));
