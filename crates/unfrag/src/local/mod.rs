//! What a CPU takes and gives without a lock: [`Local`].
//!
//! - `arrays`: what it keeps. `slot`: what it shows to others. `cpu`: taking and giving.

pub(crate) mod arrays;
mod cpu;
pub(crate) mod slot;

pub use arrays::SINGLES;
pub use cpu::Local;
