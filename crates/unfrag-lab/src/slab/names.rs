//! What slab caches are called: as the recorded host's slabinfo calls them, where that tells.
//!
//! An allocation by size names no cache in a trace, and kernels before 6.4 name none at all. Slabinfo has the names with the
//! size of their objects, and what each of them grew by.
//!
//! Invariant: a name is given only where one cache can be meant: the only one with objects of that size, or the one that took
//! nearly all of what those of that size grew by.

use std::collections::BTreeMap;
use unfrag_linux::procfs::SlabInfo;
use unfrag_linux::recording::Recording;

/// Share of the growth of all caches of a size from which on one of them is meant, in tenths.
const NEARLY_ALL: u64 = 9;

/// The names of a recorded host's slab caches.
#[derive(Clone, Debug, Default)]
pub struct CacheNames {
    /// By bytes of an object: names, and the objects that each grew by while it was recorded.
    by_size: BTreeMap<u64, Vec<(String, u64)>>,
}

impl CacheNames {
    /// As the first and the last slabinfo of a recording have them; none without one.
    pub fn of(rec: &Recording) -> CacheNames {
        let mut copies = rec.snapshots.iter().filter_map(|s| {
            let read = SlabInfo::parse(s.file("slabinfo")?).ok()?;
            Some(objects(&read))
        });
        let Some(first) = copies.next() else {
            return CacheNames::default();
        };
        let last = copies.next_back().unwrap_or_else(|| first.clone());
        let mut by_size: BTreeMap<u64, Vec<(String, u64)>> = BTreeMap::new();
        for ((name, size), objects) in last {
            let before = first.get(&(name.clone(), size)).copied().unwrap_or(0);
            let caches = by_size.entry(size).or_default();
            caches.push((name, objects.saturating_sub(before)));
        }
        CacheNames { by_size }
    }

    /// The cache of objects of so many bytes that were allocated from a cache of their own.
    pub fn of_objects(&self, bytes: u64) -> Option<&str> {
        self.meant(bytes, |name| !is_by_size(name, bytes))
    }

    /// The cache that a request by size is served from, whose objects have so many bytes.
    pub fn of_kmalloc(&self, bytes: u64) -> String {
        let meant = self.meant(bytes, |name| is_by_size(name, bytes));
        meant.map_or_else(|| format!("kmalloc-{}", short(bytes)), str::to_owned)
    }

    fn meant(&self, bytes: u64, is_candidate: impl Fn(&str) -> bool) -> Option<&str> {
        let all = self.by_size.get(&bytes)?.iter();
        let all: Vec<_> = all.filter(|(name, _)| is_candidate(name)).collect();
        if let [(only, _)] = all[..] {
            return Some(only);
        }
        let grown: u64 = all.iter().map(|(_, n)| n).sum();
        let (name, most) = all.into_iter().max_by_key(|(_, n)| *n)?;
        (grown > 0 && most * 10 >= grown * NEARLY_ALL).then_some(name)
    }
}

/// Objects by name and size; those of control groups, which have one name, together.
fn objects(read: &SlabInfo) -> BTreeMap<(String, u64), u64> {
    let mut all = BTreeMap::new();
    for c in &read.caches {
        let sum: &mut u64 = all.entry((c.name.clone(), c.objsize.into())).or_default();
        *sum = sum.saturating_add(c.num_objs);
    }
    all
}

/// `4k` of 4096, `192` of 192.
fn short(bytes: u64) -> String {
    match bytes {
        n if n >= 1024 && n % 1024 == 0 => format!("{}k", n / 1024),
        n => n.to_string(),
    }
}

/// Whether a cache serves requests by their size: `kmalloc-4k`, `kmalloc-cg-4k`, `msg_msg-4k`, `size-4096`.
fn is_by_size(name: &str, bytes: u64) -> bool {
    let size = name.rsplit('-').next().unwrap_or_default();
    name.contains('-') && (size == short(bytes) || size == bytes.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(caches: &[(&str, u64, u64)]) -> CacheNames {
        let mut by_size: BTreeMap<u64, Vec<(String, u64)>> = BTreeMap::new();
        for &(name, size, grown) in caches {
            by_size.entry(size).or_default().push((name.into(), grown));
        }
        CacheNames { by_size }
    }

    #[test]
    fn a_cache_is_named_only_where_one_can_be_meant() {
        let names = names(&[
            ("kmalloc-4k", 4096, 10),
            ("kmalloc-cg-4k", 4096, 0),
            ("msg_msg-4k", 4096, 4990),
            ("names_cache", 4096, 7000),
            ("kmalloc-512", 512, 30),
            ("kmalloc-cg-512", 512, 70),
            ("kmalloc-64", 64, 0),
            ("filp", 192, 5),
            ("dentry", 192, 5),
        ]);
        assert_eq!(names.of_kmalloc(4096), "msg_msg-4k");
        assert_eq!(names.of_objects(4096), Some("names_cache"));
        assert_eq!(
            names.of_kmalloc(512),
            "kmalloc-512",
            "neither took nearly all"
        );
        assert_eq!(names.of_kmalloc(64), "kmalloc-64");
        assert_eq!(names.of_objects(192), None, "two grew alike");
        assert_eq!(names.of_objects(1168), None);
    }

    #[test]
    fn without_slabinfo_memory_by_size_has_the_names_of_kernels_of_this_time() {
        let none = CacheNames::default();
        for (bytes, name) in [(8, "kmalloc-8"), (192, "kmalloc-192"), (4096, "kmalloc-4k")] {
            assert_eq!(none.of_kmalloc(bytes), name);
        }
    }
}
