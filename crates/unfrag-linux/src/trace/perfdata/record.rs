//! The kernel's records: samples, names of tasks, losses (perf_event_open(2)).
//!
//! Invariant: every length in a record is checked against the record's own end.

use linux_perf_event_reader::{RecordType, SampleFormat};

use crate::error::{Error, Result};
use crate::trace::bytes::Bytes;
use crate::trace::bytes::u64_at;

use super::attribute::{Attribute, Identity, SAMPLE_ORDER, offset_in_sample};
use super::container::{Container, RawRecord};

/// A record that becomes part of a recording.
pub(super) struct Record<'a> {
    pub cpu: u16,
    /// Of samples: the task, if it was recorded.
    pub tid: Option<i32>,
    pub body: Body<'a>,
}

/// Content of a record.
pub(super) enum Body<'a> {
    /// An event; the kernel's event record, if it is one of a tracepoint.
    Sample { raw: Option<&'a [u8]> },
    /// From here on a task has this name.
    Comm { tid: i32, comm: &'a [u8] },
    /// A task begins, with its parent's name.
    Fork { parent: i32, child: i32 },
    /// This many events were lost.
    Lost(u64),
}

/// Bits of an attribute's read format.
mod read_format {
    pub const TOTAL_TIME_ENABLED: u64 = 1;
    pub const TOTAL_TIME_RUNNING: u64 = 2;
    pub const ID: u64 = 4;
    pub const GROUP: u64 = 8;
    pub const LOST: u64 = 16;
}

/// What a record that is no sample ends with, if its attribute says so.
#[derive(Default)]
struct Tail {
    time: Option<u64>,
    cpu: Option<u32>,
}

const SAMPLE: u32 = RecordType::SAMPLE.0;
const LOST: u32 = RecordType::LOST.0;
const COMM: u32 = RecordType::COMM.0;
const FORK: u32 = RecordType::FORK.0;
const LOST_SAMPLES: u32 = RecordType::LOST_SAMPLES.0;

impl<'a> Record<'a> {
    /// Time of the record: `None` for a type that is not read, `Some(None)` if the record has no time.
    pub fn time(raw: &RawRecord<'_>, container: &Container) -> Result<Option<Option<u64>>> {
        match raw.kind {
            SAMPLE => {
                let attribute = attribute_of(raw, container)?;
                let Some(at) = offset_in_sample(attribute.sample_format, SampleFormat::TIME) else {
                    return Err(Error::unsupported("samples without a time")
                        .at(raw.offset)
                        .help("record with perf record --timestamp"));
                };
                match raw.body.get(at..at + 8) {
                    Some(time) => Ok(Some(Some(u64_at(time, 0, container.big_endian)))),
                    None => Err(short(raw)),
                }
            }
            LOST | COMM | FORK | LOST_SAMPLES => Ok(Some(tail(raw, container).time)),
            _ => Ok(None),
        }
    }
    /// Parses a record for which [`Record::time`] gave `Some`.
    pub fn parse(raw: &RawRecord<'a>, container: &Container) -> Result<Record<'a>> {
        let mut b = Bytes::new(raw.body, raw.offset, container.big_endian);
        let what = "a record";
        if raw.kind == SAMPLE {
            let attribute = attribute_of(raw, container)?;
            return sample(&mut b, attribute);
        }
        let body = match raw.kind {
            COMM => {
                b.u32(what)?;
                let tid = b.u32(what)? as i32;
                let rest = b.take(b.left() as u64, what)?;
                let end = rest.iter().position(|&c| c == 0).unwrap_or(rest.len());
                Body::Comm {
                    tid,
                    comm: &rest[..end],
                }
            }
            FORK => {
                b.take(8, what)?;
                let child = b.u32(what)? as i32;
                let parent = b.u32(what)? as i32;
                Body::Fork { parent, child }
            }
            LOST => {
                b.u64(what)?;
                Body::Lost(b.u64(what)?)
            }
            _ => Body::Lost(b.u64(what)?),
        };
        let cpu = tail(raw, container).cpu.unwrap_or(0) as u16;
        Ok(Record {
            cpu,
            tid: None,
            body,
        })
    }
}

fn short(raw: &RawRecord<'_>) -> Error {
    Error::malformed("a sample is shorter than its attributes say").at(raw.offset)
}

fn attribute_of<'a>(raw: &RawRecord<'_>, container: &'a Container) -> Result<&'a Attribute> {
    match container.identity {
        Identity::First => Ok(&container.attributes[0]),
        Identity::IdAt(at) => match raw.body.get(at..at + 8) {
            Some(id) => Ok(container.attribute_of_id(u64_at(id, 0, container.big_endian))),
            None => Err(short(raw)),
        },
        Identity::Unknown => Err(Error::unsupported(
            "events of different formats without an identifier",
        )
        .at(raw.offset)
        .help("record tracepoints only")),
    }
}

fn sample<'a>(b: &mut Bytes<'a>, attribute: &Attribute) -> Result<Record<'a>> {
    let format = attribute.sample_format;
    let what = "a sample";
    let (mut tid, mut cpu) = (None, 0);
    for field in SAMPLE_ORDER.into_iter().filter(|&f| format.contains(f)) {
        match field {
            SampleFormat::TID => {
                b.u32(what)?;
                tid = Some(b.u32(what)? as i32);
            }
            SampleFormat::CPU => {
                cpu = b.u32(what)? as u16;
                b.u32(what)?;
            }
            _ => drop(b.u64(what)?),
        }
    }
    if format.contains(SampleFormat::PERIOD) {
        b.u64(what)?;
    }
    if format.contains(SampleFormat::READ) {
        skip_read(b, attribute.read_format)?;
    }
    if format.contains(SampleFormat::CALLCHAIN) {
        let count = b.u64(what)?;
        b.take(count.saturating_mul(8), "a call chain")?;
    }
    let mut raw = None;
    if format.contains(SampleFormat::RAW) && attribute.tracepoint {
        let size = b.u32(what)?;
        raw = Some(b.take(size.into(), "a raw record")?);
    }
    Ok(Record {
        cpu,
        tid,
        body: Body::Sample { raw },
    })
}

