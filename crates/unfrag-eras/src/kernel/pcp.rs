//! Rules of the per-CPU lists. `spec: 3`

use crate::frame::Order;

/// Shape of the per-CPU lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pcp {
    /// A hot and a cold list of order 0 (2.6.14, and 2.6.24 searched for the type).
    HotCold {
        /// Search the list for a page of the type.
        searched: bool,
    },
    /// Two lists of order 0: kernel and easily reclaimed (V19).
    Kinds,
    /// One list of order 0, searched for a page of the type; cold pages at the tail (2.6.28).
    Searched,
    /// One list a type, order 0, drained in turns (2.6.32).
    PerType {
        /// How a bulk free takes turns.
        drain: Drain,
        /// The stored type of a page decides its list in the buddy (2.6.33), not the per-CPU list.
        keep_type: bool,
    },
    /// Lists for orders 0 to 3 and for huge pages (5.13 and later).
    Orders {
        /// `high` follows demand (6.7 and later).
        tuned: Option<Tuned>,
    },
}

impl Pcp {
    /// Whether blocks of this order live on per-CPU lists, where a huge page is of order `huge`.
    #[inline]
    pub const fn serves(self, order: Order, huge: Order) -> bool {
        match self {
            Pcp::Orders { .. } => order.0 <= Order::COSTLY.0 || order.0 == huge.0,
            _ => order.0 == 0,
        }
    }

    /// `high` follows demand.
    #[inline]
    pub const fn is_tuned(self) -> bool {
        matches!(self, Pcp::Orders { tuned: Some(_) })
    }
}

/// How lists tune themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tuned {
    /// A burst of frees of orders 1 to 3 empties the lists only when it is longer than a batch by half of `high_min`
    /// (6.16 and later); else from a batch on.
    pub late_burst: bool,
}

/// Order in which a bulk free of per-type lists takes pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// One page of each list in turn.
    RoundRobin,
    /// More pages of a list, the more empty lists came before it.
    BatchFree,
}
