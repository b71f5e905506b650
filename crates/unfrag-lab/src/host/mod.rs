//! A host at one moment, made once from the files of procfs that can be read: the way into every question.
//!
//! - [`files`]: the files that are there, each read by itself. [`settings`]: what is set. [`whole`]: whether a text is there
//!   to its end.
//! - [`amounts`]: how large it is, and what of it is free.
//! - [`zone`]: a zone as the files together show it, and what follows from that. [`zones`]: how the files tell zones.
//!
//! It is here, and not where Linux is spoken: its notes are sentences with sizes, its indexes and rights are the eras',
//! and what a release is, [`crate::era`] says.
//!
//! Invariant: every number is the kernel's own, or made from free blocks by the formulas of [`unfrag_eras::stat`]; what could
//! not be read is named in [`Host::unread`], never guessed.

pub mod amounts;
pub mod files;
pub mod settings;
pub mod whole;
pub mod zone;
pub mod zones;

use crate::era::Era;
use crate::geometry::{self, Counts, Found, Geometry};
use crate::report::number::bytes;
pub use files::Unread;
use files::{Files, Lacking, Reader};
use std::collections::BTreeMap;
use std::io::{self, Read};
use unfrag_linux::content::Content;
use unfrag_linux::procfs::{BuddyInfo, MemInfo, PageTypeInfo, ZoneInfo, zoneinfo};
use unfrag_linux::recording::Snapshot;
use unfrag_linux::{Error, Result};
pub use zone::Zone;
use zones::Sources;

/// A host at one moment.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// Name of the snapshot that it is read from; empty where there is none.
    pub name: String,
    /// Sizes of its pages and huge pages, and how they are known.
    pub geometry: Geometry,
    /// Its populated zones, lowest first where zoneinfo lists them all.
    pub zones: Vec<Zone>,
    /// All zones that zoneinfo lists, as it has them; `None` where it could not be read.
    pub zoneinfo: Option<ZoneInfo>,
    /// Pageblocks and free blocks by type, as pagetypeinfo has them.
    pub types: Option<PageTypeInfo>,
    /// Free blocks as buddyinfo has them.
    pub buddy: Option<BuddyInfo>,
    /// Amounts.
    pub meminfo: Option<MemInfo>,
    /// `uname -r`, where `/proc/version` or a copy of `uname -a` says.
    pub release: Option<String>,
    /// Sysctls by their names below `vm`, and `thp_enabled` and `thp_defrag`.
    pub settings: BTreeMap<String, String>,
    /// What could not be read, and what is lacking for it.
    pub unread: Vec<Unread>,
    /// Lines that were not understood, and files that are cut off.
    pub partly: Vec<String>,
    /// What was assumed of the sizes, and what contradicts them.
    pub of_sizes: Vec<String>,
}

impl Host {
    /// Reads the files, named as below `/proc` (`sys/vm/NAME` for sysctls, `thp/enabled` and `thp/defrag` for those of
    /// sysfs). Its sizes are those that the files tell: see [`Self::measure`].
    pub fn read(reader: &mut Reader) -> Host {
        let buddy = reader.get("buddyinfo", files::buddyinfo);
        let zoneinfo = reader.get("zoneinfo", files::zoneinfo);
        let types = reader.get("pagetypeinfo", files::pagetypeinfo);
        // These tell what buddyinfo tells as well, so they are read only where it is missing too.
        let (mut unusable, mut extfrag) = (None, None);
        if buddy.is_none() && types.is_none() {
            unusable = reader.get("unusable_index", files::unusable);
            extfrag = reader.get("extfrag_index", files::extfrag);
        }
        let meminfo = reader.get("meminfo", files::meminfo);
        let partly = files::partly(&[
            ("buddyinfo", buddy.as_ref().map(|f| &f.notes)),
            ("zoneinfo", zoneinfo.as_ref().map(|f| &f.notes)),
            ("pagetypeinfo", types.as_ref().map(|f| &f.notes)),
            ("unusable_index", unusable.as_ref().map(|f| &f.notes)),
            ("extfrag_index", extfrag.as_ref().map(|f| &f.notes)),
        ]);
        let zones = zones::zones(&Sources {
            buddy: buddy.as_ref(),
            types: types.as_ref(),
            zones: zoneinfo.as_ref(),
            unusable: unusable.as_ref(),
            extfrag: extfrag.as_ref(),
        });
        let mut host = Host {
            zones,
            zoneinfo,
            types,
            buddy,
            meminfo,
            release: release(reader.files()),
            settings: settings::read(reader.files()),
            partly,
            ..Host::default()
        };
        host.measure(None, host.listed(), None);
        host
    }

    /// Reads the files of a snapshot; of what could not be read nothing is said.
    pub fn of_snapshot(snapshot: &Snapshot) -> Host {
        Host::of_recording(snapshot).0
    }

    /// Reads the files of a recording's snapshot.
    ///
    /// # Errors
    /// If one that a replay needs is there and is not what the kernel writes; names it.
    pub fn recorded(snapshot: &Snapshot) -> Result<Host> {
        let (host, errors) = Host::of_recording(snapshot);
        let is_needed = |e: &Error| {
            let names = ["buddyinfo", "zoneinfo", "pagetypeinfo"];
            names.iter().any(|n| e.file.as_deref() == Some(n.as_ref()))
        };
        errors.into_iter().find(is_needed).map_or(Ok(host), Err)
    }

