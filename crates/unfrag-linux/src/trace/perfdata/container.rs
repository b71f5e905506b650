//! The container: header, attributes, features, and the position of each record.
//!
//! A file begins with a header of 104 bytes that says where attributes, data and features are; what
//! came through a pipe begins with one of 16 bytes, and everything else is a record. Compressed
//! records together hold one zstd stream of further records.
//!
//! Invariant: all sections lie within the file; [`Container::record_at`] gives what
//! [`Container::records`] has checked.

use std::collections::HashMap;

use linux_perf_event_reader::{AttrFlags, SampleFormat};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::error::{Error, Result};
use crate::trace::bytes::Bytes;
use crate::trace::bytes::{u16_at, u32_at, u64_at};
use crate::trace::event::columns::MAX_CPUS;
use crate::trace::unpack;

use super::attribute::{Attribute, Identity};

/// What a `perf.data` begins with, on a little-endian host.
pub const MAGIC: &[u8] = b"PERFILE2";
/// What a `perf.data` begins with, on a big-endian host.
pub const MAGIC_BIG_ENDIAN: &[u8] = b"2ELIFREP";

/// Numbers of the feature sections.
pub(super) mod feature {
    pub const TRACING_DATA: u32 = 1;
    pub const OS_RELEASE: u32 = 4;
    pub const VERSION: u32 = 5;
    pub const ARCH: u32 = 6;
    pub const NR_CPUS: u32 = 7;
    pub const COMMAND_LINE: u32 = 11;
}

/// Types of the records that perf itself writes.
mod user {
    pub const HEADER_ATTR: u32 = 64;
    pub const TRACING_DATA: u32 = 66;
    pub const AUXTRACE: u32 = 71;
    pub const HEADER_FEATURE: u32 = 80;
    pub const COMPRESSED: u32 = 81;
    pub const COMPRESSED2: u32 = 83;
}

/// Bytes of a record's head.
const HEAD: usize = 8;

/// A record before it is parsed: type and content.
#[derive(Clone, Copy)]
pub(super) struct RawRecord<'a> {
    pub kind: u32,
    pub body: &'a [u8],
    /// Where it is in the file.
    pub offset: u64,
}

/// A `perf.data` taken apart.
pub(super) struct Container<'a> {
    pub big_endian: bool,
    pub attributes: Vec<Attribute>,
    /// How a sample tells its attribute.
    pub identity: Identity,
    /// The attribute of each event id.
    by_id: HashMap<u64, usize>,
    /// The tracing data and where they begin.
    pub tracing: Option<(&'a [u8], u64)>,
    pub clock: String,
    pipe: bool,
    features: HashMap<u32, &'a [u8]>,
    /// The records, and where they begin in the file.
    data: &'a [u8],
    data_at: u64,
    unpacked: Vec<u8>,
}

impl<'a> Container<'a> {
    /// Takes `data` apart.
    pub fn read(data: &'a [u8]) -> Result<Self> {
        let big_endian = match data.get(..8) {
            Some(m) if m == MAGIC => false,
            Some(m) if m == MAGIC_BIG_ENDIAN => true,
            _ => return Err(Error::malformed("the magic of a perf.data is missing").at(0)),
        };
        let mut b = Bytes::new(data, 0, big_endian);
        b.take(8, "the magic")?;
        let header_size = b.u64("the size of the header")?;
        let mut container = Container {
            big_endian,
            attributes: Vec::new(),
            identity: Identity::First,
            by_id: HashMap::new(),
            tracing: None,
            clock: "perf".to_owned(),
            pipe: header_size == 16,
            features: HashMap::new(),
            data: &data[16..],
            data_at: 16,
            unpacked: Vec::new(),
        };
        if !container.pipe {
            container.read_file_header(data, b)?;
        }
        container.walk()?;
        if container.attributes.is_empty() {
            return Err(Error::malformed("the file describes no event").at(16));
        }
        container.identity = Identity::of(&container.attributes);
        Ok(container)
    }

