//! The contents of a file, in whichever format they were written.
//!
//! Invariant: the event data are those of one buffer. Binary ones stay where they are until the `ring` reads them.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::recording::{Meta, Recording};
use crate::trace::bytes::Bytes;
use crate::trace::event::format::{EventFormat, parse_field};
use crate::trace::event::symbols::Symbols;
use crate::trace::source::Source;
use crate::trace::unpack::Packing;

use super::header::Header;
use super::options::Options;

/// Largest sub-buffer: the kernel allows orders up to about 9 of its pages.
const MAX_SUB_BUFFER: u32 = 64 << 20;

/// The contents of a file.
pub(super) struct Contents<'a> {
    pub big_endian: bool,
    pub meta: Meta,
    pub formats: Vec<EventFormat>,
    pub layout: PageLayout,
    /// Lines `PID NAME`.
    pub cmdlines: Cow<'a, [u8]>,
    pub options: Options,
    /// Names of the kernel's code, for stacks.
    pub symbols: Symbols,
    pub data: EventData<'a>,
}

/// The events themselves.
pub(super) enum EventData<'a> {
    /// Sub-buffers of each CPU.
    Binary {
        sub_buffer: u32,
        cpus: Vec<CpuData<'a>>,
    },
    /// The text of the `trace` file.
    Text(Cow<'a, [u8]>),
}

/// One CPU's sub-buffers, one after another.
pub(super) struct CpuData<'a> {
    pub cpu: u16,
    pub source: Source<'a>,
    /// Where they begin in the source, and how many bytes they take there.
    pub offset: u64,
    pub size: u64,
    /// How they are compressed: in chunks, of which the source says the number first.
    pub packing: Option<Packing>,
}

/// Layout of a sub-buffer's head, from `events/header_page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageLayout {
    pub time_at: usize,
    pub commit_at: usize,
    /// 4 or 8: a `long` of the kernel.
    pub commit_size: usize,
    pub data_at: usize,
}

impl PageLayout {
    /// Parses `header_page`; kernels that wrote none have the layout by the size of a long.
    pub fn parse(text: &[u8], long_size: u8) -> Result<PageLayout> {
        let long = usize::from(long_size);
        let mut layout = PageLayout {
            time_at: 0,
            commit_at: 8,
            commit_size: long,
            data_at: 8 + long,
        };
        for line in String::from_utf8_lossy(text).lines() {
            if !line.trim().starts_with("field") {
                continue;
            }
            let f = parse_field(line.trim())?;
            let at = f.offset as usize;
            match f.name.as_str() {
                "timestamp" => layout.time_at = at,
                "commit" => (layout.commit_at, layout.commit_size) = (at, f.size as usize),
                "data" => layout.data_at = at,
                _ => {}
            }
        }
        let in_head = |at: usize, size: usize| at + size <= layout.data_at;
        let sane = matches!(layout.commit_size, 4 | 8)
            && layout.data_at <= 256
            && in_head(layout.time_at, 8)
            && in_head(layout.commit_at, layout.commit_size);
        if sane {
            Ok(layout)
        } else {
            Err(Error::malformed("header_page describes no sub-buffer"))
        }
    }
}

/// Reads `header_page` and `header_event`.
pub(super) fn read_headers(b: &mut Bytes<'_>, header: &Header) -> Result<PageLayout> {
    b.expect(b"header_page\0", "header_page")?;
    let at = b.offset();
    let size = b.u64("the size of header_page")?;
    let page = b.take(size, "header_page")?;
    let layout = PageLayout::parse(page, header.long_size).map_err(|e| e.at(at))?;
    b.expect(b"header_event\0", "header_event")?;
    let size = b.u64("the size of header_event")?;
    let at = b.offset();
    let event = b.take(size, "header_event")?;
    let text = String::from_utf8_lossy(event);
    // Entries of a ring buffer have these types from 2.6.30 on.
    for (name, number) in [("padding", "29"), ("time_extend", "30")] {
        let line = text.lines().find(|l| l.trim().starts_with(name));
        if line.is_some_and(|l| !l.trim_end().ends_with(number)) {
            return Err(Error::unsupported(format!(
                "a ring buffer whose {name} entries do not have type {number}"
            ))
            .at(at)
            .help(
                "it was recorded before Linux 2.6.30: convert it to text with trace-cmd report",
            ));
        }
    }
    Ok(layout)
}

