//! A NUMA node: its zones, and the requests to its kswapd.
//!
//! Its LRU lists are those of its zones, or one set for all of them: each zone has the number of its set
//! ([`Zone::lru`](crate::zone::Zone)).

use crate::compact::HugeDemand;
use crate::frame::{MAX_ZONES, NodeId, Order, ZoneId, ZoneKind};
use zerocopy::{IntoBytes, KnownLayout, TryFromBytes};

/// A node. It lives in the caller's memory, so its layout has no gaps.
#[derive(Clone, TryFromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct Node {
    /// Pages that kswapd has freed.
    pub kswapd_freed: u64,
    /// Huge blocks that are to be kept free.
    pub huge: HugeDemand,
    zones: [u8; MAX_ZONES],
    len: u8,
    pub id: NodeId,
    kswapd_order: u8,
    /// kswapd was asked for since it last looked.
    pub kswapd_asked: bool,
    /// The node has a kswapd, and that has not given up.
    pub kswapd_usable: bool,
    /// kswapd is not asleep.
    pub kswapd_awake: bool,
    /// Order that kcompactd was asked for since it last looked; 0 if it was not.
    kcompactd_order: u8,
    /// The highest zone of those requests.
    kcompactd_highest: ZoneKind,
}

impl Node {
    pub const fn new(id: NodeId) -> Node {
        Node {
            kswapd_freed: 0,
            huge: HugeDemand::NONE,
            zones: [0; MAX_ZONES],
            len: 0,
            id,
            kswapd_order: 0,
            kswapd_asked: false,
            kswapd_usable: false,
            kswapd_awake: false,
            kcompactd_order: 0,
            kcompactd_highest: ZoneKind::Dma,
        }
    }

    /// Adds a zone that has pages. Zones are added low to high.
    pub fn add_zone(&mut self, zone: ZoneId) {
        self.zones[usize::from(self.len)] = zone.0;
        self.len += 1;
    }

    /// Its zones that have pages, low to high.
    pub fn zones(&self) -> impl DoubleEndedIterator<Item = ZoneId> + Clone + use<> {
        let zones = self.zones;
        (0..usize::from(self.len)).map(move |i| ZoneId(zones[i]))
    }

    /// Asks for kcompactd to run for an order above 0, and for requests up to a zone.
    pub fn ask_kcompactd(&mut self, order: Order, highest: ZoneKind) {
        self.kcompactd_order = self.kcompactd_order.max(order.0);
        self.kcompactd_highest = self.kcompactd_highest.max(highest);
    }

    /// Whether kcompactd was asked for since it last looked.
    pub fn wants_kcompactd(&self) -> bool {
        self.kcompactd_order > 0
    }

    /// Takes what kcompactd was asked for, and clears the request.
    pub fn take_kcompactd_order(&mut self) -> Option<(Order, ZoneKind)> {
        let order = core::mem::take(&mut self.kcompactd_order);
        let highest = core::mem::replace(&mut self.kcompactd_highest, ZoneKind::Dma);
        (order > 0).then_some((Order(order), highest))
    }

    /// Asks for kswapd to run for an order.
    pub fn ask_kswapd(&mut self, order: Order) {
        self.kswapd_order = if self.kswapd_asked {
            self.kswapd_order.max(order.0)
        } else {
            order.0
        };
        self.kswapd_asked = true;
    }

    /// The highest order that kswapd was asked for since it last looked.
    pub fn asked_order(&self) -> Option<Order> {
        self.kswapd_asked.then_some(Order(self.kswapd_order))
    }

    /// Takes the order that kswapd was asked for, and clears the request.
    pub fn take_asked_order(&mut self) -> Option<Order> {
        let order = core::mem::take(&mut self.kswapd_order);
        core::mem::take(&mut self.kswapd_asked).then_some(Order(order))
    }
}
