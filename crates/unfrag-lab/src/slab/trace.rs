//! From events to operations: which cache an allocation was of, and which allocation a free ends.
//!
//! Kernels before 6.4 do not say an allocation's cache. It is that of the free of the same object;
//! failing that, that of other allocations at the same place in the code; failing that, one without a
//! name for each size.
//!
//! Invariant: each object is freed at most once, after it was allocated. What contradicts that is
//! counted: frees of objects from before the trace, and objects handed out again although no free of
//! them was traced (bulk frees are not).

use crate::era::Era;
use crate::error::{Error, Result};
use std::collections::{BTreeMap, HashMap};
use unfrag::Gfp;
use unfrag_linux::recording::{EventTable, FieldKind, Recording};

/// A cache that the trace names, or that is inferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedCache {
    /// Name.
    pub name: String,
    /// Bytes of an object as the largest request asked for.
    pub object_size: usize,
    /// Bytes that the recorded kernel's slabs had for each, if it says.
    pub recorded_size: usize,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// An object of a cache, by its index.
    Alloc {
        /// Index of the cache.
        cache: usize,
        /// Bytes asked for.
        bytes: usize,
        /// The request's flags.
        gfp: Gfp,
    },
    /// Memory by size.
    Kmalloc {
        /// Bytes asked for.
        bytes: usize,
        /// The request's flags.
        gfp: Gfp,
    },
    /// The object that the operation with this index allocated is freed.
    Free(usize),
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Nanoseconds of the trace clock.
    pub time: u64,
    /// CPU that did it.
    pub cpu: u16,
    /// Task that did it, by index into the recording's.
    pub task: u32,
    /// What.
    pub action: Action,
}

/// A trace of slab allocations.
#[derive(Clone, Debug, Default)]
pub struct SlabTrace {
    /// The caches.
    pub caches: Vec<TracedCache>,
    /// The operations in the order of time.
    pub ops: Vec<Op>,
    /// CPUs of the recorded host.
    pub cpus: u16,
    /// Frees of objects from before the trace.
    pub unknown_frees: u64,
    /// Objects handed out again without a free of them in the trace; freed just before.
    pub silent_frees: u64,
    /// Frees of nothing (`kfree(NULL)`).
    pub null_frees: u64,
    /// Allocations that failed.
    pub failed: u64,
}

/// One event, decoded.
struct Event<'a> {
    time: u64,
    cpu: u16,
    task: u32,
    ptr: u64,
    name: Option<&'a str>,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    Alloc {
        kmalloc: bool,
        site: u64,
        bytes: u64,
        recorded: u64,
        gfp: u64,
    },
    Free,
}

/// The columns of one kind of event.
struct Columns<'a> {
    ptr: &'a [u64],
    name: Option<&'a [u64]>,
    alloc: Option<AllocColumns<'a>>,
}

struct AllocColumns<'a> {
    kmalloc: bool,
    site: &'a [u64],
    bytes: &'a [u64],
    recorded: &'a [u64],
    gfp: &'a [u64],
}

fn columns(table: &EventTable) -> Result<Option<Columns<'_>>> {
    let kmalloc = match table.name.as_str() {
        "kmalloc" | "kmalloc_node" => Some(true),
        "kmem_cache_alloc" | "kmem_cache_alloc_node" => Some(false),
        "kfree" | "kmem_cache_free" => None,
        _ => return Ok(None),
    };
    let column = |name: &str| {
        table
            .column(name)
            .ok_or_else(|| Error::lacking(format!("the event {} has no field {name}", table.name)))
    };
    let named = table
        .fields
        .iter()
        .any(|f| f.name == "name" && f.kind == FieldKind::String);
    let alloc = match kmalloc {
        Some(kmalloc) => Some(AllocColumns {
            kmalloc,
            site: column("call_site")?,
            bytes: column("bytes_req")?,
            recorded: column("bytes_alloc")?,
            gfp: column("gfp_flags")?,
        }),
        None => None,
    };
    Ok(Some(Columns {
        ptr: column("ptr")?,
        name: if named { table.column("name") } else { None },
        alloc,
    }))
}

