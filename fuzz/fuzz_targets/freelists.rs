//! Any bytes as a kernel's free lists; what is read can be written, and read again the same.
#![no_main]

use unfrag_linux::freelists::FreeLists;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(read) = FreeLists::parse(data) {
        assert_eq!(FreeLists::parse(read.write().as_bytes()).unwrap(), read);
    }
});
