//! Allocating and freeing blocks of frames.
//!
//! One allocation from call to frame: `pcp_alloc` (the CPU's own list, no watermark in sight), `fast_path`
//! (zones in order, low mark, per-CPU list, buddy lists), and then [`Allocation`] (kswapd is woken, min
//! mark, reserves; with a world that can reclaim: reclaim, waits, retries, the OOM killer): a frame, or an
//! error that says why not.
//!
//! - `fast`: what needs nothing but free memory. `watermarked`: passes over the zones.
//! - `allocation`: what may have to wait. `wake`: when kswapd is asked.
//! - `free`: giving back. `bulk`: many pages at once. `movement`: moving a page.

mod allocation;
mod bulk;
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
