//! The report that a kernel logs when an allocation fails: its first line, and the state of memory.
//! `spec: 4.3 (9), 7.7`
//!
//! The first line is the kernel's own, in the wording of its version. The state of memory is what decides
//! about an allocation, in kB: free memory, watermarks and LRU lists of each zone (of each node, where the
//! kernel has them there), and free blocks by order. There is no call stack: a simulated task has none.

use crate::gfp_text::Era;
use std::collections::BTreeMap;
use std::fmt::Write;
use unfrag_eras::kernel::{LruShape, preset};
use unfrag_eras::{Gfp, MAX_ORDER};

/// What the wording of a report depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wording {
    /// Era of the gfp bits, and whether the report names them.
    pub era: Era,
    /// Where the LRU lists are.
    pub lru: LruShape,
}

impl Wording {
    /// The wording of a preset; a name without a version means the oldest kernels.
    pub fn of(kernel: &str) -> Wording {
        Wording {
            era: Era::of_release(kernel).unwrap_or(Era::V2_6_32),
            lru: preset(kernel).map_or(LruShape::PerZone, |p| p.rules.reclaim.lru.shape()),
        }
    }
}

/// An allocation that failed.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'a> {
    /// Name of the task that ran; `None` on an idle CPU.
    pub task: Option<&'a str>,
    /// The CPU.
    pub cpu: usize,
    /// Order of the request.
    pub order: u8,
    /// Its flags, by their meaning.
    pub gfp: Gfp,
    /// The zones at that moment.
    pub zones: &'a [Zone<'a>],
}

/// A zone at that moment; amounts in pages.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names are those of the report")]
pub struct Zone<'a> {
    pub node: u8,
    pub name: &'a str,
    pub free: u64,
    pub min: u64,
    pub low: u64,
    pub high: u64,
    pub active_anon: u64,
    pub inactive_anon: u64,
    pub active_file: u64,
    pub inactive_file: u64,
    pub present: u64,
    pub managed: u64,
    pub all_unreclaimable: bool,
    /// Free blocks by order, for each type that has some.
    pub free_blocks: &'a BTreeMap<&'static str, [u64; ORDERS]>,
}

/// Number of orders that free blocks have.
pub const ORDERS: usize = MAX_ORDER as usize + 1;

/// `mode` of the first line: the flags as bits of a kernel. Flags that the kernel does not have are left
/// out.
pub fn mode(era: Era, gfp: Gfp) -> u64 {
    let bit = |(name, flag): (&str, Gfp)| {
        let bit = match (era, name) {
            // These four have the same bits in all kernels.
            (_, "DMA" | "HIGHMEM" | "DMA32" | "MOVABLE") => Ok(u64::from(flag.bits())),
            (Era::V2_6_32, "DIRECT_RECLAIM") => era.parse("__GFP_WAIT"),
            // __GFP_REPEAT until 4.12.
            (Era::V2_6_32 | Era::V4_4 | Era::V4_10, "RETRY_MAYFAIL") => era.parse("__GFP_REPEAT"),
            _ => era.parse(&format!("__GFP_{name}")),
        };
        bit.unwrap_or(0)
    };
    gfp.iter_names().map(bit).fold(0, |mode, bit| mode | bit)
}

/// The report about an allocation that failed.
pub fn report(wording: Wording, failure: &Failure) -> String {
    let mut out = String::new();
    let mode = mode(wording.era, failure.gfp);
    let _ = if wording.era == Era::V2_6_32 {
        let comm = failure.task.unwrap_or("swapper");
        writeln!(
            out,
            "{comm}: page allocation failure. order:{}, mode:0x{mode:x}",
            failure.order
        )
    } else {
        let idle = format!("swapper/{}", failure.cpu);
        writeln!(
            out,
            "{}: page allocation failure: order:{}, mode:0x{mode:x}({}), nodemask=(null),cpuset=/,mems_allowed=0",
            failure.task.unwrap_or(&idle),
            failure.order,
            wording.era.print(mode)
        )
    };
    out.push_str("Mem-Info:\n");
    if wording.lru == LruShape::PerNode {
        nodes(&mut out, failure.zones);
    }
    for z in failure.zones {
        zone(&mut out, wording, z);
    }
    for z in failure.zones {
        free_blocks(&mut out, wording.era, z);
    }
    out
}

