//! The slab events of a recording, and the cache that each allocation is of.
//!
//! Kernels before 6.4 do not say an allocation's cache. It is that of the free of the same object;
//! failing that, that of other allocations at the same place in the code.

use crate::error::{Error, Result};
use crate::input::Input;
use std::collections::{BTreeMap, HashMap};
use unfrag_linux::event::page::Slab;
use unfrag_linux::event::{At, Kind, Page, Tracker, walk};
use unfrag_linux::recording::Recording;

/// One event, decoded.
pub(super) struct SlabEvent {
    /// Nanoseconds of the trace clock.
    pub(super) time: u64,
    /// CPU that did it.
    pub(super) cpu: u16,
    /// Task that did it, by index into the recording's.
    pub(super) task: u32,
    /// Address of the object; 0 for none.
    pub(super) ptr: u64,
    /// Number of its cache's name, where the event has it.
    cache: Option<usize>,
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

/// The slab events of a recording in the order of time.
#[derive(Default)]
pub(super) struct SlabEvents {
    pub(super) all: Vec<SlabEvent>,
    /// Names of caches.
    names: Vec<String>,
    /// Their numbers.
    numbers: HashMap<String, usize>,
}

impl SlabEvents {
    fn number(&mut self, name: &str) -> usize {
        match self.numbers.get(name) {
            Some(&number) => number,
            None => {
                self.names.push(name.to_owned());
                let number = self.names.len() - 1;
                self.numbers.insert(name.to_owned(), number);
                number
            }
        }
    }
}

impl Tracker for SlabEvents {
    type Error = Error;

    fn takes(&self, kind: Kind) -> bool {
        matches!(kind, Kind::Object | Kind::Kmalloc | Kind::ObjectFree)
    }

    fn event(&mut self, at: &At, page: Option<Page<'_>>) -> Result<()> {
        let Some(Page::Slab(slab)) = page else {
            return Ok(());
        };
        let (ptr, cache, kind) = match slab {
            Slab::Free { ptr, cache } => (ptr, cache, SlabEventKind::Free),
            Slab::Alloc {
                by_size,
                size,
                cache,
                call,
            } => {
                // The fields were found to be there.
                let call = call.unwrap_or_default();
                let kind = SlabEventKind::Alloc {
                    kmalloc: by_size,
                    site: call.site,
                    bytes: call.bytes,
                    recorded: size.unwrap_or_default(),
                    gfp: call.gfp.0,
                };
                (call.ptr, cache, kind)
            }
        };
        let cache = cache.map(|name| self.number(name));
        self.all.push(SlabEvent {
            time: at.time,
            cpu: at.cpu,
            task: at.task,
            ptr,
            cache,
            kind,
        });
        Ok(())
    }
}

/// The slab events of a recording.
///
/// # Errors
/// If one lacks a field.
pub(super) fn slab_events(rec: &Recording) -> Result<SlabEvents> {
    Input::from(rec).check(&[Kind::Object, Kind::Kmalloc, Kind::ObjectFree])?;
    let mut events = SlabEvents::default();
    walk(&rec.events, &rec.strings, &mut events)?;
    Ok(events)
}

/// The name of each allocation's cache, by index of its event; `None` for frees, and where nothing tells.
pub(super) fn cache_names(slab: &SlabEvents) -> Vec<Option<&str>> {
    let SlabEvents { all: events, .. } = slab;
    let name_of = |e: &SlabEvent| e.cache.map(|n| slab.names[n].as_str());
    let mut names = vec![None; events.len()];
    let mut freed = HashMap::new();
    let mut at_site: HashMap<(u64, u64), BTreeMap<&str, u32>> = HashMap::new();
    for (i, e) in events.iter().enumerate().rev() {
        match e.kind {
            SlabEventKind::Free => {
                freed.insert(e.ptr, name_of(e));
            }
            SlabEventKind::Alloc { site, recorded, .. } => {
                names[i] = name_of(e).or(freed.remove(&e.ptr).flatten());
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