/// Reads the formats of ftrace's own events.
pub(super) fn read_ftrace_formats(b: &mut Bytes<'_>, into: &mut Vec<EventFormat>) -> Result<()> {
    let count = b.u32("the number of ftrace formats")?;
    read_formats(b, "ftrace", count, into)
}

/// Reads the formats of all other events, system by system.
pub(super) fn read_event_formats(b: &mut Bytes<'_>, into: &mut Vec<EventFormat>) -> Result<()> {
    for _ in 0..b.u32("the number of event systems")? {
        let system = String::from_utf8_lossy(b.c_str("the name of an event system")?).into_owned();
        let count = b.u32("the number of events of a system")?;
        read_formats(b, &system, count, into)?;
    }
    Ok(())
}

fn read_formats(
    b: &mut Bytes<'_>,
    system: &str,
    count: u32,
    into: &mut Vec<EventFormat>,
) -> Result<()> {
    for _ in 0..count {
        let size = b.u64("the size of an event format")?;
        let at = b.offset();
        let text = b.take(size, "an event format")?;
        into.push(EventFormat::parse(system, text).map_err(|e| e.at(at))?);
    }
    Ok(())
}

/// Checks the size of sub-buffers that a file gives.
pub(super) fn check_sub_buffer(size: u32, at: u64, layout: &PageLayout) -> Result<u32> {
    if size as usize <= layout.data_at || !size.is_multiple_of(4) || size > MAX_SUB_BUFFER {
        return Err(Error::malformed(format!("sub-buffers of {size} bytes")).at(at));
    }
    Ok(size)
}

/// Checks that there are `size` bytes from `offset` on.
pub(super) fn check_range(source: &Source<'_>, offset: u64, size: u64) -> Result<()> {
    let left = source.len().saturating_sub(offset);
    if size > left {
        return Err(Error::truncated("a CPU's data", size, left));
    }
    Ok(())
}

/// Checks that the CPUs' data, which cannot overlap, fit into the file together.
pub(super) fn check_sizes(source: &Source<'_>, sizes: impl Iterator<Item = u64>) -> Result<()> {
    let all = sizes.fold(0, u64::saturating_add);
    if all > source.len() {
        return Err(
            Error::too_large("the size in bytes of all CPUs' data", all, source.len())
                .help("the data of two CPUs overlap: the file is damaged"),
        );
    }
    Ok(())
}

impl Contents<'_> {
    /// The text, if the events are text.
    pub fn text(&self) -> Option<&[u8]> {
        match &self.data {
            EventData::Text(t) => Some(t),
            EventData::Binary { .. } => None,
        }
    }
    /// Adds what the file says of its host to a recording read from its text.
    pub fn complete_text_meta(self, recording: &mut Recording) {
        let events = std::mem::take(&mut recording.meta);
        recording.meta = Meta {
            lost: events.lost,
            cpus: self.meta.cpus.max(events.cpus),
            ..self.meta
        };
        recording.meta.facts.extend(events.facts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_sub_buffers_of_64_and_32_bit_kernels() {
        let layout = |commit_size| PageLayout {
            time_at: 0,
            commit_at: 8,
            commit_size,
            data_at: 8 + commit_size,
        };
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
            \tfield: local_t commit;\toffset:8;\tsize:4;\tsigned:1;\n\
            \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
            \tfield: char data;\toffset:12;\tsize:4084;\tsigned:1;\n";
        assert_eq!(PageLayout::parse(text.as_bytes(), 8).unwrap(), layout(4));
        assert_eq!(PageLayout::parse(b"", 8).unwrap(), layout(8));
        assert!(PageLayout::parse(b"field: char data; offset:4; size:4;", 8).is_err());
    }
}
