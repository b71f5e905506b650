//! Receiving from the network: frames arrive at a rate, each in an interrupt that needs memory at once, and
//! stay until a reader takes them.
//!
//! A frame without memory is lost. The stream stops until it is sent again, as data arrive in order. A slow
//! reader stops the sender by its window.
//!
//! Invariant: every frame that arrived is in the queue, or was read, or was lost and is counted; the blocks
//! of those in the queue are the frame table's network buffers. `spec: 8.3, 8.6`

use crate::channels::NET;
use crate::engine::{Channel, Nanos};
use crate::error::Fail;
use crate::kernel::{Cx, Sim};
use crate::kmem::Obj;
use crate::kmem::caches::CacheKind;
use crate::mm::frames::Use;
use crate::net::{Stream, StreamConfig, StreamId, StreamStats};
use std::collections::VecDeque;
use unfrag_eras::{Gfp, Pfn};

const fn channel(stream: StreamId) -> Channel {
    Channel::new(NET, stream.0 as u64)
}

impl Sim {
    /// Opens a stream: its first frame arrives after one interval.
    pub fn open_stream(&mut self, config: StreamConfig) -> StreamId {
        let streams = &mut self.kernel().net.streams;
        let id = StreamId(streams.len() as u32);
        streams.push(Stream {
            config,
            queue: VecDeque::new(),
            stats: StreamStats::default(),
            stopped: false,
        });
        self.expect_frame(id, config.interval);
        id
    }

    fn expect_frame(&mut self, id: StreamId, after: Nanos) {
        let at = self.now() + after;
        self.interrupt(at, move |sim| sim.frame_arrives(id));
    }

    fn frame_arrives(&mut self, id: StreamId) {
        let cost = self.kernel_ref().config.costs.receive;
        self.kernel().owe(cost);
        let s = &mut self.kernel().net.streams[id.0 as usize];
        let config = s.config;
        if s.queue.len() >= config.window as usize {
            s.stopped = true;
            s.stats.stopped += 1;
        } else if let Some(frame) = self.receive_buffer(config.order) {
            let s = &mut self.kernel().net.streams[id.0 as usize];
            s.queue.push_back(frame);
            s.stats.received += 1;
            if s.stats.received < config.frames {
                self.expect_frame(id, config.interval);
            }
            self.wake(channel(id));
        } else {
            self.kernel().net.streams[id.0 as usize].stats.lost += 1;
            self.expect_frame(id, config.retransmit);
        }
        self.pay_in_interrupt();
    }

    /// A block and a head for a frame, or neither.
    fn receive_buffer(&mut self, order: u8) -> Option<(Pfn, Obj)> {
        let head = self.atomic_object(CacheKind::SkbuffHead)?;
        let gfp = match order {
            0 => Gfp::ATOMIC_MASK,
            _ => Gfp::ATOMIC_MASK | Gfp::COMP,
        };
        match self.alloc_in_interrupt(order, gfp) {
            Ok(pfn) => {
                self.take_kernel(pfn, order, Use::Net);
                Some((pfn, head))
            }
            Err(_) => {
                self.kmem_free(head);
                None
            }
        }
    }

    fn atomic_object(&mut self, kind: CacheKind) -> Option<Obj> {
        let cache = self.cache(kind);
        if let Some(obj) = self.kmem_take(cache) {
            return Some(obj);
        }
        let t = self
            .kernel_ref()
            .kmem
            .tries(cache, Gfp::ATOMIC_MASK, 0, 0)
            .1;
        let pfn = self.alloc_in_interrupt(t.order, t.gfp).ok()?;
        self.kmem_grow(cache, pfn, t.order);
        self.kmem_take(cache)
    }

    /// Removes a frame from the queue for the reader.
    fn take_frame(&mut self, id: StreamId) -> Option<()> {
        let s = &mut self.kernel().net.streams[id.0 as usize];
        let (pfn, head) = s.queue.pop_front()?;
        s.stats.read += 1;
        let interval = s.config.interval;
        let goes_on = std::mem::take(&mut s.stopped);
        self.free_kernel(pfn);
        self.kmem_free(head);
        if goes_on {
            self.expect_frame(id, interval);
        }
        Some(())
    }

    /// Closes a stream: the frames in its queue are freed, and no new one arrives.
    pub fn close_stream(&mut self, id: StreamId) {
        while self.take_frame(id).is_some() {}
        let s = &mut self.kernel().net.streams[id.0 as usize];
        // The frame that is under way is the last.
        s.config.frames = s.stats.received;
        s.config.window = 0;
    }
}

impl Cx<'_> {
    /// Reads `frames` frames of a stream, waiting for each; fewer at its end. Returns how many.
    ///
    /// # Errors
    /// [`Fail::Killed`].
    pub fn receive(&mut self, id: StreamId, frames: u64) -> Result<u64, Fail> {
        let mut got = 0;
        while got < frames {
            if self.killed() {
                return Err(Fail::Killed);
            }
            let (taken, ended) = self.with(|sim| {
                let taken = sim.take_frame(id).is_some();
                let s = &sim.kernel_ref().net.streams[id.0 as usize];
                (taken, s.stats.read >= s.config.frames)
            });
            if taken {
                got += 1;
                let cost = self.with(|sim| sim.kernel_ref().config.costs.read_page) / 2;
                self.with(|sim| sim.kernel().owe(cost));
                self.pay_if_much();
            } else if ended {
                break;
            } else {
                self.wait_killable(channel(id), None);
            }
        }
        self.pay();
        Ok(got)
    }
}