    fn of_recording(snapshot: &Snapshot) -> (Host, Vec<Error>) {
        let files = OfSnapshot(snapshot);
        let mut reader = Reader::new(&files, Lacking::UNSAID);
        let mut host = Host::read(&mut reader);
        host.name.clone_from(&snapshot.name);
        (host, reader.errors)
    }

    /// The zone of this name on a node.
    pub fn zone(&self, node: u32, name: &str) -> Option<&Zone> {
        let is_it = |z: &&Zone| z.node == node && z.name == name;
        self.zones.iter().find(is_it)
    }

    /// Numbers of the CPUs that zoneinfo lists.
    pub fn cpus(&self) -> impl Iterator<Item = u32> + '_ {
        let infos = self.zones.iter().filter_map(|z| z.info.as_ref());
        let sets = infos.flat_map(|i| i.pagesets.iter().flatten());
        sets.map(|set| set.cpu)
    }

    /// Finds its sizes. `asked`: bytes in a page, which go before what the files tell. `free`: free pages of all zones.
    /// `slab_unit`: what the slabs of all caches are multiples of.
    pub fn measure(&mut self, asked: Option<u64>, free: Option<u64>, slab_unit: Option<u64>) {
        let of = |name: &'static str| self.of_all(|z| z.pages(name));
        let Found { geometry, notes } = geometry::find(&Counts {
            asked,
            meminfo: self.meminfo.as_ref(),
            managed: of("managed"),
            present: of("present"),
            free,
            pageblock_order: self
                .types
                .as_ref()
                .and_then(PageTypeInfo::told_pageblock_order),
            orders: self.zones.iter().find_map(Zone::orders),
            slab_unit,
        });
        for zone in &mut self.zones {
            zone.huge_order = geometry.huge_order;
        }
        self.geometry = geometry;
        self.of_sizes = notes;
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

    /// A sum over all zones that zoneinfo lists; `None` if one of them does not say.
    pub fn of_all(&self, of: impl Fn(&zoneinfo::Zone) -> Option<u64>) -> Option<u64> {
        let mut each = self.zoneinfo.as_ref()?.zones.iter().map(of);
        each.try_fold(0u64, |sum, n| Some(sum.saturating_add(n?)))
    }

    /// Free pages of all zones by their lists; `None` if one of them does not tell.
    pub fn listed(&self) -> Option<u64> {
        let mut each = self.zones.iter();
        let exact = each.try_fold(0u64, |sum, z| {
            Some(sum.saturating_add(z.free_pages.filter(|_| !z.is_capped)?))
        });
        exact.filter(|_| !self.zones.is_empty())
    }

    /// A line of meminfo that is in KiB, in bytes.
    pub fn meminfo_bytes(&self, name: &str) -> Option<u64> {
        Some(self.meminfo.as_ref()?.get(name)?.saturating_mul(1024))
    }

    /// Nodes of which a zone is missing, in order.
    pub fn gaps(&self) -> Vec<u32> {
        let info = self.zoneinfo.as_ref();
        info.map_or(vec![], whole::nodes_with_gaps)
    }

    /// Zones of which two files tell free memory too differently, or more of it than they have, a clause each.
    pub fn contradictions(&self) -> Vec<String> {
        /// Pages that come and go between two readings.
        const SMALL: u64 = 1024;
        let one = |zone: &Zone| {
            let listed = zone.free_pages.filter(|_| !zone.is_capped)?;
            let counted = zone.info.as_ref()?.free;
            geometry::differ(listed, counted, SMALL).then(|| {
                let size = |pages: u64| bytes(pages.saturating_mul(self.geometry.page_size));
                format!(
                    "node {}, zone {}: the free lists hold {}, zoneinfo counts {} free: the files are not of one moment",
                    zone.node,
                    zone.name,
                    size(listed),
                    size(counted)
                )
            })
        };
        let more_than_whole = |zone: &Zone| {
            let (free, managed) = (zone.free_pages?, zone.managed?);
            let size = |pages: u64| bytes(pages.saturating_mul(self.geometry.page_size));
            (free > managed).then(|| {
                format!(
                    "node {}, zone {}: {} are free, and zoneinfo says that it has {}: the files contradict each other, or are not of one moment",
                    zone.node,
                    zone.name,
                    size(free),
                    size(managed)
                )
            })
        };
        let all = self.zones.iter().filter_map(one);
        all.chain(self.zones.iter().filter_map(more_than_whole))
            .chain(self.zoneinfo.iter().flat_map(whole::notes))
            .collect()
    }
}

/// The files of a snapshot. Settings are found in the recorder's listing of them, too.
pub(crate) struct OfSnapshot<'a>(pub &'a Snapshot);

impl OfSnapshot<'_> {
    fn content(&self, name: &str) -> io::Result<&Content> {
        let content = self.0.content(name);
        content.ok_or_else(|| io::Error::other("not in the snapshot"))
    }
}

impl Files for OfSnapshot<'_> {
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        match self.content(name) {
            Ok(content) => Ok(content.bytes().into_owned()),
            Err(e) => self.0.listed(name).ok_or(e),
        }
    }

    fn stream(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        Ok(self.content(name)?.reader())
    }
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

#[cfg(test)]
mod tests;
