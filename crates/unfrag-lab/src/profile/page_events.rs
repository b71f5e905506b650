//! The events of pages, read from a recording's columns in the order of time.
//!
//! Invariant: a field that an event lacks is an error, but for the order of page cache events, which older kernels do not
//! have: theirs is 0.

use crate::error::{Error, Result};
use crate::geometry::recorded::order_of_event;
use std::collections::HashSet;
use unfrag::Geometry;
use unfrag::frame::NR_ORDERS;
use unfrag_linux::recording::{EventTable, Recording};

/// Bits of a device number that hold its minor number.
const MINOR_BITS: u32 = 20;

/// The tracepoints that are read.
#[derive(Clone, Copy)]
enum Tracepoint {
    Alloc,
    Free,
    CacheAdd,
    CacheDelete,
    ReclaimBegin,
    ReclaimEnd,
}

/// What a page event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageEventKind {
    /// A block is allocated.
    Alloc {
        /// The request's flags, as the recorded kernel numbers them.
        gfp: u64,
    },
    /// A block is freed.
    Free,
    /// A page enters page cache.
    CacheAdd {
        /// Inode number of the file.
        inode: u64,
        /// Device of the file.
        device: u64,
        /// Page of the file.
        index: u64,
    },
    /// A page leaves page cache.
    CacheDelete,
    /// A task begins direct reclaim.
    ReclaimBegin,
    /// A task ends direct reclaim.
    ReclaimEnd,
}

/// The columns of one table of events: frame and order; then flags, or inode, device and page of the file.
pub struct Columns<'a> {
    tracepoint: Tracepoint,
    columns: [Option<&'a [u64]>; 5],
}

impl Columns<'_> {
    fn of(table: &EventTable) -> Result<Option<Columns<'_>>> {
        let (tracepoint, names): (Tracepoint, &[&str]) = match table.name.as_str() {
            "mm_page_alloc" => (Tracepoint::Alloc, &["pfn", "order", "gfp_flags"]),
            "mm_page_free" | "mm_page_free_direct" => (Tracepoint::Free, &["pfn", "order"]),
            "mm_filemap_add_to_page_cache" => (
                Tracepoint::CacheAdd,
                &["pfn", "order", "i_ino", "s_dev", "index"],
            ),
            "mm_filemap_delete_from_page_cache" => (Tracepoint::CacheDelete, &["pfn", "order"]),
            "mm_vmscan_direct_reclaim_begin" => (Tracepoint::ReclaimBegin, &[]),
            "mm_vmscan_direct_reclaim_end" => (Tracepoint::ReclaimEnd, &[]),
            _ => return Ok(None),
        };
        let mut columns = [None; 5];
        for (column, name) in columns.iter_mut().zip(names) {
            *column = table.column(name);
            // Page cache had single pages before it had folios.
            let optional = *name == "order"
                && matches!(tracepoint, Tracepoint::CacheAdd | Tracepoint::CacheDelete);
            if column.is_none() && !optional {
                return Err(Error::lacking(format!(
                    "the event {} has no field {name}",
                    table.name
                ))
                .help("record the events with their raw data"));
            }
        }
        Ok(Some(Columns {
            tracepoint,
            columns,
        }))
    }
}

/// A page event.
#[derive(Clone, Copy, Debug)]
pub struct PageEvent {
    /// Index among the recording's events.
    pub index: usize,
    /// What it tells.
    pub kind: PageEventKind,
    /// Nanoseconds of the trace clock.
    pub time: u64,
    /// Task, by index into the recording's.
    pub task: u32,
    /// First page frame.
    pub pfn: u64,
    /// Order of the block.
    pub order: u8,
}

/// The columns of each of a recording's tables; `None` for those of other events.
///
/// # Errors
/// If an event lacks a field.
pub fn columns(rec: &Recording) -> Result<Vec<Option<Columns<'_>>>> {
    rec.events.tables.iter().map(Columns::of).collect()
}

/// Visits the page events in the order of time.
///
/// # Errors
/// If one names an order that no kernel has.
pub fn visit(
    rec: &Recording,
    columns: &[Option<Columns<'_>>],
    mut each: impl FnMut(PageEvent),
) -> Result<()> {
    let mut rows = vec![0; columns.len()];
    for (index, &table) in rec.events.kind.iter().enumerate() {
        let table = usize::from(table);
        let row = rows[table];
        rows[table] += 1;
        let Some(c) = &columns[table] else { continue };
        let field = |n: usize| c.columns[n].and_then(|c| c.get(row)).copied().unwrap_or(0);
        let kind = match c.tracepoint {
            Tracepoint::Alloc => PageEventKind::Alloc { gfp: field(2) },
            Tracepoint::Free => PageEventKind::Free,
            Tracepoint::CacheAdd => PageEventKind::CacheAdd {
                inode: field(2),
                device: field(3),
                index: field(4),
            },
            Tracepoint::CacheDelete => PageEventKind::CacheDelete,
            Tracepoint::ReclaimBegin => PageEventKind::ReclaimBegin,
            Tracepoint::ReclaimEnd => PageEventKind::ReclaimEnd,
        };
        each(PageEvent {
            index,
            kind,
            time: rec.events.time[index],
            task: rec.events.task[index],
            pfn: field(0),
            order: order(field(0), field(1))?,
        });
    }
    Ok(())
}

fn order(pfn: u64, value: u64) -> Result<u8> {
    match u8::try_from(value) {
        Ok(order) if usize::from(order) < NR_ORDERS => Ok(order),
        _ => Err(order_of_event(pfn, value, Geometry::PAGES_4K)),
    }
}

/// The anonymous devices (major number 0) that hold block devices as files: each inode of theirs that entered page cache
/// is numbered by a block device.
pub fn device_files(rec: &Recording) -> HashSet<u64> {
    let tables = rec
        .events
        .tables
        .iter()
        .filter(|t| t.name == "mm_filemap_add_to_page_cache");
    let (mut devices, mut others) = (HashSet::new(), HashSet::new());
    for table in tables {
        let (Some(device), Some(inode)) = (table.column("s_dev"), table.column("i_ino")) else {
            continue;
        };
        for (&device, &inode) in device.iter().zip(inode) {
            let is_device = device >> MINOR_BITS == 0 && (1..4096).contains(&(inode >> MINOR_BITS));
            if is_device { &mut devices } else { &mut others }.insert(device);
        }
    }
    &devices - &others
}
