//! A replay of one kernel under way: from its start, or from where another one stands that was the same so far.
//!
//! What the members of an ensemble differ in decides nothing before a daemon is woken or a page in use is asked for. So
//! they are one replay up to there, and each goes on from a twin of it.
//!
//! Invariant: a replay that goes on from a twin gives the same bytes as one from the start.

use super::block_map::BlockMapBuilder;
use super::chance::Chance;
use super::compaction_totals::CompactionTotals;
use super::member::{Member, effect_notes, failures};
use super::options::CompactionChoice;
use super::question::Question;
use super::report::{FrameMatch, HugeFaults, Sample};
use super::sample;
use super::watch::Watch;
use crate::afford;
use crate::era::sysctl;
use crate::error::{Error, Result};
use crate::replay::model::compaction::compacts;
use crate::replay::model::reclaim::Effort;
use crate::replay::model::{Prepared, Sim, reboot, resized};
use crate::replay::start::ListOrder;
use unfrag_linux::recording::Snapshot;

/// What the model of unfrag's own engine has of Linux.
const ENGINE: &str = "Which frames are taken, and what is moved to make room, is what the crate unfrag chooses, with a memory of its own for each zone. All else is as in 6.18: marks, per-CPU lists, reclaim, and when something is moved. So the engine's own marks, and what its CPUs keep, are not in this.";

/// Where a kernel begins that inherits the recorded state.
const INHERITED: &str = "This kernel begins with the recorded host's memory as it was: which pages were in use, and the types of pageblocks. (--start boot: as it would have placed them itself.)";
/// Where a kernel begins that does not.
const PLACED_ANEW: &str =
    "What was in use at the start was placed anew by this kernel's own rules from its boot.";

/// Memory of a replay.
#[derive(Default)]
struct Room {
    /// The model's.
    model: Vec<u64>,
    /// For counts of its pageblocks.
    uses: Vec<u64>,
}

/// A replay of one kernel under way.
struct Course<'m> {
    of: &'m Prepared<'m>,
    question: &'m Question<'m>,
    sim: Sim<'m>,
    notes: Vec<String>,
    samples: Vec<Sample>,
    /// The map of pageblocks, if it is wanted.
    map: Option<BlockMapBuilder>,
    compaction: CompactionTotals<'m>,
    next: Next,
}

/// What comes next, by number.
#[derive(Clone, Copy, Default)]
struct Next {
    op: usize,
    change: usize,
    snapshot: usize,
}

/// Whether the members of an ensemble begin in one way, whatever differs.
pub(super) fn begins_alike(of: &Prepared<'_>, q: &Question<'_>, a: Chance, b: Chance) -> bool {
    turns(of, q, a) == turns(of, q, b)
}

/// Whether free blocks of which nobody knows the order are the other way round at the start.
fn turns(of: &Prepared<'_>, q: &Question<'_>, chance: Chance) -> bool {
    chance.turned && !of.exact && q.inherits(of)
}

/// Whether a replay can go on from a twin of another: not where the host chooses frames.
pub(super) fn has_twins(q: &Question<'_>) -> bool {
    !q.preset.rules.is_sourced()
}

/// Replays with these chances, which [begin alike](begins_alike), one after the other. With `with_map` the first has a map
/// of pageblocks.
pub(super) fn replay_alike(
    of: &Prepared<'_>,
    q: &Question<'_>,
    chances: &[Chance],
    with_map: bool,
    watch: &mut dyn Watch,
) -> Result<Vec<Member>> {
    if let [one] = chances {
        let mut room = Room::default();
        let whole = Course::begin(of, q, *one, with_map, &mut room)?;
        return Ok(vec![whole.complete(watch)?]);
    }
    fork(of, q, chances, with_map, None, watch)
}