/// Skips the values of counters.
fn skip_read(b: &mut Bytes, format: u64) -> Result<()> {
    let what = "the values of counters";
    let has = |bit| u64::from(format & bit != 0);
    let times = has(read_format::TOTAL_TIME_ENABLED) + has(read_format::TOTAL_TIME_RUNNING);
    let each = 1 + has(read_format::ID) + has(read_format::LOST);
    let words = if format & read_format::GROUP != 0 {
        let count = b.u64(what)?;
        times.saturating_add(count.saturating_mul(each))
    } else {
        times + each
    };
    b.take(words.saturating_mul(8), what)?;
    Ok(())
}

/// Time and CPU at the end of a record that is no sample, by the first attribute, as perf does.
fn tail(raw: &RawRecord<'_>, container: &Container) -> Tail {
    const ORDER: [SampleFormat; 6] = [
        SampleFormat::TID,
        SampleFormat::TIME,
        SampleFormat::ID,
        SampleFormat::STREAM_ID,
        SampleFormat::CPU,
        SampleFormat::IDENTIFIER,
    ];
    let attribute = &container.attributes[0];
    let format = attribute.sample_format;
    let fields = ORDER.iter().filter(|&&f| format.contains(f));
    let mut tail = Tail::default();
    let size = fields.clone().count() * 8;
    if !attribute.sample_id_all || raw.body.len() < size {
        return tail;
    }
    let mut at = raw.body.len() - size;
    for &field in fields {
        let word = &raw.body[at..at + 8];
        match field {
            SampleFormat::TIME => tail.time = Some(u64_at(word, 0, container.big_endian)),
            SampleFormat::CPU => {
                tail.cpu = Some(crate::trace::bytes::u32_at(word, 0, container.big_endian));
            }
            _ => {}
        }
        at += 8;
    }
    tail
}
