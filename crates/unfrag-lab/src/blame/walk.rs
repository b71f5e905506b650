//! The walk over a recording's events, and the sums over its moments.

use super::held::{Held, MOST_FRAMES, WHOLE};
use super::holders::{HolderId, Holders, purpose};
use super::report::{Blame, Holder, Interval, Start};
use super::spans::{DAY, SECOND, Spans, date};
use crate::era::Era;
use crate::error::{Error, Result};
use crate::geometry::Sizes;
use crate::geometry::recorded::{Question, RecordedGeometry, order_of_event};
use crate::input::{Input, needed};
use crate::profile::class::Class;
use std::collections::BTreeMap;
use unfrag::{Geometry, MigrateType};
use unfrag_linux::content::Content;
use unfrag_linux::file::{Common, Wanted};
use unfrag_linux::kpageflags::{self, BUDDY, COMPOUND_TAIL, PGTABLE, SLAB};
use unfrag_linux::recording::{EventTable, Events, FieldKind};
use unfrag_linux::segments::EPOCH_OFFSET;

/// Who held the kernel memory that spoilt pageblocks, of the recording that is called `source`.
///
/// # Errors
/// If it has no events of pages, does not say of which kernel it is, or cannot be read.
pub fn blame<'r>(input: impl Into<Input<'r>>, source: &str) -> Result<Blame> {
    let input = input.into();
    let rec = input.recording;
    let geometry = RecordedGeometry::of(rec).check(Question::Blame)?;
    let (Some((first, last)), true) = (input.events.span(), input.happened(ALLOC, "pfn")) else {
        return Err(Error::lacking("the recording has no allocations of pages")
            .help("record the host with `unfrag record --system`"));
    };
    let era = Era::of(&rec.meta.kernel_release)?;
    let epoch = rec.meta.facts.get(EPOCH_OFFSET);
    let epoch: Option<i64> = epoch.and_then(|n| n.parse().ok());
    let spans = Spans::new(first, last, epoch);
    let flags = rec.snapshots.iter().find_map(|s| {
        let time = s.time_of(kpageflags::NAME)?;
        let time = time.saturating_add_signed(-rec.meta.snapshot_offset_ns);
        // What was in use soon after the beginning was so at the beginning.
        let soon = time < first.saturating_add(spans.length);
        Some((
            if soon { first } else { time },
            s.content(kpageflags::NAME)?,
        ))
    });
    let start = flags.map_or(Start::Unknown, |_| Start::PageFlags);
    let mut walk = Walk {
        era,
        strings: &rec.strings,
        holders: Holders::of(rec),
        held: Held::on(geometry),
        taken: vec![],
        new_slabs: vec![],
        flags,
        spans,
        next: first.saturating_add(spans.step()),
        sums: BTreeMap::new(),
    };
    let wanted = Wanted {
        common: &[Common::Cpu, Common::Task, Common::Flags],
        field: &|event, field| Kind::of(event).is_some_and(|k| k.reads(field)),
    };
    input
        .events
        .each(0..=u64::MAX, wanted, &mut |batch| walk.batch(batch))?;
    walk.seed(u64::MAX)?;
    walk.look(last);
    let mut blame = walk.report(first, epoch);
    blame.source = source.into();
    blame.kernel_release.clone_from(&rec.meta.kernel_release);
    blame.events = input.events.len();
    blame.lost_events = rec.meta.lost_events();
    blame.seconds = (last - first) as f64 / SECOND as f64;
    blame.began = epoch.map(|o| date(first.saturating_add_signed(o)));
    blame.start = start;
    blame.sizes = Sizes::of(geometry);
    Ok(blame)
}

const ALLOC: &str = "mm_page_alloc";

/// Kinds of events that are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Alloc,
    Free,
    /// A page enters page cache.
    Cached,
    /// An object of a slab cache is allocated.
    Object,
    /// The same, of a cache by size.
    Kmalloc,
}

impl Kind {
    fn of(event: &str) -> Option<Kind> {
        Some(match event {
            ALLOC => Kind::Alloc,
            "mm_page_free" | "mm_page_free_direct" => Kind::Free,
            "mm_filemap_add_to_page_cache" => Kind::Cached,
            "kmem_cache_alloc" | "kmem_cache_alloc_node" => Kind::Object,
            "kmalloc" | "kmalloc_node" => Kind::Kmalloc,
            _ => return None,
        })
    }

