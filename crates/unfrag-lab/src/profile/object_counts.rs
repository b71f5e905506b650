//! The count of slab objects by cache and program.
//!
//! Invariant: objects from before the recording are not counted, nor what tasks outside the command allocated.

use super::objects::Objects;
use super::process::Processes;
use super::usage::Use;
use crate::error::Result;
use crate::slab::SlabTrace;
use crate::slab::names::CacheNames;
use crate::slab::trace::Action;
use std::collections::{BTreeMap, HashMap};
use unfrag_linux::event::Kind;
use unfrag_linux::recording::Recording;

/// Objects of a cache while they are summed.
#[derive(Clone, Copy, Default)]
struct Sum {
    taken: u64,
    freed: u64,
    high: u64,
}

impl Sum {
    fn take(&mut self) {
        self.taken += 1;
        self.high = self.high.max(self.taken - self.freed);
    }
}

/// Adds the objects to what all processes and each program used, in the order of `programs`. A recording without slab
/// events has none.
///
/// # Errors
/// If a slab event lacks a field.
pub fn add(
    rec: &Recording,
    processes: &Processes,
    programs: &[String],
    all: &mut Use,
    of_program: &mut [Use],
) -> Result<()> {
    let is_slab = |name: &str| matches!(Kind::of(name), Some(Kind::Object | Kind::Kmalloc));
    let mut tables = rec.events.tables.iter();
    if !tables.any(|t| is_slab(&t.name) && t.columns.first().is_some_and(|c| !c.is_empty())) {
        return Ok(());
    }
    let index: HashMap<&str, usize> = programs
        .iter()
        .enumerate()
        .map(|(i, n)| (n.as_str(), i))
        .collect();
    let trace = SlabTrace::of(rec)?;
    let names = CacheNames::of(rec);
    // The caches by name and size; sums of all programs, then of each.
    let mut caches: BTreeMap<(String, u64), usize> = BTreeMap::new();
    let mut sums: Vec<Vec<Sum>> = vec![vec![]; programs.len() + 1];
    let of_trace: Vec<usize> = trace
        .caches
        .iter()
        .map(|c| {
            let next = caches.len();
            *caches
                .entry((c.name.clone(), c.recorded_size as u64))
                .or_insert(next)
        })
        .collect();
    let mut taken_by: HashMap<usize, (usize, usize)> = HashMap::new();
    for (i, op) in trace.ops.iter().enumerate() {
        let cache = match op.action {
            Action::Free(of) => {
                if let Some((cache, program)) = taken_by.remove(&of) {
                    sums[0][cache].freed += 1;
                    sums[program + 1][cache].freed += 1;
                }
                continue;
            }
            Action::Alloc { cache, .. } => of_trace[cache],
            Action::Kmalloc { bytes, .. } => {
                let size = kmalloc_size(bytes as u64);
                let next = caches.len();
                *caches.entry((names.of_kmalloc(size), size)).or_insert(next)
            }
        };
        let Some(process) = processes.owner(op.task, op.time) else {
            continue;
        };
        let program = index[processes.list[process].program.as_str()];
        for of in [0, program + 1] {
            if sums[of].len() <= cache {
                sums[of].resize(cache + 1, Sum::default());
            }
            sums[of][cache].take();
        }
        taken_by.insert(i, (cache, program));
    }
    let list = |sums: &[Sum]| {
        let used = caches.iter().filter_map(|((name, size), &c)| {
            let sum = sums.get(c).filter(|s| s.taken > 0)?;
            Some(Objects {
                cache: name.clone(),
                object_bytes: *size,
                taken: sum.taken,
                freed: sum.freed,
                held: sum.taken - sum.freed,
                high_water: sum.high,
            })
        });
        let mut list: Vec<Objects> = used.collect();
        list.sort_by_key(|o| std::cmp::Reverse(o.taken));
        list
    };
    all.slab = list(&sums[0]);
    for (program, sums) in of_program.iter_mut().zip(&sums[1..]) {
        program.slab = list(sums);
    }
    Ok(())
}

/// The size of the cache that a request of so many bytes comes from: a power of two, 96 or 192; whole pages above 8192.
/// `spec: 6.2`
fn kmalloc_size(bytes: u64) -> u64 {
    match bytes {
        0..=8 => 8,
        65..=96 => 96,
        129..=192 => 192,
        _ if bytes > 8192 => bytes.div_ceil(4096) * 4096,
        _ => bytes.next_power_of_two(),
    }
}

#[cfg(test)]
mod tests {
    use super::kmalloc_size;

    #[test]
    fn kmalloc_takes_the_smallest_cache_that_fits() {
        for (bytes, size) in [
            (0, 8),
            (9, 16),
            (65, 96),
            (97, 128),
            (129, 192),
            (193, 256),
            (8192, 8192),
            (8193, 12288),
        ] {
            assert_eq!(kmalloc_size(bytes), size, "{bytes}");
        }
    }
}
