//! A recording in memory: every event of a trace as columns, and the procfs snapshots beside it.
//!
//! Invariant: `events.time` never decreases; the n-th event of kind `k` is row n of
//! `events.tables[k]`, so the tables hold no order of their own. Numbers are kept exactly as the
//! kernel wrote them. What a migratetype number or a gfp bit means depends on that kernel
//! (`meta.kernel_release`); the users of a recording decide about it.

use crate::content::Content;
use std::collections::BTreeMap;

/// A whole recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// Where it came from.
    pub meta: Meta,
    /// The events, in the order of time.
    pub events: Events,
    /// Tasks that events name, by index.
    pub tasks: Vec<Task>,
    /// Strings that events name (cache names, function names), by index.
    pub strings: Vec<String>,
    /// The snapshots, in the order of time, undated ones last.
    pub snapshots: Vec<Snapshot>,
}

/// The host and the recorder.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta {
    /// `uname -r` of the recorded kernel, such as `6.1.0-56-cloud-amd64`; empty if unknown.
    pub kernel_release: String,
    /// Bytes in a page; 4096 if the source does not say.
    pub page_size: u32,
    /// CPUs of the recorded host.
    pub cpus: u32,
    /// Format it was read from, such as `trace.dat v7`.
    pub source: String,
    /// Clock of the event times, as the source names it.
    pub clock: String,
    /// Nanoseconds to add to an event's time to get the clock of the snapshots.
    pub snapshot_offset_ns: i64,
    /// Gaps that the recorder reported.
    pub lost: Vec<Lost>,
    /// Any further facts (name, value), such as the guest's sysctls.
    pub facts: BTreeMap<String, String>,
}

impl Default for Meta {
    fn default() -> Meta {
        Meta {
            kernel_release: String::new(),
            page_size: 4096,
            cpus: 0,
            source: String::new(),
            clock: String::new(),
            snapshot_offset_ns: 0,
            lost: vec![],
            facts: BTreeMap::new(),
        }
    }
}

impl Meta {
    /// Events that the recorder lost, at least: a gap of unknown size counts as one event.
    pub fn lost_events(&self) -> u64 {
        self.lost.iter().map(|l| l.count.unwrap_or(1)).sum()
    }
}

/// Bits of [`Events::flags`]: in a hard or soft interrupt, or in one that cannot be masked.
pub const IN_INTERRUPT: u8 = 0x08 | 0x10 | 0x40;

/// A gap in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// CPU whose buffer overflowed.
    pub cpu: u16,
    /// The gap stands before the event with this index.
    pub before_event: u64,
    /// Events lost; `None` where the recorder knows only that some were.
    pub count: Option<u64>,
}

/// The events as columns. All vectors but `tables` have one element an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Events {
    /// Nanoseconds of the trace clock.
    pub time: Vec<u64>,
    /// CPU that recorded it.
    pub cpu: Vec<u16>,
    /// Index into [`Recording::tasks`].
    pub task: Vec<u32>,
    /// The kernel's `common_flags` (irqs off, hard and soft interrupt); 0 if the source lacks them.
    pub flags: Vec<u8>,
    /// The kernel's `common_preempt_count`; 0 if the source lacks it.
    pub preempt: Vec<u8>,
    /// Index into `tables`.
    pub kind: Vec<u8>,
    /// One table for each kind of event.
    pub tables: Vec<EventTable>,
}

/// All events of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventTable {
    /// Subsystem, such as `kmem`; empty if the source does not say.
    pub system: String,
    /// Event name, such as `mm_page_alloc`.
    pub name: String,
    /// The event's own fields.
    pub fields: Vec<Field>,
    /// One column a field: raw values, sign-extended to 64 bits where the field is signed.
    pub columns: Vec<Vec<u64>>,
}

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in the event's format file, such as `pfn`.
    pub name: String,
    /// How to read its column.
    pub kind: FieldKind,
}

impl Field {
    /// Whether a field of some events is `later` in later ones: that it has a sign shows only once one is negative.
    pub(crate) fn becomes(&self, later: &Field) -> bool {
        let is_number = |kind| kind != FieldKind::String;
        self.name == later.name
            && (self.kind == later.kind || is_number(self.kind) && is_number(later.kind))
    }
}

/// How the 64-bit values of a column are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// Unsigned number.
    Unsigned,
    /// Signed number, sign-extended.
    Signed,
    /// Index into [`Recording::strings`].
    String,
}

/// The name that tracers print of a task whose name they do not know.
pub const UNKNOWN_COMM: &str = "<...>";

/// A task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Task {
    /// Process id.
    pub pid: i32,
    /// Name, such as `kswapd0`; [`UNKNOWN_COMM`] if unknown.
    pub comm: String,
}

/// The procfs copies of one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Name of its directory, such as `s0004` or `started`.
    pub name: String,
    /// Its files in the order of reading.
    pub files: Vec<SnapshotFile>,
}

/// One file of a snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SnapshotFile {
    /// Name, such as `buddyinfo`.
    pub name: String,
    /// When its reading began and ended, in nanoseconds of the snapshots' clock, if known.
    pub time: Option<(u64, u64)>,
    /// The bytes as they were read; packed where they are page flags.
    pub content: Content,
}

