//! A second manager in the state of the first: for replays that are the same up to some moment. With feature `lab`.
//!
//! Invariant: what is done to both in the same way leaves both in the same state. They share no memory, so that what is
//! done to one does nothing to the other.

use crate::boot::Tables;
use crate::config::{ConfigError, Plan};
use crate::host::Host;
use crate::manager::Manager;

impl<H: Host> Manager<'_, H> {
    /// What its tables were made for.
    fn plan(&self) -> Plan {
        Plan {
            map: self.map,
            blocks: self.frames.blocks(),
            zones: self.zones.len(),
            nodes: self.nodes.len(),
            lists: self.zonelists.len(),
            sets: self.sets.len(),
        }
    }

    /// Words of metadata that this manager has, and so its [`twin`](Self::twin).
    pub fn words(&self) -> usize {
        self.plan().layout().words
    }

    /// A manager in the same state, with a host of its own, in `memory` of [`words`](Self::words) words of any content.
    /// Operations that hold frames of this one hold those of the twin once they are cloned.
    ///
    /// # Errors
    /// [`ConfigError::Memory`], if the memory is too small; [`ConfigError::NoSource`], if the host chooses frames: what it
    /// knows has no twin.
    pub fn twin<'n>(&self, host: H, memory: &'n mut [u64]) -> Result<Manager<'n, H>, ConfigError> {
        if self.policy.rules.is_sourced() {
            return Err(ConfigError::NoSource);
        }
        let tables = Tables::new(&self.plan(), memory)?;
        tables.zones.clone_from_slice(self.zones);
        tables.lrus.clone_from_slice(self.lrus);
        tables.nodes.clone_from_slice(self.nodes);
        tables.sets.clone_from_slice(self.sets);
        Ok(Manager {
            host,
            map: self.map,
            frames: self.frames.copied(tables.meta, tables.blocks),
            zones: tables.zones,
            nodes: tables.nodes,
            zonelists: self.zonelists.copied(tables.lists),
            sets: tables.sets,
            cpus: self.cpus,
            policy: self.policy,
            counters: self.counters,
            lrus: tables.lrus,
            reclaim: self.reclaim,
            compact_counters: self.compact_counters,
            flag_counts: self.flag_counts,
            nr_swap_pages: self.nr_swap_pages,
            now_ms: self.now_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Builder, CpuId, Gfp, Manager, NullHost, Order, Pfn, Request, ZoneId};
    use std::vec;
    use std::vec::Vec;

    /// Takes and gives blocks by a rule, and says where each went.
    fn work(m: &mut Manager<'_, NullHost>, rounds: u64) -> Vec<Option<Pfn>> {
        let mut all: Vec<Option<Pfn>> = vec![];
        for i in 0..rounds {
            let order = Order((i * 7 % 11) as u8 % 4);
            let gfp = match i % 3 {
                0 => Gfp::KERNEL,
                _ => Gfp::HIGHUSER_MOVABLE,
            };
            let cpu = CpuId((i % 2) as u32);
            all.push(m.alloc(&Request::new(order, gfp).on(cpu)).ok());
            let back = (i * 13 % (i + 1)) as usize;
            if i % 2 == 1
                && let Some(at) = all[back].take()
            {
                let order = Order((back as u64 * 7 % 11) as u8 % 4);
                m.free(cpu, at, order).unwrap();
            }
        }
        all
    }

    #[test]
    fn counts_of_pageblocks_are_what_a_walk_over_their_frames_finds() {
        let config = Builder::new()
            .region(Pfn(0x10_0100), (1 << 15) + 77)
            .cpus(2);
        for era in ["7.2", "6.1", "2.6.14"] {
            let config = config.era(era);
            let mut memory = vec![0; config.layout().unwrap().words];
            let mut m = config.boot(NullHost, &mut memory).unwrap();
            work(&mut m, 500);
            let mut room = vec![u64::MAX; m.lab().use_words()];
            m.lab().count_uses(&mut room).unwrap();
            for _ in 0..20 {
                work(&mut m, 200);
                m.drain_all();
                let huge = Request::new(Order(m.inspect().geometry().max_order.0), Gfp::KERNEL);
                let _ = m.alloc(&huge);
                let zone = ZoneId(0);
                let walked = m.inspect().blocks(zone).map(|(p, mt, b)| (p, mt, b.used));
                let counted: Vec<_> = m.inspect().uses(zone).collect();
                assert_eq!(counted, walked.collect::<Vec<_>>(), "{era}");
            }
            let used = m.inspect().uses(ZoneId(0)).map(|b| b.2.iter().sum::<u32>());
            assert!(used.sum::<u32>() > 1000, "{era}");
        }
    }

    #[test]
    fn a_twin_goes_on_as_the_first_does_and_neither_sees_the_other() {
        let config = Builder::new().region(Pfn(0x10_0000), 1 << 15).cpus(2);
        for era in ["6.18", "6.1", "2.6.32"] {
            let config = config.era(era);
            let mut memory = vec![0; config.layout().unwrap().words];
            let mut first = config.boot(NullHost, &mut memory).unwrap();
            work(&mut first, 3000);
            let mut other = vec![u64::MAX; first.words()];
            let mut twin = first.twin(NullHost, &mut other).unwrap();
            let theirs = work(&mut twin, 2000);
            twin.inspect().validate().unwrap();
            first.inspect().validate().unwrap();
            assert_eq!(work(&mut first, 2000), theirs, "{era}");
            first.inspect().validate().unwrap();
            assert_eq!(
                first.inspect().counters(),
                twin.inspect().counters(),
                "{era}"
            );
        }
    }
}
