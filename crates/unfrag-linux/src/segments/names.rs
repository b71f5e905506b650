//! One numbering of tasks, strings and kinds of events for several segments.

use std::collections::HashMap;
use std::hash::Hash;

use crate::recording::{EventTable, Events, FieldKind, Recording, Task};

/// The numbers of what several segments name.
#[derive(Default)]
pub(super) struct Names {
    tasks: HashMap<Task, u32>,
    strings: HashMap<String, u32>,
}

/// Of a segment, the number of each task, string and kind of event in the whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    task_of: Vec<u32>,
    string_of: Vec<u32>,
    pub(super) table_of: Vec<u8>,
}

/// The number of each item in `all`, whose numbers `known` holds; those that are new go behind the others.
fn numbers<T: Clone + Eq + Hash>(
    items: &[T],
    all: &mut Vec<T>,
    known: &mut HashMap<T, u32>,
) -> Vec<u32> {
    let number = |item: &T| {
        let next = all.len() as u32;
        let number = *known.entry(item.clone()).or_insert(next);
        if number == next {
            all.push(item.clone());
        }
        number
    };
    items.iter().map(number).collect()
}

impl Names {
    /// Adds what a segment names to `all`.
    pub(super) fn add(&mut self, segment: &Recording, all: &mut Recording) -> Numbers {
        let mut table_of = vec![];
        for table in &segment.events.tables {
            let of = |t: &EventTable| {
                (&t.system, &t.name, &t.fields) == (&table.system, &table.name, &table.fields)
            };
            let tables = &mut all.events.tables;
            let number = tables.iter().position(of).unwrap_or_else(|| {
                tables.push(EventTable {
                    columns: vec![vec![]; table.fields.len()],
                    ..table.clone()
                });
                tables.len() - 1
            });
            table_of.push(number.min(255) as u8);
        }
        Numbers {
            task_of: numbers(&segment.tasks, &mut all.tasks, &mut self.tasks),
            string_of: numbers(&segment.strings, &mut all.strings, &mut self.strings),
            table_of,
        }
    }
}

impl Numbers {
    /// Whether numbers of a whole with so many kinds of events are those of the segment.
    pub(super) fn are_same(&self, tables: usize) -> bool {
        let rises = |numbers: &[u32]| numbers.iter().enumerate().all(|(i, &n)| i as u32 == n);
        let kinds = self.table_of.iter().enumerate();
        self.table_of.len() == tables
            && kinds
                .map(|(i, &k)| (i, usize::from(k)))
                .all(|(i, k)| i == k)
            && rises(&self.task_of)
            && rises(&self.string_of)
    }

    /// Gives events of the segment the numbers of the whole, which has `tables` without events.
    pub(super) fn renumber(&self, events: &mut Events, tables: &[EventTable]) {
        events
            .task
            .iter_mut()
            .for_each(|t| *t = self.task_of[*t as usize]);
        events
            .kind
            .iter_mut()
            .for_each(|k| *k = self.table_of[usize::from(*k)]);
        let mut renumbered = tables.to_vec();
        for (table, &to) in events.tables.iter_mut().zip(&self.table_of) {
            for (field, column) in table.fields.iter().zip(&mut table.columns) {
                if field.kind == FieldKind::String {
                    let of = |v: u64| self.string_of.get(v as usize).copied().unwrap_or(0);
                    column.iter_mut().for_each(|v| *v = u64::from(of(*v)));
                }
            }
            std::mem::swap(&mut renumbered[usize::from(to)], table);
        }
        events.tables = renumbered;
    }
}
