//! Requests for blocks, their context, and the reasons why they fail.

use crate::frame::{CpuId, MigrateType, NodeId, Order, ZoneKind};
use crate::gfp::{AllocFlags, Gfp};

/// A request for a block of `2^order` frames.
///
/// ```
/// use unfrag_eras::{CpuId, Gfp, NodeId, Order, Request};
///
/// let here = Request::new(Order(3), Gfp::KERNEL);
/// let there = here.on(CpuId(2)).near(NodeId(1));
/// # assert_eq!((there.cpu, there.node), (CpuId(2), NodeId(1)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// Order of the block.
    pub order: Order,
    /// What the caller wants and may do.
    pub gfp: Gfp,
    /// The CPU that the caller runs on.
    pub cpu: CpuId,
    /// Node to take it from, or near.
    pub node: NodeId,
    /// Context of the caller.
    pub context: Context,
    /// Only one pass over the free lists is tried: kswapd is not woken, no reserve is used.
    /// `spec: 6.5 (d)`
    pub first_pass_only: bool,
}

impl Request {
    /// A request on CPU 0 near node 0, in an ordinary context.
    #[inline]
    pub const fn new(order: Order, gfp: Gfp) -> Request {
        Request {
            order,
            gfp,
            cpu: CpuId(0),
            node: NodeId(0),
            context: Context {
                memalloc: false,
                realtime: false,
                in_interrupt: false,
                oom_victim: false,
            },
            first_pass_only: false,
        }
    }

    /// The request on another CPU.
    #[inline]
    #[must_use]
    pub const fn on(mut self, cpu: CpuId) -> Request {
        self.cpu = cpu;
        self
    }

    /// The request near another node.
    #[inline]
    #[must_use]
    pub const fn near(mut self, node: NodeId) -> Request {
        self.node = node;
        self
    }

    /// The request in another context.
    #[inline]
    #[must_use]
    pub const fn by(mut self, context: Context) -> Request {
        self.context = context;
        self
    }

    /// The request without anything beyond one pass over the free lists.
    #[inline]
    #[must_use]
    pub const fn first_pass_only(mut self) -> Request {
        self.first_pass_only = true;
        self
    }
}

/// Context of a caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// It reclaims memory itself (`PF_MEMALLOC`): it ignores the marks and does not reclaim.
    pub memalloc: bool,
    /// A real-time task, or an interrupt that interrupted one.
    pub realtime: bool,
    /// An interrupt.
    pub in_interrupt: bool,
    /// The OOM killer has chosen it.
    pub oom_victim: bool,
}

/// Why an allocation failed. Nothing changed, but that per-CPU lists may have been drained and pages
/// reclaimed on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllocError {
    /// Both mobility flags are set; no era serves that.
    BothMobilities,
    /// The order is above the largest of the machine's [`Geometry`](crate::Geometry).
    OrderTooLarge,
    /// No zone may serve the request, by its zone flags or its node.
    Forbidden,
    /// Too little memory is free, in whatever blocks.
    Short,
    /// Enough memory is free for the request, but no block of its order that it may take: compaction could
    /// help.
    Fragmented,
    /// A block of the order is free, but the watermarks and protections keep it for others.
    Reserved,
}

impl core::fmt::Display for AllocError {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        f.write_str(match self {
            AllocError::BothMobilities => {
                "the request is both movable and reclaimable; set at most one of the two flags"
            }
            AllocError::OrderTooLarge => {
                "the order is above the largest of this machine; ask for several blocks"
            }
            AllocError::Forbidden => "no zone may serve this request; see its zone and node flags",
            AllocError::Short => "too little memory is free",
            AllocError::Fragmented => {
                "enough memory is free, but no block of this order to be had: it is fragmented"
            }
            AllocError::Reserved => {
                "a block of this order is free, but below the watermarks, which keep it for others"
            }
        })
    }
}

impl core::error::Error for AllocError {}

/// A request with its migrate type and highest zone (`struct alloc_context`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    pub cpu: CpuId,
    pub node: NodeId,
    pub order: Order,
    pub gfp: Gfp,
    pub mt: MigrateType,
    /// Highest zone that may serve it.
    pub highest: ZoneKind,
}

/// Highest zone that a request may use. `spec: 1.6`
#[inline]
pub const fn highest_zone(gfp: Gfp) -> ZoneKind {
    /// By the four lowest bits: DMA, HIGHMEM, DMA32, MOVABLE.
    const BY_BITS: [ZoneKind; 16] = {
        let mut all = [ZoneKind::Normal; 16];
        let mut bits = 0;
        while bits < 16 {
            let gfp = Gfp::from_bits_retain(bits as u32);
            all[bits] = if gfp.contains(Gfp::HIGHMEM.union(Gfp::MOVABLE)) {
                ZoneKind::Movable
            } else if gfp.contains(Gfp::HIGHMEM) {
                ZoneKind::HighMem
            } else if gfp.contains(Gfp::DMA) {
                ZoneKind::Dma
            } else if gfp.contains(Gfp::DMA32) {
                ZoneKind::Dma32
            } else {
                ZoneKind::Normal
            };
            bits += 1;
        }
        all
    };
    BY_BITS[(gfp.bits() & 15) as usize]
}

/// Rights of the first attempt.
#[inline]
pub(crate) const fn first_flags(gfp: Gfp) -> AllocFlags {
    let flags = AllocFlags::WMARK_LOW.union(AllocFlags::CPUSET);
    if gfp.contains(Gfp::KSWAPD_RECLAIM) {
        flags.union(AllocFlags::KSWAPD)
    } else {
        flags
    }
}