/// Replays that are one as far as nothing depends on what they differ in; or up to the operation `upto`, where that is
/// known.
fn fork(
    of: &Prepared<'_>,
    q: &Question<'_>,
    chances: &[Chance],
    with_map: bool,
    upto: Option<usize>,
    watch: &mut dyn Watch,
) -> Result<Vec<Member>> {
    let mut room = Room::default();
    let first = chances.first().copied().unwrap_or_default();
    let mut common = Course::begin(of, q, first, with_map, &mut room)?;
    match upto {
        Some(upto) => common.run(watch, |i, _| i == upto)?,
        None => common.run(watch, |_, sim| {
            sim.calls_for_daemon() || sim.depends_on_unknowns()
        })?,
    }
    if common.sim.depends_on_unknowns() {
        // It asked for what differs within an operation, before it called for a daemon: that operation is each one's own.
        let upto = common.next.op.saturating_sub(1);
        drop(common);
        drop(room);
        return fork(of, q, chances, with_map, Some(upto), watch);
    }
    let numbered = chances.iter().enumerate();
    let each = numbered.map(|(i, &chance)| {
        let mut room = Room::default();
        let own = common.twin(chance, with_map && i == 0, &mut room)?;
        own.complete(watch)
    });
    each.collect()
}

/// Counts what of each pageblock is in use as it changes, in `room`.
fn count_uses<'m>(sim: &mut Sim<'m>, room: &'m mut Vec<u64>) -> Result<()> {
    let mut lab = sim.manager.lab();
    *room = afford::model(lab.use_words())?;
    lab.count_uses(room)
        .map_err(|e| Error::contradiction(e.to_string()))
}

fn effort(of: &Prepared<'_>, q: &Question<'_>, chance: Chance) -> Effort {
    Effort {
        pace: chance.pace,
        spares: chance.spares,
        kswapd: q.reclaims(&of.reclaim),
    }
}

