//! The sizes of a recorded host, as its recording tells them, and which questions can be answered for them.
//!
//! A replay takes them as they are. Where a recording does not tell one, it is that of hosts with such pages.
//!
//! Invariant: each size is kept with the place that tells it. A host is let through if no two places contradict each
//! other, and if the question is made for its sizes.

use super::{Counts, PAGE_SIZES, by_direct_map, page_size_by_huge, page_sizes_by_total};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::report::number::bytes;
use std::collections::BTreeSet;
use std::fmt;
use unfrag_eras::frame::ORDER_SLOTS;
use unfrag_eras::{Geometry, Order};
use unfrag_linux::event::Block;
use unfrag_linux::recording::Recording;

/// Bytes in a page of most hosts, and of one whose recording tells nothing.
pub const PAGE_SIZE: u64 = PAGE_SIZES[0];

/// What shows a recording of any host.
const WAY_OUT: &str =
    "`unfrag inspect` shows the memory of any host, and `unfrag summary` its trace";

/// Where a recording tells something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// What the recorder noted.
    Manifest,
    /// Files of a snapshot.
    Snapshot {
        /// Name of the snapshot; empty where there is but one.
        name: String,
        /// The file, or the files, by name.
        files: &'static str,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Manifest => f.write_str("the recording's manifest"),
            Place::Snapshot { name, files } if name.is_empty() => f.write_str(files),
            Place::Snapshot { name, files } => write!(f, "{files} of snapshot `{name}`"),
        }
    }
}

/// A size, and where it is told first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told<T> {
    /// The size.
    pub value: T,
    /// Where.
    pub from: Place,
}

/// The sizes that a recording tells: of each kind the different ones, in the order in which they are told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedGeometry {
    /// Bytes in a page.
    pub page_size: Vec<Told<u64>>,
    /// Number of orders.
    pub orders: Vec<Told<usize>>,
    /// Pages in a pageblock.
    pub pageblock_pages: Vec<Told<u64>>,
    /// Bytes in a huge page of the default size.
    pub huge_page: Vec<Told<u64>>,
    /// Numbers of the CPUs that the snapshots list.
    pub cpus: BTreeSet<u32>,
}

/// A question whose answer depends on the host's sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// A replay of page events.
    Replay,
    /// Who spoils pageblocks.
    Blame,
    /// What a command does to memory.
    Profile,
    /// A replay of slab events.
    Slab,
    /// What memory does now.
    View,
}

impl Question {
    fn name(self) -> &'static str {
        match self {
            Question::Replay => "a replay",
            Question::Blame => "a count of spoilt pageblocks",
            Question::Profile => "a profile",
            Question::Slab => "a replay of slab caches",
            Question::View => "this view",
        }
    }

    /// Whether the answer is for the host's own sizes. A profile and a replay of slab caches are for machines with pages
    /// of 4 KiB: the one runs on the simulated machine, and the other's slabs are made of such pages.
    fn takes_sizes(self) -> bool {
        matches!(self, Question::Replay | Question::Blame | Question::View)
    }

    /// Whether free lists, or pageblocks, are part of the answer.
    fn needs_blocks(self) -> bool {
        matches!(self, Question::Replay | Question::Blame)
    }
}

impl RecordedGeometry {
    /// The sizes that a recording tells. A file that cannot be read tells none: whoever needs it says so.
    pub fn of(recording: &Recording) -> RecordedGeometry {
        let mut told = RecordedGeometry::default();
        note(
            &mut told.page_size,
            recording.meta.page_size.into(),
            Place::Manifest,
        );
        let hosts = recording.snapshots.iter();
        told.note_hosts(hosts.map(Host::of_snapshot));
        told
    }

    /// The sizes that the files of a host tell.
    pub fn of_host(host: Host) -> RecordedGeometry {
        let mut told = RecordedGeometry::default();
        told.note_hosts(std::iter::once(host));
        told
    }

