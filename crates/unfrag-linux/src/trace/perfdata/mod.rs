//! `perf.data`: what perf records, as a file or through a pipe, plain or compressed (`-z`).
//!
//! The `container` holds attributes, features and a sequence of records (`record`). Samples of
//! tracepoints carry the kernel's own event record. Its format is in the file's tracing data, which are
//! written as the head of a `trace.dat`. An `attribute` says what the samples of an event hold.
//!
//! Invariant: samples are taken in the order of their times and, among equals, of the file, as `perf
//! script` shows them. A task is named by the records that name it (COMM, FORK) up to that time.
//!
//! The crate linux-perf-data is not used for the container: it allocates what a header announces and
//! multiplies lengths unchecked, and a hostile file must cost an error only.

mod attribute;
mod container;
mod record;

use crate::error::{Error, Result};
use crate::event::coverage::EVENTS_RECORDED;
use crate::recording::{Meta, Recording};
use crate::trace::bytes::u16_at;
use crate::trace::event::batches::{Batches, all_at_once};
use crate::trace::event::columns::{Columns, Common};
use crate::trace::event::decode::Decoders;
use crate::trace::tracedat;

use container::{Container, feature};
use record::{Body, Record};

pub use container::{MAGIC, MAGIC_BIG_ENDIAN};

/// Reads a `perf.data` with samples of tracepoints, such as `perf record -c 1 -R -e kmem:*` makes.
///
/// Samples without a raw record (of other kinds of events) are left aside and counted in
/// `meta.facts` under `samples that are no tracepoints`. Losses that the kernel reported become
/// `meta.lost`.
///
/// # Errors
/// If `data` is no `perf.data`, is cut off, contradicts itself, or has no times or no event formats.
pub fn read(data: &[u8]) -> Result<Recording> {
    all_at_once(|batches| stream(data, batches))
}

/// The same, with the events in batches.
pub(crate) fn stream(data: &[u8], batches: &mut Batches<'_>) -> Result<Recording> {
    let container = Container::read(data)?;
    let Some((tracing, at)) = container.tracing else {
        return Err(Error::unsupported("a perf.data without event formats")
            .help("record tracepoints: perf record -c 1 -R -e kmem:mm_page_alloc -e ..."));
    };
    let tracing = tracedat::read_tracing_data(tracing, at)?;
    let mut columns = Columns::for_input(container.size());
    columns.tasks.rename(0, "swapper");
    let mut decoders = Decoders::new(tracing.formats, tracing.big_endian);
    let seen = decode(&container, &mut decoders, &mut columns, batches)?;
    columns.spill_rest(batches)?;

    let mut meta = Meta {
        page_size: tracing.page_size,
        source: container.source().to_owned(),
        clock: container.clock.clone(),
        ..Meta::default()
    };
    let text = |id| container.feature_text(id);
    meta.kernel_release = text(feature::OS_RELEASE).unwrap_or_default();
    let facts = [
        ("machine", text(feature::ARCH)),
        ("perf version", text(feature::VERSION)),
        ("command line", container.command_line()),
        (EVENTS_RECORDED, Some(decoders.enabled())),
        (
            "samples that are no tracepoints",
            (seen.skipped > 0).then(|| seen.skipped.to_string()),
        ),
    ];
    for (name, value) in facts {
        if let Some(value) = value.filter(|v| !v.is_empty()) {
            meta.facts.insert(name.to_owned(), value);
        }
    }
    meta.cpus = container.cpus().unwrap_or(0).max(seen.cpus);
    Ok(columns.finish(meta))
}

/// What was seen of the records.
#[derive(Default)]
struct Seen {
    /// Samples that are no tracepoints.
    skipped: u64,
    /// CPUs, by the highest number of one with an event.
    cpus: u32,
}

/// Decodes the records in the order of time.
fn decode(
    container: &Container,
    decoders: &mut Decoders,
    columns: &mut Columns,
    batches: &mut Batches<'_>,
) -> Result<Seen> {
    let mut order = Vec::new();
    let mut newest = 0;
    for (position, raw) in container.records() {
        let raw = raw?;
        if let Some(time) = Record::time(&raw, container)? {
            newest = time.unwrap_or(newest);
            order.push((newest, position));
        }
    }
    order.sort_by_key(|&(time, _)| time);

    let big_endian = container.big_endian;
    let type_at = decoders.type_at() as usize;
    columns.reserve(order.len().min(batches.limit));
    let mut seen = Seen::default();
    for (time, position) in order {
        let record = Record::parse(&container.record_at(position)?, container)?;
        match record.body {
            Body::Comm { tid, comm } => {
                columns.tasks.rename(tid, &String::from_utf8_lossy(comm));
            }
            Body::Fork { parent, child } => columns.tasks.inherit(parent, child),
            Body::Lost(count) => columns.push_lost(record.cpu, Some(count)),
            Body::Sample { raw: Some(raw) } if raw.len() >= type_at + 2 => {
                let decoder = decoders.get(u16_at(raw, type_at, big_endian), columns)?;
                let common = decoder.common(raw, big_endian);
                let task = columns.tasks.of_pid(record.tid.unwrap_or(common.pid));
                columns.push(Common {
                    time,
                    cpu: record.cpu,
                    task,
                    flags: common.flags,
                    preempt: common.preempt,
                    kind: decoder.kind,
                });
                decoder.row(raw, big_endian, columns)?;
                seen.cpus = seen.cpus.max(u32::from(record.cpu) + 1);
                columns.spill(batches)?;
            }
            Body::Sample { .. } => seen.skipped += 1,
        }
    }
    Ok(seen)
}
