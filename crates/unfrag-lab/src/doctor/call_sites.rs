//! Places of the kernel's source that allocate most, and those that grow.
//!
//! Invariant: bytes are the kernel's own (`/proc/allocinfo`); a slab page and the objects in it are both counted, each at its own
//! place, so that they are no parts of one sum.

use super::evidence::Evidence;
use crate::account::sites::{call_sites as all_sites, grown};
use serde::Serialize;
use std::collections::HashMap;

/// Places that are shown.
const SHOWN: usize = 8;

/// A place that allocates.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Place {
    /// As allocinfo writes it, such as `mm/slub.c:2480 func:alloc_slab_page`.
    pub place: String,
    /// Bytes that it holds.
    pub bytes: i64,
    /// Allocations that it holds.
    pub calls: u64,
    /// Bytes by which that grew since the earlier reading, negative if it shrank; `null` with only one.
    pub grown_bytes: Option<i64>,
    /// Seconds between the two readings.
    pub over_seconds: Option<f64>,
}

/// The places that grew most, then the largest; `None` without allocinfo.
pub(super) fn call_sites(e: &Evidence) -> Option<Vec<Place>> {
    let info = e.sites.as_ref()?;
    let earlier = e.earlier_sites.as_ref();
    let more: Option<HashMap<String, i64>> = earlier.map(|(before, _)| {
        let grown = grown(before, info).into_iter();
        grown.map(|s| (s.place, s.grown)).collect()
    });
    let mut all: Vec<Place> = all_sites(info)
        .into_iter()
        .map(|s| Place {
            grown_bytes: more.as_ref().map(|m| m.get(&s.place).copied().unwrap_or(0)),
            over_seconds: earlier.map(|(_, seconds)| *seconds),
            place: s.place,
            bytes: s.bytes,
            calls: s.calls,
        })
        .collect();
    // Sorted by what they hold already.
    all.sort_by_key(|p| std::cmp::Reverse(p.grown_bytes.unwrap_or(0).max(0)));
    all.truncate(SHOWN);
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use unfrag_linux::procfs::AllocInfo;

    #[test]
    fn what_grew_stands_before_what_is_large() {
        let of = |a: i64| {
            let text = format!(
                "allocinfo - version: 1.0\n#     <size>  <calls> <tag info>\n{a:>12}        1 a.c:1 func:a\n       65536        2 b.c:2 func:b\n"
            );
            AllocInfo::parse(text.as_bytes()).unwrap()
        };
        let mut e = Evidence {
            sites: Some(of(8192)),
            ..Evidence::default()
        };
        let first = |e: &Evidence| call_sites(e).unwrap()[0].clone();
        assert_eq!(first(&e).place, "b.c:2 func:b");
        e.earlier_sites = Some((of(4096), 60.0));
        let place = first(&e);
        assert_eq!(place.place, "a.c:1 func:a");
        assert_eq!(
            (place.grown_bytes, place.over_seconds),
            (Some(4096), Some(60.0))
        );
        assert_eq!(call_sites(&Evidence::default()), None);
    }
}
