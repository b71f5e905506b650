//! Any bytes as a `trace.dat`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = unfrag_linux::tracedat::read(data);
});
