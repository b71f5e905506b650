//! A trace of slab allocations: operations on named caches, each free with the allocation that it ends.
//!
//! Invariant: each object is freed at most once, after it was allocated. SlabEventKind contradicts that is
//! counted: frees of objects from before the trace, and objects handed out again although no free of
//! them was traced (bulk frees are not).

use super::events::{SlabEventKind, cache_names, slab_events};
use super::names::CacheNames;
use crate::era::Era;
use crate::error::{Error, Result};
use crate::geometry::recorded::{Question, RecordedGeometry};
use crate::input::Cpus;
use std::collections::HashMap;
use unfrag_eras::Gfp;
use unfrag_linux::recording::Recording;

/// A cache that the trace names, or one that stands for objects of a size whose cache is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedCache {
    /// Name.
    pub name: String,
    /// Bytes of the largest request.
    pub object_size: usize,
    /// Bytes that the recorded kernel's slabs have for each object, if it says.
    pub recorded_size: usize,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Allocates an object of a cache.
    Alloc {
        /// Index of the cache.
        cache: usize,
        /// Bytes asked for.
        bytes: usize,
        /// The request's flags.
        gfp: Gfp,
    },
    /// Allocates memory by size.
    Kmalloc {
        /// Bytes asked for.
        bytes: usize,
        /// The request's flags.
        gfp: Gfp,
    },
    /// Frees the object that the operation with this index allocated.
    Free(usize),
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlabOp {
    /// Nanoseconds of the trace clock.
    pub time: u64,
    /// Index of the CPU that did it.
    pub cpu: u16,
    /// Task that did it, by index into the recording's.
    pub task: u32,
    /// What it does.
    pub action: Action,
}

/// A trace of slab allocations.
#[derive(Clone, Debug, Default)]
pub struct SlabTrace {
    /// The caches.
    pub caches: Vec<TracedCache>,
    /// The operations in the order of time.
    pub ops: Vec<SlabOp>,
    /// CPUs of the recorded host.
    pub cpus: u16,
    /// Frees of objects from before the trace.
    pub unknown_frees: u64,
    /// Objects handed out again without a free of them in the trace; freed just before.
    pub silent_frees: u64,
    /// Frees of a null pointer.
    pub null_frees: u64,
    /// Allocations that failed.
    pub failed: u64,
}

/// Largest object that a cache of the model takes, in bytes.
const LARGEST: u64 = 4 << 20;

impl SlabTrace {
    /// The slab events of a recording.
    ///
    /// # Errors
    /// If it has none, or one lacks a field, or its kernel is not known.
    pub fn of(rec: &Recording) -> Result<SlabTrace> {
        let recorded = RecordedGeometry::of(rec);
        recorded.check(Question::Slab)?;
        let cpus = Cpus::of(&recorded.cpus, &rec.events)?;
        let events = slab_events(rec)?;
        if events.all.is_empty() {
            return Err(
                Error::lacking("the recording has no slab events").help(
                    "record kmem:kmem_cache_alloc, kmem:kmem_cache_free, kmem:kmalloc and \
                     kmem:kfree, as in trace-cmd record -e kmem:kmalloc -e kmem:kfree -e 'kmem:kmem_cache_*'",
                ),
            );
        }
        let era = Era::of(&rec.meta.kernel_release)?;
        let names = cache_names(&events);
        let of_host = CacheNames::of(rec);
        let mut trace = SlabTrace::default();
        let mut known: HashMap<(String, u64), usize> = HashMap::new();
        let mut live: HashMap<u64, usize> = HashMap::new();
        for (e, name) in events.all.iter().zip(names) {
            let push = |ops: &mut Vec<SlabOp>, action| {
                ops.push(SlabOp {
                    time: e.time,
                    cpu: cpus.of_event(e.cpu),
                    task: e.task,
                    action,
                });
            };
            match e.kind {
                SlabEventKind::Free if e.ptr == 0 => trace.null_frees += 1,
                SlabEventKind::Free => match live.remove(&e.ptr) {
                    Some(op) => push(&mut trace.ops, Action::Free(op)),
                    None => trace.unknown_frees += 1,
                },
                SlabEventKind::Alloc { bytes, .. } if e.ptr == 0 || bytes > LARGEST => {
                    trace.failed += 1
                }
                SlabEventKind::Alloc {
                    kmalloc,
                    bytes,
                    recorded,
                    gfp,
                    ..
                } => {
                    if let Some(op) = live.remove(&e.ptr) {
                        trace.silent_frees += 1;
                        push(&mut trace.ops, Action::Free(op));
                    }
                    let gfp = era.gfp(gfp);
                    let size = bytes as usize;
                    let action = match kmalloc {
                        true => Action::Kmalloc { bytes: size, gfp },
                        false => {
                            let name = name.or_else(|| of_host.of_objects(recorded));
                            let name = name.map_or_else(|| format!("?-{recorded}"), str::to_owned);
                            let next = trace.caches.len();
                            let cache = *known.entry((name.clone(), recorded)).or_insert(next);
                            if cache == next {
                                trace.caches.push(TracedCache {
                                    name,
                                    object_size: size,
                                    recorded_size: recorded as usize,
                                });
                            }
                            let c = &mut trace.caches[cache];
                            c.object_size = c.object_size.max(size).max(1);
                            Action::Alloc {
                                cache,
                                bytes: size,
                                gfp,
                            }
                        }
                    };
                    live.insert(e.ptr, trace.ops.len());
                    push(&mut trace.ops, action);
                }
            }
        }
        // No more than the most that a kernel has.
        trace.cpus = cpus.with_silent(&rec.meta)? as u16;
        Ok(trace)
    }
}
