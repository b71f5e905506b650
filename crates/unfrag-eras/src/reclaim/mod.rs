//! Reclaim: freeing pages in use when memory runs short, by direct reclaim and by kswapd.
//!
//! - `scan_control`: what a scan may do, and what it found. `fate`: the decision about one page.
//! - `batch`: pages are taken off the tails of LRU lists, and their owners asked to let go.
//! - `balance`: how much of each list is scanned. `lru_scan`: the scan of one zone or node at one priority.
//!   `generation_scan`: the same where pages stand in generations. `scan`: one of the two.
//! - `direct`: a request that finds nothing reclaims by itself.
//! - [`Kswapd`]: the daemon that does so ahead of demand.
//! - `waits`: the waits of each era.
//!
//! Nothing here blocks, and no owner is called: an operation runs until it is done or has a
//! [`Need`], which its [world](crate::drive::World) meets.
//!
//! Invariant: a page under writeback is never freed by reclaim. `spec: 4`

mod balance;
mod batch;
mod direct;
mod fate;
mod generation_scan;
mod kswapd;
mod lru_scan;
mod scan;
mod scan_control;
mod waits;

pub use crate::evict::{Ask, Content, Eviction, Verdict, Verdicts};
pub use crate::frame::PageFlags;
pub use crate::lru::{Lru, NR_LRU, PagesMut};
pub use crate::need::{Answer, Class, Need, Step, Throttle, WRITTEN_ENOUGH};
pub use crate::request::Context;
pub use crate::stat::ReclaimCounters;
pub(crate) use direct::DirectReclaim;
pub use kswapd::Kswapd;
pub(crate) use waits::{HZ_OVER_50_MS, congestion_wait, second_wait};
