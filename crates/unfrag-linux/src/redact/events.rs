//! Fields of events: those that are read stay, renumbered where they name something; all others are left out.
//!
//! Invariant: an event stays, with its time, its CPU and its task, whatever becomes of its fields.

use std::collections::BTreeSet;

use super::names::{Names, Text};
use crate::event::Kind;
use crate::recording::{EventTable, Events, Field, FieldKind};

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// A count, a page, an order, flags: what the answers are made of.
    Value,
    Pid,
    Path,
    Cache,
    Site,
    Address,
    Stack,
    Inode,
    Device,
}

/// Subsystems whose events bear the kernel's own names; anybody may name others, such as probes.
const SYSTEMS: [&str; 16] = [
    "kmem",
    "compaction",
    "migrate",
    "vmscan",
    "filemap",
    "huge_memory",
    "task",
    "sched",
    "ftrace",
    "oom",
    "cma",
    "page_isolation",
    "page_pool",
    "writeback",
    "thp",
    "pagemap",
];

/// The one field of an event of which no field stays: a table has a column.
const NOTHING: &str = "left_out";

/// Whether the kernel gave this name to an event of this subsystem; text does not always say the latter.
pub(super) fn is_kernels(system: &str, name: &str) -> bool {
    let is_word = |s: &str| s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    match system {
        "" => Kind::of(name).is_some() || of_process(name).is_some() || name == "print",
        system => SYSTEMS.contains(&system) && is_word(name),
    }
}

/// The fields of an event about processes that a profile is made of.
fn of_process(event: &str) -> Option<&'static [(&'static str, Holds)]> {
    Some(match event {
        "task_newtask" => &[("pid", Holds::Pid), ("clone_flags", Holds::Value)],
        "sched_process_exec" => &[("pid", Holds::Pid), ("filename", Holds::Path)],
        "sched_process_exit" => &[("pid", Holds::Pid)],
        "sched_switch" => &[
            ("prev_pid", Holds::Pid),
            ("prev_state", Holds::Value),
            ("next_pid", Holds::Pid),
        ],
        _ => return None,
    })
}

/// What a field of an event holds; `None` if no answer is made of it.
fn holds(event: &str, field: &str) -> Option<Holds> {
    if let Some(fields) = of_process(event) {
        return fields.iter().find(|f| f.0 == field).map(|f| f.1);
    }
    Kind::of(event).filter(|k| k.fields().contains(&field))?;
    Some(match field {
        "i_ino" => Holds::Inode,
        "s_dev" => Holds::Device,
        "ptr" | "addr" => Holds::Address,
        "call_site" => Holds::Site,
        "name" => Holds::Cache,
        "stack" => Holds::Stack,
        _ => Holds::Value,
    })
}

/// What became of fields so far.
#[derive(Debug, Default)]
pub(super) struct Fields {
    left_out: BTreeSet<String>,
    /// Names of events that are not the kernel's, in the order in which they were met.
    renamed: Vec<(String, String)>,
}

impl Fields {
    /// Redacts events.
    pub fn batch(&mut self, events: &mut Events, strings: &[String], names: &mut Names) {
        let mut rows = vec![0; events.tables.len()];
        events.kind.iter().for_each(|&k| rows[usize::from(k)] += 1);
        for (table, rows) in events.tables.iter_mut().zip(rows) {
            self.table(table, rows, strings, names);
        }
    }

    /// The tables of events, without events.
    pub fn pass(
        &mut self,
        events: &mut Events,
        strings: &[String],
        names: &mut Names,
    ) -> Vec<EventTable> {
        let mut tables = std::mem::take(&mut events.tables);
        for table in &mut tables {
            self.table(table, 0, strings, names);
        }
        tables
    }

    /// Fields that are left out, as `event.field`, and how many events are named by numbers.
    pub fn left_out(self) -> (BTreeSet<String>, u64) {
        (self.left_out, self.renamed.len() as u64)
    }

    fn table(
        &mut self,
        table: &mut EventTable,
        rows: usize,
        strings: &[String],
        names: &mut Names,
    ) {
        let is_kernels = is_kernels(&table.system, &table.name);
        if !is_kernels {
            let key = (table.system.clone(), table.name.clone());
            let at = self.renamed.iter().position(|k| *k == key);
            let number = at.unwrap_or_else(|| {
                self.renamed.push(key);
                self.renamed.len() - 1
            });
            table.system = "other".into();
            table.name = format!("event-{}", number + 1);
        }
        let fields = std::mem::take(&mut table.fields);
        let columns = std::mem::take(&mut table.columns);
        for (field, mut column) in fields.into_iter().zip(columns) {
            let held = holds(&table.name, &field.name).filter(|_| is_kernels);
            let Some(held) = held else {
                // The name of a field may be anybody's, too.
                self.left_out.insert(match is_kernels {
                    true => format!("{}.{}", table.name, field.name),
                    false => format!("all of {}", table.name),
                });
                continue;
            };
            column
                .iter_mut()
                .for_each(|v| *v = value(held, field.kind, *v, strings, names));
            table.fields.push(field);
            table.columns.push(column);
        }
        if table.fields.is_empty() {
            table.fields.push(Field {
                name: NOTHING.into(),
                kind: FieldKind::Unsigned,
            });
            table.columns.push(vec![0; rows]);
        }
    }
}

/// The value in the place of another.
fn value(holds: Holds, kind: FieldKind, value: u64, strings: &[String], names: &mut Names) -> u64 {
    if kind == FieldKind::String {
        let text = match holds {
            Holds::Path => Text::Path,
            Holds::Cache => Text::Cache,
            Holds::Value => Text::Value,
            Holds::Stack => Text::Stack,
            // Some recorders write numbers as text.
            _ => {
                let text = usize::try_from(value).ok().and_then(|n| strings.get(n));
                if let Some(number) = text.and_then(|t| t.parse().ok()) {
                    let new = self::value(holds, FieldKind::Unsigned, number, strings, names);
                    return names.string(new.to_string());
                }
                Text::Other
            }
        };
        return names.text(text, value, strings);
    }
    match holds {
        Holds::Value => value,
        Holds::Pid => names.pid(value as i64),
        Holds::Site => names.site(value),
        Holds::Address => names.address(value),
        Holds::Inode => names.inode(value),
        Holds::Device => names.device(value),
        // A path or a name that is a number names nothing that could be read.
        Holds::Path | Holds::Cache | Holds::Stack => 0,
    }
}