const fn kb(pages: u64) -> u64 {
    pages * 4
}

/// The LRU lists of each node: the sum over its zones.
fn nodes(out: &mut String, zones: &[Zone]) {
    for (i, first) in zones.iter().enumerate() {
        if zones[..i].iter().any(|z| z.node == first.node) {
            continue;
        }
        let of_node: Vec<&Zone> = zones.iter().filter(|z| z.node == first.node).collect();
        let sum = |part: fn(&Zone) -> u64| kb(of_node.iter().map(|z| part(z)).sum());
        let _ = writeln!(
            out,
            "Node {} active_anon:{}kB inactive_anon:{}kB active_file:{}kB inactive_file:{}kB all_unreclaimable? {}",
            first.node,
            sum(|z| z.active_anon),
            sum(|z| z.inactive_anon),
            sum(|z| z.active_file),
            sum(|z| z.inactive_file),
            yes(of_node.iter().all(|z| z.all_unreclaimable))
        );
    }
}

const fn yes(answer: bool) -> &'static str {
    if answer { "yes" } else { "no" }
}

fn zone(out: &mut String, wording: Wording, z: &Zone) {
    let _ = write!(
        out,
        "Node {} {} free:{}kB min:{}kB low:{}kB high:{}kB",
        z.node,
        z.name,
        kb(z.free),
        kb(z.min),
        kb(z.low),
        kb(z.high)
    );
    let _ = match wording.lru {
        LruShape::Joined => write!(
            out,
            " active:{}kB inactive:{}kB",
            kb(z.active_anon + z.active_file),
            kb(z.inactive_anon + z.inactive_file)
        ),
        LruShape::PerZone => write!(
            out,
            " active_anon:{}kB inactive_anon:{}kB active_file:{}kB inactive_file:{}kB",
            kb(z.active_anon),
            kb(z.inactive_anon),
            kb(z.active_file),
            kb(z.inactive_file)
        ),
        LruShape::PerNode => Ok(()),
    };
    let _ = write!(out, " present:{}kB", kb(z.present));
    let _ = match wording.lru {
        LruShape::PerNode => writeln!(out, " managed:{}kB", kb(z.managed)),
        _ => writeln!(out, " all_unreclaimable? {}", yes(z.all_unreclaimable)),
    };
}

/// The letters that newer kernels print for migratetypes, in the order of printing.
const LETTERS: [(&str, char); 6] = [
    ("Unmovable", 'U'),
    ("Movable", 'M'),
    ("Reclaimable", 'E'),
    ("HighAtomic", 'H'),
    ("CMA", 'C'),
    ("Isolate", 'I'),
];

