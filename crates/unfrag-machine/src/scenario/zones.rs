//! Zones of a machine's memory, from its size. `spec: 1.1`

use super::file::Layout;
use unfrag_eras::{NodeId, Pfn, ZoneConfig, ZoneKind};

/// Frames of 16 MiB.
const DMA_END: u64 = 16 << 8;
/// Frames of the memory that a 32-bit kernel maps permanently: 896 MiB.
const LOW_END: u64 = 896 << 8;
/// Frames below which a 64-bit machine has memory under 4 GiB: the rest is for devices.
const DEVICES: u64 = 3 << 18;
const DMA32_END: u64 = 4 << 18;
/// Frames below 1 MiB that are no memory: video, ROM.
const HOLE: u64 = 96;
/// Frames below 1 MiB that the firmware keeps.
const FIRMWARE: u64 = 22;

/// Default of the memory that a kernel takes at boot: 8 MiB, and 32 or 64 bytes for each frame.
pub fn kernel_keeps(layout: Layout, frames: u64) -> u64 {
    let entry = match layout {
        Layout::X86 => 32,
        Layout::X86_64 => 64,
    };
    (8 << 8) + (frames * entry).div_ceil(4096)
}

/// Zones of a machine. The kernel's own frames are in the second zone, or in the third if there is one and
/// half of the second is too small. `None` if no frame is left there.
pub fn zones(layout: Layout, frames: u64, keeps: u64) -> Option<Vec<ZoneConfig>> {
    let zone = |kind, start: u64, end: u64, holes: u64, kept: u64| {
        let present = (end - start).checked_sub(holes)?;
        Some(ZoneConfig {
            node: NodeId(0),
            kind,
            start: Pfn(start),
            spanned: end - start,
            present,
            managed: present.checked_sub(kept).filter(|&m| m > 0)?,
        })
    };
    let mut zones = vec![zone(ZoneKind::Dma, 0, DMA_END, HOLE + 1, FIRMWARE)?];
    if frames <= DMA_END {
        return None;
    }
    match layout {
        Layout::X86 => {
            let low = frames.min(LOW_END);
            zones.push(zone(ZoneKind::Normal, DMA_END, low, 0, keeps)?);
            if frames > LOW_END {
                zones.push(zone(ZoneKind::HighMem, LOW_END, frames, 0, 0)?);
            }
        }
        Layout::X86_64 => {
            let low = frames.min(DEVICES);
            let above = frames > DEVICES && keeps > low / 2;
            let (here, there) = if above { (0, keeps) } else { (keeps, 0) };
            zones.push(zone(ZoneKind::Dma32, DMA_END, low, 0, here)?);
            if frames > DEVICES {
                let end = DMA32_END + (frames - DEVICES);
                zones.push(zone(ZoneKind::Normal, DMA32_END, end, 0, there)?);
            }
        }
    }
    Some(zones)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(layout: Layout, mib: u64) -> Vec<(ZoneKind, u64, u64)> {
        let zones = zones(layout, mib << 8, 4000).unwrap();
        zones
            .iter()
            .map(|z| (z.kind, z.start.0 >> 8, z.spanned >> 8))
            .collect()
    }

    #[test]
    fn zones_by_layout_and_size() {
        use ZoneKind::{Dma, Dma32, HighMem, Normal};
        assert_eq!(shape(Layout::X86, 512), [(Dma, 0, 16), (Normal, 16, 496)]);
        assert_eq!(
            shape(Layout::X86, 1536),
            [(Dma, 0, 16), (Normal, 16, 880), (HighMem, 896, 640)]
        );
        assert_eq!(shape(Layout::X86_64, 512), [(Dma, 0, 16), (Dma32, 16, 496)]);
        assert_eq!(
            shape(Layout::X86_64, 8192),
            [(Dma, 0, 16), (Dma32, 16, 3056), (Normal, 4096, 5120)]
        );
    }

    #[test]
    fn kernel_keeps_its_part() {
        let zones = zones(Layout::X86_64, 512 << 8, 4000).unwrap();
        // The first megabyte of a PC: 15,908 kB of the zone DMA are managed.
        assert_eq!((zones[0].present, zones[0].managed), (3_999, 3_977));
        assert_eq!(zones[1].present - zones[1].managed, 4000);
        assert_eq!(super::zones(Layout::X86, 16 << 8, 0), None);
        assert_eq!(super::zones(Layout::X86, 32 << 8, 16 << 8), None);
        // 8 MiB, and 2 MiB for 131,072 frames of 64 bytes each... of 4 KiB.
        assert_eq!(kernel_keeps(Layout::X86_64, 512 << 8), 2048 + 2048);
        assert_eq!(kernel_keeps(Layout::X86, 512 << 8), 2048 + 1024);
    }
}
