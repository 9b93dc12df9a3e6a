//! Any bytes as cifar.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| dpcl_fuzz::data::cifar(bytes));
