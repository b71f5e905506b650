//! The model's own reclaim in a replay.
//!
//! What the recorded kernel's reclaim freed is an effect: it is not applied. Its pages stay on the
//! model's LRU lists until the model's kswapd, or a request that finds no free page, takes them. A trace
//! does not show accesses. It shows which pages their users freed, which the recorded kernel found cold
//! enough to reclaim, and which are page cache. So a page that the recorded reclaim took may be taken in the model, at
//! any time, and so may page cache, unless the recorded kernel passed it over and took what came later: then it is in
//! use, and is taken when it was spared several times. How often is not known, and differs from member to member of an
//! ensemble. Any other page counts as in use until its user frees it.
//!
//! What the manager needs before it can go on is met in the trace's time. Needs that take no time are met by
//! [`Pages`]: the verdicts on evictions, and a shrink of caches, which frees nothing. Needs that take time
//! are met in two ways:
//! - A request has a [`World`](unfrag_eras::drive::World) of its own, in which [`drive`] completes it within one
//!   operation of the recording. The time of the trace stands still meanwhile.
//! - A kswapd works from one operation to the next, and is suspended at the time of the next one. A world
//!   returns only when the need is met, so `ReplayKswapd` steps the kswapd as far as the trace has come.
//!
//! kswapd runs in the trace's time. A page that it looks at takes as much CPU time as on the recorded host,
//! and kswapd has the share of the CPU that other tasks left it there; where the recorded kernel reclaimed by
//! generations, as long as in the recorded run of that time ([`Pace`]). A page that it writes takes
//! as long as on the recorded swap device at its busiest. Each node has its own kswapd, with the pace of the
//! recorded runs of that node.
//!
//! Invariant: no recorded frame stands for a page that the model's reclaim took.

use super::kcompactd::{RecordedDaemon, ReplayKcompactd};
use super::kswapd::ReplayKswapd;
use super::pages::{Hold, MIGRATING, MOST_SPARED, Pages};
use super::request_world::RequestWorld;
use crate::replay::causes::{HostBlock, NONE, RecordedReclaim};
use crate::replay::model::ReplayHost;
use std::collections::BTreeMap;
use unfrag_eras::drive::drive;
use unfrag_eras::kernel::RetryDrain;
use unfrag_eras::page_alloc::Begun;
use unfrag_eras::reclaim::PageFlags;
use unfrag_eras::{AllocError, CpuId, Gfp, Manager, Order, Pfn, Request};

/// Whether a request is for a page that reclaim may take.
fn is_lru(order: u8, gfp: Gfp) -> bool {
    order == 0 && gfp.contains(Gfp::MOVABLE)
}

/// Page cache comes by readahead, which gives up early, or by writes; all else is anonymous.
/// `spec: 5.7`
fn is_file(gfp: Gfp) -> bool {
    gfp.contains(Gfp::WRITE) || gfp.contains(Gfp::NORETRY | Gfp::NOWARN)
}

/// Requests that a real host would let wait until other tasks give memory back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// How many.
    pub requests: u64,
    /// At how many times the first of several found nothing.
    pub moments: u64,
}

/// Whether a kernel lets a request wait, whatever it takes: it does not give up, and is not for a large block.
fn waits_for_memory(request: &Request) -> bool {
    let gives_up = Gfp::NORETRY | Gfp::RETRY_MAYFAIL;
    let gfp = request.gfp;
    request.order <= Order::COSTLY && gfp.contains(Gfp::DIRECT_RECLAIM) && !gfp.intersects(gives_up)
}

/// What is not known of a kernel's reclaim, and differs from member to member of an ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Thousandths of the recorded time that kswapd takes for a page.
    pub pace: u32,
    /// How often page cache in use is spared before it is taken.
    pub spares: u8,
    /// Whether there is a kswapd at all: else only requests reclaim.
    pub kswapd: bool,
}

/// What no recording shows of how a host reclaims, beside its [`Effort`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknowns {
    /// Nanoseconds from the call for a daemon to its first step.
    pub wake_ns: u64,
    /// Most pages in use that are spared in a row before one is taken all the same: how much of what counts as in use
    /// can be reclaimed.
    pub most_spared: u32,
}

