//! Whether a zone is short of memory, and whether slab that cannot be reclaimed is why.
//!
//! Invariant: without watermarks nothing is said of a shortage.

use crate::host::{Host, Zone};
use unfrag_eras::ZoneKind;

/// The lowest watermark that a zone's free memory is below.
pub(super) fn below(zone: &Zone) -> Option<&'static str> {
    let free = zone.free_pages?;
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
pub(super) fn filled_by_slab(host: &Host, zone: &Zone) -> Option<u64> {
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
    if !is_low(&zone.name) {
        return None;
    }
    let low = |of_node: bool| -> u64 {
        let zones = host.zones.iter();
        zones
            .filter(|z| is_low(&z.name) && (!of_node || z.node == zone.node))
            .filter_map(|z| z.managed)
            .fold(0, u64::saturating_add)
    };
    let of_node = host.zones.iter().filter(|z| z.node == zone.node);
    let mut infos = of_node.filter_map(|z| z.info.as_ref());
    let by_node = infos.find_map(|z| z.per_node.as_ref()?.get("nr_slab_unreclaimable"));
    match by_node {
        Some(pages) => half(pages, low(true)),
        None => half(
            host.geometry.pages(host.meminfo_bytes("SUnreclaim")?),
            low(false),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unfrag_linux::procfs::MemInfo;

    fn zone(free: u64) -> Zone {
        Zone {
            name: "Normal".into(),
            free_pages: Some(free),
            managed: Some(200_000),
            marks: Some([1000, 1250, 1500]),
            ..Zone::default()
        }
    }

    #[test]
    fn below_min_is_called_below_min() {
        assert_eq!(below(&zone(999)), Some("min"));
        assert_eq!(below(&zone(1249)), Some("low"));
        assert_eq!(below(&zone(1250)), None);
        let unknown = Zone {
            marks: None,
            ..zone(0)
        };
        assert_eq!(below(&unknown), None);
    }

    #[test]
    fn slab_is_the_cause_where_it_fills_a_short_zone() {
        let host = Host::default();
        let with = |free, slab| Zone {
            unreclaimable_slab: Some(slab),
            ..zone(free)
        };
        assert_eq!(filled_by_slab(&host, &with(900, 150_000)), Some(150_000));
        assert_eq!(filled_by_slab(&host, &with(900, 90_000)), None);
        assert_eq!(filled_by_slab(&host, &with(9000, 150_000)), None);
        let host = Host {
            meminfo: Some(MemInfo::parse(b"SUnreclaim:       600000 kB\n").unwrap()),
            ..host
        };
        assert_eq!(filled_by_slab(&host, &zone(900)), Some(150_000));
    }
}
