//! What a diagnosis is made from: the files of procfs that could be read, parsed, and the names of
//! those that could not.
//!
//! Invariant: nothing is guessed. A file that is missing, or is not what a kernel writes, is [`Unread`], with the reason
//! and with what the diagnosis lacks for it; the others are read all the same.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;

use super::settings;
use super::zone_blocks::{ZoneBlocks, ZoneReader};
use crate::era::Era;
use crate::error::{Error, Result};
use crate::inspect::Unread;
use crate::inspect::files::{self, Files, Reader, pcp_pages};
use unfrag_linux::content::Content;
use unfrag_linux::kpageflags;
use unfrag_linux::procfs::{
    BuddyInfo, ExtfragIndex, MemInfo, PageTypeInfo, SlabInfo, UnusableIndex, VmStat, ZoneInfo,
    uptime, zoneinfo,
};
use unfrag_linux::recording::Snapshot;

/// What was read of one host at one moment.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Where it came from.
    pub source: String,
    /// `uname -r`, where `/proc/version` or a copy of `uname -a` says.
    pub release: Option<String>,
    /// Bytes in a page, if they were given: goes before what the files tell.
    pub page_size: Option<u64>,
    /// Free blocks.
    pub buddy: Option<BuddyInfo>,
    /// Watermarks and per-CPU lists.
    pub zones: Option<ZoneInfo>,
    /// Pageblocks by type.
    pub types: Option<PageTypeInfo>,
    /// The kernel's unusable index, where free blocks are not known.
    pub unusable: Option<UnusableIndex>,
    /// The kernel's fragmentation index, where free blocks are not known.
    pub extfrag: Option<ExtfragIndex>,
    /// Amounts.
    pub meminfo: Option<MemInfo>,
    /// Amounts of each node, where sysfs told them.
    pub nodes: Vec<(u32, MemInfo)>,
    /// Counters since boot.
    pub vmstat: Option<VmStat>,
    /// An earlier reading of the counters, and the seconds between the two.
    pub earlier: Option<(VmStat, f64)>,
    /// Slab caches.
    pub slabs: Option<SlabInfo>,
    /// An earlier reading of them, and the seconds between the two.
    pub earlier_slabs: Option<(SlabInfo, f64)>,
    /// Pageblocks of each zone that zoneinfo names, in its order; `None` without page flags.
    pub blocks: Option<Vec<Arc<ZoneBlocks>>>,
    /// Seconds since boot.
    pub uptime: Option<f64>,
    /// Sysctls by their names below `vm`, and `thp_enabled` and `thp_defrag`.
    pub settings: BTreeMap<String, String>,
    /// What could not be read, and what is lacking for it.
    pub unread: Vec<Unread>,
    /// Lines that were not understood, and files that are cut off.
    pub notes: Vec<String>,
}

impl Evidence {
    /// Reads the files that `read` gives, named as below `/proc` (`sys/vm/NAME` for sysctls,
    /// `thp/enabled` and `thp/defrag` for those of sysfs).
    ///
    /// # Errors
    /// If none of those about memory can be read; names the first that is not what the kernel writes.
    pub fn read(source: &str, from: impl Files) -> Result<Evidence> {
        let mut e = Evidence {
            source: source.to_owned(),
            ..Evidence::default()
        };
        let mut reader = Reader::new(&from);
        e.buddy = reader.get(
            "buddyinfo",
            "free blocks by order not known",
            files::buddyinfo,
        );
        e.zones = reader.get(
            "zoneinfo",
            "watermarks, so whether atomic requests are at risk not known",
            files::zoneinfo,
        );
        e.types = reader.get(
            "pagetypeinfo",
            "pageblocks by type, and the high-atomic reserve not known",
            files::pagetypeinfo,
        );
        // These tell what buddyinfo tells as well, so they are missed only where it is missing too.
        if e.buddy.is_none() && e.types.is_none() {
            if reader.has("unusable_index") {
                e.unusable = reader.get("unusable_index", "it is not used", files::unusable);
            }
            if reader.has("extfrag_index") {
                e.extfrag = reader.get("extfrag_index", "it is not used", files::extfrag);
            }
        }
        e.meminfo = reader.get(
            "meminfo",
            "amounts of page cache and slab not known",
            files::meminfo,
        );
        e.vmstat = reader.get(
            "vmstat",
            "stalls, failures and compaction since boot not known",
            VmStat::parse,
        );
        e.slabs = reader.get("slabinfo", "slab caches by name not known", SlabInfo::parse);
        let zones = e.zones.as_ref();
        e.blocks = reader.stream(
            kpageflags::NAME,
            "what stands in the way of each huge page, and the forecast not known",
            |flags| zone_blocks(zones, flags),
        );
        // These alone are no evidence of memory, so their absence is not reported.
        if reader.has("uptime") {
            let uptime = reader.get("uptime", "rates since boot not known", uptime::parse);
            e.uptime = uptime.map(|ns| ns as f64 / 1e9);
        }
        e.release = release(&from);
        if e.release.is_none() && reader.has("version") {
            reader.get("version", "the kernel's release not known", no_release);
        }
        e.settings = settings::read(&from);
        e.nodes = nodes(&from);
        if e.buddy.is_none()
            && e.types.is_none()
            && e.unusable.is_none()
            && e.extfrag.is_none()
            && e.meminfo.is_none()
            && e.vmstat.is_none()
            && e.zones.is_none()
            && e.slabs.is_none()
            && e.settings.is_empty()
        {
            return Err(match reader.first_error {
                Some(error) => error.into(),
                None => Error::lacking(
                    "none of buddyinfo, pagetypeinfo, zoneinfo, meminfo, vmstat and slabinfo can be read there",
                )
                .help(format!(
                    "give /proc, a directory with a copy of it, or an .unfrag file{}",
                    files::and_not_read(&reader.there())
                )),
            });
        }
        e.unread = reader.unread;
        e.notes = files::partly(&[
            ("buddyinfo", e.buddy.as_ref().map(|f| &f.notes)),
            ("zoneinfo", e.zones.as_ref().map(|f| &f.notes)),
            ("pagetypeinfo", e.types.as_ref().map(|f| &f.notes)),
            ("unusable_index", e.unusable.as_ref().map(|f| &f.notes)),
            ("extfrag_index", e.extfrag.as_ref().map(|f| &f.notes)),
            ("meminfo", e.meminfo.as_ref().map(|f| &f.notes)),
            ("vmstat", e.vmstat.as_ref().map(|f| &f.notes)),
            ("slabinfo", e.slabs.as_ref().map(|f| &f.notes)),
        ]);
        Ok(e)
    }

