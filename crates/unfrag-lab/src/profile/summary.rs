//! From the sums of a walk to the use of memory by the command and by each of its programs.
//!
//! Invariant: every process is counted once in its program, and once in all.

use super::process::Processes;
use super::process_pages::per_process;
use super::usage::Use;
use super::walk::WalkSums;
use std::collections::BTreeMap;

/// What all processes did, and what each of `programs` did.
pub fn of(sums: &WalkSums, processes: &Processes, programs: &[String]) -> (Use, Vec<Use>) {
    let all = used("all", None, sums, processes, programs);
    let names = programs.iter().enumerate();
    let each = names.map(|(i, name)| used(name, Some(i), sums, processes, programs));
    (all, each.collect())
}

/// What one program did, or all.
fn used(
    name: &str,
    program: Option<usize>,
    sums: &WalkSums,
    processes: &Processes,
    programs: &[String],
) -> Use {
    let Processes {
        list, known, timed, ..
    } = processes;
    let counts = |p: &usize| program.is_none_or(|program| sums.program_of[*p] == program);
    let mine: Vec<usize> = (0..list.len()).filter(counts).collect();
    let of = || mine.iter().map(|&p| &list[p]);
    let first = of().map(|p| p.started).min().unwrap_or(0);
    let last = of().map(|p| p.ended.unwrap_or(sums.until)).max();
    let mut started_by: BTreeMap<String, u64> = BTreeMap::new();
    for parent in of().filter_map(|p| p.parent) {
        if program.is_some() {
            let parent = &programs[sums.program_of[parent]];
            *started_by.entry(parent.clone()).or_default() += 1;
        }
    }
    let count = |n: u64| if *known { n } else { 0 };
    let tally = program.map_or(&sums.all, |p| &sums.tallies[p]);
    let over_processes = || {
        let of: Vec<_> = mine
            .iter()
            .map(|&p| (&list[p], &sums.of_process[p]))
            .collect();
        per_process(&of, *timed, sums.until)
    };
    Use {
        name: name.to_owned(),
        wall_us: last.unwrap_or(first).saturating_sub(first) / 1000,
        cpu_us: timed.then(|| of().map(|p| p.cpu_ns).sum::<u64>() / 1000),
        processes: count(mine.len() as u64),
        processes_at_most: count(at_most(&mine, processes)),
        vforked: of().filter(|p| p.vforked).count() as u64,
        threads: of().map(|p| p.threads).sum(),
        high_water_pages: tally.high_water(),
        started_by,
        each: (*known && program.is_some()).then(over_processes),
        pages: tally.pages(),
        files: sums.inodes.of(program),
        slab: vec![],
    }
}

/// Most of these processes at one time.
fn at_most(these: &[usize], processes: &Processes) -> u64 {
    let mut changes: Vec<(u64, i64)> = vec![];
    for &p in these {
        let process = &processes.list[p];
        changes.push((process.started, 1));
        changes.extend(process.ended.map(|e| (e, -1)));
    }
    changes.sort_unstable();
    let now = changes.iter().scan(0, |now, c| {
        *now += c.1;
        Some(*now)
    });
    now.max().unwrap_or(0) as u64
}
