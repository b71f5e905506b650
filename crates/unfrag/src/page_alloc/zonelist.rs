//! Zone order: which zones may serve a request, best first. `spec: linux-mm 1.6, 2.6`
//!
//! Computed once, when the manager is made, for each node and each highest zone.
//!
//! Invariant: a list holds each populated zone up to its highest kind once, those of its own node
//! first.

use super::MAX_ZONES;
use super::fast::Request;
use crate::gfp::Gfp;
use crate::kernel::Rules;
use crate::zone::{NR_ZONE_KINDS, ZoneConfig, ZoneKind};

/// Zones for a request, best first.
#[derive(Clone, Copy, Debug)]
pub(super) struct ZoneList {
    zones: [u8; MAX_ZONES],
    len: u8,
    /// How many of them are of the node that was asked for.
    local: u8,
    /// How many, from the first, are of the same node as the first.
    pub near: u8,
    /// Whether requests should rather take another of these zones than mix types.
    pub nofragment: bool,
}

impl ZoneList {
    const EMPTY: ZoneList = ZoneList {
        zones: [0; MAX_ZONES],
        len: 0,
        local: 0,
        near: 0,
        nofragment: false,
    };

    fn push(&mut self, zone: usize) {
        self.zones[usize::from(self.len)] = zone as u8;
        self.len += 1;
    }

    /// The zones.
    #[inline]
    pub fn zones(&self) -> &[u8] {
        &self.zones[..usize::from(self.len)]
    }
}

/// The lists of all nodes.
pub(super) struct ZoneLists {
    /// The nodes; what follows the last stands for all others, which have no memory.
    nodes: [u8; MAX_ZONES],
    count: usize,
    lists: [[ZoneList; NR_ZONE_KINDS]; MAX_ZONES + 1],
}

impl ZoneLists {
    pub fn new(zones: &[ZoneConfig], sw: &Rules) -> ZoneLists {
        let mut all = ZoneLists {
            nodes: [0; MAX_ZONES],
            count: 0,
            lists: [[ZoneList::EMPTY; NR_ZONE_KINDS]; MAX_ZONES + 1],
        };
        for z in zones {
            if !all.nodes[..all.count].contains(&z.node) {
                all.nodes[all.count] = z.node;
                all.count += 1;
            }
        }
        for slot in 0..=all.count {
            let node = all.nodes[..all.count].get(slot).copied();
            for kind in ZoneKind::ALL {
                all.lists[slot][kind as usize] = build(zones, all.count, node, kind, sw);
            }
        }
        all
    }

    /// The best zone for a request, if there is one.
    #[inline]
    pub fn first(&self, r: &Request) -> Option<usize> {
        let lists = &self.lists[self.slot(r.node)];
        let list = &lists[r.highest as usize];
        // A zone of another node may not do.
        (list.local > 0).then_some(usize::from(list.zones[0]))
    }

    #[inline]
    fn slot(&self, node: u8) -> usize {
        if self.nodes[0] == node {
            return 0;
        }
        let others = self.nodes[..self.count].iter();
        others
            .clone()
            .position(|&n| n == node)
            .unwrap_or(self.count)
    }

    /// The list for a request; empty if no zone may serve it.
    #[inline]
    pub fn of(&self, r: &Request) -> ZoneList {
        let mut list = self.lists[self.slot(r.node)][r.highest as usize];
        if r.gfp.contains(Gfp::THISNODE) {
            list.len = list.local;
        }
        list
    }
}

fn build(
    zones: &[ZoneConfig],
    nodes: usize,
    node: Option<u8>,
    highest: ZoneKind,
    sw: &Rules,
) -> ZoneList {
    let mut list = ZoneList::EMPTY;
    for local in [true, false] {
        for (i, c) in zones.iter().enumerate().rev() {
            if (Some(c.node) == node) == local && c.kind <= highest && c.managed > 0 {
                list.push(i);
            }
        }
        if local {
            list.local = list.len;
        }
    }
    let Some(first) = list.zones().first().map(|&z| zones[usize::from(z)]) else {
        return list;
    };
    let near = list
        .zones()
        .iter()
        .take_while(|&&z| zones[usize::from(z)].node == first.node);
    list.near = near.count() as u8;
    // With one node it is enough that DMA32 is configured; with several it must hold memory there.
    let dma32 = |z: &ZoneConfig| {
        z.kind == ZoneKind::Dma32 && (nodes == 1 || z.node == first.node && z.managed > 0)
    };
    list.nofragment = sw.pageblocks().is_some_and(|p| p.nofragment)
        && first.kind == ZoneKind::Normal
        && zones.iter().any(dma32);
    list
}