    /// Notes what hosts tell, of which only one is held at a time.
    fn note_hosts(&mut self, hosts: impl Iterator<Item = Host>) {
        let mut page_sizes = None;
        for host in hosts {
            self.note_lists(&host);
            if let Some(size) = host.geometry.default_huge_page {
                note(&mut self.huge_page, size, from(&host, "meminfo"));
            }
            self.cpus.extend(host.cpus());
            page_sizes = page_sizes.or_else(|| told_page_sizes(&host));
        }
        if let Some((sizes, from)) = page_sizes {
            let known = self.page_size.iter().any(|t| sizes.contains(&t.value));
            // Several fit where memory was added that no zone manages yet.
            if let Some(&first) = sizes.first().filter(|_| !known) {
                // Where a recorder does not tell, its manifest has this size.
                self.page_size.retain(|t| t.value != PAGE_SIZE);
                note(&mut self.page_size, first, from);
            }
        }
    }

    /// Notes how many orders the free lists of a host have, and how large its pageblocks are.
    fn note_lists(&mut self, host: &Host) {
        for row in host.buddy.iter().flat_map(|info| &info.zones) {
            note(&mut self.orders, row.free.len(), from(host, "buddyinfo"));
        }
        if let Some(info) = &host.types {
            let from = || from(host, "pagetypeinfo");
            if !info.orders.is_empty() {
                note(&mut self.orders, info.orders.len(), from());
            }
            let of_order = 1u64.checked_shl(info.pageblock_order).unwrap_or(u64::MAX);
            note(&mut self.pageblock_pages, of_order, from());
            note(&mut self.pageblock_pages, info.pages_per_block, from());
        }
    }

    /// The sizes that a model of the host has.
    ///
    /// # Errors
    /// If no model can have them; says which size is told where.
    fn geometry(&self) -> Result<Geometry> {
        let cannot = |what: String, from: &Place, most: String| {
            Error::contradiction(format!("{from} says {what}; {most}")).help(WAY_OUT)
        };
        let page = self.page_size.first().map_or(PAGE_SIZE, |t| t.value);
        let orders = match self.orders.first() {
            None => usual_orders(page),
            Some(t) if (2..=ORDER_SLOTS).contains(&t.value) => t.value,
            Some(t) => {
                let most = format!("a model has from 2 to {ORDER_SLOTS}");
                return Err(cannot(format!("{} orders", t.value), &t.from, most));
            }
        };
        let max_order = orders as u8 - 1;
        let huge = self.huge_order(page, max_order);
        let block_order = match self.pageblock_pages.first() {
            None => huge.min(max_order),
            Some(t) => {
                let order = t.value.checked_ilog2().filter(|o| 1 << o == t.value);
                let order = order.filter(|o| (1..=max_order.into()).contains(o));
                let Some(order) = order else {
                    let what = format!("pageblocks of {} pages", t.value);
                    let most = format!(
                        "with {orders} orders they have from 2 to {}",
                        1 << max_order
                    );
                    return Err(cannot(what, &t.from, most));
                };
                order as u8
            }
        };
        let geometry = Geometry {
            page_shift: page.ilog2() as u8,
            max_order: Order(max_order),
            block_order: Order(block_order),
            huge_order: Order(huge),
        };
        Ok(geometry)
    }

    /// The order of a huge page: by its size where that is told, else by the sizes of pages and pageblocks. Above
    /// `max_order` where no block is as large.
    fn huge_order(&self, page: u64, max_order: u8) -> u8 {
        let pages = self.huge_page.first().map(|t| t.value / page);
        let told = pages.filter(|n| n.is_power_of_two()).map(u64::ilog2);
        // Larger ones are set aside at boot, and say nothing of those that are allocated.
        if let Some(order) = told.filter(|o| (1..=max_order.into()).contains(o)) {
            return order as u8;
        }
        let usual = usual_huge_order(page);
        let block = self.pageblock_pages.first();
        match block.and_then(|t| t.value.checked_ilog2()) {
            // Without huge pages, pageblocks are the largest blocks.
            Some(order) if order != u32::from(usual) && order == u32::from(max_order) => {
                max_order + 1
            }
            Some(order) if order < u32::from(max_order) => order as u8,
            _ => usual.min(max_order + 1),
        }
    }

