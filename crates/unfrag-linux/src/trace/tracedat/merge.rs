//! Merges the records of all CPUs into one sequence by time.
//!
//! Invariant: each CPU's records keep their order; of records with equal times on several CPUs the
//! lower CPU's come first, as in `trace-cmd report`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::error::Result;
use crate::recording::Recording;
use crate::trace::bytes::u16_at;
use crate::trace::event::columns::{Columns, Common};
use crate::trace::event::decode::Decoders;

use super::contents::{Contents, EventData};
use super::ring::Cursor;

/// Decodes all events.
pub(super) fn merge(mut contents: Contents<'_>) -> Result<Recording> {
    let data = std::mem::replace(&mut contents.data, EventData::Text((&[]).into()));
    let EventData::Binary { sub_buffer, cpus } = data else {
        return Ok(Recording::default());
    };
    let bytes: u64 = cpus.iter().map(|c| c.bytes.len() as u64).sum();
    let mut columns = Columns::for_input(bytes);
    name_tasks(&contents.cmdlines, &mut columns);
    // Records of page events take 36 to 44 bytes.
    columns.reserve((bytes / 40) as usize);
    let mut decoders = Decoders::new(std::mem::take(&mut contents.formats), contents.big_endian);
    let mut cursors: Vec<Cursor> = cpus
        .iter()
        .map(|c| Cursor::new(c, sub_buffer, contents.layout, contents.big_endian))
        .collect();
    let unknown = decode(&mut cursors, &mut decoders, &mut columns)?;

    let mut meta = contents.meta;
    let highest = cpus.iter().map(|c| u32::from(c.cpu) + 1).max();
    meta.cpus = meta.cpus.max(highest.unwrap_or(0));
    if unknown > 0 {
        let count = unknown.to_string();
        meta.facts.insert("events without a format".into(), count);
    }
    if let Some((multiplier, shift, _)) = contents.options.tsc
        && meta.clock.contains("tsc")
    {
        for t in &mut columns.events.time {
            let scaled = (u128::from(*t) * u128::from(multiplier)) >> shift.min(127);
            *t = u64::try_from(scaled).unwrap_or(u64::MAX);
        }
        meta.clock = format!("{}, as nanoseconds", meta.clock);
    }
    Ok(columns.finish(meta))
}

/// Decodes the records in the order of time; gives the number of those without a format.
fn decode(cursors: &mut [Cursor], decoders: &mut Decoders, columns: &mut Columns) -> Result<u64> {
    let big_endian = decoders.big_endian();
    let type_at = decoders.type_at() as usize;
    let mut unknown = 0;
    let mut heads: Vec<&[u8]> = vec![&[]; cursors.len()];
    let mut queue = BinaryHeap::with_capacity(cursors.len());
    for (i, cursor) in cursors.iter_mut().enumerate() {
        if let Some((time, record)) = cursor.next()? {
            heads[i] = record;
            queue.push(Reverse((time, i)));
        }
    }
    while let Some(mut top) = queue.peek_mut() {
        let Reverse((time, i)) = *top;
        let record = heads[i];
        let cursor = &mut cursors[i];
        if let Some(count) = cursor.take_lost() {
            columns.push_lost(cursor.cpu(), count);
        }
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
            time,
            cpu: cursor.cpu(),
            task,
            flags: common.flags,
            preempt: common.preempt,
            kind: decoder.kind,
        });
        decoder.row(record, big_endian, columns)?;
        match cursor.next()? {
            Some((time, record)) => {
                heads[i] = record;
                *top = Reverse((time, i));
            }
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