impl<'m> Course<'m> {
    /// At its start, with one chance of what is not known; the model lies in `room`.
    fn begin(
        of: &'m Prepared<'m>,
        q: &'m Question<'m>,
        chance: Chance,
        with_map: bool,
        room: &'m mut Room,
    ) -> Result<Course<'m>> {
        let Room {
            model: memory,
            uses,
        } = room;
        let (p, sysctl, options) = (q.preset, q.schedule.first, q.options);
        let mut notes = q.notes(of);
        notes.extend(p.rules.is_sourced().then(|| ENGINE.into()));
        let frames = of.start.frames.len() as u32;
        let turned = turns(of, q, chance).then(|| of.start.turned(&of.causes.first));
        let start = turned.as_ref().unwrap_or(&of.start);
        let mut sim = if q.inherits(of) {
            *memory = vec![0; start.words(p.rules, sysctl)?];
            let m = match q.recorded_era {
                true => start.manager(p.rules, sysctl, q.keep_marks, memory)?,
                false => {
                    notes.push(INHERITED.into());
                    start.inherited(p.rules, sysctl, q.keep_marks, memory)?
                }
            };
            notes.extend(start.order_shown.as_ref().map(ListOrder::sentence));
            Sim::new(m, frames)
        } else {
            let zones = of.start.zone_configs();
            let zones = match options.memory {
                Some(bytes) => resized(&zones, bytes, of.start.geometry)?,
                None => zones,
            };
            notes.push(PLACED_ANEW.into());
            reboot(&of.start, &zones, p.rules, sysctl, q.keep_marks, memory)?
        };
        sim.know_touches(of.touches.clone());
        sim.set_huge_rules(q.huge.rules);
        sim.recorded_era = q.as_recorded && of.exact;
        let compacts_itself =
            options.compaction() == CompactionChoice::Modelled && p.rules.compact.is_some();
        let effort = effort(of, q, chance);
        if effort.kswapd || compacts_itself {
            sim.enable_reclaim(&of.reclaim, effort);
            sim.vary(chance.unknowns);
        }
        if compacts_itself {
            sim.enable_own_compaction(&of.recorded_daemon(q));
        }
        if options.compaction() == CompactionChoice::Given && compacts(&p.rules) {
            sim.enable_compaction();
        }
        count_uses(&mut sim, uses)?;
        Ok(Course {
            of,
            question: q,
            notes,
            samples: vec![],
            map: with_map.then(|| BlockMapBuilder::new(&sim)),
            compaction: CompactionTotals::default(),
            next: Next::default(),
            sim,
        })
    }

    /// A replay that was the same so far, with another chance of what nothing depends on yet; its model lies in `room`.
    fn twin<'n>(&self, chance: Chance, with_map: bool, room: &'n mut Room) -> Result<Course<'n>>
    where
        'm: 'n,
    {
        let mut sim = self.sim.twin(&mut room.model)?;
        count_uses(&mut sim, &mut room.uses)?;
        sim.choose(effort(self.of, self.question, chance), chance.unknowns);
        Ok(Course {
            of: self.of,
            question: self.question,
            sim,
            notes: self.notes.clone(),
            samples: self.samples.clone(),
            map: self.map.as_ref().filter(|_| with_map).cloned(),
            compaction: self.compaction.clone(),
            next: self.next,
        })
    }

    /// Goes on until the next operation is one at which it is to stop, or to the last.
    #[inline]
    fn run(
        &mut self,
        watch: &mut dyn Watch,
        stops: impl Fn(usize, &Sim<'m>) -> bool,
    ) -> Result<()> {
        let of = self.of;
        let ops = &of.causes.ops;
        let total = ops.len() as u64;
        let stopped = ops.find_ahead(self.next.op..ops.len(), |i, op, to_come| {
            if stops(i, &self.sim) {
                return true;
            }
            while let Some((t, sysctl)) = self.question.schedule.changes.get(self.next.change)
                && op.time > *t
            {
                self.sim.change_settings(sysctl, *t);
                self.next.change += 1;
            }
            while let Some(&(t, snap)) = of.snapshots.get(self.next.snapshot)
                && op.time > t
            {
                self.sample(snap, t, watch);
                watch.progress(i as u64, total);
            }
            self.sim.prefetch(to_come);
            self.sim.apply(op, &of.causes);
            false
        })?;
        self.next.op = stopped.map_or(ops.len(), |(i, _)| i);
        Ok(())
    }

    /// Goes on to the end.
    fn complete(mut self, watch: &mut dyn Watch) -> Result<Member> {
        self.run(watch, |_, _| false)?;
        while let Some(&(t, snap)) = self.of.snapshots.get(self.next.snapshot) {
            self.sample(snap, t, watch);
        }
        self.sim.free_huge_pieces();
        let total = self.of.causes.ops.len() as u64;
        watch.progress(total, total);
        let Course {
            of,
            question: q,
            sim,
            mut notes,
            ..
        } = self;
        notes.extend(effect_notes(&sim));
        notes.extend(of.compaction_note(q, &sim));
        let m = sim.manager.inspect();
        let mut totals = of.totals(&sim);
        let compaction = self.compaction.totals().into_iter();
        totals.extend(compaction.map(|(name, n)| (name, Some(n))));
        Ok(Member {
            samples: self.samples,
            totals,
            failures: failures(&sim),
            frames: FrameMatch {
                allocations: sim.tally.allocated,
                matched: sim.tally.on_same_frame,
            },
            huge_faults: HugeFaults::of(
                &sim.tally.huge_faults,
                &sim.tally.huge_work,
                of.start.geometry.huge_order,
            ),
            settings: {
                let mut all = sysctl::describe(m.rules(), m.sysctl());
                let asked = q.huge.asked.iter().cloned();
                all.extend(asked.map(|(name, value)| (name, value.into())));
                all
            },
            block_map: self.map.map(BlockMapBuilder::finish),
            notes,
        })
    }

    /// Adds the state at the next snapshot, which was taken at a time, up to which the daemons work. At the start itself none
    /// has.
    fn sample(&mut self, snap: &'m Snapshot, time: u64, watch: &mut dyn Watch) {
        if time > self.of.start.time {
            self.sim.live_until(time);
        }
        self.next.snapshot += 1;
        let seconds = self.of.seconds(time);
        let sample = sample::of_model(&self.sim.manager, &snap.name, seconds);
        self.samples.push(sample);
        self.compaction.at_snapshot(&self.sim, snap);
        if let Some(map) = &mut self.map {
            map.push_row(&self.sim, seconds);
        }
        watch.at_snapshot(self.question.preset.name, snap, &self.sim.manager);
    }
}

