//! Which slab caches are large, and which grow.
//!
//! Invariant: sizes are of slabs (whole pages taken from the page allocator), not of objects: a cache with
//! few objects in many slabs is large, and spoils many pageblocks.

use super::evidence::Evidence;
use crate::report::number::thousands;
use serde::Serialize;
use std::collections::HashMap;
use unfrag_linux::procfs::SlabInfo;
use unfrag_linux::procfs::slabinfo::pages_of_large;

/// Caches that are shown for their growth, or size.
const SHOWN: usize = 8;

/// A slab cache.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlabCache {
    /// Name.
    pub name: String,
    /// Pages of its slabs.
    pub pages: u64,
    /// Share of its object slots that are allocated, 0 to 1. Of dentries and inodes many of these are only kept in case they
    /// are asked for again: dropping caches frees them.
    pub used: f64,
    /// Pages by which it grew since the earlier reading, negative if it shrank; `null` with only one.
    pub grown_pages: Option<i64>,
    /// Seconds between the two readings.
    pub over_seconds: Option<f64>,
}

fn sizes(info: &SlabInfo, page_size: u64) -> HashMap<&str, u64> {
    // A table that tells bytes has pages of its own.
    let table_page = info.table_page().unwrap_or(page_size);
    let pages = |c: &unfrag_linux::procfs::slabinfo::Cache| {
        let pages = c.pages((page_size / table_page.max(1)).max(1));
        match table_page == page_size {
            true => pages,
            false => pages.saturating_mul(table_page) / page_size.max(1),
        }
    };
    let mut all = HashMap::new();
    for c in &info.caches {
        let of_name: &mut u64 = all.entry(c.name.as_str()).or_default();
        *of_name = of_name.saturating_add(pages(c));
    }
    all
}

/// The caches that grew most, then the largest; `page_size` is the host's.
pub fn slabs(e: &Evidence, page_size: u64) -> Vec<SlabCache> {
    let Some(info) = &e.slabs else { return vec![] };
    let before = e
        .earlier_slabs
        .as_ref()
        .map(|(info, seconds)| (sizes(info, page_size), *seconds));
    let now = sizes(info, page_size);
    let mut all: Vec<SlabCache> = info
        .caches
        .iter()
        .map(|c| {
            let pages = now[c.name.as_str()];
            let grown = |(b, _): &(HashMap<&str, u64>, f64)| {
                let old = b.get(c.name.as_str()).copied().unwrap_or(0);
                i64::try_from(i128::from(pages) - i128::from(old)).unwrap_or(0)
            };
            SlabCache {
                name: c.name.clone(),
                pages,
                used: c.active_objs as f64 / c.num_objs.max(1) as f64,
                grown_pages: before.as_ref().map(grown),
                over_seconds: before.as_ref().map(|(_, s)| *s),
            }
        })
        .collect();
    all.sort_by(|a, b| {
        let size = |s: &SlabCache| (s.grown_pages.unwrap_or(0).max(0), s.pages);
        size(b).cmp(&size(a)).then_with(|| a.name.cmp(&b.name))
    });
    all.dedup_by(|a, b| a.name == b.name);
    // The largest are shown as well where others grew.
    let large = pages_of_large(all.iter().map(|s| s.pages));
    let mut at = 0..;
    all.retain(|s| at.next().is_some_and(|i| i < SHOWN) || s.pages >= large);
    all
}

/// All caches, the largest first, with their pages; those of one name are one. `None` without slabinfo. `page_size` is the
/// host's.
pub fn by_size(e: &Evidence, page_size: u64) -> Option<Vec<(&str, u64)>> {
    let all = sizes(e.slabs.as_ref()?, page_size);
    let mut all: Vec<(&str, u64)> = all.into_iter().collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    Some(all)
}

/// Largest caches that shrink when caches are dropped, with their pages: those of files' names and inodes, and what the
/// kernel says of the cache's name.
pub(super) fn shrinkable(e: &Evidence, page_size: u64) -> Vec<(&str, u64)> {
    /// Caches that are named.
    const NAMED: usize = 3;
    let shrinks = |name: &str| {
        name == "dentry"
            || name == "radix_tree_node"
            || name.ends_with("inode_cache")
            || name.ends_with("_inode")
            || name.contains("kmalloc-rcl-")
    };
    let all = by_size(e, page_size).unwrap_or_default();
    all.into_iter()
        .filter(|(name, pages)| shrinks(name) && *pages > 0)
        .take(NAMED)
        .collect()
}

