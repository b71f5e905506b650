//! Any bytes as trace text; and what gfp masks print as is read back.
#![no_main]

use unfrag_linux::gfp_text::Era;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = unfrag_linux::text::read(data, Some("2.6.32"));
    let _ = unfrag_linux::text::read(data, None);
    if let Ok(text) = std::str::from_utf8(data) {
        for era in Era::ALL {
            if let Ok(mask) = era.parse(text) {
                assert_eq!(era.parse(&era.print(mask)), Ok(mask));
            }
        }
    }
});