impl Events {
    /// Number of events.
    pub fn len(&self) -> usize {
        self.time.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }
    /// Removes all events; their tables, and the memory of their columns, stay.
    pub(crate) fn clear(&mut self) {
        self.time.clear();
        self.cpu.clear();
        self.task.clear();
        self.flags.clear();
        self.preempt.clear();
        self.kind.clear();
        for table in &mut self.tables {
            table.columns.iter_mut().for_each(Vec::clear);
        }
    }
    /// Keeps the events within a window of time.
    pub(crate) fn keep(&mut self, times: std::ops::Range<u64>) {
        let end = self.time.partition_point(|&t| t < times.end);
        if end < self.len() {
            drop(self.split_off(end));
        }
        let start = self.time.partition_point(|&t| t < times.start);
        if start > 0 {
            *self = self.split_off(start);
        }
    }
    /// Puts later events with the same tables behind these. Those of none have any tables.
    pub fn append(&mut self, mut more: Events) {
        if self.is_empty() {
            *self = more;
            return;
        }
        self.time.append(&mut more.time);
        self.cpu.append(&mut more.cpu);
        self.task.append(&mut more.task);
        self.flags.append(&mut more.flags);
        self.preempt.append(&mut more.preempt);
        self.kind.append(&mut more.kind);
        for (table, more) in self.tables.iter_mut().zip(&mut more.tables) {
            for (column, more) in table.columns.iter_mut().zip(&mut more.columns) {
                column.append(more);
            }
        }
    }
    /// Takes the events from number `at` on out of these.
    #[must_use]
    pub fn split_off(&mut self, at: usize) -> Events {
        let mut rows = vec![0; self.tables.len()];
        self.kind[..at]
            .iter()
            .for_each(|&k| rows[usize::from(k)] += 1);
        let rest_of = |(table, at): (&mut EventTable, usize)| EventTable {
            system: table.system.clone(),
            name: table.name.clone(),
            fields: table.fields.clone(),
            columns: table.columns.iter_mut().map(|c| c.split_off(at)).collect(),
        };
        Events {
            time: self.time.split_off(at),
            cpu: self.cpu.split_off(at),
            task: self.task.split_off(at),
            flags: self.flags.split_off(at),
            preempt: self.preempt.split_off(at),
            kind: self.kind.split_off(at),
            tables: self.tables.iter_mut().zip(rows).map(rest_of).collect(),
        }
    }
}

impl Events {
    /// Sorts by time, stably; a gap moves with the event that follows it.
    pub(crate) fn sort_by_time(&mut self, lost: &mut [Lost]) {
        // Row of each event before the sort.
        let mut next_row = vec![0usize; self.tables.len()];
        let rows: Vec<usize> = self
            .kind
            .iter()
            .map(|&k| {
                let row = next_row[k as usize];
                next_row[k as usize] += 1;
                row
            })
            .collect();
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by_key(|&i| self.time[i]);

        for (k, table) in self.tables.iter_mut().enumerate() {
            let of_kind: Vec<usize> = order
                .iter()
                .filter(|&&i| self.kind[i] as usize == k)
                .map(|&i| rows[i])
                .collect();
            for column in &mut table.columns {
                *column = pick(column, &of_kind);
            }
        }
        let mut new_index = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            new_index[old] = new;
        }
        for l in lost.iter_mut() {
            if let Some(&new) = new_index.get(l.before_event as usize) {
                l.before_event = new as u64;
            }
        }
        lost.sort_by_key(|l| l.before_event);
        self.time = pick(&self.time, &order);
        self.cpu = pick(&self.cpu, &order);
        self.task = pick(&self.task, &order);
        self.flags = pick(&self.flags, &order);
        self.preempt = pick(&self.preempt, &order);
        self.kind = pick(&self.kind, &order);
    }
}

fn pick<T: Copy>(from: &[T], order: &[usize]) -> Vec<T> {
    order.iter().map(|&i| from[i]).collect()
}

impl EventTable {
    /// The column of the field called `name`.
    pub fn column(&self, name: &str) -> Option<&[u64]> {
        let i = self.fields.iter().position(|f| f.name == name)?;
        Some(&self.columns[i])
    }
}

/// What a recorder's listing of settings below `/sys/kernel/mm` is called.
const LISTING: &str = "settings";

impl Snapshot {
    /// The content of the file called `name`, packed or not.
    pub fn content(&self, name: &str) -> Option<&Content> {
        let file = self.files.iter().find(|f| f.name == name)?;
        Some(&file.content)
    }
    /// The bytes of the file called `name`; `None` also if they are packed, as page flags are.
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        self.content(name)?.plain()
    }
    /// What a file below `/sys/kernel/mm` said of which a recorder keeps no copy, but a line of its listing of settings:
    /// `name` is as of a copy, `thp/NAME` or `sysfs/PATH`.
    pub fn listed(&self, name: &str) -> Option<Vec<u8>> {
        let path = match name.strip_prefix("thp/") {
            Some(name) => format!("kernel/mm/transparent_hugepage/{name}"),
            None => name.strip_prefix("sysfs/")?.to_owned(),
        };
        let listing = String::from_utf8_lossy(self.file(LISTING)?);
        let mut lines = listing.lines().filter_map(|l| l.split_once(['=', ':']));
        let found = lines.find(|(file, _)| file.trim().strip_prefix("/sys/") == Some(&path));
        found.map(|(_, value)| format!("{}\n", value.trim()).into_bytes())
    }
    /// When `name` was read (the middle of its reading), in nanoseconds of the snapshots' clock.
    pub fn time_of(&self, name: &str) -> Option<u64> {
        let (a, b) = self.files.iter().find(|f| f.name == name)?.time?;
        Some(a / 2 + b / 2 + (a & b & 1))
    }
}
