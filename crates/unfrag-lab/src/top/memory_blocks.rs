//! The blocks of a host that can be unplugged, as cells: which could go, and which the kernel keeps.
//!
//! Invariant: a block is movable where nothing in it has to stay; a block of which no page flags are there is absent.

use super::Area;
use crate::doctor::evidence::zone_blocks;
use crate::doctor::memory_blocks::{self, Unpluggable};
use crate::error::{Error, Result};
use crate::find::host_files::{FlagsPace, HostFiles};
use crate::host::Host;
use crate::host::files::{Files as _, Lacking, Reader};
use crate::report::number::{bytes, thousands};
use std::path::Path;
use std::sync::Arc;
use unfrag_linux::kpageflags;
use unfrag_pool::cells::{Cell, Kind};

/// The blocks of the host whose procfs this is. It reads the flags of each frame, which takes a second for tens of gibibytes.
///
/// # Errors
/// If the host does not tell its blocks, or its page flags may not be read.
pub fn area(proc: &Path) -> Result<Area> {
    let files = HostFiles {
        proc,
        is_own: proc == Path::new("/proc"),
        flags: FlagsPace::AtOnce,
    };
    let mut reader = Reader::new(&files, Lacking::UNSAID);
    let host = Host::read(&mut reader);
    let page_size = host.geometry.page_size;
    let last = host.zones.iter().map(|z| z.span().end).max();
    let end = last.map(|n| n.saturating_mul(page_size));
    let memory = memory_blocks::read(&files, end).ok_or_else(|| {
        Error::lacking("the kernel does not tell its memory blocks (/sys/devices/system/memory)")
            .help("it does where memory can be unplugged (CONFIG_MEMORY_HOTPLUG); without --blocks the rest is shown")
            .in_file(proc)
    })?;
    let flags = files.stream(kpageflags::NAME);
    let mut flags = flags.map_err(|e| {
        Error::from(unfrag_linux::Error::from(e).in_file(&proc.join(kpageflags::NAME)))
    })?;
    let zones = zone_blocks(&host.zones, &mut flags)
        .map_err(|e| e.in_file(&proc.join(kpageflags::NAME)))?;
    let found = memory_blocks::unpluggable(&memory, page_size, zones.iter().map(Arc::as_ref));
    let found = found
        .ok_or_else(|| Error::lacking("of no memory block are page flags there").in_file(proc))?;
    Ok(cells(&found))
}

fn cells(found: &Unpluggable) -> Area {
    let mut cells = vec![];
    for block in &found.blocks {
        let at = usize::try_from(block.number).unwrap_or(usize::MAX);
        // Numbers are bounded by how many blocks are looked at.
        cells.resize(at.max(cells.len()), Cell::ABSENT);
        let used = block.kept() + block.to_move;
        let kind = match (block.kept(), block.to_move) {
            (0, 0) => Kind::Free,
            (0, _) => Kind::Movable,
            _ => Kind::Unmovable,
        };
        cells.push(Cell {
            kind,
            eighths: (8 * used).div_ceil((used + block.free).max(1)) as u8,
        });
    }
    Area {
        name: format!(
            "Memory blocks of {}, {} of {} could be unplugged (free or movable)",
            bytes(found.block_bytes),
            thousands(found.can_go),
            thousands(found.online)
        ),
        cells,
        block_bytes: Some(found.block_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::frames::FrameUse;
    use crate::doctor::memory_blocks::Block;

    #[test]
    fn what_is_not_there_is_absent_and_what_stays_is_unmovable() {
        let block = |number, kept, to_move, free| Block {
            number,
            to_move,
            free,
            kept_by: Vec::from_iter((kept > 0).then_some((FrameUse::Slab, kept))),
        };
        let found = Unpluggable {
            block_bytes: 128 << 20,
            online: 3,
            can_go: 2,
            kept_by: vec![],
            least: None,
            blocks: vec![
                block(1, 1, 0, 32767),
                block(2, 0, 32768, 0),
                block(4, 0, 0, 32768),
            ],
        };
        let letters: String = cells(&found).cells.iter().map(|c| c.letters()).collect();
        assert_eq!(letters, "--u1m8--..");
    }
}
