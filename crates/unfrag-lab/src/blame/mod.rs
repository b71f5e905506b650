//! Who holds the kernel memory that spoils pageblocks, hour by hour.
//!
//! A pageblock is spoilt where kernel memory takes fewer than half of its frames: what is beside it could move, so that a
//! huge page would fit, but for these few. A trace says of each frame who took it and what for; so a recording of
//! days says who held the frames that spoilt blocks, and when.
//!
//! - `holders`: who takes frames. `held`: the frames that the kernel holds, by pageblock. `walk`: the walk over the
//!   events, and the state at regular moments. [`report`]: the result; `text`, `svg` draw it. `answer`: what it comes to.
//!
//! Invariant: at each moment a spoilt block is shared out among the holders of its frames, in proportion to them. So
//! the shares of all holders add up to the spoilt blocks.

mod answer;
mod held;
mod holders;
pub mod report;
mod spans;
pub mod svg;
pub mod text;
mod walk;

pub(crate) use holders::program;
pub use report::Blame;
pub(crate) use walk::Count;
pub use walk::blame;