    fn reads(self, field: &str) -> bool {
        match self {
            Kind::Alloc => matches!(field, "pfn" | "order" | "gfp_flags"),
            Kind::Free => matches!(field, "pfn" | "order"),
            Kind::Cached => field == "pfn",
            Kind::Object | Kind::Kmalloc => matches!(field, "bytes_alloc" | "name"),
        }
    }
}

/// The columns of a kind of event; those that it lacks are empty.
struct Columns<'a> {
    kind: Kind,
    pfn: &'a [u64],
    order: &'a [u64],
    gfp: &'a [u64],
    bytes: &'a [u64],
    name: &'a [u64],
}

impl<'a> Columns<'a> {
    fn of(table: &'a EventTable) -> Result<Option<Columns<'a>>> {
        let Some(kind) = Kind::of(&table.name) else {
            return Ok(None);
        };
        let column = |name: &str| table.column(name).unwrap_or_default();
        let of_block = |name: &str| match kind {
            Kind::Alloc | Kind::Free => needed(table, name),
            _ => Ok(column(name)),
        };
        let is_text =
            |f: &unfrag_linux::recording::Field| f.name == "name" && f.kind == FieldKind::String;
        let named = table.fields.iter().any(is_text);
        Ok(Some(Columns {
            kind,
            pfn: of_block("pfn")?,
            order: of_block("order")?,
            gfp: match kind {
                Kind::Alloc => needed(table, "gfp_flags")?,
                _ => &[],
            },
            bytes: column("bytes_alloc"),
            name: if named { column("name") } else { &[] },
        }))
    }
}

/// The block that an event names.
///
/// # Errors
/// If no host that is counted here has it.
fn block(pfn: u64, order: u64, geometry: Geometry) -> Result<(u64, u8)> {
    if order > geometry.max_order.0.into() {
        return Err(order_of_event(pfn, order, geometry));
    }
    if pfn >= MOST_FRAMES {
        return Err(Error::contradiction(format!(
            "an event names frame {pfn:#x}, which is beyond all addresses"
        ))
        .help("the recording is damaged: record the host again"));
    }
    Ok((pfn, order as u8))
}

/// A slab that a CPU took for a task, of which the cache is not known yet.
#[derive(Clone, Copy)]
struct NewSlab {
    task: u32,
    pfn: u64,
    order: u8,
    holder: HolderId,
}

/// The sums over some moments.
#[derive(Clone, Default)]
struct Sums {
    moments: u64,
    spoilt: u64,
    shares: Vec<u64>,
}

struct Walk<'r> {
    era: Era,
    strings: &'r [String],
    holders: Holders,
    held: Held,
    /// Frames that each holder took.
    taken: Vec<u64>,
    /// By CPU.
    new_slabs: Vec<Option<NewSlab>>,
    /// Page flags that were not looked at yet, and when they were read.
    flags: Option<(u64, &'r Content)>,
    spans: Spans,
    /// The next moment.
    next: u64,
    /// By number of the interval.
    sums: BTreeMap<usize, Sums>,
}

impl Walk<'_> {
    fn batch(&mut self, events: &Events) -> Result<()> {
        let tables = events.tables.iter().map(Columns::of);
        let tables = tables.collect::<Result<Vec<_>>>()?;
        let mut rows = vec![0usize; tables.len()];
        let geometry = self.held.geometry();
        for (i, &kind) in events.kind.iter().enumerate() {
            let row = rows[usize::from(kind)];
            rows[usize::from(kind)] += 1;
            let time = events.time[i];
            if time >= self.next {
                self.look_until(time);
            }
            if self.flags.is_some_and(|(read, _)| read <= time) {
                self.seed(time)?;
            }
            let Some(c) = &tables[usize::from(kind)] else {
                continue;
            };
            let (cpu, task) = (usize::from(events.cpu[i]), events.task[i]);
            match c.kind {
                Kind::Alloc => {
                    let (pfn, order) = (c.pfn[row], c.order[row]);
                    // A failed allocation has no frame.
                    if pfn != 0 && pfn != u64::MAX {
                        let (pfn, order) = block(pfn, order, geometry)?;
                        let who = (cpu, task, events.flags[i]);
                        self.alloc(pfn, order, c.gfp[row], who);
                    }
                }
                Kind::Free => {
                    let (pfn, order) = block(c.pfn[row], c.order[row], geometry)?;
                    self.held.free(pfn, order);
                }
                Kind::Cached => {
                    if let Some(&pfn) = c.pfn.get(row).filter(|&&pfn| self.held.has(pfn)) {
                        self.cached(pfn);
                    }
                }
                Kind::Object | Kind::Kmalloc => {
                    let slab = self.new_slabs.get_mut(cpu).and_then(Option::take);
                    if let Some(slab) = slab.filter(|s| s.task == task) {
                        self.name_slab(slab, c, row);
                    }
                }
            }
        }
        Ok(())
    }

