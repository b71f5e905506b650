//! The model's zones as procfs names and orders them.

use unfrag_eras::host::Host;
use unfrag_eras::inspect::ZoneView;
use unfrag_eras::{Manager, ZoneId};

/// A zone's names in procfs.
pub(super) trait ProcfsZone {
    /// Node id.
    fn node(&self) -> u32;
    /// Zone name, such as `DMA32`.
    fn name(&self) -> String;
}

impl ProcfsZone for ZoneView {
    fn node(&self) -> u32 {
        self.config.node.0.into()
    }
    fn name(&self) -> String {
        self.config.kind.name().to_owned()
    }
}

/// The model's zones with their numbers, in the order in which procfs lists them.
pub(super) fn zones<H: Host>(m: &Manager<'_, H>) -> impl Iterator<Item = (ZoneId, ZoneView)> {
    let m = m.inspect();
    let mut all: Vec<(ZoneId, ZoneView)> = m.zones().map(|z| (z, m.zone(z))).collect();
    all.sort_by_key(|(_, v)| (v.config.node, v.config.kind));
    all.into_iter()
}
