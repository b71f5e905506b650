//! Places of the kernel's source by the bytes that they hold, from `/proc/allocinfo`.
//!
//! Invariant: a place is told by its file, line, module and function. Rows of one place are one.

use serde::Serialize;
use std::collections::BTreeMap;
use unfrag_linux::procfs::AllocInfo;

/// A place that allocates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallSite {
    /// As allocinfo writes it, such as `mm/slub.c:2480 func:alloc_slab_page`.
    pub place: String,
    /// Bytes that it holds.
    pub bytes: i64,
    /// Allocations that it holds.
    pub calls: u64,
}

/// A place that holds more than before, or less.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SiteGrowth {
    /// As allocinfo writes it.
    pub place: String,
    /// Bytes that it holds.
    pub bytes: i64,
    /// Bytes that it holds more.
    pub grown: i64,
}

fn by_place(info: &AllocInfo) -> BTreeMap<String, (i64, u64)> {
    let mut all: BTreeMap<String, (i64, u64)> = BTreeMap::new();
    for site in &info.sites {
        let sum = all.entry(site.tag()).or_default();
        sum.0 = sum.0.saturating_add(site.bytes);
        sum.1 = sum.1.saturating_add(site.calls);
    }
    all
}

/// All places that hold something, those with most first.
pub fn call_sites(info: &AllocInfo) -> Vec<CallSite> {
    let all = by_place(info).into_iter();
    let mut all: Vec<CallSite> = all
        .filter(|(_, (bytes, _))| *bytes > 0)
        .map(|(place, (bytes, calls))| CallSite {
            place,
            bytes,
            calls,
        })
        .collect();
    all.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.place.cmp(&b.place)));
    all
}

/// All places that hold another amount than before, those that grew most first. A place that only one of the two lists held
/// nothing at the other: its module was not there.
pub fn grown(before: &AllocInfo, after: &AllocInfo) -> Vec<SiteGrowth> {
    let (mut old, new) = (by_place(before), by_place(after));
    let mut all: Vec<SiteGrowth> = vec![];
    for (place, (bytes, _)) in new {
        let (was, _) = old.remove(&place).unwrap_or_default();
        let grown = bytes.saturating_sub(was);
        all.push(SiteGrowth {
            place,
            bytes,
            grown,
        });
    }
    all.extend(old.into_iter().map(|(place, (was, _))| SiteGrowth {
        place,
        bytes: 0,
        grown: was.saturating_neg(),
    }));
    all.retain(|s| s.grown != 0);
    all.sort_by(|a, b| b.grown.cmp(&a.grown).then_with(|| a.place.cmp(&b.place)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grew_most_stands_first() {
        let of = |rows: &str| {
            let text =
                format!("allocinfo - version: 1.0\n#     <size>  <calls> <tag info>\n{rows}");
            AllocInfo::parse(text.as_bytes()).unwrap()
        };
        let before = of("4096 1 a.c:1 func:a\n8192 2 b.c:2 func:b\n100 1 gone.c:3 [x] func:gone\n");
        let after = of("4096 1 a.c:1 func:a\n4096 1 b.c:2 func:b\n9000 1 new.c:4 func:new\n");
        let grown: Vec<(String, i64)> = grown(&before, &after)
            .into_iter()
            .map(|s| (s.place, s.grown))
            .collect();
        assert_eq!(
            grown,
            [
                ("new.c:4 func:new".to_owned(), 9000),
                ("gone.c:3 [x] func:gone".to_owned(), -100),
                ("b.c:2 func:b".to_owned(), -4096),
            ]
        );
        let largest = call_sites(&after);
        assert_eq!(largest[0].place, "new.c:4 func:new");
    }
}
