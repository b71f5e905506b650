//! The replay of a recording: what memory would have looked like under another kernel or setting, and how
//! far that can be trusted.
//!
//! A recorded event passes through these rooms, each of which imports only from those before it:
//! 1. [`causes`]: what the workload asked for, out of a trace that mixes it with what that kernel did.
//! 2. [`start`]: where each page was when the replay begins.
//! 3. [`model`]: the allocator of one era, driven by the causes from the start.
//! 4. [`answer`]: what came of it, compared with what the recorded kernel showed.
//! 5. [`view`]: the answer as text, as a page and as a picture.

pub mod answer;
pub mod causes;
pub mod model;
pub mod start;
pub mod view;

pub use answer::{CompactionChoice, Mode, NoWatch, Options, ReclaimChoice, Report, Watch, replay};
pub use start::StartChoice;
