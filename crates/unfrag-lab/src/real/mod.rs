//! What does a huge page cost on this computer? `hugepage-latency` on real memory: from the host's own kernel, and from a
//! pool. `spec: 8.4`
//!
//! - `steps`: what both grounds share. `host`, `pool`: the steps on each. `outcome`: what was measured. `text`: tables.
//!
//! The steps: all of some memory is taken in pages of 4 KiB that can be moved, each with its stamp; in each 2 MiB the first
//! three quarters are given back; then a driver takes huge pages, zeroed, as fast as it can. Last, the stamps are read.
//!
//! Invariant: both grounds have the same sizes, and both times include zeroing.

mod host;
mod outcome;
mod pool;
mod steps;
mod text;

pub use outcome::{Outcome, Report};
pub use text::render;

use crate::error::{Asked, Error, Result};
use steps::HUGE;

/// Whose memory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// A pool's.
    Pool,
    /// The host kernel's.
    Host,
}

impl Ground {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Ground::Pool => "pool",
            Ground::Host => "host",
        }
    }
}

/// Runs it on each ground in turn, on `bytes` of memory. `progress` is called with the thousandths that are done.
///
/// # Errors
/// If there is not so much memory, or the system refuses.
pub fn run(bytes: u64, grounds: &[Ground], progress: &dyn Fn(u64)) -> Result<Report> {
    let blocks = bytes / HUGE;
    if blocks < 16 {
        return Err(
            Error::option(Asked::Machine, "the memory is too small for percentiles")
                .help("give 32 MiB at least, and 8 GiB for numbers that count"),
        );
    }
    let available = host::available()?;
    if blocks * HUGE + blocks * HUGE / 16 > available {
        let what = format!(
            "{} MiB of memory are available, and {} MiB with a sixteenth more are needed",
            available >> 20,
            (blocks * HUGE) >> 20
        );
        return Err(Error::option(Asked::Machine, what).help("give a smaller size"));
    }
    let n = grounds.len().max(1) as u64;
    let mut outcomes = Vec::new();
    for (i, ground) in (0..).zip(grounds) {
        let part = |done: u64| progress((i * 1000 + done) / n);
        let outcome = match ground {
            Ground::Pool => pool::run(blocks as u32, &part),
            Ground::Host => host::run(blocks as u32, available, &part),
        }?;
        outcomes.push(outcome);
    }
    Ok(Report {
        bytes: blocks * HUGE,
        outcomes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_gives_huge_pages_out_of_fragmented_memory_and_keeps_what_is_there() {
        let r = run(64 << 20, &[Ground::Pool], &|_| {}).expect("64 MiB");
        let o = &r.outcomes[0];
        assert_eq!((o.on, o.pages_kept, o.pages_wrong), ("pool", 32 * 128, 0));
        assert_eq!((o.wanted, o.huge_pages), (21, 21));
        assert!(o.frames_copied > 0, "{o:?}");
        let us: Vec<f64> = o.percentiles_us.iter().map(|(_, us)| *us).collect();
        assert!(us.is_sorted() && us[0] > 0.0);
        assert!(render(&r).contains("21 of 21"));
    }

    #[test]
    fn too_little_and_too_much_memory_is_refused() {
        let little = run(1 << 20, &[Ground::Pool], &|_| {}).expect_err("too little");
        assert!(little.to_string().contains("too small"), "{little}");
        let much = run(1 << 50, &[Ground::Host], &|_| {}).expect_err("too much");
        assert!(much.to_string().contains("are available"), "{much}");
    }

    /// The texts of a pool are those that a kernel would write: nothing in them is left unread.
    #[test]
    fn a_pool_speaks_procfs() {
        use unfrag_linux::procfs::{BuddyInfo, MemInfo, PageTypeInfo, VmStat};
        use unfrag_pool::{Order, Pool};

        let pool = Pool::builder().arena(64 << 20).build().expect("a pool");
        let frames: Vec<_> = (0..700)
            .map(|_| pool.alloc(Order(0)).expect("memory"))
            .collect();
        let movable = pool.alloc_movable(Order(3)).expect("memory");
        let [buddy, types, vmstat, meminfo] = pool.procfs().map(|(_, text)| text);
        let free = pool.stats().free;
        assert_eq!(free, (64 << 8) - 708);

        let buddy = BuddyInfo::parse(buddy.as_bytes()).expect("buddyinfo");
        let row = &buddy.zones[0];
        let frames_of = |n: &[u64]| -> u64 { (0..).zip(n).map(|(o, n)| n << o).sum() };
        assert_eq!((row.free.len(), frames_of(&row.free)), (11, free));
        let types = PageTypeInfo::parse(types.as_bytes()).expect("pagetypeinfo");
        let vmstat = VmStat::parse(vmstat.as_bytes()).expect("vmstat");
        let meminfo = MemInfo::parse(meminfo.as_bytes()).expect("meminfo");
        assert_eq!(buddy.notes, Default::default());
        assert_eq!(types.notes, Default::default());
        assert_eq!(vmstat.notes, Default::default());
        assert_eq!(meminfo.notes, Default::default());
        assert_eq!(meminfo.lines[1].value, free * 4);
        drop((frames, movable));
    }
}