    /// Reads the files of a snapshot.
    ///
    /// # Errors
    /// As [`Evidence::read`].
    pub fn of_snapshot(source: &str, snapshot: &Snapshot) -> Result<Evidence> {
        Evidence::read(source, OfSnapshot(snapshot))
    }

    /// Takes the release and the settings from another snapshot of the same host, where they are missing.
    pub fn learn(&mut self, other: &Snapshot) {
        if self.release.is_none() {
            self.release = release(&OfSnapshot(other));
        }
        if self.settings.is_empty() {
            self.settings = settings::read(&OfSnapshot(other));
        }
    }

    /// Whether any sysctl of `vm` was read.
    pub fn has_sysctls(&self) -> bool {
        self.settings.keys().any(|name| !name.starts_with("thp_"))
    }

    /// A sysctl's value as a number.
    pub fn setting(&self, name: &str) -> Option<u64> {
        self.settings.get(name)?.parse().ok()
    }

    /// A counter of vmstat.
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.vmstat.as_ref()?.get(name)
    }

    /// A line of meminfo that is in KiB, in bytes.
    pub fn meminfo_bytes(&self, name: &str) -> Option<u64> {
        Some(self.meminfo.as_ref()?.get(name)?.saturating_mul(1024))
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

/// The files of a snapshot.
struct OfSnapshot<'a>(&'a Snapshot);

impl OfSnapshot<'_> {
    fn content(&self, name: &str) -> io::Result<&Content> {
        let content = self.0.content(name);
        content.ok_or_else(|| io::Error::other("not in the snapshot"))
    }
}

impl Files for OfSnapshot<'_> {
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        Ok(self.content(name)?.bytes().into_owned())
    }

    fn stream(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        Ok(self.content(name)?.reader())
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

/// The pageblocks of each zone that zoneinfo names, from the flags of all page frames.
fn zone_blocks(
    zones: Option<&ZoneInfo>,
    flags: &mut dyn Read,
) -> unfrag_linux::Result<Vec<Arc<ZoneBlocks>>> {
    let zones = zones.map_or(&[][..], |info| &info.zones);
    let span = |z: &zoneinfo::Zone| {
        let start = z.start_pfn().unwrap_or(0);
        start..start.saturating_add(z.pages("spanned").unwrap_or(0))
    };
    let mut readers: Vec<ZoneReader> = zones.iter().map(|z| ZoneReader::new(span(z))).collect();
    kpageflags::each(flags, |first, words| {
        for reader in &mut readers {
            reader.read(first, words);
        }
    })?;
    let zones = readers.into_iter().zip(zones);
    // Frames without flags are not told apart where it is not known how many are on per-CPU lists.
    Ok(zones
        .map(|(reader, zone)| Arc::new(reader.finish(pcp_pages(zone).unwrap_or(0))))
        .collect())
}

/// The release in the text of `/proc/version`, or in that of `uname -a`; `None` if it is none of a kernel.
fn release(from: &dyn Files) -> Option<String> {
    let word = |file: &str, prefix: &str, at: usize| {
        let text = String::from_utf8_lossy(&from.read(file).ok()?).into_owned();
        let rest = text.trim_start().strip_prefix(prefix)?;
        let word = rest.split_whitespace().nth(at)?;
        Era::of(word).is_ok().then(|| word.to_owned())
    };
    // `Linux version 6.1.0 …`; `Linux HOST 6.1.0 …`, as `uname -a` says.
    word("version", "Linux version ", 0)
        .or_else(|| word("version", "Linux ", 1))
        .or_else(|| word("uname", "Linux ", 1))
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
        assert_eq!(e.meminfo_bytes("MemFree"), Some(4 << 20));
        let files: Vec<_> = e.unread.iter().map(|u| u.file.as_str()).collect();
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
            e.unread[5].why.starts_with("only root"),
            "{}",
            e.unread[5].why
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
        assert!(e.buddy.is_none() && e.meminfo.is_some());
        assert_eq!(e.unread[0].file, "buddyinfo");
        assert!(e.unread[0].why.contains("three"), "{}", e.unread[0].why);
    }

    #[test]
    fn the_release_is_in_version_or_uname() {
        let of = |files| Evidence::read("here", from(files)).unwrap().release;
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
        assert_eq!(e.settings["thp_defrag"], "madvise");
        assert!(!e.settings.contains_key("swappiness"));
    }
}
