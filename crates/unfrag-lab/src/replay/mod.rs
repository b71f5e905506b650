//! The replay of a recording: what memory would have looked like under another kernel or setting, and how
//! far that can be trusted.
//!
//! A recorded event passes through these rooms, each of which imports only from those before it:
//! 1. [`input`]: a recording, with events that come in batches.
//! 2. [`causes`]: what the workload asked for, out of a trace that mixes it with what that kernel did.
//! 3. [`start`]: where each page was when the replay begins.
//! 4. [`model`]: the allocator of one era, driven by the causes from the start.
//! 5. [`answer`]: what came of it, compared with what the recorded kernel showed.
//! 6. [`view`]: the answer as text, as a page and as a picture.

pub mod answer;
pub mod causes;
pub mod input;
pub mod model;
pub mod start;
pub mod view;

pub use answer::{CompactionChoice, Mode, NoWatch, Options, ReclaimChoice, Report, Watch, replay};
pub use start::StartChoice;
