//! What a diagnosis is made from: the files of procfs that could be read, parsed, and the names of
//! those that could not.
//!
//! Invariant: nothing is guessed. A file that is missing, or is not what a kernel writes, is `Unread`, with the reason
//! and with what the diagnosis lacks for it; the others are read all the same.

use std::io::Read;
use std::sync::Arc;

use super::features::{self, Features};
use super::hugetlb::{self, Pool};
use super::memory_blocks::{self, MemoryBlocks};
use super::zone_blocks::{ZoneBlocks, ZoneReader};
use crate::error::{Error, Result};
use crate::host::files::{self, Files, Lacking, Reader};
use crate::host::{Host, OfSnapshot, Zone};
use unfrag_linux::kpageflags;
use unfrag_linux::procfs::{AllocInfo, MemInfo, SlabInfo, VmStat, uptime};
use unfrag_linux::recording::Snapshot;
use unfrag_linux::segments::Covered;

/// What the diagnosis lacks for a file that could not be read.
const LACKING: &Lacking = &Lacking {
    needed: &[
        ("buddyinfo", "free blocks by order not known"),
        (
            "zoneinfo",
            "watermarks, so whether atomic requests are at risk not known",
        ),
        (
            "pagetypeinfo",
            "pageblocks by type, and the high-atomic reserve not known",
        ),
        ("meminfo", "amounts of page cache and slab not known"),
        (
            "vmstat",
            "stalls, failures and compaction since boot not known",
        ),
        ("slabinfo", "slab caches by name not known"),
        (
            kpageflags::NAME,
            "what stands in the way of each huge page, and the forecast not known",
        ),
    ],
    further: &[
        ("unusable_index", "it is not used"),
        ("extfrag_index", "it is not used"),
        (
            "allocinfo",
            "places of the kernel's source that allocate not known",
        ),
        ("uptime", "rates since boot not known"),
        ("version", "the kernel's release not known"),
    ],
};

/// What was read of a host at an earlier moment.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Seconds before the last reading.
    pub seconds_before: f64,
    /// Its counters.
    pub vmstat: Option<VmStat>,
    /// Its zones.
    pub zones: Vec<Zone>,
}

impl Reading {
    /// Reads free blocks, marks and counters; `None` if none of them is told.
    pub fn read(seconds_before: f64, from: impl Files) -> Option<Reading> {
        let mut reader = Reader::new(&from, Lacking::UNSAID);
        let reading = Reading {
            seconds_before,
            zones: Host::read(&mut reader).zones,
            vmstat: reader.get("vmstat", VmStat::parse),
        };
        (reading.vmstat.is_some() || !reading.zones.is_empty()).then_some(reading)
    }
}

/// What was read of one host at one moment, and before.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Where it came from.
    pub source: String,
    /// The host, by the files that tell of zones and amounts.
    pub host: Host,
    /// Amounts of each node, where sysfs told them.
    pub nodes: Vec<(u32, MemInfo)>,
    /// Counters since boot.
    pub vmstat: Option<VmStat>,
    /// An earlier reading of the counters, and the seconds between the two.
    pub earlier: Option<(VmStat, f64)>,
    /// Earlier readings, oldest first, none of the moment of the last.
    pub readings: Vec<Reading>,
    /// Slab caches.
    pub slabs: Option<SlabInfo>,
    /// An earlier reading of them, and the seconds between the two.
    pub earlier_slabs: Option<(SlabInfo, f64)>,
    /// Bytes by the place of the kernel's source that allocated them.
    pub sites: Option<AllocInfo>,
    /// An earlier reading of them, and the seconds between the two.
    pub earlier_sites: Option<(AllocInfo, f64)>,
    /// Pageblocks of each zone of the host, in its order; `None` without page flags.
    pub blocks: Option<Vec<Arc<ZoneBlocks>>>,
    /// Seconds since boot.
    pub uptime: Option<f64>,
    /// What the window is, where one was chosen.
    pub covered: Option<Covered>,
    /// Pools of huge pages, as sysfs tells them.
    pub pools: Vec<Pool>,
    /// What reclaims or merges memory beside the page allocator.
    pub features: Features,
    /// The blocks in which memory is plugged; `None` where sysfs does not tell them.
    pub memory_blocks: Option<MemoryBlocks>,
}

