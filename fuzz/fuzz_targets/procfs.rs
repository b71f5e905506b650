//! Any bytes as each file of procfs; what is read can be written, and read again the same.
#![no_main]

use unfrag_linux::procfs::*;

macro_rules! echo {
    ($data:expr, $($format:ty),*) => {$(
        if let Ok(read) = <$format>::parse($data) {
            let text = read.write();
            assert_eq!(<$format>::parse(text.as_bytes()).unwrap().write(), text);
        }
    )*};
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    echo!(
        data,
        AllocInfo,
        BuddyInfo,
        PageTypeInfo,
        ZoneInfo,
        VmStat,
        MemInfo,
        SlabInfo,
        ExtfragIndex,
        UnusableIndex
    );
    let _ = uptime::parse(data);
    let _ = vmallocinfo::by_node(data);
    let _ = smaps::parse(&String::from_utf8_lossy(data));
});
