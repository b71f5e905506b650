//! What the integration tests share.
#![allow(dead_code)]

use std::path::PathBuf;

use unfrag_linux::Error;
use unfrag_linux::freelists::FreeLists;
use unfrag_linux::procfs::*;

/// The directory of recordings that `UNFRAG_DATA` names; without it, says aloud what is skipped.
pub fn recorded_data() -> Option<PathBuf> {
    let data = std::env::var_os("UNFRAG_DATA").map(PathBuf::from);
    if data.is_none() {
        eprintln!("SKIPPED: set UNFRAG_DATA to the directory of recordings to run this test");
    }
    data
}

/// Reads `bytes` as the file called `name` and writes it again; `None` if no reader is named so.
pub fn echo(name: &str, bytes: &[u8]) -> Option<Result<String, Error>> {
    Some(match name {
        "buddyinfo" => BuddyInfo::parse(bytes).map(|x| x.write()),
        "pagetypeinfo" => PageTypeInfo::parse(bytes).map(|x| x.write()),
        "zoneinfo" => ZoneInfo::parse(bytes).map(|x| x.write()),
        "vmstat" => VmStat::parse(bytes).map(|x| x.write()),
        "meminfo" => MemInfo::parse(bytes).map(|x| x.write()),
        "slabinfo" => SlabInfo::parse(bytes).map(|x| x.write()),
        "extfrag_index" => ExtfragIndex::parse(bytes).map(|x| x.write()),
        "unusable_index" => UnusableIndex::parse(bytes).map(|x| x.write()),
        "freelists" => FreeLists::parse(bytes).map(|x| x.write()),
        _ => return None,
    })
}
