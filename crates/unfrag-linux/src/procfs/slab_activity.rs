//! The table of the kernel's tool `slabinfo -AD`: slab caches by activity (`spec: 6.4`).
//!
//! It is no file of procfs, but a view of the counters that sysfs has for each cache.

use std::fmt::Write;
use unfrag_slab::CacheInfo;

/// The columns that a version of the tool prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// The version of source S2: `%Fast` is the last column.
    S2,
    /// 2.6.28 and later: order fallbacks and order follow `%Fast`.
    Modern,
}

/// The table, the most active cache first.
pub fn write<'a>(caches: impl IntoIterator<Item = &'a CacheInfo>, columns: Columns) -> String {
    let mut all: Vec<&CacheInfo> = caches.into_iter().collect();
    all.sort_by_key(|c| std::cmp::Reverse(c.allocs() + c.frees()));
    super::row::text_of(|out| {
        write!(
            out,
            "{:<21} {:>8} {:>10} {:>10} {:>7}",
            "Name", "Objects", "Alloc", "Free", "%Fast"
        )?;
        if columns == Columns::Modern {
            out.push_str(" Fallb O");
        }
        out.push('\n');
        for c in all {
            let (alloc, free) = c.percent_fast();
            write!(
                out,
                "{:<21} {:>8} {:>10} {:>10} {alloc:>3} {free:>3}",
                c.name.as_str(),
                c.active_objects,
                c.allocs(),
                c.frees(),
            )?;
            if columns == Columns::Modern {
                write!(out, " {:>5} {}", c.order_fallbacks, c.order)?;
            }
            out.push('\n');
        }
        Ok(())
    })
}
