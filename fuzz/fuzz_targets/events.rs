//! Any bytes as events.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| dpcl_fuzz::records::events(bytes));
