//! A run: what is seen of it, chance, and the world that meets needs.

pub(crate) use crate::chance::Chance;
use std::fmt::Debug;
use unfrag_eras::migrate::MoveAsk;
use unfrag_eras::reclaim::{Ask, Content, Eviction, Need, Verdict, Verdicts};
use unfrag_eras::trace::Event;
use unfrag_eras::{
    AllocError, Config, CpuId, Gfp, Host, Manager, NodeId, Order, Pfn, Request, Rules, Sysctl,
    ZoneConfig, layout,
};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Observation {
    Event(Event),
    Woken(NodeId, Order),
    Got(Result<Pfn, AllocError>),
    Need(Need),
    Ask(Ask, bool),
    /// A page that is to be moved, and whether its owner may wait for locks, and for writing.
    Move(MoveAsk, bool, bool),
    CompactionWoken(NodeId),
    State(String),
}

/// Writes a run down, or holds it against one that was.
#[derive(Default)]
pub(crate) struct Record<'a> {
    pub(crate) own: Vec<Observation>,
    pub(crate) other: Option<&'a [Observation]>,
    pub(crate) at: usize,
    pub(crate) differs: bool,
}

impl Record<'_> {
    pub(crate) fn see(&mut self, seen: Observation) {
        match self.other {
            None => self.own.push(seen),
            Some(other) => {
                self.differs |= other.get(self.at) != Some(&seen);
                self.at += 1;
            }
        }
    }
}

/// A host that owns pages, with a small swap and a device that is busy at times.
pub(crate) struct World<'a> {
    pub(crate) record: Record<'a>,
    pub(crate) chance: Chance,
    pub(crate) cpu: CpuId,
    pub(crate) swap: u64,
    pub(crate) writing: Vec<Pfn>,
    pub(crate) woken: bool,
    pub(crate) compaction_woken: bool,
}

impl Host for World<'_> {
    const TRACING: bool = true;
    fn trace(&mut self, event: &Event) {
        self.record.see(Observation::Event(*event));
    }
    fn wake_kswapd(&mut self, node: NodeId, order: Order) {
        self.woken = true;
        self.record.see(Observation::Woken(node, order));
    }
    fn wake_kcompactd(&mut self, node: NodeId) {
        self.compaction_woken = true;
        self.record.see(Observation::CompactionWoken(node));
    }
}

impl World<'_> {
    /// The owners' answer to one question, by chance.
    pub(crate) fn verdict(&mut self, ask: &Ask, sync: bool) -> Verdict {
        self.record.see(Observation::Ask(*ask, sync));
        if ask.unmap {
            match self.chance.below(12) {
                0 => return Verdict::Busy,
                _ if self.swap == 0 => return Verdict::NoSpace,
                _ => self.swap -= u64::from(self.chance.one_in(2)),
            }
        }
        match ask.content {
            Content::Clean if self.chance.one_in(16) => Verdict::Keep,
            Content::Clean => Verdict::Released,
            Content::Dirty => Verdict::Dirty,
            Content::Write => match self.chance.below(20) {
                0 => Verdict::Congested,
                1 => Verdict::Later,
                2 => Verdict::Failed,
                _ => {
                    self.writing.push(ask.page);
                    Verdict::Writing
                }
            },
        }
    }
}

/// Asks the owners of some pages.
pub(crate) fn evict(m: &mut M, eviction: &Eviction) -> Verdicts {
    let host = m.host_mut();
    let verdicts = eviction.ask(|ask| host.verdict(ask, eviction.sync));
    let swap = host.swap;
    m.set_nr_swap_pages(swap);
    verdicts
}

pub(crate) type M<'m, 'a> = Manager<'m, World<'a>>;

// The few calls that the scenes make.

pub(crate) fn with_manager<'a>(
    zones: &[ZoneConfig],
    rules: &Rules,
    sysctl: Sysctl,
    (seed, other): (u64, Option<&'a [Observation]>),
    scene: impl FnOnce(&mut M<'_, 'a>, &mut Chance),
) -> Record<'a> {
    let config = Config {
        cpus: 2,
        sysctl,
        ..Config::new(zones, *rules)
    };
    let mut memory = vec![0; layout(&config).expect("a layout").words];
    let host = World {
        record: Record {
            other,
            ..Record::default()
        },
        chance: Chance(seed ^ 0x5eed),
        cpu: CpuId(0),
        swap: 400,
        writing: Vec::new(),
        woken: false,
        compaction_woken: false,
    };
    let mut m = Manager::boot(&config, host, &mut memory).expect("a manager");
    m.set_nr_swap_pages(400);
    look(&mut m);
    scene(&mut m, &mut Chance(seed));
    look(&mut m);
    if other.is_none() {
        m.inspect().validate().expect("a sound state");
    }
    std::mem::take(&mut m.host_mut().record)
}

pub(crate) fn see(m: &mut M, seen: Observation) {
    m.host_mut().record.see(seen);
}

pub(crate) fn over(m: &M) -> bool {
    m.host().record.differs
}

pub(crate) fn on_cpu(m: &mut M, c: &mut Chance) {
    m.host_mut().cpu = CpuId(c.below(2) as u32);
}

pub(crate) fn ask_for(m: &M, node: u8, order: u8, gfp: Gfp) -> Request {
    let request = Request::new(Order(order), gfp).near(NodeId(node));
    request.on(m.host().cpu)
}

pub(crate) fn alloc(m: &mut M, node: u8, order: u8, gfp: Gfp) -> Option<Pfn> {
    let got = m.alloc(&ask_for(m, node, order, gfp));
    see(m, Observation::Got(got));
    got.ok()
}

pub(crate) fn free(m: &mut M, (pfn, order): (Pfn, u8)) {
    let cpu = m.host().cpu;
    m.free(cpu, pfn, Order(order)).expect("it is in use");
}

/// Writes down what the zones hold.
pub(crate) fn look(m: &mut M) {
    let mut text = String::new();
    let i = m.inspect();
    for z in i.zones() {
        let v = i.zone(z);
        text += &format!(
            "{:?} {:?} {} {} {:?} {:?} {:?}",
            v.marks,
            v.protection,
            v.free_counter,
            v.highatomic,
            v.nr_free,
            i.blocks_by_type(z),
            i.lru(z)
        );
        for cpu in i.cpus() {
            text += &format!("{:?}", i.set(z, cpu));
        }
    }
    text += &format!(
        "{:?} {:?} {:?}",
        i.counters(),
        i.reclaim_counters(),
        i.compact_counters()
    );
    see(m, Observation::State(text));
}

// The scenes.