    fn read_file_header(&mut self, data: &'a [u8], mut b: Bytes<'a>) -> Result<()> {
        let attr_size = b.u64("the size of an attribute")?;
        let attrs = section(data, &mut b, "the attributes")?;
        let records = section(data, &mut b, "the records")?;
        section(data, &mut b, "the event types")?;
        let mut bits = [0; 4];
        for word in &mut bits {
            *word = b.u64("the features")?;
        }
        // A file that was not finished says that it holds no data.
        if records.0.is_empty() {
            let e = Error::malformed("the file holds no records; its recorder did not finish");
            return Err(e
                .at(40)
                .help("record again, and end perf with SIGINT or SIGTERM"));
        }
        (self.data, self.data_at) = records;

        if attr_size < 80 {
            return Err(Error::malformed(format!("attributes of {attr_size} bytes")).at(16));
        }
        let mut a = Bytes::new(attrs.0, attrs.1, self.big_endian);
        let mut all_ids = 0;
        while a.left() as u64 >= attr_size {
            let at = a.offset();
            let one = a.take(attr_size, "an attribute")?;
            let (attr, ids) = one.split_at(one.len() - 16);
            let mut ids = Bytes::new(ids, at, self.big_endian);
            let ids = section(data, &mut ids, "the ids of an event")?;
            // Each event has its own ids, so together they fit into the file.
            all_ids += ids.0.len();
            if all_ids > data.len() {
                return Err(Error::malformed("the ids of events overlap").at(at));
            }
            self.add_attribute(attr, ids.0, at)?;
        }

        let table_at = records.1 + records.0.len() as u64;
        let rest = data.get(table_at as usize..).unwrap_or_default();
        let mut table = Bytes::new(rest, table_at, self.big_endian);
        for id in (0..256).filter(|id| bits[id / 64] >> (id % 64) & 1 != 0) {
            let (content, at) = section(data, &mut table, "a feature")?;
            if id as u32 == feature::TRACING_DATA {
                self.tracing = Some((content, at));
            }
            self.features.insert(id as u32, content);
        }
        Ok(())
    }

    /// Adds an attribute: type, size, config, period, sample and read format, flags, ...
    fn add_attribute(&mut self, attr: &[u8], ids: &[u8], at: u64) -> Result<()> {
        let mut b = Bytes::new(attr, at, self.big_endian);
        let what = "an attribute";
        let kind = b.u32(what)?;
        b.take(20, what)?;
        let sample_format = SampleFormat::from_bits_retain(b.u64(what)?);
        let read_format = b.u64(what)?;
        let flags = AttrFlags::from_bits_retain(b.u64(what)?);
        const TRACEPOINT: u32 = 2;
        const CLOCK_ID_AT: usize = 92;
        if flags.contains(AttrFlags::USE_CLOCKID) && attr.len() >= CLOCK_ID_AT + 4 {
            self.clock = clock_name(u32_at(attr, CLOCK_ID_AT, self.big_endian));
        }
        for id in ids.chunks_exact(8) {
            let id = u64_at(id, 0, self.big_endian);
            self.by_id.insert(id, self.attributes.len());
        }
        self.attributes.push(Attribute {
            tracepoint: kind == TRACEPOINT,
            sample_format,
            read_format,
            sample_id_all: flags.contains(AttrFlags::SAMPLE_ID_ALL),
        });
        Ok(())
    }

