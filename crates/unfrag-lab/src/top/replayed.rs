//! A view of the model of a replay.

use super::directory::counters;
use super::{Area, View};
use crate::export::tree;
use crate::geometry::Sizes;
use crate::replay::model::ReplayHost;
use unfrag_eras::inspect::BlockView;
use unfrag_eras::{Manager, MigrateType};
use unfrag_linux::procfs::vmstat::VmStat;
use unfrag_linux::recording::Snapshot;
use unfrag_pool::cells::Cell;

/// The model at a snapshot.
///
/// # Errors
/// If the snapshot's files cannot be read.
pub fn view(
    kernel: &str,
    snap: &Snapshot,
    manager: &Manager<'_, ReplayHost>,
) -> crate::error::Result<View> {
    let inside = manager.inspect();
    let mut view = View {
        title: format!("replay under kernel {kernel}, at snapshot {}", snap.name),
        seconds: snap
            .files
            .iter()
            .find_map(|f| f.time)
            .map_or(0.0, |t| t.0 as f64 / 1e9),
        sizes: Sizes::of(inside.geometry()),
        ..View::default()
    };
    let mut frames = 0;
    for zone in inside.zones() {
        let config = inside.zone_config(zone);
        frames += config.managed;
        let used = |v: &[u32], mt: MigrateType| v[mt as usize];
        let cell = |b: &BlockView| {
            let of = &b.used[..];
            // What the kernel keeps for itself stays where it is.
            let fixed = used(of, MigrateType::Unmovable) + b.reserved;
            let [movable, reclaimable] =
                [MigrateType::Movable, MigrateType::Reclaimable].map(|mt| used(of, mt));
            Cell::of(b.free, [fixed, movable, reclaimable])
        };
        let block = u64::from(inside.block_pages());
        let mut cells = vec![];
        for (pfn, _, b) in inside.blocks(zone) {
            // The pageblocks of a hole are not there.
            let at = pfn.0 / block - config.start.0 / block;
            cells.resize(at as usize, Cell::ABSENT);
            cells.push(cell(&b));
        }
        view.areas.push(Area {
            name: format!("Node {}, zone {}", config.node.0, config.kind.name()),
            cells,
            block_bytes: None,
        });
        let free = inside.zone(zone).nr_free;
        view.free.resize(view.free.len().max(free.len()), 0);
        view.free
            .iter_mut()
            .zip(free)
            .for_each(|(sum, n)| *sum += n);
    }
    view.frames = Some(frames);
    let files = tree(kernel, snap, manager, &manager.host().cpus)?;
    if let Some((_, vmstat)) = files.0.iter().find(|(name, _)| *name == "vmstat") {
        view.counters = counters(&VmStat::parse(vmstat)?);
    }
    Ok(view)
}
