//! The walk over a recording's events, and the sums over its moments.

use super::answer;
use super::held::{Held, WHOLE};
use super::holders::{BEFORE, HolderId, Holders, purpose};
use super::report::{Blame, Blocks, Holder, Interval, Start};
use super::spans::{DAY, SECOND, Spans, date};
use crate::era::Era;
use crate::error::{Error, Result};
use crate::geometry::Sizes;
use crate::geometry::recorded::{Question, RecordedGeometry, on_host};
use crate::input::Input;
use crate::input::counted::Counted;
use crate::profile::class::Class;
use crate::profile::refused::Refused;
use crate::slab::names::CacheNames;
use std::collections::BTreeMap;
use unfrag_eras::{Gfp, MigrateType};
use unfrag_linux::content::Content;
use unfrag_linux::event::page::{Cache, Slab};
use unfrag_linux::event::{At, Block, Coverage, Kind, Page, Tracker, Unreadable};
use unfrag_linux::file::Common;
use unfrag_linux::kpageflags::{self, BUDDY, COMPOUND_TAIL, PGTABLE, SLAB};
use unfrag_linux::recording::IN_INTERRUPT;
use unfrag_linux::segments::EPOCH_OFFSET;

/// The common columns that are read.
const COMMON: &[Common] = &[Common::Cpu, Common::Task, Common::Flags];