    /// Goes through all records once: decompresses them, and takes what a pipe holds in records instead of
    /// sections.
    fn walk(&mut self) -> Result<()> {
        let mut decoder = None;
        let mut packed = 0;
        let (data, data_at) = (self.data, self.data_at);
        let mut at = 0;
        while let Some((raw, next)) = self.split(data, at, data_at)? {
            let mut b = Bytes::new(raw.body, raw.offset + HEAD as u64, self.big_endian);
            match raw.kind {
                user::HEADER_ATTR if self.pipe => {
                    let size = raw
                        .body
                        .get(4..8)
                        .map_or(0, |s| u32_at(s, 0, self.big_endian));
                    let attr = b.take(size.into(), "an attribute")?;
                    let ids = b.take(b.left() as u64, "the ids of an event")?;
                    self.add_attribute(attr, ids, raw.offset)?;
                }
                user::TRACING_DATA if self.pipe => {
                    let size = b.u32("the size of the tracing data")? as usize;
                    // The tracing data follow their record.
                    let start = at + HEAD + raw.body.len();
                    let end = start.saturating_add(size);
                    let Some(content) = data.get(start..end) else {
                        let left = data.len() - start;
                        let e = Error::truncated("tracing data", size as u64, left as u64);
                        return Err(e.at(raw.offset));
                    };
                    self.tracing = Some((content, data_at + start as u64));
                }
                user::HEADER_FEATURE if self.pipe => {
                    let id = b.u64("a feature's number")?;
                    if let Ok(id) = u32::try_from(id) {
                        let content = b.take(b.left() as u64, "a feature")?;
                        self.features.insert(id, content);
                    }
                }
                kind @ (user::COMPRESSED | user::COMPRESSED2) => {
                    let mut size = b.left() as u64;
                    if kind == user::COMPRESSED2 {
                        size = b.u64("the compressed size of records")?;
                    }
                    let content = b.take(size, "compressed records")?;
                    packed += size;
                    let decoder = match &mut decoder {
                        Some(d) => d,
                        none => none.insert(Decoder::new()?),
                    };
                    inflate(decoder, content, unpack::cap(packed), &mut self.unpacked)
                        .map_err(|e| e.at(raw.offset))?;
                }
                _ => {}
            }
            at = next;
        }
        Ok(())
    }

    /// The record at `at` in `data`, and where the next one is.
    fn split<'b>(
        &self,
        data: &'b [u8],
        at: usize,
        base: u64,
    ) -> Result<Option<(RawRecord<'b>, usize)>> {
        let Some(head) = data.get(at..).filter(|d| !d.is_empty()) else {
            return Ok(None);
        };
        let offset = base + at as u64;
        if head.len() < HEAD {
            return Err(Error::truncated("a record", HEAD as u64, head.len() as u64).at(offset));
        }
        let kind = u32_at(head, 0, self.big_endian);
        let size = usize::from(u16_at(head, 6, self.big_endian));
        if size < HEAD {
            return Err(Error::malformed(format!("a record of {size} bytes")).at(offset));
        }
        if size > head.len() {
            return Err(Error::truncated("a record", size as u64, head.len() as u64).at(offset));
        }
        let body = &head[HEAD..size];
        // Records of some types announce data that follow them.
        let behind = match kind {
            user::TRACING_DATA if body.len() >= 4 => {
                u64::from(u32_at(body, 0, self.big_endian)).next_multiple_of(8)
            }
            user::AUXTRACE if body.len() >= 8 => u64_at(body, 0, self.big_endian),
            _ => 0,
        };
        let behind = usize::try_from(behind).unwrap_or(usize::MAX);
        let next = (at + size).saturating_add(behind);
        Ok(Some((RawRecord { kind, body, offset }, next)))
    }

    /// All records, each with its position: plain ones, then those that were compressed.
    pub fn records(&self) -> impl Iterator<Item = (usize, Result<RawRecord<'_>>)> {
        let mut at = 0;
        let all = self.data.len() + self.unpacked.len();
        std::iter::from_fn(move || {
            loop {
                if at >= all {
                    return None;
                }
                let (data, start, base) = self.part_of(at);
                match self.split(data, at - start, base) {
                    Ok(Some((raw, next))) => {
                        let position = at;
                        at = next.saturating_add(start).min(start + data.len());
                        return Some((position, Ok(raw)));
                    }
                    Ok(None) => at = start + data.len(),
                    Err(e) => {
                        at = all;
                        return Some((all, Err(e)));
                    }
                }
            }
        })
    }
    /// The record at a position that [`Container::records`] gave.
    pub fn record_at(&self, position: usize) -> Result<RawRecord<'_>> {
        let (data, start, base) = self.part_of(position);
        match self.split(data, position - start, base)? {
            Some((raw, _)) => Ok(raw),
            None => Err(Error::malformed("a record is missing").at(base)),
        }
    }
    /// Plain records have the positions from 0 on, unpacked ones follow.
    fn part_of(&self, position: usize) -> (&[u8], usize, u64) {
        if position < self.data.len() {
            (self.data, 0, self.data_at)
        } else {
            (&self.unpacked, self.data.len(), self.data_at)
        }
    }
    /// Bytes of all records.
    pub fn size(&self) -> u64 {
        (self.data.len() + self.unpacked.len()) as u64
    }
    /// Name of the format.
    pub fn source(&self) -> &'static str {
        match (self.pipe, self.unpacked.is_empty()) {
            (false, true) => "perf.data",
            (false, false) => "perf.data, compressed",
            (true, true) => "perf.data of a pipe",
            (true, false) => "perf.data of a pipe, compressed",
        }
    }
    /// A feature that is a string: its length, then the string with zeros behind it.
    pub fn feature_text(&self, id: u32) -> Option<String> {
        let mut b = Bytes::new(self.features.get(&id)?, 0, self.big_endian);
        string(&mut b)
    }
    /// The command line of the recorder.
    pub fn command_line(&self) -> Option<String> {
        let content = self.features.get(&feature::COMMAND_LINE)?;
        let mut b = Bytes::new(content, 0, self.big_endian);
        let count = b.u32("").ok()?;
        let words: Option<Vec<String>> = (0..count).map(|_| string(&mut b)).collect();
        Some(words?.join(" "))
    }
    /// CPUs of the host.
    pub fn cpus(&self) -> Option<u32> {
        let content = self.features.get(&feature::NR_CPUS)?;
        let cpus = Bytes::new(content, 0, self.big_endian).u32("").ok();
        cpus.filter(|&n| n <= MAX_CPUS)
    }
    /// The attribute of the event with this id; the first one's, if none has it.
    pub fn attribute_of_id(&self, id: u64) -> &Attribute {
        let index = self.by_id.get(&id).copied().unwrap_or(0);
        &self.attributes[index]
    }
}

