//! What a diagnosis is made from: the files of procfs that could be read, parsed, and the names of
//! those that could not.
//!
//! Invariant: nothing is guessed. A file that is missing is [`Unread`], with the reason and with
//! what the diagnosis lacks for it; a file with content that no kernel writes is an error.

use std::collections::BTreeMap;
use std::io;

use crate::error::{Error, Result};
use crate::inspect::{Unread, cause};
use unfrag_linux::kpageflags::PageFlags;
use unfrag_linux::procfs::{BuddyInfo, MemInfo, PageTypeInfo, SlabInfo, VmStat, ZoneInfo, uptime};
use unfrag_linux::recording::Snapshot;

/// Sysctls of `vm` that a diagnosis uses; read as `sys/vm/NAME`.
pub const SYSCTLS: [&str; 10] = [
    "min_free_kbytes",
    "watermark_scale_factor",
    "watermark_boost_factor",
    "compaction_proactiveness",
    "compact_unevictable_allowed",
    "extfrag_threshold",
    "defrag_mode",
    "nr_hugepages",
    "vfs_cache_pressure",
    "percpu_pagelist_high_fraction",
];

/// What was read of one host at one moment.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Where it came from.
    pub source: String,
    /// `uname -r`, where `/proc/version` says.
    pub release: Option<String>,
    /// Free blocks.
    pub buddy: Option<BuddyInfo>,
    /// Watermarks and per-CPU lists.
    pub zones: Option<ZoneInfo>,
    /// Pageblocks by type.
    pub types: Option<PageTypeInfo>,
    /// Amounts.
    pub meminfo: Option<MemInfo>,
    /// Counters since boot.
    pub vmstat: Option<VmStat>,
    /// An earlier reading of the counters, and the seconds between the two.
    pub earlier: Option<(VmStat, f64)>,
    /// Slab caches.
    pub slabs: Option<SlabInfo>,
    /// An earlier reading of them, and the seconds between the two.
    pub earlier_slabs: Option<(SlabInfo, f64)>,
    /// Flags of each page frame.
    pub flags: Option<PageFlags>,
    /// Seconds since boot.
    pub uptime: Option<f64>,
    /// Sysctls by their names below `vm`, and `thp_enabled` and `thp_defrag`.
    pub settings: BTreeMap<String, String>,
    /// What could not be read, and what is lacking for it.
    pub unread: Vec<Unread>,
}

impl Evidence {
    /// Reads the files that `read` gives, named as below `/proc` (`sys/vm/NAME` for sysctls,
    /// `thp/enabled` and `thp/defrag` for those of sysfs).
    ///
    /// # Errors
    /// If a file is not what the kernel writes, or if none of those about memory can be read.
    pub fn read(source: &str, read: impl Fn(&str) -> io::Result<Vec<u8>>) -> Result<Evidence> {
        let mut e = Evidence {
            source: source.to_owned(),
            ..Evidence::default()
        };
        let mut get = |file: &str, lacking: &str| match read(file) {
            // Some sandboxes give an empty file in place of a forbidden one.
            Ok(content) if !content.is_empty() => Some(content),
            Ok(_) => {
                e.unread.push(unread(file, "empty", lacking));
                None
            }
            Err(why) => {
                e.unread.push(unread(file, &cause(&why), lacking));
                None
            }
        };
        let buddy = get("buddyinfo", "free blocks by order");
        let zones = get(
            "zoneinfo",
            "watermarks, so whether atomic requests are at risk",
        );
        let types = get(
            "pagetypeinfo",
            "pageblocks by type, and the high-atomic reserve",
        );
        let meminfo = get("meminfo", "amounts of page cache and slab");
        let vmstat = get("vmstat", "stalls, failures and compaction since boot");
        let slabs = get("slabinfo", "slab caches by name");
        let flags = get(
            "kpageflags",
            "what stands in the way of each huge page, and the forecast",
        );
        let parsed = |file: &'static str| move |e: unfrag_linux::Error| e.in_file(file.as_ref());
        e.buddy = buddy
            .map(|b| BuddyInfo::parse(&b).map_err(parsed("buddyinfo")))
            .transpose()?;
        e.zones = zones
            .map(|b| ZoneInfo::parse(&b).map_err(parsed("zoneinfo")))
            .transpose()?;
        e.types = types
            .map(|b| PageTypeInfo::parse(&b).map_err(parsed("pagetypeinfo")))
            .transpose()?;
        e.meminfo = meminfo
            .map(|b| MemInfo::parse(&b).map_err(parsed("meminfo")))
            .transpose()?;
        e.vmstat = vmstat
            .map(|b| VmStat::parse(&b).map_err(parsed("vmstat")))
            .transpose()?;
        e.slabs = slabs
            .map(|b| SlabInfo::parse(&b).map_err(parsed("slabinfo")))
            .transpose()?;
        e.flags = flags
            .map(|b| PageFlags::parse(&b).map_err(parsed("kpageflags")))
            .transpose()?;
        // These alone are no evidence of memory, so their absence is not reported.
        let uptime = read("uptime").ok().filter(|b| !b.is_empty());
        e.uptime = uptime
            .map(|b| uptime::parse(&b).map_err(parsed("uptime")))
            .transpose()?
            .map(|ns| ns as f64 / 1e9);
        e.release = read("version").ok().and_then(|b| release(&b));
        e.read_settings(&read);
        if e.buddy.is_none() && e.meminfo.is_none() && e.vmstat.is_none() && e.zones.is_none() {
            return Err(Error::lacking(
                "none of buddyinfo, zoneinfo, meminfo and vmstat can be read there",
            )
            .help("give /proc, a directory with a copy of it, or an .unfrag file"));
        }
        Ok(e)
    }

