//! Making a manager in its caller's memory, and giving it its frames.

use crate::config::{Config, ConfigError, Plan, effective, lru_of};
use crate::frame::{
    BlockMeta, CpuId, FrameKind, FrameMeta, Frames, MigrateType, Order, Pfn, Span, State, ZoneId,
};
use crate::host::Host;
use crate::kernel::Reserve;
use crate::lru::{FlagCounts, LruLists};
use crate::manager::Manager;
use crate::node::Node;
use crate::pcp::{CpuZone, size};
use crate::placement::FreeTo;
use crate::policy::Policy;
use crate::stat::{CompactCounters, Counters, ReclaimCounters};
use crate::zone::{Zone, ZoneList, ZoneLists, setup, watermark};
use unfrag::arena::Arena;

/// The tables of a manager in its caller's memory, all zeroes.
pub(crate) struct Tables<'m> {
    pub meta: &'m [FrameMeta],
    pub blocks: &'m [BlockMeta],
    pub zones: &'m mut [Zone],
    pub lrus: &'m mut [LruLists],
    pub nodes: &'m mut [Node],
    pub lists: &'m mut [ZoneList],
    pub sets: &'m mut [CpuZone],
}

impl<'m> Tables<'m> {
    /// Takes them from `memory`, which is large enough for [`Plan::layout`].
    pub fn new(plan: &Plan, memory: &'m mut [u64]) -> Result<Tables<'m>, ConfigError> {
        let words = plan.layout().words;
        let memory = memory.get_mut(..words).ok_or(ConfigError::Memory(words))?;
        let mut arena = Arena::new(memory);
        Ok(Tables {
            meta: arena.table(plan.map.len() as usize),
            blocks: arena.table(plan.blocks),
            zones: arena.checked_table(plan.zones),
            lrus: arena.checked_table(plan.zones),
            nodes: arena.checked_table(plan.nodes),
            lists: arena.checked_table(plan.lists),
            sets: arena.table(plan.sets),
        })
    }
}

impl<'m, H: Host> Manager<'m, H> {
    /// Makes a manager in `memory` (at least [`layout`](crate::layout)`(config).words` words, of any
    /// content), all of whose frames are reserved.
    pub(crate) fn new(
        config: &Config,
        host: H,
        memory: &'m mut [u64],
    ) -> Result<Self, ConfigError> {
        let plan = Plan::new(config)?;
        let Tables {
            meta,
            blocks,
            zones,
            lrus,
            nodes,
            lists,
            sets,
        } = Tables::new(&plan, memory)?;
        sets.fill_with(CpuZone::new);
        lrus.fill_with(LruLists::new);

        let rules = config.rules;
        let policy = Policy::new(rules, effective(config));
        let mut frames = Frames::new(meta, blocks, config.geometry, rules.initial_type());
        for (i, (zone, c)) in zones.iter_mut().zip(config.zones).enumerate() {
            let last = Pfn(c.start.0 + c.spanned.max(1) - 1);
            let (Some(start), Some(last)) = (plan.map.ix(c.start), plan.map.ix(last)) else {
                return Err(ConfigError::Ranges);
            };
            let end = if c.spanned == 0 { start } else { last.plus(1) };
            let (id, span) = (ZoneId(i as u8), Span { start, end });
            let reserved = State::new(FrameKind::Reserved, Order::ZERO, MigrateType::Unmovable);
            let lru = lru_of(config.zones, i, rules.reclaim.lru.shape());
            frames.add_zone(id, span, lru, reserved);
            let ungrouped = policy.sysctl.group_by_mobility_disabled;
            *zone = Zone::new(id, c, span, config.geometry, ungrouped);
            zone.lru = lru;
        }
        let (ids, _) = crate::zone::nodes(config.zones);
        for (node, id) in nodes.iter_mut().zip(ids) {
            *node = Node::new(id);
            let of_node = |z: &&Zone| z.node == id && z.managed > 0;
            for zone in zones.iter().filter(of_node) {
                node.add_zone(zone.id());
            }
        }
        let mut m = Manager {
            host,
            map: plan.map,
            frames,
            zones,
            nodes,
            zonelists: ZoneLists::new(config.zones, &rules, lists),
            sets,
            cpus: config.cpus as u32,
            policy,
            counters: Counters::default(),
            lrus,
            reclaim: ReclaimCounters::default(),
            compact_counters: CompactCounters::default(),
            flag_counts: FlagCounts::default(),
            nr_swap_pages: 0,
            now_ms: 0,
        };
        m.switch_lists();
        m.size_zones();
        if rules.is_sourced() {
            let source = m.host.source().filter(|_| H::SOURCES);
            if !source.is_some_and(|s| s.start(config.zones)) {
                return Err(ConfigError::NoSource);
            }
        }
        Ok(m)
    }

