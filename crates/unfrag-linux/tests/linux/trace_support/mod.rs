//! Support of the tests of trace readers: a writer of small `trace.dat` files, mutations, and the
//! comparison of two recordings of the same events.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod dat;
pub mod mutate;
pub mod same;

/// A committed fixture.
pub fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/trace_fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// A committed fixture as a recording of the kernel that made it.
pub fn recording(name: &str) -> unfrag_linux::recording::Recording {
    let options = unfrag_linux::Options {
        kernel_release: Some("6.18.44"),
        ..Default::default()
    };
    unfrag_linux::read(&fixture(name), &options).unwrap_or_else(|e| panic!("{name}: {e}"))
}