    /// The host's sizes, if a question can be answered for them.
    ///
    /// # Errors
    /// If it cannot; says which size is told where, and what works instead.
    pub fn check(&self, question: Question) -> Result<Geometry> {
        if let Some(bad) = self
            .page_size
            .iter()
            .find(|t| !PAGE_SIZES.contains(&t.value))
        {
            return Err(Error::contradiction(format!(
                "{} says pages of {} bytes, which no host has",
                bad.from, bad.value
            ))
            .help(WAY_OUT));
        }
        one(&self.page_size, |size| format!("pages of {}", bytes(*size)))?;
        one(&self.pageblock_pages, |n| {
            format!("pageblocks of {n} pages")
        })?;
        if question.needs_blocks() {
            one(&self.orders, |n| format!("{n} orders"))?;
        }
        if question.takes_sizes() {
            return self.geometry();
        }
        let usual = Geometry::PAGES_4K;
        let mut others = vec![];
        if let Some(t) = self.page_size.iter().find(|t| t.value != PAGE_SIZE) {
            others.push(format!("pages of {} ({})", bytes(t.value), t.from));
        }
        let most = usize::from(usual.max_order.0) + 1;
        if let Some(t) = self.orders.iter().find(|t| t.value > most) {
            others.push(format!("{} orders ({})", t.value, t.from));
        }
        if others.is_empty() {
            return Ok(usual);
        }
        Err(Error::contradiction(format!(
            "{} is made for hosts with pages of 4 KiB and orders 0 to {}; this one has {}",
            question.name(),
            usual.max_order,
            others.join(" and ")
        ))
        .help(WAY_OUT))
    }
}

/// Orders of a host whose recording does not tell them.
fn usual_orders(page: u64) -> usize {
    match page {
        0x4000 => 12,
        0x1_0000 => 14,
        _ => 11,
    }
}

/// The order of a huge page that one entry of the second level of page tables maps.
fn usual_huge_order(page: u64) -> u8 {
    // A table is a page of entries of 8 bytes.
    page.ilog2().saturating_sub(3) as u8
}

/// Notes a size, unless it was told already.
fn note<T: PartialEq>(all: &mut Vec<Told<T>>, value: T, from: Place) {
    if all.iter().all(|t| t.value != value) {
        all.push(Told { value, from });
    }
}

/// Refuses sizes of a kind that differ.
fn one<T>(all: &[Told<T>], text: impl Fn(&T) -> String) -> Result<()> {
    let [a, b, ..] = all else { return Ok(()) };
    Err(Error::contradiction(format!(
        "the recording contradicts itself: {} tells {}, and {} {}",
        a.from,
        text(&a.value),
        b.from,
        text(&b.value)
    ))
    .help(format!(
        "a trace and its snapshots must come from one host; {WAY_OUT}"
    )))
}

/// Where files of a host tell something.
fn from(host: &Host, files: &'static str) -> Place {
    Place::Snapshot {
        name: host.name.clone(),
        files,
    }
}

/// The page sizes that may be, by files of a host that count the same memory in bytes and in pages; `None` if it has
/// none. How much is free is not asked: the files are read one after the other.
fn told_page_sizes(host: &Host) -> Option<(Vec<u64>, Place)> {
    let sum = |name: &'static str| host.of_all(|z| z.pages(name)).filter(|&n| n > 0);
    let counts = Counts {
        meminfo: Some(host.meminfo.as_ref()?),
        managed: sum("managed"),
        present: sum("present"),
        pageblock_order: host.types.as_ref().map(|t| t.pageblock_order),
        ..Counts::default()
    };
    // The surest first.
    if let Some(size) = by_direct_map(&counts) {
        return Some((vec![size], from(host, "meminfo")));
    }
    let by_total = page_sizes_by_total(&counts);
    if !by_total.is_empty() {
        return Some((by_total, from(host, "meminfo and zoneinfo")));
    }
    let by_huge = page_size_by_huge(&counts)?;
    Some((vec![by_huge], from(host, "meminfo and pagetypeinfo")))
}

/// A block that an event names, of a host with these sizes.
///
/// # Errors
/// If it is larger than any of the host.
#[inline]
pub(crate) fn on_host(block: Block, geometry: Geometry) -> Result<Block> {
    if block.order > geometry.max_order.0 {
        return Err(order_of_event(block, geometry));
    }
    Ok(block)
}

/// An event that names a block larger than any of the host.
#[cold]
fn order_of_event(Block { pfn, order }: Block, geometry: Geometry) -> Error {
    Error::contradiction(format!(
        "an event names frame {:#x} of order {order}, and the largest order of this host is {}, with pages of {}",
        pfn.0,
        geometry.max_order,
        bytes(1 << geometry.page_shift)
    ))
    .help(WAY_OUT)
}