fn string(b: &mut Bytes) -> Option<String> {
    let length = b.u32("").ok()?;
    let bytes = b.take(length.into(), "").ok()?;
    let end = bytes.iter().position(|&c| c == 0).unwrap_or(bytes.len());
    Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

/// Reads offset and size; gives the content and the offset.
fn section<'a>(data: &'a [u8], b: &mut Bytes, what: &'static str) -> Result<(&'a [u8], u64)> {
    let at = b.offset();
    let (offset, size) = (b.u64(what)?, b.u64(what)?);
    let left = (data.len() as u64).saturating_sub(offset);
    if size > left {
        return Err(Error::truncated(what, size, left).at(at));
    }
    if size == 0 {
        return Ok((&[], offset));
    }
    Ok((&data[offset as usize..(offset + size) as usize], offset))
}

/// Appends what `packed`, the next part of a zstd stream, holds; `out` may grow up to `cap` bytes.
fn inflate(decoder: &mut Decoder, packed: &[u8], cap: u64, out: &mut Vec<u8>) -> Result<()> {
    let mut input = InBuffer::around(packed);
    let mut buffer = vec![0; 64 << 10];
    loop {
        let mut output = OutBuffer::around(&mut buffer[..]);
        decoder
            .run(&mut input, &mut output)
            .map_err(|e| Error::malformed(format!("zstd data is damaged: {e}")))?;
        let got = output.pos();
        out.extend_from_slice(&buffer[..got]);
        if out.len() as u64 > cap {
            return Err(Error::too_large(
                "the decompressed size in bytes",
                out.len() as u64,
                cap,
            ));
        }
        if got < buffer.len() && input.pos() == packed.len() {
            return Ok(());
        }
    }
}

/// The name of a clock of clock_gettime(2), as trace-cmd would call it where it knows it too.
fn clock_name(id: u32) -> String {
    match id {
        0 => "realtime".into(),
        1 => "mono".into(),
        4 => "mono_raw".into(),
        7 => "boot".into(),
        11 => "tai".into(),
        n => format!("clock {n}"),
    }
}
