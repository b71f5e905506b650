//! The account of a host that changes while it is read.

use std::cell::Cell;
use std::io;
use unfrag_lab::account::answer::{Account, account};
use unfrag_lab::account::look::Look;
use unfrag_lab::account::uses::Use;
use unfrag_linux::kpageflags::BUDDY;

/// Frames of the host; those of them on per-CPU lists, of which a huge page is taken when the reading of flags begins.
const FRAMES: u64 = 4096;
const HUGE: u64 = 512;

/// A host with 2048 free frames on buddy lists by its flags, and `counted` by its counters. All others have no flag.
fn host(taken: bool, counted: u64) -> Account {
    let opened = Cell::new(false);
    let files = |name: &str| -> io::Result<Vec<u8>> {
        let lists = match taken && opened.get() {
            true => HUGE,
            false => 2 * HUGE,
        };
        match name {
            "zoneinfo" => Ok(format!(
                "Node 0, zone   Normal\n  pages free     {counted}\n        min      10\n        low      12\n        high     15\n        spanned  {FRAMES}\n        present  {FRAMES}\n        managed  {FRAMES}\n        protection: (0, 0)\n  pagesets\n    cpu: 0\n              count: {lists}\n              high:  63\n              batch: 7\n  vm stats threshold: 4\n  node_unreclaimable:  0\n  start_pfn:           0\n"
            )
            .into_bytes()),
            "meminfo" => Ok(b"MemTotal: 16384 kB\nVmallocUsed: 4 kB\nPercpu: 4 kB\nSlab: 0 kB\n".to_vec()),
            "kpageflags" => {
                opened.set(true);
                let words = (0..FRAMES).map(|pfn| if pfn < 2048 { BUDDY } else { 0 });
                Ok(words.flat_map(u64::to_le_bytes).collect())
            }
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    };
    account(&Look::live("made", &files, None))
}

#[test]
fn what_the_reading_itself_takes_from_per_cpu_lists_is_not_on_them() {
    let account = host(true, 2048);
    assert_eq!(account.exist, FRAMES);
    assert_eq!(account.frames(Use::PerCpu), HUGE, "{:?}", account.uses);
    assert_eq!(account.off_by, Some(0));
}

#[test]
fn flags_that_tell_otherwise_than_counters_widen_the_bounds() {
    let sure = host(false, 2048);
    let unsure = host(false, 2048 - HUGE);
    assert_eq!((sure.off_by, unsure.off_by), (Some(0), Some(HUGE)));
    let (sure, unsure) = (sure.in_no_counter, unsure.in_no_counter);
    assert_eq!(sure.likely, unsure.likely);
    assert_eq!(unsure.at_least + HUGE, sure.at_least);
    assert_eq!(unsure.at_most, sure.at_most + HUGE);
}
