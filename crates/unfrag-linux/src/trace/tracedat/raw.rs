//! Sub-buffers as `trace_pipe_raw` gives them, outside any file.
//!
//! Invariant: the code that decodes them is that of a `trace.dat`.

use super::contents::{Contents, CpuData, EventData, PageLayout, check_sub_buffer};
use super::merge;
use super::options::Options;
use crate::error::Result;
use crate::recording::{Meta, Recording};
use crate::trace::event::batches::Batches;
use crate::trace::event::format::EventFormat;
use crate::trace::event::symbols::Symbols;
use crate::trace::meter::Meter;
use crate::trace::source::Source;

/// Sub-buffers, and what is needed to decode them.
pub(crate) struct Raw<'a> {
    /// `events/header_page` of tracefs.
    pub header_page: &'a str,
    /// Subsystem and `format` file of each event.
    pub formats: &'a [(String, String)],
    /// Lines `PID NAME`.
    pub cmdlines: &'a [u8],
    /// Names of the kernel's code, for stacks.
    pub symbols: Symbols,
    /// Number and whole sub-buffers of each CPU.
    pub cpus: Vec<(u16, Source<'a>)>,
    /// What is known of the host.
    pub meta: Meta,
}

/// Bytes of a sub-buffer, as `header_page` describes it.
pub(crate) fn sub_buffer(header_page: &str) -> Result<u32> {
    let layout = PageLayout::parse(header_page.as_bytes(), size_of::<usize>() as u8)?;
    let line = header_page.lines().find(|l| l.contains(" data;"));
    let data = line.map(|l| crate::trace::event::format::parse_field(l.trim()));
    let data = data.transpose()?.map_or(0, |f| f.size);
    check_sub_buffer(layout.data_at as u32 + data, 0, &layout)
}

/// Decodes all events; gives those that fill a batch away.
pub(crate) fn read(raw: Raw<'_>, batches: &mut Batches<'_>) -> Result<Recording> {
    let layout = PageLayout::parse(raw.header_page.as_bytes(), size_of::<usize>() as u8)?;
    let parse = |(system, text): &(String, String)| EventFormat::parse(system, text.as_bytes());
    let cpus = raw.cpus.iter().map(|(cpu, source)| CpuData {
        cpu: *cpu,
        source: *source,
        offset: 0,
        size: source.len(),
        packing: None,
    });
    let contents = Contents {
        big_endian: cfg!(target_endian = "big"),
        meta: raw.meta,
        formats: raw.formats.iter().map(parse).collect::<Result<_>>()?,
        layout,
        cmdlines: raw.cmdlines.into(),
        options: Options::default(),
        symbols: raw.symbols,
        data: EventData::Binary {
            sub_buffer: sub_buffer(raw.header_page)?,
            cpus: cpus.collect(),
        },
    };
    merge::merge(contents, &Meter::default(), batches)
}
