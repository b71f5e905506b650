//! Streams of frames.

use crate::engine::Nanos;
use crate::kmem::Obj;
use std::collections::VecDeque;
use unfrag_eras::Pfn;

/// A stream of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamConfig {
    /// Time from one frame to the next.
    pub interval: Nanos,
    /// Order of the block that a frame needs.
    pub order: u8,
    /// Frames that it consists of.
    pub frames: u64,
    /// Frames that may wait for the reader.
    pub window: u32,
    /// Time after which a lost frame is sent again.
    pub retransmit: Nanos,
}

impl StreamConfig {
    /// Bytes of data of a frame.
    pub const DATA: u64 = 1_448;

    /// A stream of `bytes` at a rate in bytes a second, in frames of 1,448 bytes of data, with a
    /// window of 128 KiB and TCP's usual 200 ms.
    pub fn paced(bytes: u64, rate: u64, order: u8) -> StreamConfig {
        StreamConfig {
            interval: (Self::DATA * 1_000_000_000 / rate.max(1)).max(1),
            order,
            frames: bytes.div_ceil(Self::DATA),
            window: (128 << 10) / Self::DATA as u32,
            retransmit: 200_000_000,
        }
    }
}

/// Counters of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamStats {
    /// Frames received.
    pub received: u64,
    /// Frames that the reader took.
    pub read: u64,
    /// Frames lost for lack of memory, each time.
    pub lost: u64,
    /// Times that the window was full.
    pub stopped: u64,
}

/// A stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamId(pub(crate) u32);

pub(crate) struct Stream {
    pub(crate) config: StreamConfig,
    pub(crate) queue: VecDeque<(Pfn, Obj)>,
    pub(crate) stats: StreamStats,
    /// Whether the window is full, so that the sender waits for the reader.
    pub(crate) stopped: bool,
}

/// All streams.
#[derive(Default)]
pub struct Net {
    pub(crate) streams: Vec<Stream>,
}

impl Net {
    /// Frames that wait to be read, over all streams, and their pages.
    pub fn waiting(&self) -> (u64, u64) {
        self.streams.iter().fold((0, 0), |(n, pages), s| {
            let len = s.queue.len() as u64;
            (n + len, pages + (len << s.config.order))
        })
    }

    /// Counters of a stream.
    pub fn stats(&self, stream: StreamId) -> StreamStats {
        self.streams[stream.0 as usize].stats
    }

    /// Counters over all streams.
    pub fn totals(&self) -> StreamStats {
        let mut t = StreamStats::default();
        for s in &self.streams {
            t.received += s.stats.received;
            t.read += s.stats.read;
            t.lost += s.stats.lost;
            t.stopped += s.stats.stopped;
        }
        t
    }
}
