//! On whose behalf the kernel works.

use crate::mm::process::ProcId;
use unfrag_eras::{Gfp, NodeId};

/// On whose behalf the kernel works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// The process; none for the kernel's own threads.
    pub proc: Option<ProcId>,
    /// A real-time task.
    pub realtime: bool,
    /// It frees memory itself, so that no watermark applies to it (`PF_MEMALLOC`).
    pub memalloc: bool,
}

impl Who {
    /// A thread of the kernel.
    pub const KERNEL: Who = Who {
        proc: None,
        realtime: false,
        memalloc: false,
    };

    /// A process.
    pub fn process(proc: ProcId) -> Who {
        Who {
            proc: Some(proc),
            ..Who::KERNEL
        }
    }
}

/// The caller of an operation of the allocator, and its request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub who: Who,
    pub gfp: Gfp,
    pub order: u8,
    /// It is a daemon.
    pub daemon: Option<Daemon>,
}

/// A daemon of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Daemon {
    /// Reclaims.
    Kswapd(NodeId),
    /// Compacts.
    Kcompactd(NodeId),
}
