//! How many pages a per-CPU list holds and moves.

use crate::kernel::{MarkGap, Pcp, Switches, Sysctl};

/// Pages moved at a time: a thousandth of the zone, at most `cap` pages, a quarter of that, and then
/// one less than a power of two. `spec: linux-mm 3.1, 3.2; linux-6.1 3`
pub const fn batch(zone_pages: u64, gap: MarkGap) -> u64 {
    let cap = match gap {
        MarkGap::Quarter => 512 * 1024 / 4096,
        MarkGap::Scaled => 1024 * 1024 / 4096,
    };
    let mut b = zone_pages / 1024;
    if b > cap {
        b = cap;
    }
    b /= 4;
    if b < 1 {
        b = 1;
    }
    let b = (1 << (b + b / 2).ilog2()) - 1;
    if b < 1 { 1 } else { b }
}

/// Smallest and largest `high` of a set. `low` is the zone's low mark in pages.
/// `spec: linux-mm 3.1, 3.2; linux-6.1 3`
pub fn high(
    sw: &Switches,
    sysctl: &Sysctl,
    managed: u64,
    low: u64,
    cpus: u64,
    batch: u64,
) -> (u64, u64) {
    let fraction = sysctl.percpu_pagelist_high_fraction;
    let cpus = cpus.max(1);
    match sw.pcp {
        Pcp::Orders { tuned, .. } => {
            let floor = 4 * batch;
            if fraction > 0 {
                let h = (managed / fraction / cpus).max(floor);
                return (h, h);
            }
            let min = (low / cpus).max(floor);
            let max = if tuned {
                (managed / 8 / cpus).max(floor)
            } else {
                min
            };
            (min, max.max(min))
        }
        Pcp::Kinds => (3 * batch, 3 * batch),
        _ if fraction > 0 => (managed / fraction, managed / fraction),
        _ => (6 * batch, 6 * batch),
    }
}