    /// Reads the files of a snapshot.
    ///
    /// # Errors
    /// As [`Evidence::read`].
    pub fn of_snapshot(source: &str, snapshot: &Snapshot) -> Result<Evidence> {
        Evidence::read(source, |name| match snapshot.file(name) {
            Some(content) => Ok(content.to_vec()),
            None => Err(io::Error::other("not in the snapshot")),
        })
    }

    /// Takes the release and the settings from another snapshot of the same host, where they are missing.
    pub fn learn(&mut self, other: &Snapshot) {
        let read = |name: &str| {
            let content = other.file(name).ok_or(io::ErrorKind::NotFound)?;
            Ok(content.to_vec())
        };
        if self.release.is_none() {
            self.release = read("version").ok().and_then(|b| release(&b));
        }
        if self.settings.is_empty() {
            self.read_settings(&read);
        }
    }

    fn read_settings(&mut self, read: &impl Fn(&str) -> io::Result<Vec<u8>>) {
        let text = |name: &str| {
            let bytes = read(name).ok()?;
            Some(String::from_utf8_lossy(&bytes).trim().to_owned())
        };
        // As `grep . /proc/sys/vm/*` writes them, and as a recording keeps them.
        for line in text("sysctl-vm").unwrap_or_default().lines() {
            if let Some((path, value)) = line.split_once(['=', ':'])
                && let Some(name) = path.trim().rsplit(['/', '.']).next()
                && SYSCTLS.contains(&name)
            {
                self.settings
                    .insert(name.to_owned(), value.trim().to_owned());
            }
        }
        for name in SYSCTLS {
            if let Some(value) = text(&format!("sys/vm/{name}")) {
                self.settings.insert(name.to_owned(), value);
            }
        }
        for name in ["enabled", "defrag"] {
            // `always [madvise] never`: the one in force is in brackets.
            let chosen = text(&format!("thp/{name}"))
                .and_then(|v| Some(v.split_once('[')?.1.split_once(']')?.0.to_owned()));
            if let Some(value) = chosen {
                self.settings.insert(format!("thp_{name}"), value);
            }
        }
    }

    /// A sysctl's value as a number.
    pub fn setting(&self, name: &str) -> Option<u64> {
        self.settings.get(name)?.parse().ok()
    }

    /// A counter of vmstat.
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.vmstat.as_ref()?.get(name)
    }

    /// A line of meminfo that is in KiB, in base pages.
    pub fn meminfo_pages(&self, name: &str) -> Option<u64> {
        Some(self.meminfo.as_ref()?.get(name)? / 4)
    }

    /// Adds an earlier reading of the counters.
    pub fn since(&mut self, earlier: VmStat, seconds: f64) {
        if seconds > 0.0 {
            self.earlier = Some((earlier, seconds));
        }
    }
}

fn unread(file: &str, why: &str, lacking: &str) -> Unread {
    Unread {
        file: file.to_owned(),
        why: format!("{why}: {lacking} not known"),
    }
}

/// The release in the text of `/proc/version`.
fn release(version: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(version).ok()?;
    let rest = text.strip_prefix("Linux version ")?;
    Some(rest.split_whitespace().next()?.to_owned())
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
    fn missing_files_are_named() {
        let e = Evidence::read("here", from(&[("meminfo", "MemFree:        4096 kB\n")])).unwrap();
        assert_eq!(e.meminfo_pages("MemFree"), Some(1024));
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