    fn alloc(&mut self, pfn: u64, order: u8, gfp: u64, (cpu, task, flags): (usize, u32, u8)) {
        let gfp = self.era.gfp(gfp);
        if gfp.mobility() == Some(MigrateType::Movable) {
            self.held.free(pfn, order);
            return;
        }
        let class = Class::of_request(gfp, order, self.era);
        let holder = self.holders.of_event(task, flags, purpose(class));
        self.take(pfn, order, holder);
        let is_slab = matches!(class, Class::SlabReclaimable | Class::SlabUnmovable);
        if self.new_slabs.len() <= cpu {
            self.new_slabs.resize(cpu + 1, None);
        }
        self.new_slabs[cpu] = is_slab.then_some(NewSlab {
            task,
            pfn,
            order,
            holder,
        });
    }

    fn take(&mut self, pfn: u64, order: u8, holder: HolderId) {
        self.held.take(pfn, order, holder);
        let at = holder as usize;
        if self.taken.len() <= at {
            self.taken.resize(at + 1, 0);
        }
        self.taken[at] += 1 << order;
    }

    /// Page cache that is not movable is that of a block device: what a file system keeps of itself.
    fn cached(&mut self, pfn: u64) {
        if let Some((pfn, order, holder)) = self.held.piece_of(pfn) {
            self.rename(pfn, order, holder, purpose(Class::Metadata));
        }
    }

    /// What a holder took turns out to be for something else.
    fn rename(&mut self, pfn: u64, order: u8, holder: HolderId, purpose: &str) {
        let known = self.holders.with_purpose(holder, purpose);
        if let Some(taken) = self.taken.get_mut(holder as usize) {
            *taken = taken.saturating_sub(1 << order);
        }
        self.take(pfn, order, known);
    }

    /// The first object after a new slab says of which cache it is.
    fn name_slab(&mut self, slab: NewSlab, c: &Columns<'_>, row: usize) {
        let name = c.name.get(row).and_then(|&n| self.strings.get(n as usize));
        let bytes = c.bytes.get(row);
        let purpose = match (name, c.kind, bytes) {
            (Some(name), _, _) => format!("slab {name}"),
            (None, Kind::Kmalloc, Some(bytes)) => format!("slab kmalloc-{bytes}"),
            (None, _, Some(bytes)) => format!("slab of objects of {bytes} bytes"),
            _ => return,
        };
        self.rename(slab.pfn, slab.order, slab.holder, &purpose);
    }

    /// Learns from page flags what the kernel held before, if they were read by this time.
    fn seed(&mut self, time: u64) -> Result<()> {
        let Some((_, content)) = self.flags.take_if(|(read, _)| *read <= time) else {
            return Ok(());
        };
        let purposes = [purpose(Class::SlabUnmovable), purpose(Class::PageTables)];
        let holders = purposes.map(|p| self.holders.before(p));
        let mut run = Run::default();
        let held = &mut self.held;
        kpageflags::each(&mut content.reader(), |first, flags| {
            for (pfn, &f) in (first..).zip(flags) {
                let holder = match f {
                    _ if f & COMPOUND_TAIL != 0 => run.holder,
                    _ if f & SLAB != 0 => Some(holders[0]),
                    _ if f & PGTABLE != 0 => Some(holders[1]),
                    _ => None,
                };
                if f & BUDDY != 0 {
                    held.free(pfn, 0);
                }
                // Who took it in the recording is known better.
                let holder = holder.filter(|_| !held.has(pfn));
                run.goes_on(pfn, holder, held);
            }
        })?;
        run.end(held);
        Ok(())
    }

    /// Looks at the state at each moment up to a time.
    fn look_until(&mut self, time: u64) {
        while self.next <= time {
            self.look(self.next);
            let Some(next) = self.next.checked_add(self.spans.step()) else {
                break;
            };
            self.next = next;
        }
    }

    fn look(&mut self, time: u64) {
        let sums = self.sums.entry(self.spans.number(time)).or_default();
        sums.moments += 1;
        sums.spoilt += self.held.share_out(&mut sums.shares);
    }

