//! What a zone keeps from a request, by its `lowmem_reserve` and the zones that are there. `spec: 1.6`
//!
//! Invariant: a line that was cut off gives no number.

use super::amounts::kind_of;
use unfrag_eras::ZoneKind;
use unfrag_linux::kernel_log::{Memory, Zone};

/// The populated zones of the node above `z` that the request could use.
pub fn populated_above<'m>(
    z: &'m Zone,
    memory: &'m Memory,
    highest: ZoneKind,
) -> impl Iterator<Item = &'m Zone> {
    memory.zones.iter().filter(move |other| {
        let kind = kind_of(&other.name);
        let is_populated = other.size_kib() != Some(0);
        other.node == z.node
            && other.name != "Device"
            && kind > kind_of(&z.name)
            && kind <= highest
            && is_populated
    })
}

/// Pages that a zone keeps from the request. `lowmem_reserve` grows with each populated zone above; so the request's
/// number is the one after as many steps as it could use zones above. `spec: 1.6`
pub fn protection(z: &Zone, memory: &Memory, highest: ZoneKind) -> Option<u64> {
    let reserve = z.reserve.as_ref()?;
    let longest = memory
        .zones
        .iter()
        .filter_map(|z| Some(z.reserve.as_ref()?.len()))
        .max();
    if longest.is_some_and(|n| reserve.len() < n) {
        // The line was cut off.
        return None;
    }
    let steps = populated_above(z, memory, highest).count();
    let mut value = 0;
    let mut taken = 0;
    for &pages in reserve {
        if pages > value {
            if taken == steps {
                break;
            }
            taken += 1;
            value = pages;
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str, reserve: &[u64]) -> Zone {
        Zone {
            name: name.into(),
            kib: [("managed".to_owned(), 1000)].into(),
            reserve: Some(reserve.to_vec()),
            ..Zone::default()
        }
    }

    /// `spec: 1.6`
    #[test]
    fn protection_is_by_the_highest_zone_of_the_request() {
        let memory = Memory {
            zones: vec![
                zone("DMA", &[0, 865, 3024, 3024]),
                zone("Normal", &[0, 0, 17270, 17270]),
                zone("HighMem", &[0, 0, 0, 0]),
            ],
            ..Memory::default()
        };
        let of = |zone: usize, highest| protection(&memory.zones[zone], &memory, highest);
        assert_eq!(of(0, ZoneKind::Dma), Some(0));
        assert_eq!(of(0, ZoneKind::Normal), Some(865));
        assert_eq!(of(0, ZoneKind::Movable), Some(3024));
        assert_eq!(of(1, ZoneKind::Normal), Some(0));
        assert_eq!(of(1, ZoneKind::HighMem), Some(17270));
    }

    /// `spec: 1.6`
    #[test]
    fn zones_without_pages_do_not_count() {
        // x86-64 with 4 GiB: Normal is configured and empty.
        let memory = Memory {
            zones: vec![
                zone("DMA", &[0, 3839, 3839, 3839, 3839]),
                zone("DMA32", &[0, 0, 0, 0, 0]),
            ],
            ..Memory::default()
        };
        assert_eq!(
            protection(&memory.zones[0], &memory, ZoneKind::Normal),
            Some(3839)
        );
        assert_eq!(
            protection(&memory.zones[1], &memory, ZoneKind::Normal),
            Some(0)
        );
    }
}
