//! Any bytes as pasted text, an archive or a log; each file that is found is read and written the same.
#![no_main]

use unfrag_linux::procfs::*;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(snapshots) = unfrag_linux::snapshots::read_bytes("input", data) else {
        return;
    };
    for file in snapshots.iter().flat_map(|s| &s.files) {
        let content = file.content.bytes();
        let text = String::from_utf8_lossy(&content);
        let written = match file.name.as_str() {
            "buddyinfo" => BuddyInfo::parse(&content).map(|f| f.write()),
            "pagetypeinfo" => PageTypeInfo::parse(&content).map(|f| f.write()),
            "zoneinfo" => ZoneInfo::parse(&content).map(|f| f.write()),
            "slabinfo" => SlabInfo::parse(&content).map(|f| f.write()),
            _ => continue,
        };
        if let Ok(written) = written {
            assert_eq!(written, text);
        }
    }
});