fn events(rec: &Recording) -> Result<Vec<Event<'_>>> {
    let tables = rec
        .events
        .tables
        .iter()
        .map(columns)
        .collect::<Result<Vec<_>>>()?;
    let mut rows = vec![0; tables.len()];
    let mut all = vec![];
    for (i, &kind) in rec.events.kind.iter().enumerate() {
        let kind = usize::from(kind);
        let row = rows[kind];
        rows[kind] += 1;
        let Some(c) = &tables[kind] else { continue };
        let what = match &c.alloc {
            Some(a) => What::Alloc {
                kmalloc: a.kmalloc,
                site: a.site[row],
                bytes: a.bytes[row],
                recorded: a.recorded[row],
                gfp: a.gfp[row],
            },
            None => What::Free,
        };
        let name = c.name.and_then(|n| rec.strings.get(n[row] as usize));
        all.push(Event {
            time: rec.events.time[i],
            cpu: rec.events.cpu[i],
            task: rec.events.task[i],
            ptr: c.ptr[row],
            name: name.map(String::as_str),
            what,
        });
    }
    Ok(all)
}

/// The name of each allocation's cache, by index of its event.
fn names<'a>(events: &[Event<'a>]) -> Vec<Option<&'a str>> {
    let mut names = vec![None; events.len()];
    let mut freed = HashMap::new();
    let mut at_site: HashMap<(u64, u64), BTreeMap<&str, u32>> = HashMap::new();
    for (i, e) in events.iter().enumerate().rev() {
        match e.what {
            What::Free => {
                freed.insert(e.ptr, e.name);
            }
            What::Alloc { site, recorded, .. } => {
                names[i] = e.name.or(freed.remove(&e.ptr).flatten());
                if let Some(name) = names[i] {
                    let counts = at_site.entry((site, recorded)).or_default();
                    *counts.entry(name).or_default() += 1;
                }
            }
        }
    }
    for (e, name) in events.iter().zip(&mut names) {
        if let (What::Alloc { site, recorded, .. }, None) = (e.what, &name) {
            let counts = at_site.get(&(site, recorded));
            let most = counts.and_then(|c| c.iter().max_by_key(|(_, n)| **n));
            *name = most.map(|(name, _)| *name);
        }
    }
    names
}

/// Largest object that a cache of the model takes.
const LARGEST: u64 = 4 << 20;

impl SlabTrace {
    /// The slab events of a recording.
    ///
    /// # Errors
    /// If it has none, or one lacks a field, or its kernel is not known.
    pub fn of(rec: &Recording) -> Result<SlabTrace> {
        let events = events(rec)?;
        if events.is_empty() {
            return Err(
                Error::lacking("the recording has no slab events").help(
                    "record kmem:kmem_cache_alloc, kmem:kmem_cache_free, kmem:kmalloc and \
                     kmem:kfree, as in trace-cmd record -e kmem:kmalloc -e kmem:kfree -e 'kmem:kmem_cache_*'",
                ),
            );
        }
        let era = Era::of(&rec.meta.kernel_release)?;
        let names = names(&events);
        let mut trace = SlabTrace::default();
        let mut known: HashMap<(String, u64), usize> = HashMap::new();
        let mut live: HashMap<u64, usize> = HashMap::new();
        for (e, name) in events.iter().zip(names) {
            trace.cpus = trace.cpus.max(e.cpu + 1);
            let push = |ops: &mut Vec<Op>, action| {
                ops.push(Op {
                    time: e.time,
                    cpu: e.cpu,
                    task: e.task,
                    action,
                });
            };
            match e.what {
                What::Free if e.ptr == 0 => trace.null_frees += 1,
                What::Free => match live.remove(&e.ptr) {
                    Some(op) => push(&mut trace.ops, Action::Free(op)),
                    None => trace.unknown_frees += 1,
                },
                What::Alloc { bytes, .. } if e.ptr == 0 || bytes > LARGEST => trace.failed += 1,
                What::Alloc {
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
        trace.cpus = trace
            .cpus
            .max(u16::try_from(rec.meta.cpus).unwrap_or(u16::MAX));
        Ok(trace)
    }
}
