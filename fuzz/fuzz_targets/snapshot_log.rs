//! Any bytes as a monitor's log.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = unfrag_linux::snapshots::parse_log("buddyinfo", data);
});
