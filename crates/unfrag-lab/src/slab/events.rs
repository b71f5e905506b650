//! The slab events of a recording, and the cache that each allocation is of.
//!
//! Kernels before 6.4 do not say an allocation's cache. It is that of the free of the same object;
//! failing that, that of other allocations at the same place in the code.

use crate::error::{Error, Result};
use std::collections::{BTreeMap, HashMap};
use unfrag_linux::recording::{EventTable, FieldKind, Recording};

/// One event, decoded.
pub(super) struct SlabEvent<'a> {
    /// Nanoseconds of the trace clock.
    pub(super) time: u64,
    /// CPU that did it.
    pub(super) cpu: u16,
    /// Task that did it, by index into the recording's.
    pub(super) task: u32,
    /// Address of the object; 0 for none.
    pub(super) ptr: u64,
    /// Name of its cache, where the event has it.
    pub(super) cache: Option<&'a str>,
    /// Allocation or free.
    pub(super) kind: SlabEventKind,
}

/// What a slab event tells.
#[derive(Clone, Copy)]
pub(super) enum SlabEventKind {
    /// An allocation.
    Alloc {
        /// Whether it is by size, not from a named cache.
        kmalloc: bool,
        /// Address of the calling code.
        site: u64,
        /// Bytes asked for.
        bytes: u64,
        /// Bytes that the recorded kernel's slab has for the object.
        recorded: u64,
        /// The request's flags, as the recorded kernel numbers them.
        gfp: u64,
    },
    /// A free.
    Free,
}

/// The columns of one table of events.
struct Columns<'a> {
    ptr: &'a [u64],
    cache: Option<&'a [u64]>,
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
        cache: if named { table.column("name") } else { None },
        alloc,
    }))
}

/// The slab events of a recording in the order of time.
///
/// # Errors
/// If one lacks a field.
pub(super) fn slab_events(rec: &Recording) -> Result<Vec<SlabEvent<'_>>> {
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
        let kind = match &c.alloc {
            Some(a) => SlabEventKind::Alloc {
                kmalloc: a.kmalloc,
                site: a.site[row],
                bytes: a.bytes[row],
                recorded: a.recorded[row],
                gfp: a.gfp[row],
            },
            None => SlabEventKind::Free,
        };
        let cache = c.cache.and_then(|n| rec.strings.get(n[row] as usize));
        all.push(SlabEvent {
            time: rec.events.time[i],
            cpu: rec.events.cpu[i],
            task: rec.events.task[i],
            ptr: c.ptr[row],
            cache: cache.map(String::as_str),
            kind,
        });
    }
    Ok(all)
}

/// The name of each allocation's cache, by index of its event; `None` for frees, and where nothing tells.
pub(super) fn cache_names<'a>(events: &[SlabEvent<'a>]) -> Vec<Option<&'a str>> {
    let mut names = vec![None; events.len()];
    let mut freed = HashMap::new();
    let mut at_site: HashMap<(u64, u64), BTreeMap<&str, u32>> = HashMap::new();
    for (i, e) in events.iter().enumerate().rev() {
        match e.kind {
            SlabEventKind::Free => {
                freed.insert(e.ptr, e.cache);
            }
            SlabEventKind::Alloc { site, recorded, .. } => {
                names[i] = e.cache.or(freed.remove(&e.ptr).flatten());
                if let Some(name) = names[i] {
                    let counts = at_site.entry((site, recorded)).or_default();
                    *counts.entry(name).or_default() += 1;
                }
            }
        }
    }
    for (e, name) in events.iter().zip(&mut names) {
        if let (SlabEventKind::Alloc { site, recorded, .. }, None) = (e.kind, &name) {
            let counts = at_site.get(&(site, recorded));
            let most = counts.and_then(|c| c.iter().max_by_key(|(_, n)| **n));
            *name = most.map(|(name, _)| *name);
        }
    }
    names
}