/// A note where objects take far more than their cache's name says; `None` if none do.
pub fn debugged(e: &Evidence) -> Option<String> {
    let nominal = |name: &str| -> Option<u64> {
        let size = name.split_once("kmalloc-")?.1.rsplit('-').next()?;
        let (number, unit) = match size.strip_suffix('k') {
            Some(number) => (number, 1024),
            None => (size, 1),
        };
        number.parse::<u64>().ok()?.checked_mul(unit)
    };
    let all = &e.slabs.as_ref()?.caches;
    let (cache, size) = all
        .iter()
        .filter(|c| c.num_slabs > 0)
        .filter_map(|c| Some((c, nominal(&c.name).filter(|&n| n > 0)?)))
        .find(|(c, size)| u64::from(c.objsize) >= size + size / 2)?;
    Some(format!(
        "objects of {} take {} bytes each where {} are asked for: debugging of slabs is on (slub_debug=, KASAN), and all slabs are larger for it",
        cache.name,
        thousands(cache.objsize.into()),
        thousands(size)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use unfrag_linux::procfs::slabinfo::{Cache, LARGEST};

    fn info(rows: &[(&str, u64)]) -> SlabInfo {
        let mut text = String::from("slabinfo - version: 2.1\n# name\n");
        for (name, slabs) in rows {
            text += &format!(
                "{name:<17} {:>6} {:>6} {:>6} {:>4} {:>4} : tunables {:>4} {:>4} {:>4} : slabdata {slabs:>6} {slabs:>6} {:>6}\n",
                slabs * 21,
                slabs * 42,
                192,
                42,
                2,
                0,
                0,
                0,
                0
            );
        }
        SlabInfo::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn slabs_smaller_than_usual_are_counted_as_they_are() {
        // (objects, bytes each, a slab, pages a slab, slabs), pages of all, of 4 KiB.
        let of = [
            // 142 slabs of eight pages, and 2,864 of one, as a trace of such a host has them.
            ((4000, 4096, 8, 8, 3006), 4000),
            ((4000, 4096, 8, 8, 500), 4000),
            // Three objects of 1,168 bytes in a page, 14 in four.
            ((14 * 10 + 3 * 5, 1168, 14, 4, 15), 45),
            // An object of five pages takes eight, and no smaller slab holds it.
            ((90, 20480, 1, 8, 100), 800),
            // Slabs of one page are never smaller.
            ((10, 192, 21, 1, 3), 3),
            // More objects than slabs have room for, and none at all: of two moments.
            ((9000, 4096, 8, 8, 500), 4000),
            ((0, 4096, 8, 8, 500), 500),
            ((0, 0, 0, 0, 7), 0),
            ((u64::MAX, u32::MAX, u32::MAX, u32::MAX, u64::MAX), u64::MAX),
        ];
        for ((num_objs, objsize, objperslab, pagesperslab, num_slabs), pages) in of {
            let cache = Cache {
                num_objs,
                objsize,
                objperslab,
                pagesperslab,
                num_slabs,
                ..Cache::default()
            };
            assert_eq!(cache.pages(1), pages, "{cache:?}");
            let info = SlabInfo {
                caches: vec![cache.clone(), cache],
                ..SlabInfo::default()
            };
            let shown = slabs(
                &Evidence {
                    slabs: Some(info),
                    ..Evidence::default()
                },
                4096,
            );
            assert_eq!(
                shown[0].pages,
                pages.saturating_mul(2),
                "caches of one name are added up"
            );
        }
    }

    #[test]
    fn the_largest_caches_are_shown_whatever_grew() {
        let grew: Vec<String> = (0..12).map(|i| format!("grew-{i:02}")).collect();
        let large = [
            ("inode", 900),
            ("buffer_head", 800),
            ("node", 700),
            ("dentry", 600),
        ];
        let of = |slabs: u64| {
            let all = grew.iter().map(|name| (name.as_str(), slabs));
            let all: Vec<_> = all.chain(large).collect();
            info(&all)
        };
        let e = Evidence {
            slabs: Some(of(9)),
            earlier_slabs: Some((of(1), 60.0)),
            ..Evidence::default()
        };
        let shown = slabs(&e, 4096);
        assert_eq!(shown[0].name, "grew-00");
        for (name, _) in large {
            assert!(shown.iter().any(|s| s.name == name), "{name}: {shown:?}");
        }
        assert_eq!(shown.len(), SHOWN + LARGEST);
    }

    #[test]
    fn growing_caches_come_first() {
        let e = Evidence {
            slabs: Some(info(&[("dentry", 500), ("leak", 120)])),
            earlier_slabs: Some((info(&[("dentry", 500), ("leak", 20)]), 60.0)),
            ..Evidence::default()
        };
        let s = slabs(&e, 4096);
        assert_eq!(
            (s[0].name.as_str(), s[0].pages, s[0].grown_pages),
            ("leak", 240, Some(200))
        );
        assert_eq!((s[1].grown_pages, s[1].used), (Some(0), 0.5));
    }
}
