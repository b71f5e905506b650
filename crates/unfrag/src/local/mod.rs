//! What a CPU takes and gives without a lock: [`Local`]; and how others get back what it keeps.
//!
//! The arrays of a `Local` lie in words of its memory, so that what an idle CPU keeps is everybody's when memory is short.
//!
//! - `barrier`: what a drain needs. `door`: who may touch them. `arrays`: the arrays. `slot`: where they lie. `drain`: getting
//!   back what others keep. `cpu`: taking and giving.

pub(crate) mod arrays;
mod barrier;
mod cpu;
mod door;
mod drain;
pub(crate) mod slot;

pub use arrays::SINGLES;
pub use barrier::Barrier;
pub use cpu::Local;
