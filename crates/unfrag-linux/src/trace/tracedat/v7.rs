//! Format 7: sections anywhere in the file, found through a chain of options sections
//! (trace-cmd.dat.v7(5)).
//!
//! Invariant: only the sections that events need are decompressed, each within the cap of
//! [`unpack`].

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::trace::bytes::Bytes;
use crate::trace::unpack;

use super::contents::{
    Contents, CpuData, EventData, check_sizes, check_sub_buffer, read_event_formats,
    read_ftrace_formats, read_headers, slice,
};
use super::header::Header;
use super::options::{Options, id};

/// Most options sections that a file may chain.
const MAX_CHAIN: usize = 100;

/// Flag of a compressed section.
const COMPRESSED: u16 = 1;

/// A buffer, as its option describes it.
struct Buffer {
    /// Where its section is.
    section: u64,
    name: String,
    clock: String,
    /// Where its binary data are; `None` if the events are text.
    binary: Option<Binary>,
}

/// Binary data of a buffer.
struct Binary {
    /// Bytes of a sub-buffer.
    sub_buffer: u32,
    cpus: Vec<CpuRange>,
}

/// Where a CPU's data are.
struct CpuRange {
    cpu: u32,
    offset: u64,
    size: u64,
}

/// Offsets of the sections.
#[derive(Default)]
struct Sections {
    headers: Option<u64>,
    ftrace: Option<u64>,
    events: Option<u64>,
    cmdlines: Option<u64>,
    buffers: Vec<Buffer>,
}

/// Reads the file `data`.
pub(super) fn read<'a>(data: &'a [u8], header: &Header) -> Result<Contents<'a>> {
    let mut options = Options::default();
    let sections = read_options(data, header, &mut options)?;

    let Some(at) = sections.headers else {
        return Err(Error::malformed("there is no section of headers").at(header.options_at));
    };
    let section = Section::read(data, header, at)?;
    let layout = read_headers(&mut section.bytes(header), header)?;
    let mut formats = Vec::new();
    if let Some(at) = sections.ftrace {
        let section = Section::read(data, header, at)?;
        read_ftrace_formats(&mut section.bytes(header), &mut formats)?;
    }
    if let Some(at) = sections.events {
        let section = Section::read(data, header, at)?;
        read_event_formats(&mut section.bytes(header), &mut formats)?;
    }
    let cmdlines = match sections.cmdlines {
        Some(at) => {
            let section = Section::read(data, header, at)?;
            let mut b = section.bytes(header);
            let size = b.u64("the size of the saved command lines")?;
            Cow::Owned(b.take(size, "the saved command lines")?.to_vec())
        }
        None => Cow::Borrowed(&[][..]),
    };

    // The top buffer has no name; a file of instances only has none.
    let mut buffers = sections.buffers;
    if buffers.is_empty() {
        return Err(Error::malformed("there is no buffer of events").at(header.options_at));
    }
    let top = buffers.iter().position(|b| b.name.is_empty()).unwrap_or(0);
    let buffer = buffers.remove(top);
    if !buffers.is_empty() {
        let names: Vec<&str> = buffers.iter().map(|b| b.name.as_str()).collect();
        options
            .facts
            .insert("buffers not read".into(), names.join(", "));
    }
    if !buffer.name.is_empty() {
        options.facts.insert("buffer".into(), buffer.name.clone());
    }
    let meta = options.meta(header, &buffer.clock);
    let events = match buffer.binary {
        None => EventData::Text(Section::read(data, header, buffer.section)?.content),
        Some(Binary { sub_buffer, cpus }) => {
            let sub_buffer = check_sub_buffer(sub_buffer, buffer.section, &layout)?;
            let compressed = section_head(data, header, buffer.section)?.1 & COMPRESSED != 0;
            check_sizes(data, cpus.iter().map(|c| c.size)).map_err(|e| e.at(buffer.section))?;
            let mut all = Vec::new();
            for CpuRange { cpu, offset, size } in cpus {
                let packed = slice(data, offset, size).map_err(|e| e.at(offset))?;
                let bytes = if compressed && !packed.is_empty() {
                    // trace-cmd does not count the number of chunks in the size.
                    let size = (size + 4).min(data.len() as u64 - offset);
                    let packed = slice(data, offset, size).map_err(|e| e.at(offset))?;
                    Cow::Owned(unpack_chunks(packed, offset, header)?)
                } else {
                    Cow::Borrowed(packed)
                };
                let cpu = u16::try_from(cpu)
                    .map_err(|_| Error::malformed(format!("CPU number {cpu}")).at(offset))?;
                all.push(CpuData { cpu, offset, bytes });
            }
            all.sort_by_key(|c| c.cpu);
            EventData::Binary {
                sub_buffer,
                cpus: all,
            }
        }
    };
    Ok(Contents {
        big_endian: header.big_endian,
        meta,
        formats,
        layout,
        cmdlines,
        options,
        data: events,
    })
}