/// Who held the kernel memory that spoilt pageblocks, of the recording that is called `source`.
///
/// # Errors
/// If it has no events of pages, does not say of which kernel it is, or cannot be read.
pub fn blame<'r>(input: impl Into<Input<'r>>, source: &str) -> Result<Blame> {
    let input = input.into();
    let mut count = Count::of(&input)?;
    let counted = Counted::walk(&input, COMMON, &mut count)?;
    count.report(source, &counted)
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

/// The walk so far.
pub(crate) struct Count<'r> {
    input: Input<'r>,
    /// Where counting begins, with the window that was asked for, and the time of the last event.
    first: u64,
    last: u64,
    /// Nanoseconds from the clock of the events to 1970.
    epoch: Option<i64>,
    era: Era,
    holders: Holders,
    held: Held,
    refused: Refused,
    cache_names: CacheNames,
    /// Frames that each holder took.
    taken: Vec<u64>,
    /// Whether the last allocation was in the window.
    is_counted: bool,
    /// By CPU.
    new_slabs: Vec<Option<NewSlab>>,
    /// Page flags that were not looked at yet, and when they were read. Before that nothing is counted: what was in use
    /// is not known.
    flags: Option<(u64, &'r Content)>,
    /// From when on all is known: the page flags, too.
    known_from: Option<u64>,
    spans: Spans,
    /// The next moment.
    next: u64,
    /// By number of the interval.
    sums: BTreeMap<usize, Sums>,
    /// The blocks at the first moment that is counted, and at the last.
    at: Option<(Blocks, Blocks)>,
    /// Where the window begins after the recording, the shares of the holders there: what they took before it.
    base: Option<Vec<u64>>,
    is_part: bool,
    /// The shares at the last moment.
    at_last: Vec<u64>,
}

impl Tracker for Count<'_> {
    type Error = Error;

    fn takes(&self, kind: Kind) -> bool {
        matches!(
            kind,
            Kind::Alloc | Kind::Free | Kind::CacheAdd | Kind::Object | Kind::Kmalloc
        )
    }

    #[inline]
    fn event(&mut self, at: &At, page: Option<Page<'_>>) -> Result<()> {
        if at.time >= self.next {
            self.look_until(at.time);
        }
        if self.flags.is_some_and(|(read, _)| read <= at.time) {
            self.seed(at.time)?;
        }
        if self.is_part && at.time >= self.first && self.base.is_none() {
            let mut shares = vec![];
            self.held.share_out(&mut shares);
            self.base = Some(shares);
        }
        match page {
            Some(Page::Alloc(request)) => {
                let gfp = self.era.gfp(request.gfp.unwrap_or_default().0);
                let by = (at.task, at.flags & IN_INTERRUPT != 0);
                let block = request.block();
                let class = self
                    .refused
                    .class(by, gfp, request.order, block.is_some(), self.era);
                if let Some(block) = block {
                    self.is_counted = at.time >= self.first;
                    self.alloc(on_host(block, self.held.geometry())?, gfp, class, at);
                }
            }
            Some(Page::Free(block)) => {
                let Block { pfn, order } = on_host(block, self.held.geometry())?;
                self.held.free(pfn.0, order);
            }
            Some(Page::Cache(Cache::Add { block, .. })) if self.held.has(block.pfn.0) => {
                self.cached(block.pfn.0);
            }
            Some(Page::Slab(Slab::Alloc {
                by_size,
                size,
                cache,
                ..
            })) => {
                let slab = self.new_slabs.get_mut(usize::from(at.cpu));
                let slab = slab.and_then(Option::take);
                if let Some(slab) = slab.filter(|s| s.task == at.task) {
                    self.name_slab(slab, by_size, cache, size);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Blocks have to be known; of page cache and slab objects it is enough to know some.
    fn unreadable(&mut self, _: &At, kind: Kind, why: Unreadable) -> Result<()> {
        match kind {
            Kind::Alloc | Kind::Free => Err(why.into()),
            _ => Ok(()),
        }
    }
}

impl<'r> Count<'r> {
    /// Nothing so far.
    ///
    /// # Errors
    /// If the recording has no events of pages, or does not say of which kernel it is.
    pub(crate) fn of(input: &Input<'r>) -> Result<Count<'r>> {
        let rec = input.recording;
        let geometry = RecordedGeometry::of(rec).check(Question::Blame)?;
        let (Some((begin, last)), true) = (input.events.span(), input.happened(Kind::Alloc, "pfn"))
        else {
            return Err(Error::lacking("the recording has no allocations of pages")
                .help("record the host with `unfrag record --system`"));
        };
        let needed = [Kind::Alloc, Kind::Free];
        input.check(&needed)?;
        if !Coverage::of(rec).has(Kind::Free) {
            return Err(Error::lacking(
                "frees of pages were not recorded, so that nothing tells who held what",
            )
            .help(Kind::Free.how()));
        }
        let epoch = rec.meta.facts.get(EPOCH_OFFSET);
        let epoch: Option<i64> = epoch.and_then(|n| n.parse().ok());
        let first = begin.max(input.from);
        let spans = Spans::new(first, last, epoch);
        let flags = rec.snapshots.iter().find_map(|s| {
            let time = s.time_of(kpageflags::NAME)?;
            let time = time.saturating_add_signed(-rec.meta.snapshot_offset_ns);
            // What was in use soon after the beginning was so at the beginning.
            let soon = time < begin.saturating_add(spans.length);
            Some((
                if soon { begin } else { time },
                s.content(kpageflags::NAME)?,
            ))
        });
        Ok(Count {
            input: input.clone(),
            first,
            last,
            epoch,
            era: Era::of(&rec.meta.kernel_release)?,
            holders: Holders::of(rec),
            held: Held::on(geometry),
            refused: Refused::default(),
            cache_names: CacheNames::of(rec),
            taken: vec![],
            is_counted: false,
            new_slabs: vec![],
            flags,
            known_from: None,
            spans,
            next: first.saturating_add(spans.step()),
            sums: BTreeMap::new(),
            at: None,
            base: None,
            is_part: first > begin,
            at_last: vec![],
        })
    }

    /// What the walk tells.
    ///
    /// # Errors
    /// If page flags cannot be read.
    pub(crate) fn report(mut self, source: &str, counted: &Counted) -> Result<Blame> {
        self.seed(u64::MAX)?;
        self.look(self.last);
        let mut blame = self.sum_up(self.first, self.epoch);
        let rec = self.input.recording;
        blame.source = source.into();
        blame.kernel_release.clone_from(&rec.meta.kernel_release);
        blame.events = counted.events;
        blame.lost_events = rec.meta.lost_events();
        blame.seconds = self.last.saturating_sub(self.first) as f64 / SECOND as f64;
        let began = |o| date(self.first.saturating_add_signed(o));
        blame.began = self.epoch.map(began);
        blame.sizes = Sizes::of(self.held.geometry());
        if let Some(from) = self.known_from {
            blame.start = Start::PageFlags;
            let after = from.saturating_sub(self.first);
            blame.all_known_after_seconds = Some(after as f64 / SECOND as f64);
        }
        if let Some((start, end)) = self.at {
            (blame.at_start, blame.at_end) = (start, end);
        }
        blame.answer = answer::of(&blame, rec, self.first);
        Ok(blame)
    }

    fn alloc(&mut self, block: Block, gfp: Gfp, class: Class, at: &At) {
        let (pfn, order) = (block.pfn.0, block.order);
        let (cpu, task) = (usize::from(at.cpu), at.task);
        if gfp.mobility() == Some(MigrateType::Movable) {
            self.held.free(pfn, order);
            return;
        }
        let holder = self.holders.of_event(task, at.flags, purpose(class));
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
        if self.is_counted {
            self.taken[at] += 1 << order;
        }
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
    fn name_slab(&mut self, slab: NewSlab, by_size: bool, cache: Option<&str>, size: Option<u64>) {
        let purpose = match (cache, size) {
            (Some(name), _) => format!("slab {name}"),
            (None, Some(bytes)) if by_size => {
                format!("slab {}", self.cache_names.of_kmalloc(bytes))
            }
            (None, Some(bytes)) => match self.cache_names.of_objects(bytes) {
                Some(name) => format!("slab {name}"),
                None => format!("slab of objects of {bytes} bytes"),
            },
            (None, None) => return,
        };
        self.rename(slab.pfn, slab.order, slab.holder, &purpose);
    }

    /// Learns from page flags what the kernel held before, if they were read by this time.
    fn seed(&mut self, time: u64) -> Result<()> {
        let Some((read, content)) = self.flags.take_if(|(read, _)| *read <= time) else {
            return Ok(());
        };
        self.known_from = Some(read);
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
        if self.flags.is_some() {
            return;
        }
        let sums = self.sums.entry(self.spans.number(time)).or_default();
        sums.moments += 1;
        self.at_last.clear();
        let blocks = self.held.share_out(&mut self.at_last);
        sums.add_shares(&self.at_last);
        sums.spoilt += blocks.spoilt;
        self.at.get_or_insert((blocks, blocks)).1 = blocks;
    }

    fn sum_up(&self, first: u64, epoch: Option<i64>) -> Blame {
        let mut all = Sums::default();
        self.sums.values().for_each(|s| all.add(s));
        let mut order: Vec<HolderId> = (0..self.holders.len() as HolderId)
            .filter(|&h| all.share(h) > 0.0)
            .collect();
        let key = |h: HolderId| {
            (
                self.holders.program(h).is_some(),
                all.shares[h as usize],
                std::cmp::Reverse(self.holders.name(h)),
            )
        };
        order.sort_by(|&a, &b| key(b).cmp(&key(a)));
        let spoilt = all.mean(all.spoilt);
        let of = |shares: &[u64], h: HolderId| {
            shares.get(h as usize).copied().unwrap_or(0) as f64 / WHOLE as f64
        };
        let base = self.base.as_deref().unwrap_or_default();
        let holder = |&h: &HolderId| {
            let (_, purpose) = self.holders.name(h);
            let at_end = of(&self.at_last, h);
            let is_before = self.holders.program(h) == Some(BEFORE);
            let added = match is_before {
                true => 0.0,
                false => (at_end - of(base, h)).max(0.0),
            };
            Holder {
                at_end,
                added,
                program: self.holders.program(h).map(str::to_owned),
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
        self.add_shares(&more.shares);
    }

    fn add_shares(&mut self, more: &[u64]) {
        if self.shares.len() < more.len() {
            self.shares.resize(more.len(), 0);
        }
        let shares = self.shares.iter_mut().zip(more);
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
