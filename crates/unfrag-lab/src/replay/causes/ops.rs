//! The operations of a replay, in compact columns.
//!
//! An [`Op`] has 24 bytes, of which most are the same from one to the next. Here it takes 12, in chunks that are
//! decoded one at a time: the time since the chunk's first operation, the frame, and small numbers for the action, the
//! flags of the request, and the task with its CPU. What is rare has words of its own.
//!
//! Invariant: operations come out as they were put in, in the same order, wherever a chunk lies.

use super::operations::{Action, Op};
use crate::error::{Error, Result};
use crate::input::store::{Room, Store};
use std::ops::Range;
use std::sync::Arc;
use unfrag_eras::{Gfp, NodeId};

/// Operations of a chunk, at most: decoded, they stay in a CPU's cache.
const CHUNK_OPS: usize = 4096;
/// Bytes of an operation.
const OP_BYTES: usize = 12;
/// Bytes of a task with its CPU.
const TASK_BYTES: usize = 6;
/// Orders that the tag of an operation holds; larger ones have a word of their own.
const WIDE_ORDER: u8 = 15;
/// Slots in which a task or a request's flags are looked for first.
const SLOTS: usize = 256;

/// Operations in the order of time.
#[derive(Debug, Default)]
pub struct Ops {
    chunks: Vec<Chunk>,
    store: Store,
    open: Encoder,
    len: usize,
    /// The first failure to store a chunk.
    failed: Option<Error>,
}

/// A chunk in the store.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    /// Number of its first operation.
    first: usize,
    /// Time of its first operation.
    base: u64,
    ops: u32,
    tasks: u32,
    gfps: u32,
    block: usize,
}

impl Chunk {
    fn range(&self) -> Range<usize> {
        self.first..self.first + self.ops as usize
    }
}

impl Ops {
    /// No operations; chunks are kept in this room.
    pub(crate) fn new(room: &Arc<Room>) -> Ops {
        Ops {
            store: Store::new(room),
            ..Ops::default()
        }
    }

    /// The room in which chunks are kept.
    pub(crate) fn room(&self) -> &Arc<Room> {
        self.store.room()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends an operation. A failure to store it is that of [`finish`](Self::finish).
    #[inline]
    pub(crate) fn push(&mut self, op: &Op) {
        if !self.open.push(op) {
            self.seal();
            self.open.push(op);
        }
        self.len += 1;
    }

    /// Stores what was appended.
    ///
    /// # Errors
    /// If there was no room for it in a file.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.seal();
        self.failed.take().map_or(Ok(()), Err)
    }

    fn seal(&mut self) {
        let open = &mut self.open;
        if open.ops == 0 {
            return;
        }
        let sizes = (
            open.ops as u32,
            open.tasks.len() as u32,
            open.gfps.len() as u32,
        );
        match self.store.push(open.bytes()) {
            Ok(block) => self.chunks.push(Chunk {
                first: self.len - open.ops,
                base: open.base,
                ops: sizes.0,
                tasks: sizes.1,
                gfps: sizes.2,
                block,
            }),
            Err(e) => drop(self.failed.get_or_insert(e.into())),
        }
        open.clear();
    }

