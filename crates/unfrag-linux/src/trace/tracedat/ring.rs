//! The kernel's ring buffer: entries in sub-buffers.
//!
//! A sub-buffer begins with a time and the number of bytes committed; entries follow, each a 32-bit
//! head (5 bits of type, 27 bits of time since the entry before) and what the type says:
//! - 1 to 28: a record of 4 times the type bytes;
//! - 0: its length (the length word included) in the next word, then the record;
//! - 29: padding, to the end if its time is 0, else of the length in the next word;
//! - 30: the next word extends the time (27 bits up);
//! - 31: an absolute time of 59 bits, split likewise.
//!
//! Invariant: a record that the cursor gives lies within its sub-buffer's committed bytes, and stays until the next.

use crate::error::{Error, Result};
use crate::trace::bytes::{u32_at, u64_at};
use crate::trace::meter::Meter;

use super::contents::{CpuData, PageLayout};
use super::window::Window;
use std::ops::Range;

/// Of the commit word: the bytes committed.
const COMMITTED: u64 = (1 << 27) - 1;
/// Of the commit word: events were lost before this sub-buffer.
const MISSED: u64 = 1 << 31;
/// Of the commit word: their number follows the committed bytes.
const MISSED_STORED: u64 = 1 << 30;

/// Bits of time in an entry's head.
const DELTA_BITS: u32 = 27;
/// Bits of an absolute time; the rest comes from the time before.
const ABSOLUTE_BITS: u32 = DELTA_BITS + 32;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// A cursor over the records of one CPU.
pub(super) struct Cursor<'a> {
    window: Window<'a>,
    cpu: u16,
    file_offset: u64,
    sub_buffer: usize,
    layout: PageLayout,
    big_endian: bool,
    /// Where the next sub-buffer begins in the window.
    next_sub_buffer: usize,
    pos: usize,
    end: usize,
    time: u64,
    record: Range<usize>,
    lost: Option<Option<u64>>,
}