fn free_blocks(out: &mut String, era: Era, z: &Zone) {
    let _ = write!(out, "Node {} {}:", z.node, z.name);
    let mut total = 0;
    for order in 0..ORDERS {
        let number: u64 = z.free_blocks.values().map(|of| of[order]).sum();
        let size = kb(1 << order);
        total += number * size;
        let _ = write!(out, " {number}*{size}kB");
        let has = |name: &str| z.free_blocks.get(name).is_some_and(|of| of[order] > 0);
        if era != Era::V2_6_32 && number > 0 {
            let letters = LETTERS.iter().filter(|(name, _)| has(name));
            let _ = write!(out, " ({})", letters.map(|(_, c)| c).collect::<String>());
        }
    }
    let _ = writeln!(out, " = {total}kB");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `spec: 4.3`
    #[test]
    fn mode_0x8020_is_an_atomic_zeroed_request() {
        let old = |gfp| mode(Era::V2_6_32, gfp);
        assert_eq!(old(Gfp::ZERO | Gfp::HIGH | Gfp::KSWAPD_RECLAIM), 0x8020);
        assert_eq!(old(Gfp::KERNEL), 0xd0);
        assert_eq!(old(Gfp::HIGHUSER_MOVABLE), 0x2_00da);
        assert_eq!(old(Gfp::KERNEL | Gfp::RETRY_MAYFAIL), 0x4d0);
    }

    /// `spec: 7.7`
    #[test]
    fn a_mode_has_the_bits_of_its_kernel() {
        let atomic = Gfp::ATOMIC_MASK | Gfp::COMP;
        let named = |era: Era| era.print(mode(era, atomic));
        assert_eq!(mode(Era::V2_6_32, atomic), 0x4020);
        for (era, bits) in [(Era::V5_1, 0x40a20), (Era::V6_18, 0x40820)] {
            assert_eq!(mode(era, atomic), bits);
            assert_eq!(named(era), "GFP_ATOMIC|__GFP_COMP");
        }
    }

    /// A zone with three single pages and a block of order 2 free, on the lists of two types.
    fn blocks() -> BTreeMap<&'static str, [u64; ORDERS]> {
        let with = |singles, fours| {
            let mut of = [0; ORDERS];
            (of[0], of[2]) = (singles, fours);
            of
        };
        BTreeMap::from([("Unmovable", with(2, 0)), ("Movable", with(1, 1))])
    }

    fn zone<'a>(name: &'a str, free_blocks: &'a BTreeMap<&'static str, [u64; ORDERS]>) -> Zone<'a> {
        Zone {
            node: 0,
            name,
            free: 7,
            min: 10,
            low: 12,
            high: 15,
            active_anon: 1,
            inactive_anon: 2,
            active_file: 3,
            inactive_file: 4,
            present: 4096,
            managed: 4000,
            all_unreclaimable: false,
            free_blocks,
        }
    }

    fn text(kernel: &str, task: Option<&str>) -> String {
        let blocks = blocks();
        let zones = [zone("Normal", &blocks)];
        let failure = Failure {
            task,
            cpu: 1,
            order: 5,
            gfp: Gfp::ATOMIC_MASK | Gfp::COMP,
            zones: &zones,
        };
        report(Wording::of(kernel), &failure)
    }

    /// `spec: 4.3`
    #[test]
    fn report_of_2_6_32() {
        assert_eq!(
            text("2.6.32", Some("ifconfig")),
            "ifconfig: page allocation failure. order:5, mode:0x4020
Mem-Info:
Node 0 Normal free:28kB min:40kB low:48kB high:60kB active_anon:4kB inactive_anon:8kB active_file:12kB \
             inactive_file:16kB present:16384kB all_unreclaimable? no
Node 0 Normal: 3*4kB 0*8kB 1*16kB 0*32kB 0*64kB 0*128kB 0*256kB 0*512kB 0*1024kB 0*2048kB 0*4096kB = 28kB
"
        );
        assert!(text("2.6.32", None).starts_with("swapper: page"));
    }

    /// `spec: 4.1`
    #[test]
    fn older_kernels_have_two_lists_a_zone() {
        for kernel in ["2.6.14", "v19"] {
            let text = text(kernel, Some("cc"));
            assert!(
                text.contains("high:60kB active:16kB inactive:24kB present"),
                "{text}"
            );
        }
    }

    #[test]
    fn report_of_6_18() {
        assert_eq!(
            text("6.18", None),
            "swapper/1: page allocation failure: order:5, mode:0x40820(GFP_ATOMIC|__GFP_COMP), \
             nodemask=(null),cpuset=/,mems_allowed=0
Mem-Info:
Node 0 active_anon:4kB inactive_anon:8kB active_file:12kB inactive_file:16kB all_unreclaimable? no
Node 0 Normal free:28kB min:40kB low:48kB high:60kB present:16384kB managed:16000kB
Node 0 Normal: 3*4kB (UM) 0*8kB 1*16kB (M) 0*32kB 0*64kB 0*128kB 0*256kB 0*512kB 0*1024kB 0*2048kB 0*4096kB = 28kB
"
        );
    }

    #[test]
    fn the_lists_of_a_node_are_reported_once() {
        let blocks = blocks();
        let zones = ["DMA", "Normal"].map(|name| zone(name, &blocks));
        let failure = Failure {
            task: None,
            cpu: 0,
            order: 0,
            gfp: Gfp::KERNEL,
            zones: &zones,
        };
        let text = report(Wording::of("6.1"), &failure);
        assert_eq!(
            text.matches("active_file:24kB inactive_file").count(),
            1,
            "{text}"
        );
        assert_eq!(text.lines().count(), 2 + 1 + 2 + 2);
    }
}