    /// The chunk with this number, and the number of its first operation; `None` beyond the last.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn chunk(&self, number: usize, decoder: &mut Decoder) -> Result<Option<usize>> {
        let Some(chunk) = self.chunks.get(number) else {
            return Ok(None);
        };
        let bytes = self.store.get(chunk.block, &mut decoder.bytes)?;
        decode(chunk, bytes, &mut decoder.ops);
        Ok(Some(chunk.first))
    }

    /// The number of the chunk that holds an operation.
    fn chunk_of(&self, index: usize) -> usize {
        self.chunks.partition_point(|c| c.range().end <= index)
    }

    /// Gives each operation of a range, with its number, in order.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn each(&self, range: Range<usize>, mut each: impl FnMut(usize, &Op)) -> Result<()> {
        self.find(range, |i, op| {
            each(i, op);
            false
        })
        .map(|_| ())
    }

    /// Gives all operations, with their numbers, from the last to the first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn each_back(&self, mut each: impl FnMut(usize, &Op)) -> Result<()> {
        let mut decoder = Decoder::default();
        for number in (0..self.chunks.len()).rev() {
            if let Some(first) = self.chunk(number, &mut decoder)? {
                for (i, op) in decoder.ops.iter().enumerate().rev() {
                    each(first + i, op);
                }
            }
        }
        Ok(())
    }

    /// The first operation of a range that is wanted, and its number.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn find(
        &self,
        range: Range<usize>,
        mut is_wanted: impl FnMut(usize, &Op) -> bool,
    ) -> Result<Option<(usize, Op)>> {
        self.find_ahead(range, |i, op, _| is_wanted(i, op))
    }

    /// The same; some of those that come after each, if any, are shown with it.
    ///
    /// # Errors
    /// If they cannot be read.
    #[inline]
    pub(crate) fn find_ahead(
        &self,
        range: Range<usize>,
        mut is_wanted: impl FnMut(usize, &Op, &[Op]) -> bool,
    ) -> Result<Option<(usize, Op)>> {
        if range.is_empty() {
            return Ok(None);
        }
        let mut decoder = Decoder::default();
        let mut number = self.chunk_of(range.start);
        while let Some(first) = self.chunk(number, &mut decoder)? {
            number += 1;
            if first >= range.end {
                break;
            }
            let from = range.start.saturating_sub(first);
            let to = decoder.ops.len().min(range.end - first);
            let ops = &decoder.ops[..to];
            for (i, op) in ops.iter().enumerate().skip(from) {
                if is_wanted(first + i, op, &ops[i + 1..]) {
                    return Ok(Some((first + i, *op)));
                }
            }
        }
        Ok(None)
    }

    /// All operations.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn to_vec(&self) -> Result<Vec<Op>> {
        let mut all = Vec::with_capacity(self.len);
        self.each(0..self.len, |_, op| all.push(*op))?;
        Ok(all)
    }

    /// The time of an operation, which may be among those that are not stored yet.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn time(&self, index: usize) -> Result<Option<u64>> {
        if index >= self.len {
            return Ok(None);
        }
        let mut buffer = vec![];
        let (base, bytes, at) = match self.chunks.get(self.chunk_of(index)) {
            Some(chunk) => {
                let bytes = self.store.get(chunk.block, &mut buffer)?;
                (chunk.base, bytes, index - chunk.first)
            }
            None => {
                let stored = self.len - self.open.ops;
                (self.open.base, &self.open.words[..], index - stored)
            }
        };
        Ok(Some(base.wrapping_add_signed(delta(bytes, at))))
    }

    /// The number of the first operation at or after a time.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn at(&self, time: u64) -> Result<usize> {
        let stored = self.len - self.open.ops;
        let number = self.chunks.partition_point(|c| c.base < time);
        let mut buffer = vec![];
        let (first, base, bytes, ops) = match number {
            0 if !self.chunks.is_empty() => return Ok(0),
            _ if number == self.chunks.len() && self.open.ops > 0 && self.open.base < time => {
                (stored, self.open.base, &self.open.words[..], self.open.ops)
            }
            0 => return Ok(stored),
            _ => {
                let chunk = &self.chunks[number - 1];
                let bytes = self.store.get(chunk.block, &mut buffer)?;
                (chunk.first, chunk.base, bytes, chunk.ops as usize)
            }
        };
        let (mut low, mut high) = (0, ops);
        while low < high {
            let middle = low + (high - low) / 2;
            match base.wrapping_add_signed(delta(bytes, middle)) < time {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(first + low)
    }

    /// Puts operations in, each before the one with the number beside it, or at the end. Those before the same one stay
    /// in their order.
    ///
    /// # Errors
    /// If operations cannot be read or stored.
    pub(crate) fn insert(&mut self, mut inserts: Vec<(usize, Op)>) -> Result<()> {
        self.seal();
        if inserts.is_empty() {
            return self.finish();
        }
        inserts.sort_by_key(|(before, _)| *before);
        let mut inserts = inserts.into_iter().peekable();
        let mut decoder = Decoder::default();
        let old = std::mem::take(&mut self.chunks);
        self.len = 0;
        for chunk in old {
            if inserts.peek().is_none_or(|i| i.0 >= chunk.range().end) {
                self.seal();
                let first = self.len;
                self.len += chunk.ops as usize;
                self.chunks.push(Chunk { first, ..chunk });
                continue;
            }
            let bytes = self.store.get(chunk.block, &mut decoder.bytes)?;
            decode(&chunk, bytes, &mut decoder.ops);
            self.store.remove(chunk.block);
            for (i, op) in chunk.range().zip(&decoder.ops) {
                while let Some((_, insert)) = inserts.next_if(|insert| insert.0 <= i) {
                    self.push(&insert);
                }
                self.push(op);
            }
        }
        inserts.for_each(|(_, op)| self.push(&op));
        self.finish()
    }
}

