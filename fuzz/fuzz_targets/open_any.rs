//! Any bytes as whatever they begin with, compressed or not.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = unfrag_linux::read(data, &unfrag_linux::Options::default());
});
