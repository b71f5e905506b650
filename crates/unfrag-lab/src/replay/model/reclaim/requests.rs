//! The model's own reclaim in a replay.
//!
//! What the recorded kernel's reclaim freed is an effect: it is not applied. Its pages stay on the
//! model's LRU lists until the model's kswapd, or a request that finds nothing, takes them. Which
//! pages are in use a trace does not say while they are only touched; what it says is which of them
//! their users freed themselves, and which the recorded kernel found cold enough to take. So a page
//! that its user will free counts as in use until then, and one that reclaim took there may be taken
//! here, sooner or later than there.
//!
//! What the core needs before it can go on is met in the trace's time. What can be met at once, the
//! pages meet, whoever needs it: they are asked about evictions, and no cache shrinks. What
//! takes time is met in two ways:
//! - A request is an errand in a [`World`](unfrag::drive::World), which [`drive`] takes
//!   to its end within one operation of the recording: the trace stands still meanwhile.
//! - A kswapd works from one operation to the next, and suspends where the next one has its time: it can
//!   be no errand, whose world returns only with the need met. Its `Daemon` steps it as far as the trace
//!   has come.
//!
//! kswapd runs in the trace's time: a page that it looks at takes as much of a CPU as on the recorded
//! host, of which kswapd has the share that others left it there ([`Pace`]); a page that it writes takes
//! as long as the swap device there needed at its busiest. Each node has its own kswapd, which runs when
//! that node was asked for; its pace is that of the recorded runs there.
//!
//! Invariant: a page that the model took is named by no recorded frame any more.

use super::daemon::Daemon;
use super::errand::Errand;
use super::pages::Pages;
use crate::replay::causes::{HostBlock, NONE, RecordedReclaim};
use crate::replay::model::ReplayHost;
use unfrag::drive::drive;
use unfrag::page_alloc::Begun;
use unfrag::reclaim::PageFlags;
use unfrag::{AllocError, CpuId, Gfp, Manager, Pfn, Request};

/// Whether a request is for a page that reclaim may take.
fn is_lru(order: u8, gfp: Gfp) -> bool {
    order == 0 && gfp.contains(Gfp::MOVABLE)
}

/// Page cache comes by readahead, which gives up early, or by writes; all else is anonymous.
/// `spec: linux-6.1 6 page cache`
fn is_file(gfp: Gfp) -> bool {
    gfp.contains(Gfp::WRITE) || gfp.contains(Gfp::NORETRY | Gfp::NOWARN)
}

/// The reclaim of a model at work.
#[derive(Debug)]
pub struct Reclaim<'e> {
    evidence: &'e RecordedReclaim,
    /// Thousandths of the recorded time that kswapd takes.
    pace: u32,
    pages: Pages,
    daemons: Vec<Daemon>,
    op: usize,
}

impl<'e> Reclaim<'e> {
    /// Begins with what is in use at the start. `pace`: thousandths of the recorded time that kswapd
    /// takes; `names`: the model's frame of each recorded one.
    pub fn new(
        evidence: &'e RecordedReclaim,
        pace: u32,
        m: &mut Manager<'_, ReplayHost>,
        names: &[u32],
    ) -> Reclaim<'e> {
        let zones = m.inspect().zones().map(|z| m.inspect().zone_config(z));
        let end = zones.map(|c| c.start.0 + c.spanned).max();
        let mut pages = Pages::new(end.unwrap_or(0) as usize, &evidence.pace);
        for &p in &evidence.cold_at_start {
            if let Some(&at) = names.get(p as usize)
                && at != NONE
            {
                pages.name_block(at, HostBlock { pfn: p, order: 0 }, true);
                m.pages()
                    .lru_add_new(Pfn(at.into()), true, PageFlags::empty());
            }
        }
        let nodes: Vec<_> = m.inspect().nodes().collect();
        Reclaim {
            evidence,
            pace,
            pages,
            daemons: nodes.into_iter().map(|node| Daemon::new(node, m)).collect(),
            op: 0,
        }
    }

    /// Time goes on to the next operation's, which is on `cpu`: writes end, kswapd works.
    pub fn advance(
        &mut self,
        m: &mut Manager<'_, ReplayHost>,
        names: &mut [u32],
        cpu: CpuId,
        time: u64,
    ) {
        self.pages.end_writes(m, time);
        let asked = std::mem::take(&mut m.host_mut().asked);
        for daemon in &mut self.daemons {
            if asked.contains(&daemon.node()) {
                daemon.wake(self.pages.now);
            }
            daemon.run(m, &mut self.pages, cpu, time, |node, at| {
                let looks = self.evidence.pace.ns_per_look(node, at);
                looks * u64::from(self.pace)
            });
        }
        self.pages.unname(names);
        self.pages.now = time;
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
        names: &mut [u32],
        request: &Request,
    ) -> Result<Pfn, AllocError> {
        let mut allocation = match m.begin(request)? {
            Begun::Got(p) => return Ok(p),
            Begun::Allocation(a) => a,
        };
        let mut errand = Errand::new(m, &mut self.pages, request.cpu);
        let got = drive(&mut errand, &mut allocation);
        self.pages.unname(names);
        got
    }

    /// A page was allocated for the operation at hand.
    pub fn got(&mut self, m: &mut Manager<'_, ReplayHost>, block: HostBlock, at: u32, gfp: Gfp) {
        let cold = self.evidence.cold.get(self.op).copied().unwrap_or(false);
        self.pages.name_block(at, block, cold && block.order == 0);
        if is_lru(block.order, gfp) {
            let file = is_file(gfp);
            let mut flags = PageFlags::empty();
            flags.set(PageFlags::DIRTY, !file);
            // What is in use is so by a mapping, so that reclaim asks for it.
            flags.set(PageFlags::MAPPED, !cold);
            m.pages().lru_add_new(Pfn(at.into()), file, flags);
        }
    }

    /// The recorded kernel's reclaim took this page. Here it stays until the model takes it; whether
    /// that is so (else it is no page of an LRU list, and goes as given).
    pub fn given(&mut self, m: &Manager<'_, ReplayHost>, names: &mut [u32], pfn: u32) -> bool {
        let at = names[pfn as usize];
        if at == NONE {
            // The model took it before.
            return true;
        }
        let stays = m.inspect().lru_of(Pfn(at.into())).is_some();
        if stays {
            names[pfn as usize] = NONE;
            self.pages.rename(at, NONE);
        }
        stays
    }

    /// A page moved here; what is known of it goes with it, but for its name
    /// ([`renamed`](Self::renamed) gives it the new one).
    pub fn moved(&mut self, from: u32, to: u32) {
        self.pages.moved(from, to);
    }

    /// A page moved on the recorded host; its name goes with it.
    pub fn renamed(&mut self, at: u32, to: u32) {
        if at != NONE {
            self.pages.rename(at, to);
        }
    }
}