#[cfg(test)]
mod tests {
    use super::super::chance::chances;
    use super::super::options::Options;
    use super::super::watch::NoWatch;
    use super::*;
    use crate::era::settings::Setting;
    use crate::replay::start::StartChoice;
    use std::path::Path;
    use unfrag_linux::recording::Recording;

    fn sample(name: &str) -> Recording {
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
        unfrag_linux::file::read(&samples.join(name)).expect("a sample")
    }

    fn shown(member: Member) -> String {
        format!("{member:?}")
    }

    /// Operations that all members have in common, and whether members that go on from there are those that run alone.
    fn common_ops(of: &Prepared<'_>, q: &Question<'_>, members: u32) -> usize {
        let all = chances(members);
        let whole: Vec<String> = all
            .iter()
            .enumerate()
            .map(|(i, &chance)| {
                let alone = replay_alike(of, q, &[chance], i == 0, &mut NoWatch).unwrap();
                shown(alone.into_iter().next().unwrap())
            })
            .collect();
        for turned in [false, true] {
            let is_of = |c: &Chance| turns(of, q, *c) == turned;
            let numbers: Vec<usize> = (0..all.len()).filter(|&i| is_of(&all[i])).collect();
            if numbers.is_empty() {
                continue;
            }
            let alike: Vec<Chance> = numbers.iter().map(|&i| all[i]).collect();
            let forked = fork(of, q, &alike, numbers[0] == 0, None, &mut NoWatch).unwrap();
            for (&i, forked) in numbers.iter().zip(forked) {
                assert!(shown(forked) == whole[i], "member {i} of {members}");
            }
        }
        let mut room = Room::default();
        let mut common = Course::begin(of, q, all[0], false, &mut room).unwrap();
        common
            .run(&mut NoWatch, |_, sim| sim.calls_for_daemon())
            .unwrap();
        let ops = common.next.op;
        // Where the common part ends is a matter of time alone.
        let upto = Some(ops / 2);
        let forked = fork(of, q, &all[..1], true, upto, &mut NoWatch).unwrap();
        assert!(forked.into_iter().map(shown).eq(whole[..1].iter().cloned()));
        ops
    }

    /// From the recorded host's memory, whose lists are by address or the other way round, under marks that make kswapd
    /// work; and from a boot in less memory.
    #[test]
    fn members_that_go_on_from_a_common_part_are_those_that_run_alone() {
        let recording = sample("gcc-768M.unfrag");
        let of = Prepared::new(&recording, StartChoice::Auto).unwrap();
        let marks = Options {
            set: vec![Setting {
                name: "vm.min_free_kbytes".into(),
                value: "180000".into(),
                at: None,
            }],
            ..Options::default()
        };
        let less = Options {
            memory: Some(420 << 20),
            ..Options::default()
        };
        for (options, kernel) in [(&marks, "6.1"), (&marks, "6.18"), (&less, "6.1")] {
            let q = of.question(kernel, options).unwrap();
            assert!(q.reclaims(&of.reclaim));
            let ops = common_ops(&of, &q, 4);
            let all = of.causes.ops.len();
            println!("{kernel}: {ops} of {all} operations in common");
            let is_later = options.memory.is_none();
            assert!(!is_later || ops > all / 100, "{kernel}: {ops} of {all}");
        }
    }

    /// From the kernel's own lists, on a host that reclaimed.
    #[test]
    fn members_of_a_host_that_reclaimed_have_a_common_part() {
        let recording = sample("fragmented-384M.unfrag");
        let of = Prepared::new(&recording, StartChoice::Auto).unwrap();
        let options = Options::default();
        let q = of.question(of.era.preset(), &options).unwrap();
        if q.reclaims(&of.reclaim) {
            let ops = common_ops(&of, &q, 3);
            println!("{ops} of {} operations in common", of.causes.ops.len());
        }
    }
}