impl FromIterator<Op> for Ops {
    /// Operations in memory.
    fn from_iter<I: IntoIterator<Item = Op>>(all: I) -> Ops {
        let mut ops = Ops::default();
        all.into_iter().for_each(|op| ops.push(&op));
        ops.seal();
        ops
    }
}

/// Time of an operation of a chunk since its first.
#[inline]
fn delta(bytes: &[u8], index: usize) -> i64 {
    i64::from(word(bytes, index * OP_BYTES) as i32)
}

#[inline]
fn word(bytes: &[u8], at: usize) -> u32 {
    match bytes.get(at..at + 4).and_then(|b| b.first_chunk::<4>()) {
        Some(word) => u32::from_le_bytes(*word),
        None => 0,
    }
}

/// A chunk, decoded.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    bytes: Vec<u8>,
    /// Its operations.
    pub(crate) ops: Vec<Op>,
}

/// The kinds of actions, as tags number them.
mod kind {
    pub(super) const ALLOC: u8 = 0;
    pub(super) const ALLOC_RACED: u8 = 1;
    pub(super) const ALLOC_FAILED: u8 = 2;
    pub(super) const FREE: u8 = 3;
    pub(super) const FREE_RECLAIMED: u8 = 4;
    pub(super) const FREE_UNSEEN: u8 = 5;
    pub(super) const STACK: u8 = 6;
    pub(super) const ALLOC_UNSEEN: u8 = 7;
    pub(super) const MOVED: u8 = 8;
    pub(super) const MOVED_AWAY: u8 = 9;
    pub(super) const MOVED_TO: u8 = 10;
    pub(super) const KSWAPD_BEGINS: u8 = 11;
    pub(super) const KSWAPD_ENDS: u8 = 12;
    pub(super) const DRAIN_ALL: u8 = 13;
}

/// An action in parts: kind, order, flags of the request, and two words.
#[derive(Clone, Copy, Default)]
struct Parts {
    kind: u8,
    order: u8,
    gfp: Option<Gfp>,
    word: u32,
    second: Option<u32>,
}

