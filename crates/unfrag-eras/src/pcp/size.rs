//! Sizes of the per-CPU lists: batch, high, and the vmstat threshold.

use crate::frame::Geometry;
use crate::kernel::{Pcp, Rules, Sysctl};

/// Pages moved at a time: a thousandth of the zone, at most `cap` pages, a quarter of that, and then
/// one less than a power of two. `spec: 3, 3.1, 3.2`
pub const fn batch(zone_pages: u64, cap: u64) -> u64 {
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

/// Largest difference, in pages, that a CPU keeps in its own count of a zone's free pages (`vm stats threshold`
/// of `/proc/zoneinfo`): `2 * fls(cpus) * (1 + fls(zone size / 128 MiB))`, at most 125.
pub const fn stat_threshold(zone_pages: u64, cpus: u64, geometry: Geometry) -> i64 {
    const fn bits(n: u64) -> i64 {
        (u64::BITS - n.leading_zeros()) as i64
    }
    let t = 2 * bits(cpus) * (1 + bits(zone_pages >> (27 - geometry.page_shift)));
    if t < 125 { t } else { 125 }
}

/// What the size of a set of per-CPU lists is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetBasis {
    /// Pages of the zone: present in old kernels, managed in modern ones.
    pub pages: u64,
    /// Its low mark, in pages.
    pub low: u64,
    /// CPUs that share it.
    pub cpus: u64,
    /// Sizes of pages and blocks.
    pub geometry: Geometry,
}

/// What a set of per-CPU lists holds and moves, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetSize {
    /// Pages moved at a time.
    pub batch: u64,
    /// Pages from which on a free gives back; the floor where it follows demand.
    pub high_min: u64,
    /// The ceiling where it follows demand, else equal to `high_min`.
    pub high_max: u64,
}

impl SetSize {
    /// The sizes for the lists of such a zone. `spec: 3, 3.1, 3.2`
    pub fn new(of: SetBasis, rules: &Rules, sysctl: &Sysctl) -> SetSize {
        let (pages, low, cpus) = (of.pages, of.low, of.cpus.max(1));
        let batch = batch(pages, of.geometry.pages(rules.pcp_batch_cap_kbytes));
        let fraction = sysctl.percpu_pagelist_high_fraction;
        let fixed = |batch, high| SetSize {
            batch,
            high_min: high,
            high_max: high,
        };
        match rules.pcp {
            Pcp::Orders { tuned, .. } => {
                let floor = 4 * batch;
                if let Some(share) = pages.checked_div(fraction) {
                    return fixed(batch, (share / cpus).max(floor));
                }
                let min = (low / cpus).max(floor);
                let max = if tuned.is_some() {
                    pages / 8 / cpus
                } else {
                    min
                };
                SetSize {
                    batch,
                    high_min: min,
                    high_max: max.max(min),
                }
            }
            Pcp::Kinds => fixed(batch, 3 * batch),
            _ if fraction > 0 => {
                let high = pages / fraction;
                // At most eight times the bits of a page's offset, before 5.13.
                fixed(
                    (high / 4).clamp(1, 8 * u64::from(of.geometry.page_shift)),
                    high,
                )
            }
            _ => fixed(batch, 6 * batch),
        }
    }
}
