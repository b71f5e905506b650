//! How large a host is, and what of it is free: memory in its zones, and memory that no zone manages yet.
//!
//! Some hosts boot with part of their memory outside the zones and add it on demand, in whole pageblocks: MemTotal and
//! MemFree count it, no zone does. Zones that are missing from a text look alike, so the memory counts only where each file
//! that tells of it agrees.
//!
//! Invariant: no more is counted as free than MemFree has beyond the zones, nor than the zone has room for. Every command that
//! says how large a host is says it by [`Amounts`].

use super::{Host, Zone};
use crate::report::number::bytes;
use serde::Serialize;

/// Memory that no zone manages, as far as the files tell where it belongs and whether it is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// Free, at least a huge page of it, of the zone of this number in the host.
    Free {
        /// The zone.
        at: usize,
        /// Pages.
        pages: u64,
    },
    /// Of the zone of this number, and not known to be free.
    Unknown {
        /// The zone.
        at: usize,
    },
    /// All of it is in use.
    InUse,
    /// No zone here has room for it: one may be missing.
    Elsewhere,
}

/// What there is of such memory, and its pages; `None` where there is none, as far as meminfo tells.
pub fn late(host: &Host) -> Option<(Late, u64)> {
    let Host {
        zones, geometry, ..
    } = host;
    let late = late_pages(host)?;
    let room = |z: &Zone| Some(z.told("present")?.saturating_sub(z.told("managed")?));
    let has_gaps = !host.gaps().is_empty();
    let at = (0..zones.len()).max_by_key(|&i| room(&zones[i]));
    let at = at.filter(|&at| !has_gaps && room(&zones[at]) >= Some(late));
    let what = match (at, free_beyond_zones(host)) {
        (None, _) => Late::Elsewhere,
        (Some(at), None) => Late::Unknown { at },
        (Some(at), Some(beyond)) => match late.min(beyond) {
            pages if pages < geometry.huge_page_pages() => Late::InUse,
            pages => Late::Free { at, pages },
        },
    };
    Some((what, late))
}

/// Pages that MemTotal counts and no zone manages; `None` if no file tells, or a difference of two moments explains them.
fn late_pages(host: &Host) -> Option<u64> {
    let geometry = &host.geometry;
    let managed = host.of_all(|z| z.pages("managed"))?;
    let late = geometry
        .pages(host.meminfo_bytes("MemTotal")?)
        .saturating_sub(managed);
    (late >= managed / 100 && late >= geometry.huge_page_pages()).then_some(late)
}

/// Free pages that MemFree counts and no zone has.
fn free_beyond_zones(host: &Host) -> Option<u64> {
    // Files of two moments: the larger one leaves less.
    let of_zone = |z: &Zone| Some(z.info.as_ref()?.free.max(z.free_pages.unwrap_or(0)));
    let in_zones: Option<u64> = host.zones.iter().map(of_zone).sum();
    let free = host.geometry.pages(host.meminfo_bytes("MemFree")?);
    Some(free.saturating_sub(in_zones?))
}

/// How large a host is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amounts {
    /// All, as MemTotal has it; `null` without meminfo.
    pub total_bytes: Option<u64>,
    /// Memory that its zones manage; `null` where MemTotal does not agree that these are all.
    pub in_zones_bytes: Option<u64>,
    /// What of that is free; `null` where a zone does not tell.
    pub free_in_zones_bytes: Option<u64>,
    /// Memory that MemTotal counts and no zone manages yet: the kernel adds it when it is asked for. `null` where it is not
    /// known to be free: then a zone may be missing as well.
    pub unmanaged_bytes: Option<u64>,
    /// What of that is free; `null` where that is not known.
    pub unmanaged_free_bytes: Option<u64>,
}

impl Amounts {
    /// Those of a host.
    pub fn of(host: &Host) -> Amounts {
        let size = |pages: u64| pages.saturating_mul(host.geometry.page_size);
        let total = host.meminfo_bytes("MemTotal");
        let managed = host.of_all(|z| z.pages("managed")).filter(|&n| n > 0);
        let unmanaged = match late(host) {
            Some((Late::Free { pages, .. }, all)) => Some((all, pages)),
            // A zone that is missing looks alike.
            Some(_) => None,
            None => (managed.is_some() && total.is_some()).then_some((0, 0)),
        };
        let agrees = unmanaged.is_some() && host.gaps().is_empty();
        let unmanaged = unmanaged.filter(|_| agrees);
        Amounts {
            total_bytes: total,
            in_zones_bytes: managed.filter(|_| agrees).map(size),
            free_in_zones_bytes: host.listed().filter(|_| agrees).map(size),
            unmanaged_bytes: unmanaged.map(|(all, _)| size(all)),
            unmanaged_free_bytes: unmanaged.map(|(_, free)| size(free)),
        }
    }

    /// Memory that the kernel adds when it is asked for, as far as it is known to be free.
    pub fn added_when_asked(&self) -> Option<u64> {
        self.unmanaged_free_bytes.filter(|&n| n > 0)
    }

    /// Free memory, in zones and beside them; `None` where it is not told.
    pub fn free(&self) -> Option<u64> {
        let beside = self.unmanaged_free_bytes.unwrap_or(0);
        Some(self.free_in_zones_bytes?.saturating_add(beside))
    }

    /// The whole, as a clause: `23.5 GiB`, or `8.3 GiB in zones + 15.2 GiB that the kernel adds when asked`; `None` where it
    /// is not told.
    pub fn whole(&self) -> Option<String> {
        let zones = bytes(self.in_zones_bytes.or(self.total_bytes)?);
        Some(match self.beside() {
            None => zones,
            Some(beside) => format!("{zones} in zones + {beside}"),
        })
    }

    /// What no zone manages, as a clause; `None` where there is none.
    pub fn beside(&self) -> Option<String> {
        let all = self.unmanaged_bytes.filter(|&n| n > 0)?;
        let what = match self.unmanaged_free_bytes {
            Some(free) if free < all => format!(
                "that the kernel adds when asked ({} of it free)",
                bytes(free)
            ),
            _ => "that the kernel adds when asked".into(),
        };
        Some(format!("{} {what}", bytes(all)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_has_one_size_in_words() {
        let gib = |n: u64| Some(n << 30);
        let of = |unmanaged, free| Amounts {
            total_bytes: gib(9),
            in_zones_bytes: gib(8),
            free_in_zones_bytes: gib(3),
            unmanaged_bytes: unmanaged,
            unmanaged_free_bytes: free,
        };
        let only_total = Amounts {
            total_bytes: gib(9),
            ..Amounts::default()
        };
        assert_eq!(only_total.whole().as_deref(), Some("9 GiB"));
        assert_eq!(only_total.free(), None);
        for (amounts, whole, free) in [
            (of(gib(0), gib(0)), "8 GiB", 3),
            (
                of(gib(15), gib(15)),
                "8 GiB in zones + 15 GiB that the kernel adds when asked",
                18,
            ),
            (
                of(gib(15), gib(5)),
                "8 GiB in zones + 15 GiB that the kernel adds when asked (5 GiB of it free)",
                8,
            ),
        ] {
            assert_eq!(amounts.whole().as_deref(), Some(whole));
            assert_eq!(amounts.free(), gib(free), "{whole}");
        }
        assert_eq!(Amounts::default().whole(), None);
    }
}
