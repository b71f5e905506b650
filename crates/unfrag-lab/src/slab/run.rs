//! The operations of a trace on each allocator.
//!
//! Invariant: each allocator runs alone on a machine of its own. Each operation is done on the CPU that the
//! trace says; the reaper runs by the trace's clock.

use super::names::CacheNames;
use super::report::{AllocatorReport, CacheReport, SlabReport};
use super::trace::{Action, SlabTrace, TracedCache};
use crate::afford;
use crate::error::{Asked, Error, Remedy, Result};
use std::collections::HashMap;
use unfrag_eras::kernel::preset;
use unfrag_linux::recording::Recording;
use unfrag_machine::slab::{
    CacheId, MachineError, ObjectId, SlabMachine, SlabMachineConfig, with_slab_machine,
};
use unfrag_slab::{CacheFlags, CacheInfo, CacheOptions, Design, Due, Rules};

/// How to replay.
#[derive(Clone, Debug)]
pub struct Options {
    /// The allocators.
    pub designs: Vec<Design>,
    /// Their rules; design and merging do not count.
    pub rules: Rules,
    /// CPUs by which SLUB chooses orders and SLAB its arrays; the recorded ones if `None`.
    pub cpus: Option<u16>,
    /// Bytes of memory.
    pub memory: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            designs: Design::ALL.to_vec(),
            rules: Rules::MODERN,
            cpus: None,
            memory: 1 << 30,
        }
    }
}

/// Replays a recording's slab events on each allocator.
///
/// # Errors
/// If it has none, or the machine cannot have so much memory.
pub fn replay(rec: &Recording, source: &str, options: &Options) -> Result<SlabReport> {
    afford::check(options.memory, afford::CORE, 1)
        .map_err(|e| Error::option(Asked::Memory, e).remedy(Remedy::Other(Asked::Memory)))?;
    let trace = SlabTrace::of(rec)?;
    let cpus = options.cpus.unwrap_or(trace.cpus).max(1);
    let allocators = options
        .designs
        .iter()
        .map(|d| replay_on(&trace, *d, cpus, options))
        .collect::<Result<Vec<_>>>()?;
    let mut allocators = allocators;
    let names = CacheNames::of(rec);
    for c in allocators.iter_mut().flat_map(|a| &mut a.caches) {
        // Each allocator calls its caches by size in its own way.
        if c.name.starts_with("kmalloc-") || c.name.starts_with("size-") {
            c.name = names.of_kmalloc(c.object_size.into());
        }
    }
    let count = |f: fn(&Action) -> bool| trace.ops.iter().filter(|o| f(&o.action)).count() as u64;
    Ok(SlabReport {
        source: source.to_owned(),
        kernel: rec.meta.kernel_release.clone(),
        cpus,
        allocations: count(|a| !matches!(a, Action::Free(_))),
        frees: count(|a| matches!(a, Action::Free(_))),
        unknown_frees: trace.unknown_frees,
        silent_frees: trace.silent_frees,
        null_frees: trace.null_frees,
        failed_in_trace: trace.failed,
        allocators,
    })
}

/// The replay on one allocator, on a machine made for it.
fn replay_on(
    trace: &SlabTrace,
    design: Design,
    cpus: u16,
    options: &Options,
) -> Result<AllocatorReport> {
    let page_rules = preset("6.1")
        .ok_or_else(|| Error::option(Asked::Kernel, "there is no kernel `6.1`"))?
        .rules;
    let config = SlabMachineConfig {
        frames: options.memory / 4096,
        cpus,
        page_rules,
        // The trace names caches as they were after the recorded kernel merged them.
        rules: options.rules.design(design).merge(false),
    };
    let refused = |e: MachineError| {
        Error::option(Asked::Memory, e.to_string()).remedy(Remedy::Other(Asked::Memory))
    };
    with_slab_machine(&config, |m| run(trace, design, m)).map_err(refused)?
}

