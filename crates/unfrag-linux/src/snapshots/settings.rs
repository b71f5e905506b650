//! Settings of the kernel as people paste them: with their paths before the values, as `grep . FILES` prints them, or
//! below the command that printed the values alone.
//!
//! A setting has the name of its file in a snapshot: `sys/vm/NAME` of `/proc/sys/vm`, `thp/NAME` of
//! `/sys/kernel/mm/transparent_hugepage` and `sysfs/PATH` of `/sys/kernel/mm/hugepages`.
//!
//! Invariant: a value is taken only where its setting is named, and where it has the form of that setting's values.

/// Directories of settings, and what stands for them in a snapshot.
const PLACES: [(&str, &str); 3] = [
    ("/proc/sys/vm/", "sys/vm/"),
    ("/sys/kernel/mm/transparent_hugepage/", "thp/"),
    ("/sys/kernel/mm/hugepages/", "sysfs/kernel/mm/hugepages/"),
];

/// Settings of `vm` that are numbers, and known by their name alone.
pub(crate) const NUMBERS_OF_VM: [&str; 13] = [
    "min_free_kbytes",
    "watermark_scale_factor",
    "watermark_boost_factor",
    "compaction_proactiveness",
    "compact_unevictable_allowed",
    "extfrag_threshold",
    "defrag_mode",
    "nr_hugepages",
    "nr_overcommit_hugepages",
    "vfs_cache_pressure",
    "percpu_pagelist_high_fraction",
    "swappiness",
    "zone_reclaim_mode",
];

/// Files below /sys/kernel/mm that hold settings which the recorder takes.
pub(crate) const OF_MM: &[&str] = &[
    "lru_gen/enabled",
    "lru_gen/min_ttl_ms",
    "transparent_hugepage/defrag",
    "transparent_hugepage/enabled",
    "transparent_hugepage/shmem_enabled",
    "transparent_hugepage/khugepaged/alloc_sleep_millisecs",
    "transparent_hugepage/khugepaged/defrag",
    "transparent_hugepage/khugepaged/max_ptes_none",
    "transparent_hugepage/khugepaged/pages_to_scan",
    "transparent_hugepage/khugepaged/scan_sleep_millisecs",
];

/// Whether a file below /sys/kernel/mm is one of those settings.
pub(crate) fn is_setting(name: &str) -> bool {
    let size = name
        .strip_prefix("transparent_hugepage/hugepages-")
        .and_then(|rest| rest.strip_suffix("kB/enabled"));
    OF_MM.contains(&name)
        || size.is_some_and(|s| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether a setting of `vm` is known by its name alone.
fn is_of_vm(name: &str) -> bool {
    NUMBERS_OF_VM.contains(&name) || name == "lowmem_reserve_ratio"
}

/// A setting and its value on one line.
pub(super) fn stated(text: &str) -> Option<(String, String)> {
    let (path, value) = text.split_once([':', '='])?;
    let (path, value) = (path.trim(), value.trim());
    let name = of_path(path).or_else(|| {
        // Below its directory, `grep . *` prints the name alone.
        let inner = path.strip_prefix("./").unwrap_or(path);
        match inner.rsplit('/').next()? {
            "enabled" | "defrag" | "shmem_enabled" if is_choice(value) => {
                Some(format!("thp/{inner}"))
            }
            _ if is_of_vm(inner) => Some(format!("sys/vm/{inner}")),
            _ => None,
        }
    })?;
    // `sysctl -a` and `grep . /proc/sys/vm/*` make a file of their own.
    let of_listing = path.starts_with("/proc/sys/vm/");
    (!of_listing && fits(&name, value)).then(|| (name, value.to_owned()))
}

/// The settings whose files a line names, in order.
pub(super) fn named(text: &str) -> Vec<String> {
    let mut all = vec![];
    let separators = |c: char| c.is_whitespace() || "()<>\"'`;|&".contains(c);
    let is_sysctl = text.contains("sysctl -n ");
    for word in text.split(separators) {
        let word = word.trim_end_matches([':', '.']);
        let of_sysctl = word.strip_prefix("vm.").filter(|_| is_sysctl);
        if let Some(name) = of_sysctl {
            all.push(format!("sys/vm/{name}"));
        } else {
            all.extend(alternatives(word).iter().filter_map(|w| of_path(w)));
        }
    }
    all
}

/// `a{b,c}d` as a shell takes it.
fn alternatives(word: &str) -> Vec<String> {
    let parts = word
        .split_once('{')
        .and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    match parts {
        Some((before, (inner, after))) => inner
            .split(',')
            .map(|one| format!("{before}{one}{after}"))
            .collect(),
        None => vec![word.to_owned()],
    }
}

/// The name of the setting with this path.
fn of_path(path: &str) -> Option<String> {
    PLACES.iter().find_map(|(directory, place)| {
        let at = path.find(directory)?;
        let name = &path[at + directory.len()..];
        let fits = |b: u8| b.is_ascii_alphanumeric() || b"_-/".contains(&b);
        let is_name = !name.is_empty() && !name.ends_with('/') && name.bytes().all(fits);
        is_name.then(|| format!("{place}{name}"))
    })
}

/// Whether `value` is one of a choice, such as `always [madvise] never`.
fn is_choice(value: &str) -> bool {
    let mut words = value.split_ascii_whitespace();
    let is_word = |w: &str| {
        w.bytes()
            .all(|b| b.is_ascii_lowercase() || b"_+[]".contains(&b))
    };
    value.contains('[') && value.contains(']') && words.all(is_word)
}

/// Whether `value` has the form of the values of `name`.
pub(super) fn fits(name: &str, value: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or_default();
    let is_choice_of =
        ["enabled", "defrag", "shmem_enabled"].contains(&last) && !name.contains("khugepaged");
    if is_choice_of {
        return is_choice(value);
    }
    let mut words = value.split_ascii_whitespace();
    let are_numbers = words.all(|w| {
        w.strip_prefix('-')
            .unwrap_or(w)
            .bytes()
            .all(|b| b.is_ascii_digit())
    });
    !value.trim().is_empty() && (are_numbers || is_choice(value))
}
