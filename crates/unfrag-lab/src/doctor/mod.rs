//! What is wrong with a host's memory, and what to do about it.
//!
//! - [`evidence`]: the files of procfs that could be read.
//! - [`crate::host`]: the host that they show, with its zones and settings.
//! - [`frames`]: what holds a frame, from its flags. [`zone_blocks`]: what holds each pageblock of a zone; `roles`: what each of its frames is to compaction.
//! - [`compactor`], [`forecast`]: how many huge pages can be had, and how. `obstacles`: what stands in the way.
//! - [`gate`]: whether so many pieces of memory of some sizes can be had, on which node, after what.
//! - [`atomic`]: whether requests that may not wait are at risk.
//! - [`slabs`]: which caches are large, and which grow. [`call_sites`]: places of the kernel's source likewise.
//! - [`work`]: stalls, failures and compaction so far.
//! - `shortage`: whether a zone is short of memory, and whether slab is why.
//! - [`watch`]: what was counted while the host was watched; [`history`]: what happened since boot.
//! - [`advice`]: what to do; `advice_rules`, `setting_advice`, `setting_values`, `thp_advice`, `room_advice`: when each is advised; `standing`: what evidence it needs; [`judged_settings`]: what becomes of each setting; `needs`: whether large blocks are wanted; [`predict`]: what a replay predicts for it.
//! - [`withheld`]: memory that is not for everybody; [`hugetlb`]: pools; [`memory_blocks`]: what cannot be unplugged; [`features`]: what else reclaims.
//! - [`examine`] (`examination`, `examined`): all of it in order. `late_memory`: memory that no zone manages yet. `proactive`: marks of proactive compaction. [`diagnosis`]: the answer, as data: the shape of `--json`.
//! - [`first_screen`], `to_do`, `asked`: the answer for people; [`text`], `advice_text`, `answer`, [`map`]: all that it is by.
//!
//! Invariant: a [`Diagnosis`] is a function of its [`Evidence`]; nothing is read from the host that runs
//! it. What could not be seen is `null` and named in `unread`, never guessed, and never counts as all-clear.

pub mod advice;
mod advice_rules;
mod advice_text;
mod answer;
mod asked;
pub mod atomic;
pub mod call_sites;
pub mod compactor;
pub mod diagnosis;
pub mod evidence;
mod examination;
mod examined;
pub mod features;
pub mod first_screen;
pub mod forecast;
pub mod frames;
pub mod gate;
pub mod history;
pub mod hugetlb;
pub mod judged_settings;
mod late_memory;
pub mod map;
pub mod memory_blocks;
mod needs;
mod obstacles;
pub mod predict;
pub(crate) mod proactive;
mod roles;
mod room_advice;
mod setting_advice;
pub(crate) mod setting_values;
mod shortage;
pub mod slabs;
mod standing;
pub mod text;
mod thp_advice;
mod to_do;
pub mod watch;
pub mod withheld;
pub mod work;
pub mod zone_blocks;

pub use diagnosis::{Diagnosis, NodeDiagnosis, Obstacle, ZoneDiagnosis};
pub use evidence::{Evidence, Reading};
pub use examination::examine;
pub use examined::Examined;
pub use forecast::{Attainability, Forecast};
pub use frames::FrameUse;
pub use proactive::proactive_marks;

#[cfg(test)]
mod test_zone;
#[cfg(test)]
mod tests;
