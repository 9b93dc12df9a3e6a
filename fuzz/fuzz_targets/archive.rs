//! Any bytes as archive.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| dpcl_fuzz::data::archive(bytes));