impl From<Action> for Parts {
    #[inline]
    fn from(action: Action) -> Parts {
        let block = |kind, order, word, gfp| Parts {
            kind,
            order,
            gfp,
            word,
            second: None,
        };
        let second = |parts, second| Parts {
            second: Some(second),
            ..parts
        };
        match action {
            Action::Alloc { order, pfn, gfp } => {
                block(kind::ALLOC, order, pfn.get(), Some(gfp.get()))
            }
            Action::AllocRaced { order, pfn, gfp } => {
                block(kind::ALLOC_RACED, order, pfn.get(), Some(gfp.get()))
            }
            Action::AllocFailed { order, gfp } => {
                block(kind::ALLOC_FAILED, order, 0, Some(gfp.get()))
            }
            Action::Free { order, pfn } => block(kind::FREE, order, pfn.get(), None),
            Action::FreeReclaimed { order, pfn } => {
                block(kind::FREE_RECLAIMED, order, pfn.get(), None)
            }
            Action::FreeUnseen { order, pfn } => block(kind::FREE_UNSEEN, order, pfn.get(), None),
            Action::Stack { index } => block(kind::STACK, 0, index.get(), None),
            Action::AllocUnseen { pages } => block(kind::ALLOC_UNSEEN, 0, pages.get(), None),
            Action::Moved { order, pfn, to } => {
                second(block(kind::MOVED, order, pfn.get(), None), to.get())
            }
            Action::MovedAway { order, pfn, number } => second(
                block(kind::MOVED_AWAY, order, pfn.get(), None),
                number.get(),
            ),
            Action::MovedTo { pfn, number } => {
                second(block(kind::MOVED_TO, 0, pfn.get(), None), number.get())
            }
            Action::KswapdBegins { node } => block(kind::KSWAPD_BEGINS, 0, node.0.into(), None),
            Action::KswapdEnds { node } => block(kind::KSWAPD_ENDS, 0, node.0.into(), None),
            Action::DrainAll => block(kind::DRAIN_ALL, 0, 0, None),
        }
    }
}

/// A chunk that is being written.
#[derive(Debug)]
struct Encoder {
    ops: usize,
    base: u64,
    words: Vec<u8>,
    tasks: Vec<(u32, u16)>,
    task_slots: Box<[u16; SLOTS]>,
    gfps: Vec<Gfp>,
    gfp_slots: Box<[u8; SLOTS]>,
    /// Rare words, in the order in which they are read.
    rare: Vec<u32>,
}

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder {
            ops: 0,
            base: 0,
            words: vec![],
            tasks: vec![],
            task_slots: Box::new([0; SLOTS]),
            gfps: vec![],
            gfp_slots: Box::new([0; SLOTS]),
            rare: vec![],
        }
    }
}

impl Encoder {
    /// Appends an operation, if it fits in this chunk.
    #[inline]
    fn push(&mut self, op: &Op) -> bool {
        if self.ops == 0 {
            self.base = op.time;
        }
        let since = op.time.wrapping_sub(self.base) as i64;
        let (Ok(since), true) = (i32::try_from(since), self.ops < CHUNK_OPS) else {
            return false;
        };
        let parts = Parts::from(op.action);
        let gfp = match parts.gfp {
            None => 0,
            Some(gfp) => match self.gfp(gfp) {
                Some(gfp) => gfp,
                None => return false,
            },
        };
        let task = self.task(op.task, op.cpu);
        let order = parts.order.min(WIDE_ORDER);
        if order == WIDE_ORDER {
            self.rare.push(parts.order.into());
        }
        self.rare.extend(parts.second);
        let tag = u32::from(parts.kind | order << 4) | u32::from(gfp) << 8 | u32::from(task) << 16;
        let mut bytes = [0; OP_BYTES];
        bytes[..4].copy_from_slice(&since.to_le_bytes());
        bytes[4..8].copy_from_slice(&parts.word.to_le_bytes());
        bytes[8..].copy_from_slice(&tag.to_le_bytes());
        self.words.extend_from_slice(&bytes);
        self.ops += 1;
        true
    }

    /// The number of a task with its CPU in this chunk. There are never more than operations.
    #[inline]
    fn task(&mut self, task: u32, cpu: u16) -> u16 {
        let slot = &mut self.task_slots[(task as usize * 7 + usize::from(cpu)) % SLOTS];
        if self.tasks.get(usize::from(*slot)) != Some(&(task, cpu)) {
            *slot = self.tasks.len() as u16;
            self.tasks.push((task, cpu));
        }
        *slot
    }

