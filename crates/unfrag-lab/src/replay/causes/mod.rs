//! From a trace to what the workload asked for.
//!
//! A trace mixes causes (a task allocates or frees memory) with effects (what that kernel did about it:
//! pages that compaction moved, targets that it isolated and did not use). [`causes()`] keeps the causes,
//! says which of them were the kernel's own reclaim, and follows frames through migrations, so that a
//! later free finds the allocation that it belongs to. Rules, version [`VERSION`]:
//!
//! 1. A compacting task frees the sources of its migrations between the event that isolated them and
//!    `mm_compaction_migratepages`, and the unused targets between that and `mm_compaction_end`.
//!    Where the trace lacks these events, a free by kcompactd, or between `mm_compaction_begin` and
//!    `_end`, of a frame in use is a source; of a frame not in use, an unused target. What an
//!    interrupt frees belongs to no task.
//! 2. Where `set_migration_pte` and `remove_migration_pte` name both sides, the page goes from the
//!    one frame to the other. A source without such a pair waits; the first free of a frame not in
//!    use that no rule explains belongs to the source that waits longest.
//! 3. An allocation of a frame in use: the CPUs' buffers were merged out of order, and the free
//!    follows within [`INVERSION_NS`]; otherwise the frame was freed unseen.
//! 4. Four frames that a worker freed one after the other, without a traced allocation, were a
//!    kernel stack (taken in bulk, without an event). Where the start is not exact, the stack was
//!    taken with the page directory of a new process that came next, on the same CPU, after the
//!    frames' last use or that of the frame below them.
//! 5. Frees by kswapd and by tasks in direct reclaim are that kernel's reclaim.
//!
//! `spec: 7.6, 10`
//!
//! - [`clock`]: trace and snapshots on one clock. `tasks`: what a task does.
//!   `huge_page`: the shape of a request for a huge page. `kernel_stack`: the shape of a stack.
//! - `operations`: an operation: [`Op`]. [`ops`]: all of them, in compact columns. `found`: the result: [`Causes`].
//! - `trace`: goes through the recording event by event. `walk`: what is known of each frame, and rule 3.
//!   `migration`: rules 1 and 2. `stack_frees`: rule 4. `kswapd`: rule 5.
//! - [`unseen`]: allocations that vmstat counts and the trace lacks. `recorded_reclaim`: what the recorded
//!   kernel's reclaim took, and how fast it was. `page_cache`: what it could have taken beside that.

pub mod clock;
mod found;
mod huge_page;
mod kernel_stack;
mod kswapd;
mod mechanism;
mod migration;
mod operations;
pub mod ops;
mod page_cache;
mod recorded_reclaim;
mod stack_frees;
mod tasks;
mod trace;
pub mod unseen;
mod walk;

/// Version of the rules.
pub const VERSION: u32 = 1;

pub use found::{Causes, Classes, DaemonRun, FIRST_ALLOC, FIRST_FREE, Fallbacks};
pub(crate) use huge_page::is_huge_page;
pub use kernel_stack::is_page_directory;
pub use mechanism::reclaimed_by_generations;
pub use operations::{Action, HostBlock, NONE, Op, Packed};
pub use ops::Ops;
pub use page_cache::PageCache;
pub(crate) use recorded_reclaim::AS_RECORDED;
pub use recorded_reclaim::{Pace, RecordedReclaim};
pub use trace::causes;
pub use walk::INVERSION_NS;
