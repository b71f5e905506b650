//! Settings of a host: sysctls of `vm`, and the state of transparent huge pages.
//!
//! Invariant: a setting is known only where a file states it. A listing is taken to be whole, so that what it lacks is a
//! setting that the kernel does not have, only where it has those that every kernel has.

use super::files::{self, Files, Unread};
use std::collections::BTreeMap;

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

/// Sysctls that every kernel has.
const OF_EVERY_KERNEL: [&str; 2] = ["min_free_kbytes", "vfs_cache_pressure"];

/// The state of transparent huge pages: files of sysfs, and what they are called among the settings.
const THP: [(&str, &str); 2] = [("thp/enabled", "thp_enabled"), ("thp/defrag", "thp_defrag")];

/// The settings that the files state: sysctls by their names below `vm`, and `thp_enabled` and `thp_defrag`.
pub fn read(from: &dyn Files) -> BTreeMap<String, String> {
    let text = |name: &str| files::text(from, name);
    let mut settings = BTreeMap::new();
    // As `grep . /proc/sys/vm/*` writes them, and as a recording keeps them.
    for line in text("sysctl-vm").unwrap_or_default().lines() {
        if let Some((path, value)) = line.split_once(['=', ':'])
            && let Some(name) = path.trim().rsplit(['/', '.']).next()
            && SYSCTLS.contains(&name)
        {
            settings.insert(name.to_owned(), value.trim().to_owned());
        }
    }
    for name in SYSCTLS {
        if let Some(value) = text(&format!("sys/vm/{name}")) {
            settings.insert(name.to_owned(), value);
        }
    }
    for (file, name) in THP {
        // `always [madvise] never`: the one in force is in brackets.
        let chosen =
            text(file).and_then(|v| Some(v.split_once('[')?.1.split_once(']')?.0.to_owned()));
        if let Some(value) = chosen {
            settings.insert(name.to_owned(), value);
        }
    }
    settings
}

/// Whether the kernel may have a sysctl: it was read, or the listing is none of all.
pub fn may_have(settings: &BTreeMap<String, String>, name: &str) -> bool {
    let is_whole = OF_EVERY_KERNEL.iter().all(|n| settings.contains_key(*n));
    settings.contains_key(name) || !is_whole
}

/// What was not stated, and what is not judged for it.
pub fn unread(settings: &BTreeMap<String, String>) -> Vec<Unread> {
    let mut all = vec![];
    let missing: Vec<&str> = SYSCTLS
        .into_iter()
        .filter(|name| !settings.contains_key(*name) && may_have(settings, name))
        .collect();
    let lacks_all = SYSCTLS.iter().all(|name| !settings.contains_key(*name));
    if lacks_all {
        all.push(Unread {
            file: "sysctls".into(),
            why: "not there: settings of vm not known, so not judged".into(),
        });
    } else if !missing.is_empty() {
        all.push(Unread {
            file: "sysctls".into(),
            why: format!(
                "vm.{} not there: not known, so not judged",
                missing.join(", vm.")
            ),
        });
    }
    let missing: Vec<&str> = THP
        .into_iter()
        .filter(|(_, name)| !settings.contains_key(*name))
        .map(|(file, _)| file.trim_start_matches("thp/"))
        .collect();
    if !missing.is_empty() {
        all.push(Unread {
            file: format!("transparent_hugepage/{}", missing.join(", ")),
            why: "not there: whether faults wait for huge pages (THP) not known, so not judged"
                .into(),
        });
    }
    all
}