impl Evidence {
    /// Reads the files that `read` gives, named as below `/proc` (`sys/vm/NAME` for sysctls,
    /// `thp/enabled` and `thp/defrag` for those of sysfs, `sysfs/PATH` for its others).
    ///
    /// # Errors
    /// If none of those about memory can be read; names the first that is not what the kernel writes.
    pub fn read(source: &str, from: impl Files) -> Result<Evidence> {
        let mut reader = Reader::new(&from, LACKING);
        let mut host = Host::read(&mut reader);
        let vmstat = reader.get("vmstat", VmStat::parse);
        let slabs = reader.get("slabinfo", SlabInfo::parse);
        let sites = reader.get("allocinfo", files::allocinfo);
        let blocks = reader.stream(kpageflags::NAME, |flags| zone_blocks(&host.zones, flags));
        let uptime = reader.get("uptime", uptime::parse);
        if host.release.is_none() {
            reader.get("version", no_release);
        }
        if host.zones.is_empty()
            && host.types.is_none()
            && host.zoneinfo.is_none()
            && host.meminfo.is_none()
            && vmstat.is_none()
            && slabs.is_none()
            && host.settings.is_empty()
        {
            return Err(match reader.errors.is_empty() {
                false => reader.errors.swap_remove(0).into(),
                true => Error::lacking(
                    "none of buddyinfo, pagetypeinfo, zoneinfo, meminfo, vmstat and slabinfo can be read there",
                )
                .help(format!(
                    "give /proc, a directory with a copy of it, or an .unfrag file{}",
                    files::and_not_read(&reader.there())
                )),
            });
        }
        host.unread = reader.unread;
        host.partly.extend(files::partly(&[
            ("meminfo", host.meminfo.as_ref().map(|f| &f.notes)),
            ("vmstat", vmstat.as_ref().map(|f| &f.notes)),
            ("slabinfo", slabs.as_ref().map(|f| &f.notes)),
            ("allocinfo", sites.as_ref().map(|f| &f.notes)),
        ]));
        host.partly
            .extend(sites.iter().flat_map(files::of_allocinfo));
        let mut numbers: Vec<u32> = host.zones.iter().map(|z| z.node).collect();
        numbers.dedup();
        let last_frame = host.zones.iter().map(|z| z.span().end).max();
        let end = last_frame.map(|n| n.saturating_mul(host.geometry.page_size));
        // What keeps a block only page flags tell.
        let has_flags = blocks.is_some();
        let memory_blocks = has_flags.then(|| memory_blocks::read(&from, end));
        let mut e = Evidence {
            source: source.to_owned(),
            host,
            nodes: nodes(&from),
            vmstat,
            slabs,
            sites,
            blocks,
            uptime: uptime.map(|ns| ns as f64 / 1e9),
            pools: hugetlb::pools(&from, &numbers),
            features: features::read(&from),
            memory_blocks: memory_blocks.flatten(),
            ..Evidence::default()
        };
        e.with_page_size(None);
        Ok(e)
    }

    /// Reads the files of a snapshot.
    ///
    /// # Errors
    /// As [`Evidence::read`].
    pub fn of_snapshot(source: &str, snapshot: &Snapshot) -> Result<Evidence> {
        Evidence::read(source, OfSnapshot(snapshot))
    }

    /// Takes this many bytes for a page, whatever the files tell.
    pub fn with_page_size(&mut self, page_size: Option<u64>) {
        let counted = self.host.of_all(|z| Some(z.free));
        let free = counted.or_else(|| self.host.listed());
        let slab_unit = self.slabs.as_ref().and_then(SlabInfo::unit);
        self.host.measure(page_size, free, slab_unit);
    }

