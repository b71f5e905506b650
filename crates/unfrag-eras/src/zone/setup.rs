//! Marks and protections of all zones of a machine, as the kernel derives them at boot.
//! `spec: 1.3, 1.6`

use super::memory_zone::Zone;
use super::watermark::{
    MarkSize, Marks, is_lowmem, khugepaged_min_free_pages, lowmem_reserve, min_free_kbytes, pages,
};
use crate::frame::{Geometry, NR_ZONE_KINDS, NodeId, ZoneKind};
use crate::policy::Policy;

/// Marks and protections for all zones of a machine, as the kernel derives them at boot.
pub(crate) fn setup(zones: &mut [Zone], policy: &Policy, geometry: Geometry) {
    let (rules, sysctl) = (&policy.rules, &policy.sysctl);
    let lowmem: u64 = zones
        .iter()
        .filter(|z| is_lowmem(z.kind, rules))
        .map(|z| pages(&z.config(), rules))
        .sum();
    match sysctl.min_free_kbytes {
        0 => {
            let kbytes = min_free_kbytes(geometry.kib(lowmem), rules.marks.min_free_kbytes_cap);
            set_marks(zones, lowmem, geometry.pages(kbytes), policy);
            if rules.marks.khugepaged && sysctl.transparent_hugepage {
                let (mut n, mut above) = (0, 0);
                for z in zones.iter() {
                    if z.kind <= ZoneKind::Normal && z.managed > 0 {
                        n += 1;
                        above += z.managed.saturating_sub(z.marks.high);
                    }
                }
                let block = geometry.block_order.frames().into();
                let raised = khugepaged_min_free_pages(n, above, block);
                if geometry.kib(raised) > kbytes {
                    set_marks(zones, lowmem, raised, policy);
                }
            }
        }
        set => set_marks(zones, lowmem, geometry.pages(set), policy),
    }
    for node in (0..=u8::MAX).map(NodeId) {
        let mut sizes = [0; NR_ZONE_KINDS];
        for z in zones.iter().filter(|z| z.node == node) {
            sizes[z.kind as usize] = pages(&z.config(), rules);
        }
        if sizes.iter().all(|&s| s == 0) {
            continue;
        }
        let none = rules.marks.zero_ratio_is_none;
        let keep = lowmem_reserve(&sizes, &sysctl.lowmem_reserve_ratio, none);
        for z in zones.iter_mut().filter(|z| z.node == node) {
            z.protection = keep[z.kind as usize];
        }
    }
}

fn set_marks(zones: &mut [Zone], lowmem: u64, min_free: u64, policy: &Policy) {
    for z in zones.iter_mut() {
        let (c, boost) = (z.config(), z.marks.boost);
        let size = MarkSize {
            kind: c.kind,
            pages: pages(&c, &policy.rules),
            lowmem,
            min_free,
        };
        z.marks = Marks::new(size, &policy.rules, &policy.sysctl);
        z.marks.boost = boost;
    }
}