/// The state of a replay.
struct Tally {
    /// Objects in use and their bytes, by the operation that allocated them.
    objects: HashMap<usize, (ObjectId, usize)>,
    /// Bytes of all of them.
    requested: u64,
    report: AllocatorReport,
}

/// Creates the trace's caches on the machine.
fn caches(trace: &SlabTrace, design: Design, m: &mut SlabMachine) -> Result<Vec<CacheId>> {
    let make = |c: &TracedCache| {
        // More padding than to a word: the recorded kernel aligned the objects to cache lines.
        let lined = c.recorded_size > c.object_size.next_multiple_of(8);
        let flags = match lined {
            true => CacheFlags::HWCACHE_ALIGN,
            false => CacheFlags::empty(),
        };
        let name: String = c.name.chars().filter(|c| !c.is_control()).collect();
        let short = name.char_indices().map(|(i, c)| i + c.len_utf8());
        let end = short.take_while(|e| *e <= 31).last().unwrap_or(0);
        let options = CacheOptions::new(&name[..end], c.object_size)
            .design(design)
            .flags(flags);
        let made = m.create(&options);
        made.map_err(|e| Error::contradiction(format!("cache {}: {e}", c.name)))
    };
    trace.caches.iter().map(make).collect()
}

fn run(trace: &SlabTrace, design: Design, m: &mut SlabMachine) -> Result<AllocatorReport> {
    let caches = caches(trace, design, m)?;
    let mut t = Tally {
        objects: HashMap::new(),
        requested: 0,
        report: AllocatorReport {
            allocator: design.name().to_owned(),
            ..AllocatorReport::default()
        },
    };
    let mut last: HashMap<u16, u64> = HashMap::new();
    let begin = trace.ops.first().map_or(0, |o| o.time);
    for (i, op) in trace.ops.iter().enumerate() {
        let now = op.time - begin;
        let before = last.insert(op.cpu, now).unwrap_or(0);
        let due = Due::between(before, now);
        if due != Due::default() {
            m.reap(op.cpu, due);
        }
        let (got, bytes) = match op.action {
            Action::Free(which) => {
                if let Some((object, bytes)) = t.objects.remove(&which) {
                    m.free(op.cpu, object);
                    t.requested -= bytes as u64;
                }
                continue;
            }
            Action::Alloc { cache, bytes, gfp } => (m.alloc(op.cpu, caches[cache], gfp), bytes),
            Action::Kmalloc { bytes, gfp } => (m.kmalloc(op.cpu, bytes, gfp), bytes),
        };
        match got {
            Ok(object) => {
                t.objects.insert(i, (object, bytes));
                t.requested += bytes as u64;
            }
            Err(_) => t.report.failures += 1,
        }
        let pages = m.slab_pages();
        if pages > t.report.peak.pages {
            t.report.peak.set(pages, t.requested);
        }
    }
    let mut report = t.report;
    report.end.set(m.slab_pages(), t.requested);
    report.record_pages = m.record_pages();
    let infos = m.infos();
    let sum = |f: fn(&CacheInfo) -> u64| infos.iter().map(f).sum::<u64>();
    let percent = |a: u64, b: u64| (100 * a).checked_div(a + b).unwrap_or(0);
    report.percent_fast_allocs = percent(sum(|c| c.alloc_fast), sum(|c| c.alloc_slow));
    report.percent_fast_frees = percent(sum(|c| c.free_fast), sum(|c| c.free_slow));
    report.order_fallbacks = sum(|c| c.order_fallbacks);
    for c in &infos {
        for (to, n) in report.slabs_of_order.iter_mut().zip(c.slabs_of_order) {
            *to += u64::from(n);
        }
    }
    report.caches = infos.iter().map(CacheReport::of).collect();
    report.infos = infos;
    m.shrink();
    report.pages_after_shrink = m.slab_pages();
    Ok(report)
}
