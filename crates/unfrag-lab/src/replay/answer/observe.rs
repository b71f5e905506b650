//! Observe mode: every frame exactly where the trace put it.
//!
//! Checks that a recording is whole. Each class of events that the workload did not ask for is held
//! against the kernel's own counter of it over the same time, and the layout that the events add up
//! to against the kernel's free lists, where marks hold them.

use super::report::{ClassCheck, LayoutCheck, Observed};
use crate::error::Result;
use crate::geometry::large_order;
use crate::replay::causes::{Action, Causes, Classes, causes};
use crate::replay::model::Prepared;
use unfrag_eras::Geometry;
use unfrag_linux::freelists::FreeLists;
use unfrag_linux::procfs::vmstat::VmStat;
use unfrag_linux::recording::Snapshot;

/// Checks a recording.
///
/// # Errors
/// If its snapshots cannot be read.
pub fn observe(prepared: &Prepared) -> Result<Observed> {
    let counted: Vec<(u64, &Snapshot)> = prepared
        .snapshots
        .iter()
        .filter_map(|(_, s)| Some((prepared.trace_time(s.time_of("vmstat")?), *s)))
        .collect();
    let mut checks = vec![];
    let mut classes = Classes::default();
    let mut events = 0;
    if let (Some(&(from, a)), Some(&(until, b))) = (counted.first(), counted.last()) {
        let frames = prepared.start.frames.len() as u32;
        // The state at the first snapshot: that of the start, moved on.
        let free = free_at(prepared, from)?;
        let known = |p: u32| free[p as usize];
        let known: Option<&dyn Fn(u32) -> bool> = if prepared.exact { Some(&known) } else { None };
        let input = prepared.input.clone();
        let c = causes(input, prepared.era, frames, from, until, known)?;
        classes = c.classes;
        events = c.events;
        checks = compare(
            &c,
            &VmStat::parse(a.file("vmstat").unwrap_or_default())?,
            &VmStat::parse(b.file("vmstat").unwrap_or_default())?,
            prepared.start.geometry,
        );
    }
    let unclassified = classes.unexplained_allocs + classes.unexplained_frees;
    Ok(Observed {
        events,
        classes: checks,
        unclassified,
        unclassified_share: if events > 0 {
            unclassified as f64 / events as f64
        } else {
            0.0
        },
        layouts: layouts(prepared)?,
    })
}

/// Which frames are free at a time of the trace.
fn free_at(prepared: &Prepared, time: u64) -> Result<Vec<bool>> {
    let mut free: Vec<bool> = (0..prepared.start.frames.len())
        .map(|p| prepared.start.is_free(p as u32))
        .collect();
    step(&mut free, &prepared.causes, 0, time)?;
    Ok(free)
}

/// Carries out the operations from number `i` on up to a time, and returns the next one's number.
fn step(free: &mut [bool], causes: &Causes, from: usize, until: u64) -> Result<usize> {
    let next = causes.ops.find(from..causes.ops.len(), |_, op| {
        if op.time > until {
            return true;
        }
        if let Some((block, _)) = op.allocated() {
            free[block.indices()].fill(false);
        }
        if let Some(block) = op.freed() {
            free[block.indices()].fill(true);
        }
        match op.action {
            Action::Stack { index } => causes.stacks[index.get() as usize]
                .iter()
                .for_each(|&p| free[p as usize] = false),
            Action::Moved { pfn, to, .. } => {
                free[pfn.get() as usize] = true;
                free[to.get() as usize] = false;
            }
            Action::MovedAway { pfn, .. } => free[pfn.get() as usize] = true,
            Action::MovedTo { pfn, .. } => free[pfn.get() as usize] = false,
            _ => {}
        }
        false
    })?;
    Ok(next.map_or(causes.ops.len(), |(i, _)| i))
}

fn compare(c: &Causes, a: &VmStat, b: &VmStat, geometry: Geometry) -> Vec<ClassCheck> {
    let delta = |name: &str| Some(b.get(name)?.saturating_sub(a.get(name)?));
    let sum = |prefix: &str| {
        let of = |v: &VmStat| -> u64 {
            v.counters
                .iter()
                .filter(|(n, _)| n.starts_with(prefix))
                .map(|(_, v)| v)
                .sum()
        };
        of(b).saturating_sub(of(a))
    };
    let k = &c.classes;
    let check = |class: &str, pages: u64, counter: &str, value: Option<u64>| ClassCheck {
        class: class.into(),
        pages,
        counter: counter.into(),
        counted: value,
        difference: value.map(|v| {
            if v == pages {
                0.0
            } else {
                (pages as f64 - v as f64) / v.max(1) as f64
            }
        }),
    };
    let huge = 1u64 << large_order(geometry);
    let captured = huge * delta("compact_success").unwrap_or(0);
    vec![
        check("pages freed", k.freed_pages, "pgfree", delta("pgfree")),
        check(
            "pages allocated, and kernel stacks taken without an event",
            k.allocated_pages + k.stack_pages,
            &format!("pgalloc_* + {huge} compact_success"),
            Some(sum("pgalloc_") + captured),
        ),
        check(
            "pages migrated away",
            k.migrated,
            "pgmigrate_success",
            delta("pgmigrate_success"),
        ),
        check(
            "huge pages allocated by faults",
            k.huge_faults,
            "thp_fault_alloc",
            delta("thp_fault_alloc"),
        ),
        check(
            "huge pages that khugepaged took for small ones",
            k.collapses,
            "thp_collapse_alloc",
            delta("thp_collapse_alloc"),
        ),
    ]
}

/// At each mark with free lists: the frames that the events say are free, against the kernel's.
fn layouts(prepared: &Prepared) -> Result<Vec<LayoutCheck>> {
    if !prepared.exact {
        return Ok(vec![]);
    }
    let mut free = free_at(prepared, 0)?;
    let mut i = 0;
    let mut all = vec![];
    for (_, snap) in &prepared.snapshots {
        let Some(text) = snap.file("freelists") else {
            continue;
        };
        let time = snap
            .files
            .iter()
            .find(|f| f.name == "freelists")
            .and_then(|f| f.time);
        let Some((begun, _)) = time else { continue };
        i = step(&mut free, &prepared.causes, i, prepared.trace_time(begun))?;
        let lists = FreeLists::parse(text)?;
        let mut theirs = vec![false; free.len()];
        let mut put = |pfn: u64, order: u8| {
            let at = pfn as usize;
            if let Some(block) = theirs.get_mut(at..at + (1 << order)) {
                block.fill(true);
            }
        };
        for z in &lists.zones {
            let on_lists = z
                .orders
                .iter()
                .flat_map(|a| a.lists.iter().map(move |l| (a.order, &l.pfns)));
            let held = z
                .pcps
                .iter()
                .flat_map(|p| p.lists.iter().map(|l| (l.order, &l.pfns)));
            for (order, pfns) in on_lists.chain(held) {
                pfns.iter().for_each(|&p| put(p, order));
            }
        }
        let count = |f: &dyn Fn(bool, bool) -> bool| {
            free.iter()
                .zip(&theirs)
                .filter(|(a, b)| f(**a, **b))
                .count() as u64
        };
        all.push(LayoutCheck {
            name: snap.name.clone(),
            free_pages: count(&|_, b| b),
            wrongly_free: count(&|a, b| a && !b),
            wrongly_used: count(&|a, b| !a && b),
        });
    }
    Ok(all)
}
