//! Any bytes as a `perf.data`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = unfrag_linux::perfdata::read(data);
});
