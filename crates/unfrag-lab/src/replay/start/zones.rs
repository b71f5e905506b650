//! What a snapshot says of the zones: extent, marks, protections, per-CPU lists.

use super::shown::{MOST_PAGES, within};
use crate::afford;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::input::Cpus;
use crate::report::number::bytes;
use unfrag_eras::zone::{Marks, NR_ZONE_KINDS};
use unfrag_eras::{Geometry, NodeId, Pfn, ZoneConfig, ZoneKind};

/// What a model begins with of a populated zone of the recorded host, in its own terms.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneStart {
    /// Extent.
    pub config: ZoneConfig,
    /// Marks without the boost, and the boost.
    pub marks: Marks,
    /// What it keeps from requests for higher zones.
    pub protection: [u64; NR_ZONE_KINDS],
    /// Free pages.
    pub free: u64,
    /// Pages in high-atomic pageblocks.
    pub highatomic: u64,
    /// Deltas up to this size stay with their CPU.
    pub stat_threshold: u32,
    /// Its per-CPU lists.
    pub sets: Vec<PcpFacts>,
}

/// The per-CPU lists of a CPU in a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PcpFacts {
    /// The CPU, as Linux numbers it.
    pub cpu: u32,
    /// Pages on them.
    pub count: u64,
    /// Pages from which on they give some back.
    pub high: u64,
    /// Pages that go to and from the zone at a time.
    pub batch: u64,
}

impl ZoneStart {
    /// The per-CPU lists of all CPUs, by index. One that the snapshot does not show was switched off, or came later: it
    /// holds nothing, and begins with the smallest lists that another one has.
    pub fn sets_of(&self, cpus: &Cpus) -> Vec<PcpFacts> {
        let least = self.sets.iter().min_by_key(|s| (s.high, s.batch));
        let of = |&cpu: &u32| {
            let shown = self.sets.iter().find(|s| s.cpu == cpu).copied();
            shown.or(least.map(|s| PcpFacts {
                cpu,
                count: 0,
                ..*s
            }))
        };
        let all = cpus.numbers().iter().map(of);
        all.collect::<Option<_>>().unwrap_or_default()
    }
}

/// Whether a frame is in a zone.
pub(crate) fn holds(zone: &ZoneConfig, frame: Pfn) -> bool {
    (zone.start.0..zone.start.0 + zone.spanned).contains(&frame.0)
}

/// Pages of a CPU's lists, at most: the kernel counts them in 32 bits, with a sign.
const LARGEST_SET: u64 = i32::MAX as u64;

