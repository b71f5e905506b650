//! Format 6: everything in one fixed order, nothing compressed (trace-cmd.dat.v6(5)).

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::trace::bytes::Bytes;
use crate::trace::event::columns::MAX_CPUS;
use crate::trace::event::symbols::Symbols;
use crate::trace::source::Source;

use super::contents::{
    Contents, CpuData, EventData, check_range, check_sizes, check_sub_buffer, read_event_formats,
    read_ftrace_formats, read_headers,
};
use super::header::Header;
use super::options::{Options, id};

/// Reads what follows the header; `b` holds it, at least up to the events.
pub(super) fn read<'a>(
    source: &Source<'a>,
    mut b: Bytes<'_>,
    header: &Header,
) -> Result<Contents<'a>> {
    let layout = read_headers(&mut b, header)?;
    let mut formats = Vec::new();
    read_ftrace_formats(&mut b, &mut formats)?;
    read_event_formats(&mut b, &mut formats)?;
    let size = b.u32("the size of kallsyms")?;
    b.take(u64::from(size), "kallsyms")?;
    let size = b.u32("the size of the printk formats")?;
    b.take(u64::from(size), "the printk formats")?;
    let size = b.u64("the size of the saved command lines")?;
    let cmdlines = b.take(size, "the saved command lines")?;
    let cpus_at = b.offset();
    let cpus = b.u32("the number of CPUs")?;
    if cpus > MAX_CPUS {
        let e = Error::too_large("the number of CPUs", cpus.into(), MAX_CPUS.into());
        return Err(e.at(cpus_at));
    }
    let mut options = Options::default();
    let mut other_buffers = Vec::new();
    let mut kind = b.take(10, "the kind of data")?;
    if kind == b"options  \0" {
        loop {
            let option = b.u16("an option's number")?;
            if option == id::DONE {
                break;
            }
            let size = b.u32("an option's size")?;
            let at = b.offset();
            let value = b.take(size.into(), "an option")?;
            if option == id::BUFFER {
                let name = value.get(8..).unwrap_or_default();
                let name = name.strip_suffix(b"\0").unwrap_or(name);
                other_buffers.push(String::from_utf8_lossy(name).into_owned());
            }
            options.take(option, value, at, header.big_endian)?;
        }
        kind = b.take(10, "the kind of data")?;
    }
    if !other_buffers.is_empty() {
        let names = other_buffers.join(", ");
        options.facts.insert("buffers not read".into(), names);
    }
    let mut clock = String::new();
    let events = match kind {
        b"latency  \0" => {
            let at = b.offset();
            EventData::Text(source.bytes(at, source.len() - at, "the text")?)
        }
        b"flyrecord\0" => {
            let sub_buffer = check_sub_buffer(header.page_size, cpus_at, &layout)?;
            let mut all = Vec::new();
            for cpu in 0..cpus as u16 {
                let at = b.offset();
                let offset = b.u64("the offset of a CPU's data")?;
                let size = b.u64("the size of a CPU's data")?;
                check_range(source, offset, size).map_err(|e| e.at(at))?;
                all.push(CpuData {
                    cpu,
                    source: *source,
                    offset,
                    size,
                    packing: None,
                });
            }
            check_sizes(source, all.iter().map(|c| c.size)).map_err(|e| e.at(cpus_at))?;
            if let Some(first) = first_data(&all).filter(|&first| first > b.offset())
                && let Ok(size) = b.u64("the size of the clock's name")
                && size <= first - b.offset()
            {
                let name = b.take(size, "the clock's name")?;
                let name = name.split(|&c| c == 0).next().unwrap_or_default();
                clock = String::from_utf8_lossy(name).into_owned();
            }
            EventData::Binary {
                sub_buffer,
                cpus: all,
            }
        }
        _ => {
            return Err(
                Error::malformed("neither `flyrecord` nor `latency` data follow")
                    .at(b.offset() - 10),
            );
        }
    };
    options.cpus = options.cpus.max(cpus);
    let meta = options.meta(header, &clock);
    Ok(Contents {
        big_endian: header.big_endian,
        meta,
        formats,
        layout,
        cmdlines: Cow::Owned(cmdlines.to_vec()),
        options,
        symbols: Symbols::default(),
        data: events,
    })
}

/// Where the first CPU's data begin.
fn first_data(cpus: &[CpuData]) -> Option<u64> {
    cpus.iter().filter(|c| c.size > 0).map(|c| c.offset).min()
}
