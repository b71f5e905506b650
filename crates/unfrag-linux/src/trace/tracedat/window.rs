//! A window over the sub-buffers of a CPU: what is read of them at a time, decompressed.
//!
//! Invariant: the window holds a whole sub-buffer, or all that is left.

use crate::error::{Error, Result};
use crate::trace::bytes::u32_at;
use crate::trace::meter::Meter;
use crate::trace::source::Source;
use crate::trace::unpack::{self, Packing};

use super::contents::CpuData;

/// Bytes read at a time.
const STEP: u64 = 256 << 10;

/// The window.
pub(super) struct Window<'a> {
    source: Source<'a>,
    big_endian: bool,
    /// What is not read yet: where it begins in the source, and its bytes there.
    at: u64,
    left: u64,
    packing: Option<Packing>,
    /// Chunks that are not read yet; `None` before their number was read.
    chunks: Option<u32>,
    bytes: Vec<u8>,
    /// Bytes of this CPU before those.
    before: u64,
    meter: Meter,
}

impl<'a> Window<'a> {
    /// Before the first byte.
    pub fn new(data: &CpuData<'a>, meter: &Meter, big_endian: bool) -> Self {
        Window {
            source: data.source,
            big_endian,
            at: data.offset,
            left: data.size,
            packing: data.packing,
            chunks: None,
            bytes: vec![],
            before: 0,
            meter: meter.clone(),
        }
    }

    /// The bytes in it.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of this CPU before those in it.
    pub fn before(&self) -> u64 {
        self.before
    }

    /// Moves it to byte `from` of those in it, so that it holds `wanted` bytes or all that is left.
    pub fn advance(&mut self, from: usize, wanted: usize) -> Result<()> {
        self.bytes.drain(..from);
        self.before += from as u64;
        while self.bytes.len() < wanted && self.read_more()? {}
        Ok(())
    }

    /// Reads more; false if nothing is left.
    fn read_more(&mut self) -> Result<bool> {
        let Some(packing) = self.packing else {
            let size = self.left.min(STEP);
            if size == 0 {
                return Ok(false);
            }
            let old = self.bytes.len();
            self.bytes.resize(old + size as usize, 0);
            self.source.read(self.at, &mut self.bytes[old..])?;
            self.pass(size);
            return Ok(true);
        };
        if self.left == 0 {
            return Ok(false);
        }
        let chunks = match self.chunks {
            Some(n) => n,
            None => self.number("the number of chunks")?,
        };
        self.chunks = Some(chunks.saturating_sub(1));
        if chunks == 0 {
            self.left = 0;
            return Ok(false);
        }
        let at = self.at;
        let size = self.number("the compressed size of a chunk")?;
        let unpacked = self.number("the size of a chunk")?;
        self.check(size.into(), "a chunk")?;
        let packed = self.source.bytes(self.at, size.into(), "a chunk")?;
        self.pass(size.into());
        let cap = unpack::cap(size.into()).saturating_add(self.bytes.len() as u64);
        unpack::block(packing, &packed, unpacked.into(), cap, &mut self.bytes)
            .map_err(|e| e.at(at))?;
        Ok(true)
    }

    fn number(&mut self, what: &'static str) -> Result<u32> {
        self.check(4, what)?;
        let bytes = self.source.bytes(self.at, 4, what)?;
        self.pass(4);
        Ok(u32_at(&bytes, 0, self.big_endian))
    }

    fn check(&self, size: u64, what: &'static str) -> Result<()> {
        match size > self.left {
            true => Err(Error::truncated(what, size, self.left).at(self.at)),
            false => Ok(()),
        }
    }

    fn pass(&mut self, size: u64) {
        self.at += size;
        self.left -= size;
        self.meter.add(size);
    }
}
