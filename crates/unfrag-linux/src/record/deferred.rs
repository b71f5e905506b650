//! Frees that the kernel puts off.
//!
//! Page tables, stacks and more are freed after a grace period, in a soft interrupt. It runs on top of any
//! task, often the idle task or ksoftirqd, so a recording of a command follows these two as well (the
//! followers). What they do for other commands is dropped here.
//!
//! The thread that starts the command counts as one, too.
//!
//! Invariant: of the events of followers, only frees of blocks stay that the recording saw allocated and not
//! yet freed, and the beginnings of tasks: the command's first process begins with one.

use std::collections::HashSet;

use unfrag_eras::Pfn;

use crate::event::page::Alloc;
use crate::event::{At, Kind, Page, Tracker, Unreadable, walk};
use crate::recording::{Events, Lost, Recording};

/// Drops what followers, the tasks for which `is_follower` is true, did for others; gives the number of
/// events dropped.
pub fn drop_of_others(recording: &mut Recording, is_follower: &[bool]) -> u64 {
    let keep = kept(recording, is_follower);
    let dropped = keep.iter().filter(|k| !**k).count() as u64;
    if dropped > 0 {
        retain(&mut recording.events, &mut recording.meta.lost, &keep);
    }
    dropped
}

/// For each event, whether it stays.
fn kept(recording: &Recording, is_follower: &[bool]) -> Vec<bool> {
    let events = &recording.events;
    let mut kept = Kept {
        is_follower,
        live: HashSet::new(),
        keep: Vec::with_capacity(events.len()),
    };
    // It takes whatever an event says, so the walk has no error and no end before the last event.
    let _ = walk(events, &recording.strings, &mut kept);
    let begins = events.tables.iter().position(|t| t.name == "task_newtask");
    for (keep, &kind) in kept.keep.iter_mut().zip(&events.kind) {
        *keep |= begins == Some(usize::from(kind));
    }
    kept.keep
}

/// The blocks in use that the command's own tasks took, and which events stay.
struct Kept<'f> {
    is_follower: &'f [bool],
    live: HashSet<Pfn>,
    keep: Vec<bool>,
}

impl Tracker for Kept<'_> {
    type Error = Unreadable;

    fn takes(&self, kind: Kind) -> bool {
        matches!(kind, Kind::Alloc | Kind::Free)
    }

    fn event(&mut self, at: &At, page: Option<Page<'_>>) -> Result<(), Unreadable> {
        let own = !self.is_follower[at.task as usize];
        let stays = match page {
            Some(Page::Alloc(Alloc { pfn, .. })) if own => {
                self.live.extend(pfn);
                true
            }
            Some(Page::Free(block)) => self.live.remove(&block.pfn) || own,
            _ => own,
        };
        self.keep.push(stays);
        Ok(())
    }

    fn unreadable(&mut self, at: &At, _: Kind, _: Unreadable) -> Result<(), Unreadable> {
        self.event(at, None)
    }
}

/// Keeps these events and their rows; gaps stay before the event that follows them.
fn retain(events: &mut Events, lost: &mut [Lost], keep: &[bool]) {
    for (kind, table) in events.tables.iter_mut().enumerate() {
        let of_kind = events.kind.iter().zip(keep);
        let rows: Vec<bool> = of_kind
            .filter(|(k, _)| usize::from(**k) == kind)
            .map(|(_, keep)| *keep)
            .collect();
        table.columns.iter_mut().for_each(|c| pick(c, &rows));
    }
    let mut left = 0;
    let mut new_index: Vec<u64> = Vec::with_capacity(keep.len() + 1);
    for &k in keep {
        new_index.push(left);
        left += u64::from(k);
    }
    new_index.push(left);
    for l in lost {
        l.before_event = new_index[(l.before_event as usize).min(keep.len())];
    }
    pick(&mut events.time, keep);
    pick(&mut events.cpu, keep);
    pick(&mut events.task, keep);
    pick(&mut events.flags, keep);
    pick(&mut events.preempt, keep);
    pick(&mut events.kind, keep);
}

fn pick<T>(column: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    column.retain(|_| keep.next().copied().unwrap_or(true));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{EventTable, Field, FieldKind};

    fn table(name: &str, pfns: &[u64]) -> EventTable {
        EventTable {
            system: "kmem".into(),
            name: name.into(),
            fields: ["pfn", "order"]
                .map(|name| Field {
                    name: name.into(),
                    kind: FieldKind::Unsigned,
                })
                .into(),
            columns: vec![pfns.to_vec(), vec![0; pfns.len()]],
        }
    }

    #[test]
    fn followers_keep_only_frees_of_recorded_blocks() {
        // (kind, task): task 1 is a follower.
        let seen = [
            (0, 0),
            (0, 1),
            (1, 1),
            (1, 1),
            (1, 1),
            (1, 0),
            (0, 0),
            (2, 1),
        ];
        let n = seen.len();
        let mut r = Recording {
            events: Events {
                time: (0..n as u64).collect(),
                cpu: vec![0; n],
                task: seen.iter().map(|s| s.1).collect(),
                flags: vec![0; n],
                preempt: vec![0; n],
                kind: seen.iter().map(|s| s.0).collect(),
                tables: vec![
                    table("mm_page_alloc", &[10, 11, 12]),
                    table("mm_page_free", &[11, 10, 10, 99]),
                    table("task_newtask", &[7]),
                ],
            },
            ..Recording::default()
        };
        let gap = |before_event| Lost {
            cpu: 0,
            before_event,
            count: Some(1),
        };
        r.meta.lost = vec![gap(3), gap(7)];
        assert_eq!(drop_of_others(&mut r, &[false, true]), 3);
        assert_eq!(r.events.time, [0, 3, 5, 6, 7]);
        assert_eq!(r.events.tables[0].columns[0], [10, 12]);
        assert_eq!(r.events.tables[1].columns[0], [10, 99]);
        assert_eq!(r.events.tables[2].columns[0], [7]);
        assert_eq!(r.meta.lost, [gap(1), gap(4)]);
    }
}