    /// Whether any sysctl of `vm` was read.
    pub fn has_sysctls(&self) -> bool {
        self.host
            .settings
            .keys()
            .any(|name| !name.starts_with("thp_"))
    }

    /// A sysctl's value as a number.
    pub fn setting(&self, name: &str) -> Option<u64> {
        self.host.settings.get(name)?.parse().ok()
    }

    /// The counters' first reading, and the seconds from it to the last. Rates are over all of this time, as the last two
    /// readings may be a moment apart.
    pub fn first(&self) -> Option<(&VmStat, f64)> {
        let mut readings = self.readings.iter();
        readings
            .find_map(|r| Some((r.vmstat.as_ref()?, r.seconds_before)))
            .or_else(|| {
                self.earlier
                    .as_ref()
                    .map(|(stat, seconds)| (stat, *seconds))
            })
            .filter(|(_, seconds)| *seconds > 0.0)
    }

    /// Pages pinned by drivers and storage: the kernel counts pins and releases.
    pub(super) fn pinned(&self) -> Option<u64> {
        let acquired = self.counter("nr_foll_pin_acquired")?;
        Some(acquired.saturating_sub(self.counter("nr_foll_pin_released")?))
    }

    /// A counter of vmstat.
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.vmstat.as_ref()?.get(name)
    }

    /// Whether the kernel compacts (2.6.35 and later): it then counts that. Counters that were left out of a text, as by a
    /// filter or a cut, say nothing.
    pub fn compacts(&self) -> bool {
        // These two stand before and after the counters of compaction in every kernel that has them.
        let around = ["pgrotated", "unevictable_pgs_culled"];
        let lacks = |v: &VmStat| {
            around.iter().all(|name| v.get(name).is_some()) && v.get("compact_stall").is_none()
        };
        !self.vmstat.as_ref().is_some_and(lacks)
    }

    /// Adds an earlier reading of the counters.
    pub fn since(&mut self, earlier: VmStat, seconds: f64) {
        if seconds > 0.0 {
            self.earlier = Some((earlier, seconds));
        }
    }
}

/// Nodes whose `meminfo` is looked for.
const MOST_NODES: u32 = 1024;

/// What sysfs' `meminfo` of each node tells, in the order of the nodes.
fn nodes(from: &dyn Files) -> Vec<(u32, MemInfo)> {
    let one = |n: u32| {
        let text = from.read(&format!("node{n}/meminfo")).ok()?;
        Some((n, files::meminfo(&text).ok()?))
    };
    // Numbers may have gaps, but one of the first nodes is there.
    match (0..4).any(|n| one(n).is_some()) {
        true => (0..MOST_NODES).filter_map(one).collect(),
        false => vec![],
    }
}

/// The pageblocks of each zone, from the flags of all page frames.
pub(crate) fn zone_blocks(
    zones: &[Zone],
    flags: &mut dyn Read,
) -> unfrag_linux::Result<Vec<Arc<ZoneBlocks>>> {
    let mut readers: Vec<ZoneReader> = zones.iter().map(|z| ZoneReader::new(z.span())).collect();
    kpageflags::each(flags, |first, words| {
        for reader in &mut readers {
            reader.read(first, words);
        }
    })?;
    let zones = readers.into_iter().zip(zones);
    // Frames without flags are not told apart where it is not known how many are on per-CPU lists.
    Ok(zones
        .map(|(reader, zone)| Arc::new(reader.finish(zone.pcp.unwrap_or(0))))
        .collect())
}

