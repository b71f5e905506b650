//! Any bytes as a kernel log: they are explained, shown, and the same when read again.
#![no_main]

use unfrag_lab::explain;

/// Of the screen that it is written for, in columns.
const WIDTH: usize = 80;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(explanation) = explain::explain(data) else {
        return;
    };
    let shown = explain::text::render(&explanation, WIDTH);
    let again = explain::explain(data).expect("it was read before");
    assert_eq!(shown, explain::text::render(&again, WIDTH));
});