impl<'a> Cursor<'a> {
    /// Starts before the first record.
    pub fn new(
        data: &CpuData<'a>,
        meter: &Meter,
        sub_buffer: u32,
        layout: PageLayout,
        big_endian: bool,
    ) -> Self {
        Cursor {
            window: Window::new(data, meter, big_endian),
            cpu: data.cpu,
            file_offset: data.offset,
            sub_buffer: sub_buffer as usize,
            layout,
            big_endian,
            next_sub_buffer: 0,
            pos: 0,
            end: 0,
            time: 0,
            record: 0..0,
            lost: None,
        }
    }
    /// The CPU.
    pub fn cpu(&self) -> u16 {
        self.cpu
    }
    /// Events lost before the record given last (or before the end, once that was reached).
    pub fn take_lost(&mut self) -> Option<Option<u64>> {
        self.lost.take()
    }
    /// Bytes of the record that [`Cursor::next`] found.
    #[inline]
    pub fn record(&self) -> &[u8] {
        &self.window.bytes()[self.record.clone()]
    }
    /// Time of the next record; `None` at the end.
    #[inline]
    pub fn next(&mut self) -> Result<Option<u64>> {
        loop {
            if self.pos >= self.end {
                if !self.open_sub_buffer()? {
                    return Ok(None);
                }
                continue;
            }
            let at = self.pos;
            let head = self.word(at)?;
            let (kind, delta) = if self.big_endian {
                (head >> DELTA_BITS, head & ((1 << DELTA_BITS) - 1))
            } else {
                (head & 31, head >> 5)
            };
            match kind {
                0 => {
                    let length = self.word(at + 4)? as usize;
                    if length < 4 {
                        return Err(self.bad(at, "an entry without a length"));
                    }
                    self.time = self.time.wrapping_add(delta.into());
                    self.set_record(at + 8, length - 4)?;
                    self.pos = at + 4 + length.next_multiple_of(4);
                    return Ok(Some(self.time));
                }
                PADDING if delta == 0 => self.pos = self.end,
                PADDING => {
                    let length = self.word(at + 4)? as usize;
                    self.time = self.time.wrapping_add(delta.into());
                    self.pos = at + 4 + length.next_multiple_of(4).max(4);
                }
                TIME_EXTEND => {
                    let high = u64::from(self.word(at + 4)?) << DELTA_BITS;
                    self.time = self.time.wrapping_add(high + u64::from(delta));
                    self.pos = at + 8;
                }
                TIME_STAMP => {
                    let high = u64::from(self.word(at + 4)?) << DELTA_BITS;
                    let above = self.time >> ABSOLUTE_BITS << ABSOLUTE_BITS;
                    self.time = above | high | u64::from(delta);
                    self.pos = at + 8;
                }
                words => {
                    self.time = self.time.wrapping_add(delta.into());
                    self.set_record(at + 4, words as usize * 4)?;
                    self.pos = self.record.end;
                    return Ok(Some(self.time));
                }
            }
        }
    }
    #[inline]
    fn word(&self, at: usize) -> Result<u32> {
        if at + 4 > self.end {
            return Err(self.bad(at, "an entry beyond the committed bytes"));
        }
        Ok(u32_at(self.window.bytes(), at, self.big_endian))
    }
    #[inline]
    fn set_record(&mut self, at: usize, len: usize) -> Result<()> {
        match at.checked_add(len) {
            Some(end) if end <= self.end => {
                self.record = at..end;
                Ok(())
            }
            _ => Err(self.bad(at, "a record beyond the committed bytes")),
        }
    }
    /// Reads the head of the next sub-buffer; false if there is none.
    fn open_sub_buffer(&mut self) -> Result<bool> {
        if self.window.bytes().len() < self.next_sub_buffer + self.sub_buffer {
            let from = self.next_sub_buffer.min(self.window.bytes().len());
            (self.pos, self.end, self.next_sub_buffer, self.record) = (0, 0, 0, 0..0);
            self.window.advance(from, self.sub_buffer)?;
        }
        let start = self.next_sub_buffer;
        let data = self.window.bytes();
        let left = data.len() - start;
        if left == 0 {
            return Ok(false);
        }
        if left < self.layout.data_at {
            return Err(self.bad(start, "a sub-buffer that is cut off"));
        }
        let room = left.min(self.sub_buffer);
        self.time = u64_at(data, start + self.layout.time_at, self.big_endian);
        let at = start + self.layout.commit_at;
        let commit = match self.layout.commit_size {
            8 => u64_at(data, at, self.big_endian),
            _ => u64::from(u32_at(data, at, self.big_endian)),
        };
        let committed = (commit & COMMITTED) as usize;
        let data_at = start + self.layout.data_at;
        if committed > room - self.layout.data_at {
            return Err(self.bad(
                start,
                "a sub-buffer with more bytes committed than it has room for",
            ));
        }
        self.pos = data_at;
        self.end = data_at + committed;
        self.next_sub_buffer = start + room;
        if commit & MISSED != 0 {
            let long = self.layout.commit_size;
            let stored = commit & MISSED_STORED != 0 && self.end + long <= start + room;
            let count = match (stored, long) {
                (false, _) => None,
                (true, 8) => Some(u64_at(data, self.end, self.big_endian)),
                (true, _) => Some(u32_at(data, self.end, self.big_endian).into()),
            };
            // A gap right after a gap (no record in between) is one gap.
            self.lost = match (self.lost, count) {
                (Some(Some(a)), Some(b)) => Some(Some(a.saturating_add(b))),
                (Some(_), _) => Some(None),
                (None, count) => Some(count),
            };
        }
        Ok(true)
    }
    #[cold]
    fn bad(&self, at: usize, what: &str) -> Error {
        let (cpu, at) = (self.cpu, self.window.before() + at as u64);
        Error::malformed(format!("{what}, at byte {at} of CPU {cpu}"))
            .at(self.file_offset)
            .help("the recording is damaged: record it again")
    }
}
