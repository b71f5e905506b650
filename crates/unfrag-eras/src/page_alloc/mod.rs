//! Allocating and freeing blocks of frames.
//!
//! One allocation from call to frame: `pcp_alloc` (the CPU's own list, well above the watermark), `fast_path`
//! (zones in order, low mark, per-CPU list, buddy lists), and then [`Allocation`] (kswapd is woken, min
//! mark, reserves; with a world that can reclaim: reclaim, waits, retries, the OOM killer): a frame, or an
//! error that says why not.
//!
//! - `fast`: the fast path. `watermarked`: passes over the zones. `bulk`: many pages at once.
//! - `allocation`: the slow path. `wake`: when kswapd is woken.
//! - `compacting`: its compactions.
//! - `free`: freeing. `movement`: moving a page.

mod allocation;
mod bulk;
mod compacting;
mod fast;
mod free;
mod movement;
#[cfg(test)]
mod tests;
mod wake;
mod watermarked;

pub use allocation::{Allocation, Begun};
pub use free::FreeError;
pub use movement::{Move, MoveError};
