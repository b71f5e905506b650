//! Merges the records of all CPUs into one sequence by time.
//!
//! Invariant: each CPU's records keep their order; of records with equal times on several CPUs the
//! lower CPU's come first, as in `trace-cmd report`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::error::Result;
use crate::event::coverage::EVENTS_RECORDED;
use crate::recording::Recording;
use crate::trace::bytes::u16_at;
use crate::trace::event::batches::Batches;
use crate::trace::event::columns::{Columns, Common};
use crate::trace::event::decode::Decoders;
use crate::trace::meter::Meter;
use crate::trace::unpack;

use super::contents::{Contents, CpuData, EventData};
use super::ring::Cursor;

/// Decodes all events; gives those that fill a batch away.
pub(super) fn merge(
    mut contents: Contents<'_>,
    meter: &Meter,
    batches: &mut Batches<'_>,
) -> Result<Recording> {
    let data = std::mem::replace(&mut contents.data, EventData::Text((&[]).into()));
    let EventData::Binary { sub_buffer, cpus } = data else {
        return Ok(Recording::default());
    };
    let size = |c: &CpuData<'_>| match c.packing {
        None => c.size,
        Some(_) => unpack::cap(c.size),
    };
    let bytes = cpus.iter().map(size).fold(0, u64::saturating_add);
    let mut columns = Columns::for_input(bytes);
    name_tasks(&contents.cmdlines, &mut columns);
    columns.stacks.symbols = std::mem::take(&mut contents.symbols);
    // Records of page events take 36 to 44 bytes.
    let stored: u64 = cpus.iter().map(|c| c.size).sum();
    columns.reserve(((stored / 40) as usize).min(batches.limit));
    let mut decoders = Decoders::new(std::mem::take(&mut contents.formats), contents.big_endian);
    let mut cursors: Vec<Cursor> = cpus
        .iter()
        .map(|c| Cursor::new(c, meter, sub_buffer, contents.layout, contents.big_endian))
        .collect();
    let mut meta = contents.meta;
    let tsc = contents.options.tsc.filter(|_| meta.clock.contains("tsc"));
    let scale = |time: u64| match tsc {
        None => time,
        Some((multiplier, shift, _)) => {
            let scaled = (u128::from(time) * u128::from(multiplier)) >> shift.min(127);
            u64::try_from(scaled).unwrap_or(u64::MAX)
        }
    };
    let unknown = decode(&mut cursors, &mut decoders, &mut columns, scale, batches)?;
    columns.spill_rest(batches)?;
    let highest = cpus.iter().map(|c| u32::from(c.cpu) + 1).max();
    meta.cpus = meta.cpus.max(highest.unwrap_or(0));
    if unknown > 0 {
        let count = unknown.to_string();
        meta.facts.insert("events without a format".into(), count);
    }
    let enabled = decoders.enabled();
    if !enabled.is_empty() {
        meta.facts.insert(EVENTS_RECORDED.into(), enabled);
    }
    if tsc.is_some() {
        meta.clock = format!("{}, as nanoseconds", meta.clock);
    }
    Ok(columns.finish(meta))
}

/// Decodes the records in the order of time; gives the number of those without a format.
fn decode(
    cursors: &mut [Cursor],
    decoders: &mut Decoders,
    columns: &mut Columns,
    scale: impl Fn(u64) -> u64,
    batches: &mut Batches<'_>,
) -> Result<u64> {
    let big_endian = decoders.big_endian();
    let type_at = decoders.type_at() as usize;
    let mut unknown = 0;
    let mut queue = BinaryHeap::with_capacity(cursors.len());
    for (i, cursor) in cursors.iter_mut().enumerate() {
        if let Some(time) = cursor.next()? {
            queue.push(Reverse((time, i)));
        }
    }
    while let Some(mut top) = queue.peek_mut() {
        let Reverse((time, i)) = *top;
        let cursor = &mut cursors[i];
        if let Some(count) = cursor.take_lost() {
            columns.push_lost(cursor.cpu(), count);
        }
        let record = cursor.record();
        let id = if record.len() >= type_at + 2 {
            u16_at(record, type_at, big_endian)
        } else {
            0
        };
        if !decoders.knows(id) {
            unknown += 1;
        }
        let decoder = decoders.get(id, columns)?;
        let common = decoder.common(record, big_endian);
        let task = columns.tasks.of_pid(common.pid);
        columns.push(Common {
            time: scale(time),
            cpu: cursor.cpu(),
            task,
            flags: common.flags,
            preempt: common.preempt,
            kind: decoder.kind,
        });
        decoder.row(record, big_endian, columns)?;
        decoder.name(common.pid, columns);
        columns.spill(batches)?;
        match cursor.next()? {
            Some(time) => *top = Reverse((time, i)),
            None => {
                PeekMut::pop(top);
                if let Some(count) = cursor.take_lost() {
                    columns.push_lost(cursor.cpu(), count);
                }
            }
        }
    }
    Ok(unknown)
}

/// Takes the names of tasks from lines `PID NAME`.
fn name_tasks(cmdlines: &[u8], columns: &mut Columns) {
    for line in cmdlines.split(|&b| b == b'\n') {
        let line = String::from_utf8_lossy(line);
        if let Some((pid, comm)) = line.trim_start().split_once(' ')
            && let Ok(pid) = pid.parse()
        {
            columns.tasks.rename(pid, comm.trim_end_matches('\0'));
        }
    }
}