impl Default for Unknowns {
    fn default() -> Unknowns {
        Unknowns {
            wake_ns: 0,
            most_spared: MOST_SPARED,
        }
    }
}

/// The reclaim of a model, and the position in the recording.
#[derive(Clone, Debug)]
pub struct Reclaim<'e> {
    evidence: &'e RecordedReclaim,
    /// Thousandths of the recorded time that kswapd takes.
    pace: u32,
    /// How often page cache in use is spared before it is taken.
    spares: u8,
    pages: Pages,
    /// Empty where nothing is to be reclaimed.
    kswapds: Vec<ReplayKswapd>,
    /// Empty where the model does not compact by itself.
    kcompactds: Vec<ReplayKcompactd>,
    /// Whether nothing could be reclaimed when a request asked last.
    starves: bool,
    waits: Waits,
    op: usize,
    /// Before this time nothing happens by itself, unless a daemon is asked for.
    quiet_until: u64,
    /// Nanoseconds from the call for a daemon to its first step.
    wake_ns: u64,
    /// Whether a daemon was woken: when it works depends on what is not known.
    has_woken: bool,
}

impl<'e> Reclaim<'e> {
    /// Begins with what is in use at the start. `model_frames`: the model's frame of each recorded one.
    pub fn new(
        evidence: &'e RecordedReclaim,
        Effort {
            pace,
            spares,
            kswapd,
        }: Effort,
        m: &mut Manager<'_, ReplayHost>,
        model_frames: &[u32],
    ) -> Reclaim<'e> {
        let zones = m.inspect().zones().map(|z| m.inspect().zone_config(z));
        let end = zones.map(|c| c.start.0 + c.spanned).max();
        let mut pages = Pages::new(end.unwrap_or(0) as usize, &evidence.pace);
        let mut add = |p: u32, hold: Hold| {
            let at = model_frames.get(p as usize).copied();
            if let Some(at) = at.filter(|at| *at != NONE) {
                pages.set_block(at, HostBlock { pfn: p, order: 0 }, hold);
                let mut flags = PageFlags::empty();
                flags.set(PageFlags::MAPPED, !hold.is_cold());
                m.pages().lru_add_new(Pfn(at.into()), true, flags);
            }
        };
        // From the oldest on.
        for &p in &evidence.cold_at_start {
            add(p, Hold::Cold);
        }
        // Those that the recorded kernel passed over are in use.
        let hold = match evidence.cache.passed_start {
            Some(_) => Hold::Cache(spares),
            None => Hold::Cold,
        };
        for &p in &evidence.cached_at_start {
            add(p, hold);
        }
        let nodes: Vec<_> = m.inspect().nodes().filter(|_| kswapd).collect();
        Reclaim {
            evidence,
            pace,
            spares,
            pages,
            kswapds: nodes
                .into_iter()
                .map(|node| ReplayKswapd::new(node, m))
                .collect(),
            kcompactds: vec![],
            starves: false,
            waits: Waits::default(),
            op: 0,
            quiet_until: 0,
            wake_ns: 0,
            has_woken: false,
        }
    }

    /// Takes these for what no recording shows.
    pub fn vary(&mut self, unknowns: Unknowns) {
        self.wake_ns = unknowns.wake_ns;
        self.pages.most_spared = unknowns.most_spared;
    }

    /// Whether anything that was done so far depends on what is not known: on the [`Effort`] but for whether there is a
    /// kswapd, or on the [`Unknowns`].
    pub fn depends(&self) -> bool {
        self.has_woken || self.pages.asked_in_use
    }

    /// Takes other ones for what is not known. Nothing [depends](Self::depends) on them so far.
    pub fn choose(&mut self, effort: Effort, unknowns: Unknowns) {
        self.pace = effort.pace;
        self.spares = effort.spares;
        self.pages.spare(effort.spares);
        self.vary(unknowns);
    }

    /// Lets the model compact by itself from now on.
    pub fn enable_compaction(
        &mut self,
        m: &mut Manager<'_, ReplayHost>,
        model_frames: &[u32],
        recorded: &RecordedDaemon,
    ) {
        self.pages.name_all(model_frames);
        let nodes: Vec<_> = m.inspect().nodes().collect();
        let daemon = |node| ReplayKcompactd::new(node, m, recorded.clone());
        self.kcompactds = nodes.into_iter().map(daemon).collect();
        self.quiet_until = 0;
    }

    /// The daemons that compact ahead of demand look at a time, if they are asleep.
    pub fn look_ahead(&mut self, time: u64) {
        for kcompactd in &mut self.kcompactds {
            kcompactd.look_ahead(time);
        }
        self.quiet_until = 0;
    }

    /// Time goes on to the next operation's, which is on `cpu`: writes end, kswapd works.
    #[inline]
    pub fn advance(
        &mut self,
        m: &mut Manager<'_, ReplayHost>,
        (model_frames, in_migration): (&mut [u32], &mut BTreeMap<u32, u32>),
        cpu: CpuId,
        time: u64,
    ) {
        if time >= self.quiet_until || m.host().has_asked() {
            self.work(m, (model_frames, in_migration), cpu, time);
        }
        self.pages.now = time;
    }

    /// Writes end, and the daemons work, up to a time.
    fn work(
        &mut self,
        m: &mut Manager<'_, ReplayHost>,
        (model_frames, in_migration): (&mut [u32], &mut BTreeMap<u32, u32>),
        cpu: CpuId,
        time: u64,
    ) {
        self.pages.end_writes(m, time);
        let asked = std::mem::take(&mut m.host_mut().asked);
        for kswapd in &mut self.kswapds {
            if asked.contains(&kswapd.node()) {
                self.has_woken = true;
                kswapd.wake(self.pages.now.saturating_add(self.wake_ns));
            }
            kswapd.run(m, &mut self.pages, cpu, time, |node, at| {
                let looks = self.evidence.pace.ns_per_look(node, at);
                looks * u64::from(self.pace)
            });
        }
        let asked = std::mem::take(&mut m.host_mut().compaction_asked);
        for kcompactd in &mut self.kcompactds {
            if asked.contains(&kcompactd.node()) {
                self.has_woken = true;
                kcompactd.wake(self.pages.now.saturating_add(self.wake_ns));
            }
            kcompactd.run(m, &mut self.pages, cpu, time);
        }
        self.pages.rename(model_frames, in_migration);
        let daemons = self.kswapds.iter().map(ReplayKswapd::next);
        let daemons = daemons.chain(self.kcompactds.iter().map(ReplayKcompactd::next));
        let next = daemons.chain([self.pages.next_written()]).flatten().min();
        self.quiet_until = next.unwrap_or(u64::MAX);
    }

    /// The operation at hand is over.
    pub fn next_op(&mut self) {
        self.op += 1;
    }

    /// Allocates, reclaiming if it must; time stands still meanwhile, but writes that it waits for
    /// end.
    pub fn alloc(
        &mut self,
        m: &mut Manager<'_, ReplayHost>,
        (model_frames, in_migration): (&mut [u32], &mut BTreeMap<u32, u32>),
        request: &Request,
    ) -> Result<Pfn, AllocError> {
        let waits = waits_for_memory(request);
        // A kernel empties the lists of all CPUs once its reclaim has freed anything, and some page or slab can be freed on
        // every host: that this model knows of none is no reason to leave thousands of pages there while requests fail.
        let drains = m.inspect().rules().retry.drain == RetryDrain::OnceInVain;
        if self.starves && waits {
            if drains {
                m.drain_all();
            }
            self.starves = m.lab().zone_for(request).is_none();
            if self.starves {
                return self.late(m, request);
            }
        }
        let mut allocation = match m.begin(request)? {
            Begun::Got(p) => return Ok(p),
            Begun::Allocation(a) => a,
        };
        let stalls = m.inspect().reclaim_counters().allocstall;
        let mut request_world = RequestWorld::new(m, &mut self.pages, request.cpu);
        let mut allocated = drive(&mut request_world, &mut allocation);
        self.pages.rename(model_frames, in_migration);
        self.quiet_until = 0;
        if drains && allocated.is_err() && m.inspect().reclaim_counters().allocstall > stalls {
            m.drain_all();
            allocated = m.alloc(request).or(allocated);
        }
        if allocated.is_ok() || !waits {
            return allocated;
        }
        self.starves = true;
        self.waits.moments += 1;
        self.late(m, request)
    }

    /// Nothing can be reclaimed: the request would wait until others give memory back, and the load would come later. The
    /// time of a trace cannot be stretched, so the request gets what is at hand, or fails, and looks for nothing to
    /// reclaim until the marks hold again.
    #[cold]
    fn late(
        &mut self,
        m: &mut Manager<'_, ReplayHost>,
        request: &Request,
    ) -> Result<Pfn, AllocError> {
        let mut got = m.alloc(request);
        let held = m.inspect().zones().map(|z| m.inspect().pcp_pages(z));
        if got.is_err() && held.sum::<u64>() > 0 {
            // As reclaim does before it gives up.
            m.drain_all();
            got = m.alloc(request);
        }
        self.waits.requests += u64::from(got.is_err());
        got
    }

    /// Prefetches what is known of the page in a frame of the model.
    #[inline]
    pub fn prefetch(&self, at: u32) {
        self.pages.prefetch(at);
    }

    /// Requests that would have waited so far.
    pub fn waits(&self) -> Waits {
        self.waits
    }

    /// A page was allocated for the operation at hand.
    pub fn allocated(
        &mut self,
        m: &mut Manager<'_, ReplayHost>,
        block: HostBlock,
        at: u32,
        gfp: Gfp,
    ) {
        let cache = &self.evidence.cache;
        // A trace that does not show what enters the page cache shows the masks of requests for it.
        let in_cache = match cache.is_shown {
            true => cache.cached.get(self.op),
            false => is_file(gfp),
        };
        let hold = match (self.evidence.cold.get(self.op), in_cache) {
            _ if block.order > 0 => Hold::InUse,
            (true, _) => Hold::Cold,
            (false, true) if cache.touched.get(self.op) => Hold::Cache(self.spares),
            (false, true) => Hold::Cold,
            (false, false) => Hold::InUse,
        };
        self.pages.set_block(at, block, hold);
        if is_lru(block.order, gfp) {
            let file = in_cache || is_file(gfp);
            let mut flags = PageFlags::empty();
            flags.set(PageFlags::DIRTY, !file);
            // What is in use is so by a mapping, so that reclaim asks for it.
            flags.set(PageFlags::MAPPED, !hold.is_cold());
            m.pages().lru_add_new(Pfn(at.into()), file, flags);
        }
    }

    /// The recorded kernel's reclaim freed this page. If it is on an LRU list of the model, it stays there
    /// until the model takes it. Returns whether it stays, or is gone already.
    pub fn defer_free(
        &mut self,
        m: &Manager<'_, ReplayHost>,
        model_frames: &mut [u32],
        pfn: u32,
    ) -> bool {
        let at = model_frames[pfn as usize];
        if at == NONE {
            // The model's reclaim took it before.
            return true;
        }
        let stays = m.inspect().lru_of(Pfn(at.into())).is_some();
        if stays {
            model_frames[pfn as usize] = NONE;
            self.pages.set_host_frame(at, NONE);
        }
        stays
    }

    /// A page moved in the model; what is known of it goes with it, except its recorded frame
    /// ([`set_host_frame`](Self::set_host_frame) sets the new one).
    pub fn moved(&mut self, from: u32, to: u32) {
        self.pages.moved(from, to);
    }

    /// The block at frame `at` of the model is free, or will be when it is no longer isolated.
    pub fn freed(&mut self, at: u32, order: u8) {
        for at in at..at + (1 << order) {
            self.pages.set_host_frame(at, NONE);
        }
    }

    /// The page at frame `at` of the model is in the recorded migration of this number.
    pub fn set_in_migration(&mut self, at: u32, number: u32) {
        if at != NONE {
            self.pages.set_host_frame(at, MIGRATING | number);
        }
    }

    /// The page at frame `at` of the model moved to another frame on the recorded host.
    pub fn set_host_frame(&mut self, at: u32, to: u32) {
        if at != NONE {
            self.pages.set_host_frame(at, to);
        }
    }
}