    /// Derives what depends on the sizes of zones: marks, protections, per-CPU lists, and how exactly free pages are
    /// counted.
    pub(crate) fn size_zones(&mut self) {
        setup::setup(self.zones, &self.policy, self.frames.geometry);
        if self.policy.rules.marks.late_free_count {
            for zone in self.zones.iter_mut() {
                let pages = watermark::pages(&zone.config(), &self.policy.rules);
                zone.stat_threshold =
                    size::stat_threshold(pages, self.cpus.into(), self.frames.geometry);
            }
        }
        self.zone_ids().for_each(|z| self.size_sets(z));
    }

    /// Sets batch and high of a zone's per-CPU lists from its size and marks.
    pub(crate) fn size_sets(&mut self, zone: ZoneId) {
        let z = self.zone(zone);
        let of = size::SetBasis {
            pages: watermark::pages(&z.config(), &self.policy.rules),
            low: z.marks.low,
            cpus: self.cpus.into(),
            geometry: self.frames.geometry,
        };
        let size = size::SetSize::new(of, &self.policy.rules, &self.policy.sysctl);
        for cpu in self.cpu_ids() {
            let (set, _) = self.parts(zone, cpu);
            let clip = |n: u64| i32::try_from(n).unwrap_or(i32::MAX);
            set.batch = clip(size.batch);
            (set.high, set.high_min) = (clip(size.high_min), clip(size.high_min));
            set.high_max = clip(size.high_max);
        }
    }

    /// Frees `frames` reserved frames from `start`, as the kernel hands over its early memory:
    /// ascending, the largest aligned blocks first, each to the tail of its list.
    /// `spec: 9`
    ///
    /// # Errors
    /// [`ConfigError::NotReserved`], if they are not all reserved frames of one zone; nothing has changed
    /// then.
    pub(crate) fn free_range(&mut self, start: Pfn, frames: u64) -> Result<(), ConfigError> {
        let bad = |pfn| ConfigError::NotReserved(pfn);
        if frames == 0 {
            return Ok(());
        }
        let (zone, span) = self.span_in_zone(start, frames).map_err(bad)?;
        for ix in span.start.until(span.end) {
            if self.frames.state(ix).kind() != FrameKind::Reserved
                || self.frames.zone_of(ix) != zone
            {
                return Err(bad(self.map.pfn(ix)));
            }
        }
        self.hand_over(zone, span);
        Ok(())
    }

    /// Frees the frames of a span: ascending, the largest aligned blocks first, each to the tail of its list. They are of
    /// no block.
    pub(crate) fn hand_over(&mut self, zone: ZoneId, span: Span) {
        let max = self.frames.geometry.max_order;
        for (at, order) in span.start.blocks_until(span.end, max) {
            for ix in at.until(at.plus(order.frames())) {
                self.frames.set_state(ix, State::TAIL);
            }
            let (_, mut ops) = self.parts(zone, CpuId(0));
            ops.give(at, order, FreeTo::Tail);
        }
    }

    /// The end of boot: counts what is free, and makes the era's reserve of it.
    pub(crate) fn boot_done(&mut self) {
        self.cpu_ids().for_each(|cpu| self.vmstat_update(cpu));
        if let Reserve::Blocks { capped } = self.policy.rules.reserve() {
            for z in self.zones.iter_mut() {
                z.setup_reserve_blocks(&self.frames, capped);
            }
        }
        self.source_ready();
    }

    /// Tells the source that the state is complete.
    pub(crate) fn source_ready(&mut self) {
        if H::SOURCES
            && let Some(source) = self.host.source()
        {
            source.ready();
        }
    }

    /// Boots a manager in `memory` (at least [`layout`](crate::layout)`(config).words` words, of any
    /// content): all managed frames of each zone are free, the reserved ones being the first.
    ///
    /// # Errors
    /// [`ConfigError`], if there is no such manager, or the memory is too small for it.
    pub fn boot(config: &Config, host: H, memory: &'m mut [u64]) -> Result<Self, ConfigError> {
        let mut m = Self::new(config, host, memory)?;
        for c in config.zones {
            m.free_range(Pfn(c.start.0 + c.spanned - c.managed), c.managed)?;
        }
        m.boot_done();
        Ok(m)
    }
}