    fn report(&self, first: u64, epoch: Option<i64>) -> Blame {
        let mut all = Sums::default();
        self.sums.values().for_each(|s| all.add(s));
        let mut order: Vec<HolderId> = (0..self.holders.len() as HolderId)
            .filter(|&h| all.share(h) > 0.0)
            .collect();
        let key = |h: HolderId| {
            (
                all.shares[h as usize],
                std::cmp::Reverse(self.holders.name(h)),
            )
        };
        order.sort_by(|&a, &b| key(b).cmp(&key(a)));
        let spoilt = all.mean(all.spoilt);
        let holder = |&h: &HolderId| {
            let (program, purpose) = self.holders.name(h);
            Holder {
                program: program.into(),
                purpose: purpose.into(),
                spoilt_blocks: all.share(h),
                share: all.share(h) / spoilt,
                taken: self.taken.get(h as usize).copied().unwrap_or(0),
                held_at_end: self.held.frames_of(h),
            }
        };
        let interval = |begin: u64, sums: &Sums| Interval {
            seconds: begin.saturating_sub(first) as f64 / SECOND as f64,
            date: epoch.map(|o| date(begin.max(first).saturating_add_signed(o))),
            spoilt_blocks: sums.mean(sums.spoilt),
            by_holder: order
                .iter()
                .enumerate()
                .map(|(i, &h)| (i, sums.share(h)))
                .filter(|(_, share)| *share > 0.0)
                .collect(),
        };
        // The time of an interval may lie before that of the first event, in a clock that begins at 0.
        let begin = |n: usize| match self.spans.begin(n) {
            begin if n == 0 && begin > first => first,
            begin => begin,
        };
        let intervals = self.sums.iter().map(|(&n, sums)| interval(begin(n), sums));
        let mut days: BTreeMap<u64, (u64, Sums)> = BTreeMap::new();
        for (&n, sums) in &self.sums {
            let since = match epoch {
                Some(o) => begin(n).max(first).saturating_add_signed(o),
                None => begin(n).saturating_sub(first),
            };
            let (_, day) = days
                .entry(since / DAY)
                .or_insert_with(|| (begin(n), Sums::default()));
            day.add(sums);
        }
        let days = days.values().map(|(begin, sums)| interval(*begin, sums));
        let days: Vec<Interval> = days.collect();
        Blame {
            spoilt_blocks: spoilt,
            holders: order.iter().map(holder).collect(),
            interval_seconds: self.spans.length / SECOND,
            intervals: intervals.collect(),
            // Intervals of days are days.
            days: match days.len() {
                2.. if self.spans.length < DAY => days,
                _ => vec![],
            },
            ..Blame::default()
        }
    }
}

impl Sums {
    fn add(&mut self, more: &Sums) {
        self.moments += more.moments;
        self.spoilt += more.spoilt;
        if self.shares.len() < more.shares.len() {
            self.shares.resize(more.shares.len(), 0);
        }
        let shares = self.shares.iter_mut().zip(&more.shares);
        shares.for_each(|(sum, share)| *sum += share);
    }

    fn mean(&self, sum: u64) -> f64 {
        sum as f64 / self.moments.max(1) as f64
    }

    /// Blocks that a holder answers for, on average.
    fn share(&self, holder: HolderId) -> f64 {
        let sum = self.shares.get(holder as usize).copied().unwrap_or(0);
        self.mean(sum) / WHOLE as f64
    }
}

/// Adjacent frames of one holder.
#[derive(Default)]
struct Run {
    first: u64,
    end: u64,
    holder: Option<HolderId>,
}

impl Run {
    fn goes_on(&mut self, pfn: u64, holder: Option<HolderId>, held: &mut Held) {
        if holder != self.holder || pfn != self.end {
            self.end(held);
            (self.first, self.holder) = (pfn, holder);
        }
        self.end = pfn + 1;
    }

    /// Takes the frames, in blocks as large as they go.
    fn end(&mut self, held: &mut Held) {
        let Some(holder) = self.holder.take() else {
            return;
        };
        let most = held.geometry().max_order.0.into();
        let mut at = self.first;
        while at < self.end {
            let fits = (self.end - at).ilog2();
            let order = at.trailing_zeros().min(fits).min(most);
            held.take(at, order as u8, holder);
            at += 1 << order;
        }
    }
}
