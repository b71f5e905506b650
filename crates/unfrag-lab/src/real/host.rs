//! The steps with memory of the host's kernel.
//!
//! All other memory is taken meanwhile, in huge pages, or the kernel would serve the driver from there.

use super::outcome::Outcome;
use super::steps::{GIVEN_BACK, HUGE, PAGES, is_stamped, stamp, wanted};
use crate::error::{Error, Result};
use crate::host::files::meminfo;
use std::fs;
use std::time::Instant;
use unfrag_linux::procfs::VmStat;
use unfrag_pool::HostMemory;

/// Bytes of memory that the kernel says are available.
pub(super) fn available() -> Result<u64> {
    let text = fs::read("/proc/meminfo")?;
    let kib = meminfo(&text)?.get("MemAvailable");
    let kib = kib.ok_or_else(|| Error::lacking("/proc/meminfo does not say MemAvailable"))?;
    Ok(kib << 10)
}

/// Frames that the kernel has moved, by `/proc/vmstat`; 0 where it does not say.
fn moved() -> Result<u64> {
    let vmstat = VmStat::parse(&fs::read("/proc/vmstat")?)?;
    Ok(vmstat.counters.get("pgmigrate_success").unwrap_or(0))
}

/// Minor faults of this process. The field's number is that of `proc(5)`, from the command's closing bracket on.
fn minor_faults() -> u64 {
    const MINFLT: usize = 10 - 3;
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let field = after.split(' ').nth(MINFLT);
    field.and_then(|f| f.parse().ok()).unwrap_or(0)
}

/// Takes memory in huge pages, where there are some, and writes to all of it.
fn take(bytes: u64) -> Result<HostMemory> {
    let mut memory = HostMemory::map(bytes as usize, true)?;
    for i in 0..memory.pages() {
        memory.page(i)[0] = 1;
    }
    Ok(memory)
}

pub(super) fn run(blocks: u32, available: u64, progress: &dyn Fn(u64)) -> Result<Outcome> {
    let bytes = u64::from(blocks) * HUGE;
    // What is left over lets the kernel breathe, as it does in the pool, and holds what is measured.
    let reserve = bytes / 32 + available / 32;
    let others = take(available.saturating_sub(bytes + reserve) / HUGE * HUGE)?;
    progress(100);
    let mut memory = HostMemory::map(bytes as usize, false)?;
    for i in 0..memory.pages() {
        stamp(memory.page(i), i);
        if i.is_multiple_of(4096) {
            progress(100 + u64::from(i) * 400 / u64::from(memory.pages()));
        }
    }
    for block in 0..blocks {
        memory.discard(block * PAGES, GIVEN_BACK)?;
    }
    let wanted = wanted(blocks);
    let mut huge = HostMemory::map(wanted as usize * HUGE as usize, true)?;
    let (copied_before, mut latencies) = (moved()?, Vec::new());
    for i in 0..wanted {
        let start = Instant::now();
        huge.page(i * PAGES)[0] = 1;
        let time = start.elapsed().as_nanos() as u64;
        // In a huge page the second page is there already.
        let faults = minor_faults();
        huge.page(i * PAGES + 1)[0] = 1;
        if minor_faults() == faults {
            latencies.push(time);
        }
        progress(500 + u64::from(i) * 400 / u64::from(wanted));
    }
    let copied = moved()? - copied_before;
    drop(others);
    let kept = (0..memory.pages()).filter(|i| i % PAGES >= GIVEN_BACK);
    let (mut pages, mut wrong) = (0, 0);
    for i in kept {
        pages += 1;
        wrong += u32::from(!is_stamped(memory.page(i), i));
    }
    progress(1000);
    Ok(Outcome {
        frames_copied: copied,
        pages_kept: pages,
        pages_wrong: wrong,
        ..Outcome::new("host", wanted, latencies)
    })
}
