//! What the doctor promises of needs is there: in random states of a modelled host's memory the promised blocks are really
//! allocated, after the very means that it named. `UNFRAG_SEED` and `UNFRAG_ROUNDS` choose other states.
//!
//! The states ([`state`]) have several nodes and zones, huge pages and large folios, contiguous areas, high-atomic reserves,
//! pinned pages, drivers' memory, hugetlb pools, pages on per-CPU lists, and folios that cannot be split; [`shown`] has the
//! files of each, [`memory`] what its allocator does.

mod memory;
mod shown;
mod state;

use crate::chance::{Chance, setting};
use memory::Memory;
use state::State;
use unfrag_lab::doctor::gate::answer::{Asked, Kind};
use unfrag_lab::doctor::gate::{After, Means, Need, Needs, Verdict, judge};

/// States of each test. A thousand and more are for `UNFRAG_ROUNDS`.
const ROUNDS: u64 = 200;

/// Seed and round of states that are tried whatever the seed: a free block of an area beside blocks that are open to all, which
/// is a run by page flags alone; areas of which only small blocks are free, which count for the watermark.
const ALWAYS: [(u64, u64); 2] = [(20261130, 513), (20261130, 903)];

/// Carries out a means.
fn prepare(memory: &mut Memory, means: Means) {
    if means.drops() {
        memory.drop_caches();
    }
    if means.compacts() {
        memory.compact();
    }
}

/// How many pieces of a need there are, `most` at most.
fn there(memory: &mut Memory, a: &Asked, most: u64) -> u64 {
    match a.kind {
        Kind::Runs => memory.runs(a.order, a.need.node),
        kind => memory.take(a.order, kind == Kind::HugePages, a.need.node, most),
    }
}

fn random_need(c: &mut Chance, nodes: u64, orders: u64) -> Need {
    let most = 1 << c.below(9);
    Need {
        count: 1 + c.below(most),
        bytes: 4096 << c.below(orders),
        node: c.one_in(3).then(|| c.below(nodes) as u32),
    }
}

fn asked(c: &mut Chance, state: &State, needs: &[Need]) -> Needs {
    let (evidence, examined) = state.examined();
    let after = After {
        drop: c.one_in(2),
        compact: c.one_in(2),
    };
    judge(&evidence, &examined, needs, after).expect("a size and a node of the host")
}

fn rounds(name: &str, mut one: impl FnMut(&mut Chance, &str)) {
    let seed = setting("UNFRAG_SEED", 58);
    println!("{name}: UNFRAG_SEED={seed}");
    let rounds = 0..setting("UNFRAG_ROUNDS", ROUNDS);
    for (seed, round) in ALWAYS.into_iter().chain(rounds.map(|round| (seed, round))) {
        let mut c = Chance(seed.wrapping_mul(1 << 32).wrapping_add(round));
        one(&mut c, &format!("seed {seed}, round {round}"));
    }
}

#[test]
fn each_number_is_there_and_no_more_than_the_bound() {
    let (mut promised, mut given, mut bound) = ([0u64; 4], [0u64; 4], [0u64; 4]);
    // Of numbers of pieces from 1 to twice what there is: those that get an answer.
    let (mut asked_of, mut answered) = (0u64, 0u64);
    let mut wrong = vec![];
    rounds("numbers", |c, place| {
        let state = State::random(c);
        // Of each size alone: what one takes another has not.
        let need = random_need(c, state.nodes(), 14);
        let n = asked(c, &state, &[need]);
        let means = c.of(&Means::ALL);
        let (a, room) = (&n.each[0], n.each[0].rooms[means as usize]);
        let got = state.with(|mut memory| {
            prepare(&mut memory, means);
            there(&mut memory, a, u64::MAX)
        });
        let of = format!(
            "{place}, {} {means:?} of {}: {room:?}, and {got}; min {}, {:?}, {:?}",
            a.name, state.era, state.min, state.traits, state.zones
        );
        if room.at_least > got || room.at_most.is_none_or(|most| got > most) {
            wrong.push(of);
        }
        // A bound is one of this host: no more pieces than it has memory for, and no fewer after more was done.
        let most = |m: Means| n.each[0].rooms[m as usize].at_most;
        let pages = state.frames();
        let is_monotonic = most(Means::Drop) <= most(Means::DropCompact);
        if most(Means::Drop).is_some_and(|most| most << a.order > pages) || !is_monotonic {
            wrong.push(format!("{place}, {}: bounds {:?}", a.name, n.each[0].rooms));
        }
        promised[means as usize] += room.at_least;
        given[means as usize] += got;
        bound[means as usize] += room.at_most.unwrap_or(0);
        asked_of += 2 * got;
        let open = room.at_most.unwrap_or(u64::MAX).min(2 * got) - room.at_least.min(got);
        answered += 2 * got - open;
    });
    println!("by means: {promised:?} promised, {given:?} given, {bound:?} at most");
    println!("of {asked_of} numbers of pieces {answered} get an answer");
    assert!(wrong.is_empty(), "{} are wrong: {wrong:#?}", wrong.len());
    // What programs of a real host read back after caches were dropped is kept off, too.
    for (p, g) in promised.iter().zip(given) {
        assert!(*p * 5 > g, "hardly anything is promised: {p} of {g}");
    }
}

#[test]
fn a_yes_to_several_needs_is_true_of_all_at_once() {
    let mut verdicts = [0u64; 3];
    let mut wrong = vec![];
    rounds("together", |c, place| {
        let state = State::random(c);
        let needs: Vec<Need> = (0..1 + c.below(3))
            .map(|_| random_need(c, state.nodes(), 11))
            .collect();
        let n = asked(c, &state, &needs);
        verdicts[n.verdict as usize] += 1;
        assert!(n.line.chars().count() <= 80, "{}", n.line);
        let Some(means) = n.means else {
            assert_ne!(n.verdict, Verdict::Yes, "{place}");
            return;
        };
        assert!(n.after.allows(means), "{place}");
        state.with(|mut memory| {
            prepare(&mut memory, means);
            for a in n.each.iter() {
                let got = there(&mut memory, a, a.need.count);
                if got != a.need.count {
                    wrong.push(format!(
                        "{place}, {}: {} of {}: {}; {:?}, {:?}",
                        state.era, got, a.name, n.line, state.traits, state.zones
                    ));
                }
            }
        });
    });
    println!("yes, no, not known: {verdicts:?}");
    assert!(wrong.is_empty(), "{} are wrong: {wrong:#?}", wrong.len());
    let tenth = setting("UNFRAG_ROUNDS", ROUNDS) / 10;
    assert!(verdicts[0] >= tenth && verdicts[1] >= tenth, "{verdicts:?}");
}
