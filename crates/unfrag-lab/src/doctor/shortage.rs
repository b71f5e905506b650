//! Whether a zone is short of memory, and whether slab that cannot be reclaimed is why.
//!
//! Invariant: without watermarks nothing is said of a shortage.

use super::evidence::Evidence;
use super::zones::ZoneFacts;
use crate::geometry::Geometry;
use crate::inspect::whole;
use unfrag::ZoneKind;

/// The lowest watermark that a zone's free memory is below.
pub(super) fn below(zone: &ZoneFacts) -> Option<&'static str> {
    let free = zone.row.free_pages?;
    let [min, low, _] = zone.marks?;
    match free {
        free if free < min => Some("min"),
        free if free < low => Some("low"),
        _ => None,
    }
}

/// Pages of slab that cannot be reclaimed, if they fill more than half of a zone that is below its low watermark.
///
/// Kernels to 4.7 count them by zone, later ones by node, and meminfo for the whole host. Slab is in low memory alone, so
/// the larger counts are held against that.
pub(super) fn filled_by_slab(e: &Evidence, zone: &ZoneFacts, geometry: &Geometry) -> Option<u64> {
    below(zone)?;
    let half = |pages: u64, of: u64| (pages > of / 2).then_some(pages);
    if let Some(pages) = zone.unreclaimable_slab {
        return half(pages, zone.managed?);
    }
    let is_low = |name: &str| {
        !matches!(
            ZoneKind::from_name(name),
            Some(ZoneKind::HighMem | ZoneKind::Movable) | None
        )
    };
    if !is_low(&zone.row.zone) {
        return None;
    }
    let zones = || e.zones.iter().flat_map(|i| &i.zones);
    let low = |of_node: bool| -> u64 {
        zones()
            .filter(|z| is_low(&z.name) && (!of_node || z.node == zone.row.node))
            .filter_map(|z| whole::managed(e.zones.as_ref()?, z))
            .fold(0, u64::saturating_add)
    };
    let by_node = zones()
        .filter(|z| z.node == zone.row.node)
        .find_map(|z| z.per_node.as_ref()?.get("nr_slab_unreclaimable"));
    match by_node {
        Some(pages) => half(pages, low(true)),
        None => half(geometry.pages(e.meminfo_bytes("SUnreclaim")?), low(false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::free_rows::FreeRow;
    use unfrag_linux::procfs::MemInfo;

    fn zone(free: u64) -> ZoneFacts {
        ZoneFacts {
            row: FreeRow {
                zone: "Normal".into(),
                free_pages: Some(free),
                ..FreeRow::default()
            },
            managed: Some(200_000),
            marks: Some([1000, 1250, 1500]),
            ..ZoneFacts::default()
        }
    }

    #[test]
    fn below_min_is_called_below_min() {
        assert_eq!(below(&zone(999)), Some("min"));
        assert_eq!(below(&zone(1249)), Some("low"));
        assert_eq!(below(&zone(1250)), None);
        let unknown = ZoneFacts {
            marks: None,
            ..zone(0)
        };
        assert_eq!(below(&unknown), None);
    }

    #[test]
    fn slab_is_the_cause_where_it_fills_a_short_zone() {
        let (e, g) = (Evidence::default(), Geometry::default());
        let with = |free, slab| ZoneFacts {
            unreclaimable_slab: Some(slab),
            ..zone(free)
        };
        assert_eq!(filled_by_slab(&e, &with(900, 150_000), &g), Some(150_000));
        assert_eq!(filled_by_slab(&e, &with(900, 90_000), &g), None);
        assert_eq!(filled_by_slab(&e, &with(9000, 150_000), &g), None);
        let e = Evidence {
            meminfo: Some(MemInfo::parse(b"SUnreclaim:       600000 kB\n").unwrap()),
            ..e
        };
        assert_eq!(filled_by_slab(&e, &zone(900), &g), Some(150_000));
    }
}
