//! Format 7: sections anywhere in the file, found through a chain of options sections
//! (trace-cmd.dat.v7(5)).
//!
//! Invariant: only the sections that events need are decompressed, each within the cap of
//! [`unpack`]; the events themselves stay where they are.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::trace::bytes::Bytes;
use crate::trace::event::symbols::Symbols;
use crate::trace::source::Source;
use crate::trace::unpack;

use super::contents::{
    Contents, CpuData, EventData, check_range, check_sizes, check_sub_buffer, read_event_formats,
    read_ftrace_formats, read_headers,
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
pub(super) fn read<'a>(source: &Source<'a>, header: &Header) -> Result<Contents<'a>> {
    let mut options = Options::default();
    let sections = read_options(source, header, &mut options)?;

    let Some(at) = sections.headers else {
        return Err(Error::malformed("there is no section of headers").at(header.options_at));
    };
    let section = Section::read(source, header, at)?;
    let layout = read_headers(&mut section.bytes(header), header)?;
    let mut formats = Vec::new();
    if let Some(at) = sections.ftrace {
        let section = Section::read(source, header, at)?;
        read_ftrace_formats(&mut section.bytes(header), &mut formats)?;
    }
    if let Some(at) = sections.events {
        let section = Section::read(source, header, at)?;
        read_event_formats(&mut section.bytes(header), &mut formats)?;
    }
    let cmdlines = match sections.cmdlines {
        Some(at) => {
            let section = Section::read(source, header, at)?;
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
        None => EventData::Text(Section::read(source, header, buffer.section)?.content),
        Some(Binary { sub_buffer, cpus }) => {
            let sub_buffer = check_sub_buffer(sub_buffer, buffer.section, &layout)?;
            let compressed = section_head(source, header, buffer.section)?.flags & COMPRESSED != 0;
            check_sizes(source, cpus.iter().map(|c| c.size)).map_err(|e| e.at(buffer.section))?;
            let packing = match (compressed, &header.packing) {
                (false, _) => None,
                (true, Ok(Some(packing))) => Some(*packing),
                (true, _) => return Err(no_packing(header)),
            };
            let mut all = Vec::new();
            for CpuRange { cpu, offset, size } in cpus {
                check_range(source, offset, size).map_err(|e| e.at(offset))?;
                let cpu = u16::try_from(cpu)
                    .map_err(|_| Error::malformed(format!("CPU number {cpu}")).at(offset))?;
                // trace-cmd does not count the number of chunks in the size.
                let size = match packing {
                    Some(_) if size > 0 => (size + 4).min(source.len() - offset),
                    _ => size,
                };
                all.push(CpuData {
                    cpu,
                    source: *source,
                    offset,
                    size,
                    packing,
                });
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
        symbols: Symbols::default(),
        data: events,
    })
}

/// Follows the chain of options sections.
fn read_options(source: &Source<'_>, header: &Header, options: &mut Options) -> Result<Sections> {
    let mut sections = Sections::default();
    let mut at = header.options_at;
    for _ in 0..MAX_CHAIN {
        let section = Section::read(source, header, at)?;
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
    fn read(source: &Source<'a>, header: &Header, at: u64) -> Result<Section<'a>> {
        let head = section_head(source, header, at)?;
        let content = source.bytes(head.content_at, head.size, "a section")?;
        let content = if head.flags & COMPRESSED != 0 {
            let mut b = Bytes::new(&content, head.content_at, header.big_endian);
            let size = b.u32("the compressed size of a section")?;
            let unpacked = b.u32("the size of a section")?;
            let packed = b.take(size.into(), "a compressed section")?;
            let mut out = Vec::new();
            unpack_one(packed, unpacked.into(), header, &mut out)
                .map_err(|e| e.at(head.content_at))?;
            Cow::Owned(out)
        } else {
            content
        };
        Ok(Section {
            id: head.id,
            at: head.content_at,
            content,
        })
    }
    fn bytes(&self, header: &Header) -> Bytes<'_> {
        Bytes::new(&self.content, self.at, header.big_endian)
    }
}

/// The head of a section.
struct SectionHead {
    id: u16,
    flags: u16,
    content_at: u64,
    size: u64,
}

/// Bytes of a section's head.
const SECTION_HEAD: u64 = 16;

fn section_head(source: &Source<'_>, header: &Header, at: u64) -> Result<SectionHead> {
    if at > source.len() {
        let e = Error::malformed(format!(
            "a section begins at byte {at}, behind the file's end"
        ));
        let e = e.at(source.len());
        return Err(e.help("the file is cut off: copy it again, or record it again"));
    }
    let head = source.bytes(at, SECTION_HEAD, "the head of a section")?;
    let mut b = Bytes::new(&head, at, header.big_endian);
    let id = b.u16("a section's number")?;
    let flags = b.u16("a section's flags")?;
    b.u32("a section's description")?;
    let size = b.u64("a section's size")?;
    Ok(SectionHead {
        id,
        flags,
        content_at: at + SECTION_HEAD,
        size,
    })
}

fn unpack_one(packed: &[u8], unpacked: u64, header: &Header, out: &mut Vec<u8>) -> Result<()> {
    let cap = unpack::cap(packed.len() as u64).saturating_add(out.len() as u64);
    match &header.packing {
        Ok(Some(packing)) => unpack::block(*packing, packed, unpacked, cap, out),
        _ => Err(no_packing(header)),
    }
}

/// The error of a compressed section that nothing here reads.
fn no_packing(header: &Header) -> Error {
    match &header.packing {
        Err(name) => Error::unsupported(format!("compression {name:?}"))
            .help("`trace-cmd convert --compression none` makes a file that can be read"),
        Ok(_) => Error::malformed("a compressed section in a file without compression"),
    }
}