    /// The number of a request's flags in this chunk; `None` if there are too many of them.
    #[inline]
    fn gfp(&mut self, gfp: Gfp) -> Option<u8> {
        let hash = gfp.bits().wrapping_mul(0x9e37_79b1) >> 24;
        let slot = &mut self.gfp_slots[hash as usize % SLOTS];
        if self.gfps.get(usize::from(*slot)) != Some(&gfp) {
            *slot = u8::try_from(self.gfps.len()).ok()?;
            self.gfps.push(gfp);
        }
        Some(*slot)
    }

    /// The chunk's bytes: the operations, then tasks, flags and rare words.
    fn bytes(&mut self) -> &[u8] {
        for (task, cpu) in &self.tasks {
            self.words.extend_from_slice(&task.to_le_bytes());
            self.words.extend_from_slice(&cpu.to_le_bytes());
        }
        let gfps = self.gfps.iter().map(|g| g.bits());
        for word in gfps.chain(self.rare.iter().copied()) {
            self.words.extend_from_slice(&word.to_le_bytes());
        }
        &self.words
    }

    fn clear(&mut self) {
        self.ops = 0;
        self.words.clear();
        self.tasks.clear();
        self.gfps.clear();
        self.rare.clear();
    }
}

/// Decodes a chunk.
fn decode(chunk: &Chunk, bytes: &[u8], ops: &mut Vec<Op>) {
    let (words, rest) = bytes.split_at(chunk.ops as usize * OP_BYTES);
    let (tasks, rest) = rest.split_at(chunk.tasks as usize * TASK_BYTES);
    let (gfps, rare) = rest.split_at(chunk.gfps as usize * 4);
    let mut rare = (0..rare.len()).step_by(4).map(|at| word(rare, at));
    let mut gfp_of = [Gfp::empty(); SLOTS];
    for (i, gfp) in gfp_of.iter_mut().enumerate().take(chunk.gfps as usize) {
        *gfp = Gfp::from_bits_retain(word(gfps, i * 4));
    }
    ops.clear();
    let decoded = words.chunks_exact(OP_BYTES).map(|op| {
        let tag = word(op, 8);
        let at = (tag >> 16) as usize * TASK_BYTES;
        let task = word(tasks, at);
        let cpu = u16::from_le_bytes([tasks[at + 4], tasks[at + 5]]);
        let mut next = || rare.next().unwrap_or(0);
        let order = match (tag >> 4) as u8 & 15 {
            WIDE_ORDER => next() as u8,
            order => order,
        };
        let gfp = gfp_of[(tag >> 8) as usize % SLOTS].into();
        let word_of = word(op, 4);
        let pfn = word_of.into();
        let node = NodeId(word_of as u8);
        let action = match tag as u8 & 15 {
            kind::ALLOC => Action::Alloc { order, pfn, gfp },
            kind::ALLOC_RACED => Action::AllocRaced { order, pfn, gfp },
            kind::ALLOC_FAILED => Action::AllocFailed { order, gfp },
            kind::FREE => Action::Free { order, pfn },
            kind::FREE_RECLAIMED => Action::FreeReclaimed { order, pfn },
            kind::FREE_UNSEEN => Action::FreeUnseen { order, pfn },
            kind::STACK => Action::Stack { index: pfn },
            kind::ALLOC_UNSEEN => Action::AllocUnseen { pages: pfn },
            kind::MOVED => Action::Moved {
                order,
                pfn,
                to: next().into(),
            },
            kind::MOVED_AWAY => Action::MovedAway {
                order,
                pfn,
                number: next().into(),
            },
            kind::MOVED_TO => Action::MovedTo {
                pfn,
                number: next().into(),
            },
            kind::KSWAPD_BEGINS => Action::KswapdBegins { node },
            kind::KSWAPD_ENDS => Action::KswapdEnds { node },
            _ => Action::DrainAll,
        };
        Op {
            time: chunk.base.wrapping_add_signed(delta(op, 0)),
            task,
            cpu,
            action,
        }
    });
    ops.extend(decoded);
}

#[cfg(test)]
mod tests;
