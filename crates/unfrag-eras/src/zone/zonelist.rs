//! Zone order: which zones may serve a request, best first. `spec: 1.6, 2.6`
//!
//! Computed once, when the manager is made, for each node and each highest zone.
//!
//! Invariant: a list holds each populated zone up to its highest kind once, those of its own node
//! first.

use crate::frame::{MAX_ZONES, NR_ZONE_KINDS, NodeId, ZoneConfig, ZoneId, ZoneKind};
use crate::kernel::Rules;
use zerocopy::{IntoBytes, KnownLayout, TryFromBytes};

/// Zones for a request, best first.
#[derive(Clone, Copy, Debug, TryFromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct ZoneList {
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
    pub fn zones(&self) -> impl DoubleEndedIterator<Item = ZoneId> + Clone + '_ {
        self.zones[..usize::from(self.len)]
            .iter()
            .map(|&z| ZoneId(z))
    }

    /// Whether no zone may serve the request.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The best zone, if it is of the node that was asked for.
    #[inline]
    pub fn first_local(&self) -> Option<ZoneId> {
        (self.local > 0).then_some(ZoneId(self.zones[0]))
    }

    /// The zones of the node that was asked for alone.
    #[inline]
    #[must_use]
    pub fn local(mut self) -> ZoneList {
        self.len = self.local;
        self
    }
}

/// The lists of all nodes, in the caller's memory.
pub(crate) struct ZoneLists<'m> {
    /// The nodes with memory. The entry after the last stands for all nodes without.
    nodes: [NodeId; MAX_ZONES],
    count: usize,
    lists: &'m [ZoneList],
}

/// Lists that so many nodes need.
pub(crate) const fn nr_lists(nodes: usize) -> usize {
    (nodes + 1) * NR_ZONE_KINDS
}

/// The nodes of some zones, in the order in which they come.
pub(crate) fn nodes(zones: &[ZoneConfig]) -> ([NodeId; MAX_ZONES], usize) {
    let (mut nodes, mut count) = ([NodeId(0); MAX_ZONES], 0);
    for z in zones {
        if !nodes[..count].contains(&z.node) {
            nodes[count] = z.node;
            count += 1;
        }
    }
    (nodes, count)
}

impl<'m> ZoneLists<'m> {
    /// The lists of these zones; `room` has [`nr_lists`] of them.
    pub fn new(zones: &[ZoneConfig], rules: &Rules, room: &'m mut [ZoneList]) -> ZoneLists<'m> {
        let (nodes, count) = nodes(zones);
        let slots = room.chunks_mut(NR_ZONE_KINDS).enumerate();
        for (slot, lists) in slots.take(count + 1) {
            let node = nodes[..count].get(slot).copied();
            for (list, kind) in lists.iter_mut().zip(ZoneKind::ALL) {
                *list = build(zones, count, node, kind, rules);
            }
        }
        ZoneLists {
            nodes,
            count,
            lists: room,
        }
    }

    /// The same in other room of the same size.
    #[cfg(feature = "lab")]
    pub fn copied<'n>(&self, room: &'n mut [ZoneList]) -> ZoneLists<'n> {
        room.copy_from_slice(self.lists);
        ZoneLists {
            nodes: self.nodes,
            count: self.count,
            lists: room,
        }
    }

    /// How many lists there are.
    #[cfg(feature = "lab")]
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    #[inline]
    fn slot(&self, node: NodeId) -> usize {
        if self.nodes[0] == node {
            return 0;
        }
        let mut others = self.nodes[..self.count].iter();
        others.position(|&n| n == node).unwrap_or(self.count)
    }

    /// The list for requests near a node that may use zones up to `highest`.
    #[inline]
    pub fn of(&self, node: NodeId, highest: ZoneKind) -> &'m ZoneList {
        &self.lists[self.slot(node) * NR_ZONE_KINDS + highest as usize]
    }
}

fn build(
    zones: &[ZoneConfig],
    nodes: usize,
    node: Option<NodeId>,
    highest: ZoneKind,
    rules: &Rules,
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
    let Some(first) = list.zones().next().map(|z| zones[z.index()]) else {
        return list;
    };
    let near = list
        .zones()
        .take_while(|z| zones[z.index()].node == first.node);
    list.near = near.count() as u8;
    // With one node it is enough that DMA32 is configured; with several it must hold memory there.
    let dma32 = |z: &ZoneConfig| {
        z.kind == ZoneKind::Dma32 && (nodes == 1 || z.node == first.node && z.managed > 0)
    };
    let wanted = rules.pageblocks().is_some_and(|p| p.nofragment);
    list.nofragment = wanted && first.kind == ZoneKind::Normal && zones.iter().any(dma32);
    list
}
