//! The anchor: the first snapshot taken while the trace ran, and what the trace says of that moment.

use super::evidence::BeforeAnchor;
use super::pcp_trace::PcpTrace;
use super::shown::{ORDERS, by_order, within};
use super::zones::{PcpFacts, ZoneStart, zone_facts};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::input::Cpus;
use crate::replay::causes::Causes;
use unfrag_eras::{Geometry, ZoneConfig};
use unfrag_linux::kpageflags::PageFlags;
use unfrag_linux::recording::Snapshot;

/// What the anchor shows, and what is assumed of the per-CPU lists at the start.
#[derive(Clone, Debug)]
pub struct Anchor {
    /// Zones as recorded.
    pub zones: Vec<ZoneStart>,
    /// Sizes of the host's pages and blocks.
    pub geometry: Geometry,
    /// Free blocks of each order, by zone.
    pub free: Vec<[u64; ORDERS]>,
    /// Free blocks of each order by zone and type (unmovable, movable, reclaimable); `None` without
    /// pagetypeinfo.
    pub listed: Vec<Option<[[u64; ORDERS]; 3]>>,
    /// Pageblocks that are unmovable and reclaimable, by zone; `None` without pagetypeinfo.
    pub blocks: Vec<Option<[u64; 2]>>,
    /// Pageblocks of any type, by zone; `None` without pagetypeinfo.
    pub pageblocks: Vec<Option<u64>>,
    /// Flags of all frames, where they were read with the snapshot.
    pub flags: Option<PageFlags>,
    /// Time of buddyinfo in nanoseconds of the trace clock.
    pub time: u64,
    /// When zoneinfo was read, in nanoseconds of the trace clock; `None` if that is not known.
    pub dated: Option<u64>,
    /// Numbers of the CPUs, by index.
    pub cpus: Vec<u32>,
    /// Per-CPU lists by zone, and by index of the CPU; none where zoneinfo shows none.
    pub sets: Vec<Vec<PcpFacts>>,
    /// What the trace up to the anchor did, where the replay begins at the anchor.
    pub before: Option<BeforeAnchor>,
    /// What was on the per-CPU lists then, where the trace shows it.
    pub pcp_trace: Option<PcpTrace>,
}

impl Anchor {
    /// Reads a snapshot; `time` is when its buddyinfo was read, in nanoseconds of the trace's clock; `cpus` and
    /// `geometry` are those of the recording.
    ///
    /// # Errors
    /// If it lacks buddyinfo or zoneinfo.
    pub fn read(snap: &Snapshot, time: u64, cpus: &Cpus, geometry: Geometry) -> Result<Anchor> {
        let host = Host::recorded(snap)?;
        let zones = zone_facts(&host)?;
        if host.buddy.is_none() {
            return Err(Error::lacking(format!(
                "snapshot `{}` has no buddyinfo",
                snap.name
            )));
        }
        let mut free = vec![];
        let mut blocks = vec![];
        let mut pageblocks = vec![];
        let mut listed = vec![];
        for z in &zones {
            let (node, name) = (u32::from(z.config.node.0), z.config.kind.name());
            let zone = host.zone(node, name).filter(|z| z.blocks.is_some());
            let zone = zone.ok_or_else(|| {
                Error::lacking(format!("buddyinfo of `{}` lacks zone {name}", snap.name))
            })?;
            let spanned = z.config.spanned;
            let place = |file: &str| format!("{file} of `{}`, zone {name}", snap.name);
            let lists =
                |blocks: &[u64], file| by_order(blocks.iter().copied(), spanned, || place(file));
            free.push(lists(
                zone.blocks.as_deref().unwrap_or_default(),
                "buddyinfo",
            )?);
            let on = |t: &str| {
                let blocks = zone.free_of(t).map(|b| lists(b, "pagetypeinfo"));
                blocks.transpose()
            };
            let all = on("Unmovable")?.zip(on("Movable")?).zip(on("Reclaimable")?);
            listed.push(all.map(|((u, m), r)| [u, m, r]));
            let of = |t: &str| zone.pageblocks_of(t);
            let two = of("Unmovable").zip(of("Reclaimable")).map(|(u, r)| [u, r]);
            let shown = zone.pageblocks_where(|_| true);
            let all = shown.or_else(|| blocks_by_present(&z.config, geometry));
            for n in two.iter().flatten().chain(&all) {
                within(*n, spanned, || {
                    format!("{}: pageblocks", place("pagetypeinfo"))
                })?;
            }
            blocks.push(two);
            pageblocks.push(all);
        }
        let sets = zones.iter().map(|z| z.sets_of(cpus)).collect();
        Ok(Anchor {
            zones,
            geometry,
            free,
            listed,
            blocks,
            pageblocks,
            flags: PageFlags::of(snap)?,
            time,
            cpus: cpus.numbers().to_vec(),
            sets,
            dated: None,
            before: None,
            pcp_trace: None,
        })
    }

    /// Operations before the anchor.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn upto(&self, causes: &Causes) -> Result<usize> {
        causes.ops.at(self.time)
    }

    /// Pages of a zone that were free at the anchor, those on per-CPU lists among them.
    pub(super) fn free_pages(&self, zone: usize, causes: &Causes) -> Result<i64> {
        let z = &self.zones[zone];
        let held: u64 = z.sets.iter().map(|s| s.count).sum();
        let Some(dated) = self.dated else {
            return Ok((pages(&self.free[zone]) + held) as i64);
        };
        // zoneinfo has free pages and per-CPU lists of one moment, a little later than buddyinfo.
        let lo = z.config.start.0 as u32;
        let zone = lo..lo + z.config.spanned as u32;
        let mut taken = 0;
        let between = self.upto(causes)?..causes.ops.at(dated)?;
        causes.ops.each(between, |_, op| {
            if op.frame(&causes.stacks).is_some_and(|p| zone.contains(&p)) {
                taken += op.pages_taken();
            }
        })?;
        Ok((z.free + held) as i64 + taken)
    }
}

/// Pageblocks of a zone with a hole of several of them, by what zoneinfo says is there; `None` of any other zone.
fn blocks_by_present(zone: &ZoneConfig, geometry: Geometry) -> Option<u64> {
    let block = u64::from(geometry.block_order.frames());
    let absent = zone.spanned.saturating_sub(zone.present) / block;
    let end = (zone.start.0 + zone.spanned).div_ceil(block);
    (absent > 0).then(|| (end - zone.start.0 / block).saturating_sub(absent))
}

fn pages(free: &[u64; ORDERS]) -> u64 {
    free.iter().enumerate().map(|(o, n)| n << o).sum()
}
