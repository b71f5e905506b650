//! The network's state: streams of frames, their queues and counters.

mod stream;

pub(crate) use stream::Stream;
pub use stream::{Net, StreamConfig, StreamId, StreamStats};
