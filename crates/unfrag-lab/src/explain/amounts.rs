//! Amounts of a memory report that several questions ask for.
//!
//! Invariant: sums saturate; what the text does not tell is `None`.

use unfrag_eras::ZoneKind;
use unfrag_linux::kernel_log::Memory;

/// KiB of a page in a memory report; `None` if it does not tell.
pub fn page_kib(memory: &Memory) -> Option<u64> {
    memory
        .page_kib()
        .filter(|k| k.is_power_of_two() && *k <= 1024)
        .or_else(|| {
            let pages = *memory.pages.get("free").filter(|n| **n > 0)?;
            let kib: u64 = memory
                .zones
                .iter()
                .filter_map(|z| z.kib("free"))
                .fold(0, u64::saturating_add);
            [4, 8, 16, 64].into_iter().find(|page| {
                let expected = pages.saturating_mul(*page);
                kib > 0 && expected.abs_diff(kib) <= kib / 32
            })
        })
}

/// The zone of a name.
pub fn kind_of(name: &str) -> ZoneKind {
    match name {
        "DMA" => ZoneKind::Dma,
        "DMA32" => ZoneKind::Dma32,
        "HighMem" => ZoneKind::HighMem,
        // Device memory is for no ordinary request.
        "Movable" | "Device" => ZoneKind::Movable,
        _ => ZoneKind::Normal,
    }
}

/// The sum of an amount over all zones, in KiB.
pub fn sum(memory: &Memory, name: &str) -> u64 {
    memory
        .zones
        .iter()
        .filter_map(|z| z.kib(name))
        .fold(0, u64::saturating_add)
}

/// Memory of all zones that the text has, in KiB.
pub fn size_kib(memory: &Memory) -> u64 {
    memory
        .zones
        .iter()
        .filter_map(|z| z.size_kib())
        .fold(0, u64::saturating_add)
}
