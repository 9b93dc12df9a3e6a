//! Any bytes as record.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| dpcl_fuzz::records::record(bytes));
