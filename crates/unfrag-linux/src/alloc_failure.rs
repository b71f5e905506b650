//! The text that a kernel writes when an allocation fails: first line, and the memory report.
//! `spec: linux-mm 4.3 (9)`
//!
//! The first line is as the specification quotes it. Of the report the specification says only that
//! there is one; ours says for each zone what decides: free memory, marks, LRU lists, and free blocks by
//! order, in the units of the kernel (kB).

use std::fmt::Write;
use unfrag::reclaim::Lru;
use unfrag::{Gfp, Host, Manager};

/// `mode` of the first line, with the bits of 2.6.32: `__GFP_HIGH` 0x20, `__GFP_WAIT` 0x10, `__GFP_IO`
/// 0x40, `__GFP_FS` 0x80, `__GFP_NOWARN` 0x200, `__GFP_NORETRY` 0x1000, `__GFP_COMP` 0x4000,
/// `__GFP_ZERO` 0x8000. Mode 0x8020 of source S4 is an atomic, zeroed allocation.
pub fn mode(gfp: Gfp) -> u32 {
    const BITS: [(Gfp, u32); 8] = [
        (Gfp::DIRECT_RECLAIM, 0x10),
        (Gfp::HIGH, 0x20),
        (Gfp::IO, 0x40),
        (Gfp::FS, 0x80),
        (Gfp::NOWARN, 0x200),
        (Gfp::NORETRY, 0x1000),
        (Gfp::COMP, 0x4000),
        (Gfp::ZERO, 0x8000),
    ];
    BITS.iter()
        .filter(|(flag, _)| gfp.contains(*flag))
        .map(|(_, bit)| bit)
        .sum()
}

/// The report about a request of `comm` that failed.
pub fn report<H: Host>(comm: &str, order: u8, gfp: Gfp, m: &Manager<'_, H>) -> String {
    let mut out = format!(
        "{comm}: page allocation failure. order:{order}, mode:0x{:x}\n",
        mode(gfp)
    );
    out.push_str("Mem-Info:\n");
    let kb = |pages: u64| pages * 4;
    for z in 0..m.zones() {
        let (v, lru) = (m.zone_view(z), m.lru_view(z));
        let pages = |l: Lru| kb(lru.pages[l as usize - 1]);
        let _ = writeln!(
            out,
            "Node {} {} free:{}kB min:{}kB low:{}kB high:{}kB active_anon:{}kB inactive_anon:{}kB \
             active_file:{}kB inactive_file:{}kB present:{}kB all_unreclaimable? {}",
            v.config.node,
            v.config.kind.name(),
            kb(v.free_counter.max(0) as u64),
            kb(v.marks.min + v.marks.boost),
            kb(v.marks.low + v.marks.boost),
            kb(v.marks.high + v.marks.boost),
            pages(Lru::ActiveAnon),
            pages(Lru::InactiveAnon),
            pages(Lru::ActiveFile),
            pages(Lru::InactiveFile),
            kb(v.config.present),
            if lru.all_unreclaimable { "yes" } else { "no" },
        );
    }
    for z in 0..m.zones() {
        let v = m.zone_view(z);
        let _ = write!(out, "Node {} {}:", v.config.node, v.config.kind.name());
        let mut total = 0;
        for (o, n) in v.nr_free.iter().enumerate() {
            total += kb(n << o);
            let _ = write!(out, " {n}*{}kB", kb(1 << o));
        }
        let _ = writeln!(out, " = {total}kB");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use unfrag::{Config, NullHost, Pfn, Sysctl, ZoneConfig, ZoneKind, layout, preset};

    #[test]
    fn the_mode_of_the_source_is_an_atomic_zeroed_request_spec_4_3() {
        assert_eq!(mode(Gfp::ZERO | Gfp::HIGH | Gfp::KSWAPD_RECLAIM), 0x8020);
        assert_eq!(mode(Gfp::KERNEL), 0xd0);
    }

    #[test]
    fn the_report_says_what_decides() {
        let zones = [ZoneConfig {
            node: 0,
            kind: ZoneKind::Normal,
            start: Pfn(0x1000),
            spanned: 4096,
            present: 4096,
            managed: 4096,
        }];
        let config = Config {
            zones: &zones,
            cpus: 1,
            switches: preset("2.6.32").unwrap().switches,
            sysctl: Sysctl::default(),
        };
        let mut memory = vec![0; layout(&config).unwrap().words];
        let mut m = Manager::boot(&config, NullHost, &mut memory).unwrap();
        let gfp = Gfp::HIGH | Gfp::COMP;
        while m.alloc(5, gfp).is_ok() {}
        let text = report("ifconfig", 5, gfp, &m);
        let free = m.zone_view(0);
        let mut lines = text.lines();
        assert_eq!(
            lines.next(),
            Some("ifconfig: page allocation failure. order:5, mode:0x4020")
        );
        assert_eq!(lines.next(), Some("Mem-Info:"));
        let zone = lines.next().unwrap();
        let says = format!(
            "Node 0 Normal free:{}kB min:512kB low:640kB",
            free.free_counter * 4
        );
        assert!(zone.starts_with(&says), "{zone}");
        let orders = lines.next().unwrap();
        assert!(
            orders.ends_with(&format!(" = {}kB", free.free_pages * 4)),
            "{orders}"
        );
        assert_eq!(lines.next(), None);
    }
}
