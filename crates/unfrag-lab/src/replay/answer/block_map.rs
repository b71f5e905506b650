//! The map of pageblocks over time: type and fullness of each, a row for each sample.

use super::report::BlockMap;
use crate::replay::model::Sim;
use unfrag_eras::MigrateType;

/// Builds the map of pageblocks, row by row.
#[derive(Clone)]
pub(crate) struct BlockMapBuilder {
    map: BlockMap,
    /// By zone and pageblock: frames that nobody ever has. They stay the same.
    reserved: Vec<Vec<u32>>,
}

impl BlockMapBuilder {
    pub(crate) fn new(sim: &Sim) -> BlockMapBuilder {
        let m = sim.manager.inspect();
        let first = m.zones().map(|z| m.zone_config(z).start.0).min();
        let pages = m.block_pages();
        BlockMapBuilder {
            map: BlockMap {
                first_pfn: first.unwrap_or(0) / u64::from(pages) * u64::from(pages),
                block_pages: pages,
                type_names: MigrateType::ALL.iter().map(|&t| t.name().into()).collect(),
                seconds: vec![],
                types: vec![],
                fullness: vec![],
            },
            reserved: m
                .zones()
                .map(|z| m.blocks(z).map(|(_, _, b)| b.reserved).collect())
                .collect(),
        }
    }

    pub(crate) fn push_row(&mut self, sim: &Sim, seconds: f64) {
        let m = sim.manager.inspect();
        let pages = u64::from(self.map.block_pages);
        let (mut types, mut full) = (String::new(), String::new());
        for (zone, reserved) in m.zones().zip(&self.reserved) {
            for ((pfn, mt, used), reserved) in m.uses(zone).zip(reserved) {
                let at = (pfn.0 - self.map.first_pfn) / pages;
                while (types.len() as u64) < at {
                    types.push('.');
                    full.push('.');
                }
                // A block that two zones share was drawn by the first.
                if types.len() as u64 > at {
                    continue;
                }
                let used: u32 = used.iter().sum::<u32>() + reserved;
                let digit = u64::from(used) * 9 / pages;
                types.push((b'0' + mt as u8) as char);
                full.push((b'0' + if used > 0 { digit.max(1) as u8 } else { 0 }) as char);
            }
        }
        self.map.seconds.push(seconds);
        self.map.types.push(types);
        self.map.fullness.push(full);
    }

    pub(crate) fn finish(self) -> BlockMap {
        self.map
    }
}