/// The error of a `/proc/version` without a release.
fn no_release(_: &[u8]) -> unfrag_linux::Result<()> {
    Err(unfrag_linux::Error::malformed(
        "no release of a kernel in it",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn from(files: &'static [(&str, &str)]) -> impl Fn(&str) -> io::Result<Vec<u8>> {
        move |name| match files.iter().find(|(n, _)| *n == name) {
            Some((_, text)) => Ok(text.as_bytes().to_vec()),
            None => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    #[test]
    fn counters_that_were_left_out_say_nothing_of_compaction() {
        for (text, compacts) in [
            ("pgrotated 1\nunevictable_pgs_culled 2\n", false),
            (
                "pgrotated 1\ncompact_stall 0\nunevictable_pgs_culled 2\n",
                true,
            ),
            ("pgrotated 1\n", true),
            ("thp_fault_alloc 38\nthp_fault_fallback 62\n", true),
        ] {
            let e = Evidence {
                vmstat: Some(VmStat::parse(text.as_bytes()).unwrap()),
                ..Evidence::default()
            };
            assert_eq!(e.compacts(), compacts, "{text}");
        }
        assert!(Evidence::default().compacts());
    }

    #[test]
    fn missing_files_are_named() {
        let e = Evidence::read("here", from(&[("meminfo", "MemFree:        4096 kB\n")])).unwrap();
        assert_eq!(e.host.meminfo_bytes("MemFree"), Some(4 << 20));
        let files: Vec<_> = e.host.unread.iter().map(|u| u.file.as_str()).collect();
        let missing = [
            "buddyinfo",
            "zoneinfo",
            "pagetypeinfo",
            "vmstat",
            "slabinfo",
            "kpageflags",
        ];
        assert_eq!(files, missing);
        assert!(
            e.host.unread[5].why.starts_with("only root"),
            "{}",
            e.host.unread[5].why
        );
    }

    #[test]
    fn a_bad_file_costs_itself_alone() {
        let e = Evidence::read(
            "here",
            from(&[
                ("buddyinfo", "Node 0, zone Normal 1 2 three\n"),
                ("meminfo", "MemFree:        4096 kB\n"),
            ]),
        )
        .unwrap();
        assert!(e.host.zones.is_empty() && e.host.meminfo.is_some());
        assert_eq!(e.host.unread[0].file, "buddyinfo");
        assert!(
            e.host.unread[0].why.contains("three"),
            "{}",
            e.host.unread[0].why
        );
    }

    #[test]
    fn the_release_is_in_version_or_uname() {
        let of = |files| Evidence::read("here", from(files)).unwrap().host.release;
        let version: &[(&str, &str)] = &[
            ("meminfo", "MemFree: 4 kB\n"),
            ("version", "Linux version 4.9.56 (x) #53\n"),
        ];
        assert_eq!(of(version).as_deref(), Some("4.9.56"));
        let uname: &[(&str, &str)] = &[
            ("meminfo", "MemFree: 4 kB\n"),
            ("uname", "Linux node1 5.4.0-97-generic #110 SMP x86_64\n"),
        ];
        assert_eq!(of(uname).as_deref(), Some("5.4.0-97-generic"));
    }

    #[test]
    fn no_file_at_all_is_an_error() {
        let e = Evidence::read("here", from(&[("slabinfo", "")])).unwrap_err();
        assert!(e.to_string().contains("/proc"), "{e}");
    }

    #[test]
    fn settings_are_read_from_either_form() {
        let files = from(&[
            ("meminfo", "MemFree:        4096 kB\n"),
            (
                "sysctl-vm",
                "/proc/sys/vm/min_free_kbytes=67584\n/proc/sys/vm/swappiness=60\n",
            ),
            ("sys/vm/extfrag_threshold", "500\n"),
            ("thp/defrag", "always defer defer+madvise [madvise] never\n"),
        ]);
        let e = Evidence::read("here", files).unwrap();
        assert_eq!(e.setting("min_free_kbytes"), Some(67584));
        assert_eq!(e.setting("extfrag_threshold"), Some(500));
        assert_eq!(e.host.settings["thp_defrag"], "madvise");
        assert!(!e.host.settings.contains_key("swappiness"));
    }
}
