//! An era of the allocator as a value: [`Rules`] (what the code of that kernel does) and
//! [`Sysctl`] (what its administrator can set).
//!
//! Every rule that changed between kernels is a value of its own, named for what it decides and
//! decided in one place of the allocator; no era has code of its own. A rule that has a meaning only together
//! with another one is nested in it, so that meaningless combinations cannot be written. No rule is
//! inferred from another that changed in the same years. `spec: 0.3`
//!
//! - `placement`: how types share memory, fallbacks, reserves.
//! - `marks`: the watermarks.
//! - `pcp`: per-CPU lists.
//! - `requests`: rights in the slow path, and how long a request goes on.
//! - `kswapd`, `reclaim`, `generations`: what reclaim does. `compact`: what compaction does.
//! - `rules`: all of these together. `sysctl`: the administrator's settings.
//! - `presets`: the eras, made of the groups in `preset_parts`, `preset_reclaim` and `preset_compact`.

mod compact;
mod generations;
mod kswapd;
mod marks;
mod pcp;
mod placement;
mod preset_compact;
mod preset_parts;
mod preset_reclaim;
mod presets;
mod reclaim;
mod requests;
mod rules;
mod sysctl;

pub use compact::{
    Capture, Chooser, CompactRequests, CompactRoom, CompactRules, CompoundSources, GivesUp,
    ProactiveRules,
};
pub use generations::{Aging, GenerationRules, ScanBudget};
pub use kswapd::{KswapdForm, KswapdNap, KswapdRules, KswapdSleep};
pub use marks::{MarkCheck, MarkGap, MarkRules, ZonePages};
pub use pcp::{Drain, Pcp, Tuned};
pub use placement::{
    Boost, BoostRecheck, BoostWakes, ClaimTest, Fallback, HighAtomicLimit, Merge, PageblockRules,
    Placement, Remainder, Reserve, ScanDown, Steal,
};
pub use presets::{PRESETS, Preset, UNFRAG, kernels, preset};
pub use reclaim::{
    ActiveFiles, CongestionWait, HighOrder, LruRules, LruShape, ReclaimRules, ScanBalance, SplitLru,
};
pub use requests::{
    LeavesCpuset, OomOrders, RealtimeRight, RetryDrain, RetryForm, RetryRules, RightsRules,
};
pub use rules::Rules;
pub use sysctl::Sysctl;
