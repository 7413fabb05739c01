#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pleg_fuzz::scenario::run(bytes));