/// The populated zones that a snapshot's zoneinfo shows, ascending.
///
/// # Errors
/// If the snapshot has no zoneinfo, or it lacks what a replay needs.
pub fn zone_facts(host: &Host) -> Result<Vec<ZoneStart>> {
    let info = host.zoneinfo.as_ref().ok_or_else(|| {
        Error::lacking(format!("snapshot `{}` has no zoneinfo", host.name))
            .help("a replay needs buddyinfo and zoneinfo in at least one snapshot within the trace")
    })?;
    let mut all = vec![];
    for z in host.zones.iter().filter_map(|z| z.info.as_ref()) {
        let place = || format!("zoneinfo of snapshot `{}`, zone {}", host.name, z.name);
        let need = |name: &str| {
            z.pages(name).ok_or_else(|| {
                Error::lacking(format!(
                    "zoneinfo of snapshot `{}` has no `{name}` for zone {}",
                    host.name, z.name
                ))
            })
        };
        let present = z.pages("present").unwrap_or(0);
        let managed = z.pages("managed").unwrap_or(present);
        if managed == 0 {
            continue;
        }
        let spanned = need("spanned")?;
        if managed > spanned || present > spanned {
            return Err(Error::contradiction(format!(
                "zoneinfo of snapshot `{}`: zone {} manages {managed} and has {present} of the {spanned} pages that it spans",
                host.name, z.name
            )));
        }
        let Some(kind) = ZoneKind::from_name(&z.name) else {
            continue;
        };
        let Some(start) = z.start_pfn() else {
            return Err(Error::lacking(format!("zone {} has no start_pfn", z.name)));
        };
        let counts = z.pages.iter();
        let protection = z.protection.iter().map(|&n| ("protection", n));
        for (name, pages) in counts.chain(protection) {
            within(pages, MOST_PAGES, || format!("{}: `{name}`", place()))?;
        }
        within(z.free, spanned, || format!("{}: free pages", place()))?;
        for set in z.pagesets.iter().flatten() {
            for (name, pages) in set.fields.iter() {
                within(pages, LARGEST_SET, || {
                    format!("{}: `{name}` of CPU {}", place(), set.cpu)
                })?;
            }
        }
        let boost = z.pages("boost").unwrap_or(0);
        let (min, low, high) = (need("min")?, need("low")?, need("high")?);
        let mut protection = [0; NR_ZONE_KINDS];
        let same_node: Vec<_> = info.zones.iter().filter(|o| o.node == z.node).collect();
        for (p, other) in z.protection.iter().zip(&same_node) {
            if let Some(k) = ZoneKind::from_name(&other.name) {
                protection[k as usize] = *p;
            }
        }
        // HighMem and Normal are never both there with DMA32: fill the kind that is missing.
        if !same_node.iter().any(|o| o.name == "HighMem") {
            protection[ZoneKind::HighMem as usize] = protection[ZoneKind::Normal as usize];
        }
        let sets = z
            .pagesets
            .iter()
            .flatten()
            .map(|p| {
                let f = |n| p.fields.get(n).unwrap_or(0);
                PcpFacts {
                    cpu: p.cpu,
                    count: f("count"),
                    high: f("high"),
                    batch: f("batch"),
                }
            })
            .collect();
        let threshold = z
            .pagesets
            .iter()
            .flatten()
            .find_map(|p| p.stat_threshold)
            .unwrap_or(0);
        all.push(ZoneStart {
            config: ZoneConfig {
                node: node_id(z.node)?,
                kind,
                start: Pfn(start),
                spanned,
                present,
                managed,
            },
            marks: marks(
                min - boost.min(min),
                low - boost.min(low),
                high - boost.min(high),
                z.pages("promo").unwrap_or(high).saturating_sub(boost),
                boost,
            ),
            protection,
            free: z.free,
            highatomic: 0,
            stat_threshold: threshold as u32,
            sets,
        });
    }
    all.sort_by_key(|z| z.config.start);
    if all.is_empty() {
        return Err(Error::lacking(format!(
            "zoneinfo of snapshot `{}` shows no zone",
            host.name
        )));
    }
    Ok(all)
}

/// A node's number, where the model can have it.
fn node_id(node: u32) -> Result<NodeId> {
    let id = u8::try_from(node).map(NodeId);
    id.map_err(|_| Error::contradiction(format!("node {node}: nodes above 255")))
}

/// Number of frame numbers that the zones reach up to.
///
/// # Errors
/// If that is more than 2^32 - 1, or more than memory here can hold the state of.
pub fn highest_frame(zones: &[ZoneStart], geometry: Geometry) -> Result<u32> {
    let end = zones
        .iter()
        .map(|z| z.config.start.0.saturating_add(z.config.spanned))
        .max();
    let end = u32::try_from(end.unwrap_or(0))
        .ok()
        .filter(|&e| e < u32::MAX)
        .ok_or_else(|| {
            let most = bytes((1 << 32) << geometry.page_shift);
            Error::contradiction(format!("memory above {most}"))
        })?;
    afford::check_pages(end.into(), 1 << geometry.page_shift, afford::REPLAY, 1)
        .map_err(|e| Error::contradiction(format!("by zoneinfo, {e}")))?;
    Ok(end)
}

/// Marks as a kernel shows them (with the boost) and the boost.
pub(crate) fn marks(min: u64, low: u64, high: u64, promo: u64, boost: u64) -> Marks {
    Marks {
        min,
        low,
        high,
        promo,
        boost,
    }
}