/// Follows the chain of options sections.
fn read_options(data: &[u8], header: &Header, options: &mut Options) -> Result<Sections> {
    let mut sections = Sections::default();
    let mut at = header.options_at;
    for _ in 0..MAX_CHAIN {
        let section = Section::read(data, header, at)?;
        if section.id != 0 {
            let e = Error::malformed(format!("section {} where options should be", section.id));
            return Err(e.at(at));
        }
        let mut b = section.bytes(header);
        let mut next = 0;
        while b.left() > 0 {
            let option = b.u16("an option's number")?;
            let size = b.u32("an option's size")?;
            let option_at = b.offset();
            let value = b.take(size.into(), "an option")?;
            let mut v = Bytes::new(value, option_at, header.big_endian);
            let where_is = "the offset of a section";
            match option {
                id::DONE => {
                    next = v.u64("the offset of further options")?;
                    break;
                }
                id::HEADER_INFO => sections.headers = Some(v.u64(where_is)?),
                id::FTRACE_EVENTS => sections.ftrace = Some(v.u64(where_is)?),
                id::EVENT_FORMATS => sections.events = Some(v.u64(where_is)?),
                id::CMDLINES => sections.cmdlines = Some(v.u64(where_is)?),
                id::BUFFER => sections.buffers.push(read_buffer(&mut v, true)?),
                id::BUFFER_TEXT => sections.buffers.push(read_buffer(&mut v, false)?),
                other => options.take(other, value, option_at, header.big_endian)?,
            }
        }
        if next == 0 {
            return Ok(sections);
        }
        at = next;
    }
    Err(Error::malformed("the options go in a circle").at(at))
}

fn read_buffer(b: &mut Bytes<'_>, binary: bool) -> Result<Buffer> {
    let section = b.u64("the offset of a buffer")?;
    let name = String::from_utf8_lossy(b.c_str("a buffer's name")?).into_owned();
    let clock = String::from_utf8_lossy(b.c_str("a buffer's clock")?).into_owned();
    let mut buffer = Buffer {
        section,
        name,
        clock,
        binary: None,
    };
    if binary {
        let sub_buffer = b.u32("the size of a sub-buffer")?;
        let mut cpus = Vec::new();
        for _ in 0..b.u32("the number of CPUs")? {
            cpus.push(CpuRange {
                cpu: b.u32("a CPU's number")?,
                offset: b.u64("the offset of a CPU's data")?,
                size: b.u64("the size of a CPU's data")?,
            });
        }
        buffer.binary = Some(Binary { sub_buffer, cpus });
    }
    Ok(buffer)
}

/// A section, decompressed.
struct Section<'a> {
    id: u16,
    /// Where its content begins in the file.
    at: u64,
    content: Cow<'a, [u8]>,
}

impl<'a> Section<'a> {
    fn read(data: &'a [u8], header: &Header, at: u64) -> Result<Section<'a>> {
        let (id, flags, mut b) = section_head(data, header, at)?;
        let content_at = b.offset();
        let content = if flags & COMPRESSED != 0 {
            let size = b.u32("the compressed size of a section")?;
            let unpacked = b.u32("the size of a section")?;
            let packed = b.take(size.into(), "a compressed section")?;
            let mut out = Vec::new();
            unpack_one(packed, unpacked.into(), header, &mut out).map_err(|e| e.at(content_at))?;
            Cow::Owned(out)
        } else {
            Cow::Borrowed(b.take(b.left() as u64, "a section")?)
        };
        Ok(Section {
            id,
            at: content_at,
            content,
        })
    }
    fn bytes(&self, header: &Header) -> Bytes<'_> {
        Bytes::new(&self.content, self.at, header.big_endian)
    }
}

/// Number, flags and content of the section at `at`.
fn section_head<'a>(data: &'a [u8], header: &Header, at: u64) -> Result<(u16, u16, Bytes<'a>)> {
    let start = usize::try_from(at).unwrap_or(usize::MAX);
    let Some(rest) = data.get(start..) else {
        let e = Error::malformed(format!(
            "a section begins at byte {at}, behind the file's end"
        ));
        let e = e.at(data.len() as u64);
        return Err(e.help("the file is cut off: copy it again, or record it again"));
    };
    let mut b = Bytes::new(rest, at, header.big_endian);
    let id = b.u16("a section's number")?;
    let flags = b.u16("a section's flags")?;
    b.u32("a section's description")?;
    let size = b.u64("a section's size")?;
    let at = b.offset();
    let content = b.take(size, "a section")?;
    Ok((id, flags, Bytes::new(content, at, header.big_endian)))
}

fn unpack_one(packed: &[u8], unpacked: u64, header: &Header, out: &mut Vec<u8>) -> Result<()> {
    let cap = unpack::cap(packed.len() as u64).saturating_add(out.len() as u64);
    match &header.packing {
        Ok(Some(packing)) => unpack::block(*packing, packed, unpacked, cap, out),
        Ok(None) => Err(Error::malformed(
            "a compressed section in a file without compression",
        )),
        Err(name) => Err(Error::unsupported(format!("compression {name:?}"))
            .help("`trace-cmd convert --compression none` makes a file that can be read")),
    }
}

/// Decompresses a CPU's data: a count, then chunks.
fn unpack_chunks(packed: &[u8], at: u64, header: &Header) -> Result<Vec<u8>> {
    let mut b = Bytes::new(packed, at, header.big_endian);
    let mut out = Vec::new();
    let cap = unpack::cap(packed.len() as u64);
    for _ in 0..b.u32("the number of chunks")? {
        let chunk_at = b.offset();
        let size = b.u32("the compressed size of a chunk")?;
        let unpacked = b.u32("the size of a chunk")?;
        let chunk = b.take(size.into(), "a chunk")?;
        let all = out.len() as u64 + u64::from(unpacked);
        if all > cap {
            return Err(Error::too_large("the decompressed size in bytes", all, cap).at(chunk_at));
        }
        unpack_one(chunk, unpacked.into(), header, &mut out).map_err(|e| e.at(chunk_at))?;
    }
    Ok(out)
}
