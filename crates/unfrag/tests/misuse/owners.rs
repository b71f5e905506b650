//! Wrong calls of the words of owners, of a roster and of a reclaim: each has its answer, and changes nothing. And right and
//! wrong ones at random, beside a naive table.

use super::{Chance, setting};
use crate::support::full;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use unfrag::owners::OwnersError::{
    self, Another, Full, NoSuchOwner, NoWord, NotABlock, StillThere,
};
use unfrag::owners::{MAX_OWNERS, Owned, OwnerId, Owners, Reclaim, Reclaimed, Roster, Turn, Want};
use unfrag::{Marks, Memory, MemoryConfig, NodeId, Request};
use unfrag::{MigrateType, Order, Pfn};

type Words = Box<[AtomicU64]>;

fn words(n: usize) -> Words {
    (0..n).map(|_| AtomicU64::new(0)).collect()
}

fn owned(order: u8) -> Owned {
    Owned {
        owner: OwnerId(7),
        order: Order(order),
        tag: 9,
    }
}

/// The words of 100 frames from 1000 on, of which the 8 from 1008 on are somebody's.
#[test]
fn wrong_calls_of_the_words_get_an_error_and_change_nothing() {
    let [page, block] = [owned(0), owned(3)];
    let other = Owned { tag: 8, ..block };
    let (out, all) = (Pfn(1100), Pfn(u64::MAX));
    type Call = Box<dyn Fn(&Owners<Words>) -> Result<(), OwnersError>>;
    let set = |at: Pfn, o: Owned| -> Call { Box::new(move |w| w.set(at, o)) };
    let replace = |at: Pfn, was, is| -> Call { Box::new(move |w| w.replace(at, was, is)) };
    let moved = |from, to, o| -> Call { Box::new(move |w| w.moved(Pfn(from), Pfn(to), o)) };
    let wrong: [(&str, Call, OwnersError); 24] = [
        ("set before", set(Pfn(999), page), NoWord(Pfn(999))),
        ("set at 0", set(Pfn(0), page), NoWord(Pfn(0))),
        ("set behind", set(out, page), NoWord(out)),
        ("set at the end", set(all, page), NoWord(all)),
        ("set askew", set(Pfn(1001), block), NotABlock(Pfn(1001))),
        (
            "set over the end",
            set(Pfn(1096), block),
            NotABlock(Pfn(1096)),
        ),
        (
            "set order 19",
            set(Pfn(1008), owned(19)),
            NotABlock(Pfn(1008)),
        ),
        (
            "set order 64",
            set(Pfn(1008), owned(64)),
            NotABlock(Pfn(1008)),
        ),
        (
            "set order 255",
            set(Pfn(1008), owned(255)),
            NotABlock(Pfn(1008)),
        ),
        (
            "replace before",
            replace(Pfn(5), None, Some(page)),
            NoWord(Pfn(5)),
        ),
        (
            "replace nobody's by nobody",
            replace(out, None, None),
            NoWord(out),
        ),
        (
            "replace askew",
            replace(Pfn(1009), None, Some(block)),
            NotABlock(Pfn(1009)),
        ),
        (
            "replace from askew",
            replace(Pfn(1009), Some(block), None),
            NotABlock(Pfn(1009)),
        ),
        (
            "replace nobody's",
            replace(Pfn(1000), Some(page), None),
            Another(Pfn(1000), None),
        ),
        (
            "replace another's",
            replace(Pfn(1008), Some(other), None),
            Another(Pfn(1008), Some(block)),
        ),
        (
            "replace what has another order",
            replace(Pfn(1008), Some(page), None),
            Another(Pfn(1008), Some(block)),
        ),
        (
            "take what is taken",
            replace(Pfn(1008), None, Some(page)),
            Another(Pfn(1008), Some(block)),
        ),
        (
            "move to itself",
            moved(1008, 1008, block),
            Another(Pfn(1008), Some(block)),
        ),
        (
            "move nobody's to itself",
            moved(1016, 1016, block),
            Another(Pfn(1016), None),
        ),
        (
            "move another's",
            moved(1008, 1016, other),
            Another(Pfn(1008), Some(block)),
        ),
        (
            "move nobody's",
            moved(1016, 1024, block),
            Another(Pfn(1016), None),
        ),
        ("move out", moved(1008, 1104, block), NoWord(Pfn(1104))),
        ("move in", moved(8, 1016, block), NoWord(Pfn(8))),
        ("move askew", moved(1008, 1017, block), NotABlock(Pfn(1017))),
    ];
    for (what, call, answer) in wrong {
        let owners = Owners::new(Pfn(1000), words(100));
        owners.set(Pfn(1008), block).expect("a right call");
        assert_eq!(call(&owners), Err(answer), "{what}");
        assert!(answer.to_string().len() > 20, "{what}");
        let found: Vec<_> = owners.blocks_of(block.owner).collect();
        assert_eq!(found, [(Pfn(1008), block)], "{what}");
        let nobodys = [0, 999, 1007, 1009, 1016, 1024, 1100, u64::MAX].map(Pfn);
        assert!(nobodys.iter().all(|&p| owners.get(p).is_none()), "{what}");
        nobodys.iter().for_each(|&p| owners.forget(p));
        assert!(nobodys.iter().all(|&p| owners.clear(p).is_none()), "{what}");
        assert_eq!(owners.clear(Pfn(1008)), Some(block), "{what}");
    }
    // Without words, at the end of all frames, and with words that somebody else wrote.
    let none = Owners::new(Pfn(0), words(0));
    assert_eq!(none.set(Pfn(0), page), Err(NoWord(Pfn(0))));
    let last = Owners::new(all, words(2));
    assert_eq!(last.set(all, page), Ok(()));
    assert_eq!((last.get(all), last.get(Pfn(0))), (Some(page), None));
    let garbage = Owners::new(Pfn(0), [u64::MAX, 21 << 48, 1 << 63].map(AtomicU64::new));
    assert!((0..3).all(|at| garbage.get(Pfn(at)).is_none()));
}

#[test]
fn wrong_calls_of_a_roster_get_an_error_and_change_nothing() {
    let roster = Roster::new(words(3));
    let [a, b, c] = [0; 3].map(|_| roster.add().expect("there is room"));
    assert_eq!(roster.add(), Err(Full));
    roster.remove(b).expect("it is there");
    let (none, far) = (OwnerId(3), OwnerId(u16::MAX));
    let wrong = [
        ("add, where one left", roster.add().map(|_| ()), Full),
        ("remove twice", roster.remove(b), NoSuchOwner(b)),
        ("remove nobody", roster.remove(none), NoSuchOwner(none)),
        ("remove far off", roster.remove(far), NoSuchOwner(far)),
        ("release who is there", roster.release(a), StillThere(a)),
        ("release nobody", roster.release(far), NoSuchOwner(far)),
    ];
    for (what, got, answer) in wrong {
        assert_eq!(got, Err(answer), "{what}");
        assert!(answer.to_string().len() > 20, "{what}");
    }
    assert_eq!([a, b, c].map(|id| roster.is_there(id)), [true, false, true]);
    assert_eq!((roster.len(), roster.is_there(far)), (2, false));
    roster.release(b).expect("it has left");
    assert_eq!(roster.release(b), Err(NoSuchOwner(b)));
    assert_eq!((roster.add(), roster.add()), (Ok(b), Err(Full)));

    let nobody = Roster::new(words(0));
    assert_eq!((nobody.add(), nobody.is_empty()), (Err(Full), true));
    // More words than numbers: no number is given twice.
    let all = Roster::new(words(MAX_OWNERS + 5));
    let last = (0..MAX_OWNERS).map(|_| all.add().expect("a number")).last();
    assert_eq!((last, all.add()), (Some(far), Err(Full)));
}

/// 4096 free frames, and watermarks that want more than that.
fn memory(high: u64) -> Memory<'static, spin::Mutex<()>> {
    let marks = Marks {
        min: 0,
        low: 0,
        high,
    };
    full(MemoryConfig {
        marks,
        ..MemoryConfig::new(Pfn(0), 4096)
    })
}

#[test]
fn whatever_is_wanted_and_answered_a_reclaim_ends() {
    let all = memory(u64::MAX);
    let wants = [
        (Want::High, Reclaimed::Outrun),
        (Want::HighOf(NodeId(0)), Reclaimed::Outrun),
        (Want::HighOf(NodeId(1)), Reclaimed::NoSuchNode(NodeId(1))),
        (
            Want::HighOf(NodeId(255)),
            Reclaimed::NoSuchNode(NodeId(255)),
        ),
        (Want::Frames(0), Reclaimed::Reached),
        (Want::Frames(5), Reclaimed::Reached),
        (Want::Frames(u64::MAX), Reclaimed::Nothing),
    ];
    for (want, ended) in wants {
        for batch in [0, 1, u64::MAX] {
            let roster = Roster::new(words(2));
            let mut first = Reclaim::new(&all, &roster, want).batch(batch);
            // An answer without a question counts for nothing.
            first.answer(u64::MAX);
            assert_eq!(first.got(), 0);
            // Nobody is there: nothing is to be had.
            if ended != Reclaimed::Reached || want == Want::Frames(5) {
                let nothing = match ended {
                    Reclaimed::NoSuchNode(_) => ended,
                    _ => Reclaimed::Nothing,
                };
                assert_eq!(first.step(), Turn::Done(nothing), "{want:?}");
            }
            // One that says it gives all there is, and one that is never answered for.
            let [liar, _silent] = [0; 2].map(|_| roster.add().expect("room"));
            let mut reclaim = Reclaim::new(&all, &roster, want).batch(batch);
            let mut asked = 0;
            let got = loop {
                match reclaim.step() {
                    Turn::Ask { owner, frames } => {
                        assert!(frames > 0, "{want:?}");
                        asked += 1;
                        if owner == liar {
                            reclaim.answer(u64::MAX);
                            reclaim.answer(u64::MAX);
                        }
                    }
                    Turn::Done(got) => break got,
                }
                assert!(asked < 100, "{want:?} goes on");
            };
            assert_eq!(got, ended, "{want:?}");
            assert_eq!(reclaim.step(), Turn::Done(ended), "it stays ended");
            assert!(got.to_string().len() > 10);
            assert!(reclaim.got() <= 4096 * 20, "no more than there is, a turn");
        }
    }
}

/// An owner that gives what it has of what it is asked for.
struct Giver {
    id: OwnerId,
    has: Vec<Pfn>,
    asked: u32,
}

fn run(
    memory: &Memory<'static, spin::Mutex<()>>,
    roster: &Roster<Words>,
    want: Want,
    givers: &mut [Giver],
) -> (Reclaimed, Vec<(OwnerId, u64)>) {
    let mut reclaim = Reclaim::new(memory, roster, want).batch(60);
    let mut asks = vec![];
    loop {
        let (owner, frames) = match reclaim.step() {
            Turn::Ask { owner, frames } => (owner, frames),
            Turn::Done(ended) => return (ended, asks),
        };
        asks.push((owner, frames));
        let giver = givers.iter_mut().find(|g| g.id == owner).expect("known");
        giver.asked += 1;
        let gives = giver.has.len().min(frames as usize);
        for p in giver.has.drain(..gives) {
            // SAFETY: the giver has it.
            unsafe { memory.free(p, Order(0), MigrateType::Movable) }.expect("in use");
        }
        reclaim.answer(gives as u64);
    }
}

#[test]
fn owners_are_asked_in_turn_for_a_fair_share_and_those_with_nothing_seldom() {
    let memory = memory(180);
    let roster = Roster::new(words(4));
    let take = |n| -> Vec<Pfn> {
        let one = || memory.alloc(&Request::new(Order(0), MigrateType::Movable));
        (0..n).map(|_| one().expect("free")).collect()
    };
    let mut givers = [1000, 1000, 0].map(|n| Giver {
        id: roster.add().expect("room"),
        has: take(n),
        asked: 0,
    });
    let kept = take(4096 - 2000);
    // 180 frames in three rounds: shares of a third, and what one lacks is another's to give.
    let (ended, asks) = run(&memory, &roster, Want::High, &mut givers);
    assert_eq!((ended, memory.free_frames()), (Reclaimed::Reached, 180));
    assert_eq!(
        asks[..3],
        [(OwnerId(0), 20), (OwnerId(1), 20), (OwnerId(2), 20)]
    );
    assert!(
        givers[..2]
            .iter()
            .all(|g| g.has.len() <= 930 && g.has.len() >= 890)
    );
    // A request begins with who was asked the longest ago, and asks all, as it would fail.
    let (ended, asks) = run(&memory, &roster, Want::Frames(40), &mut givers);
    assert_eq!(ended, Reclaimed::Reached);
    let (last, first) = (asks.len() - 1, asks[0].0);
    let (_, again) = run(&memory, &roster, Want::Frames(1), &mut givers);
    assert_eq!(again[0].0.0, (asks[last].0.0 + 1) % 3, "after {first:?}");

    // Nobody has anything: 100 wakes ask them a few times each, and one that has something again is asked all the time.
    givers.iter_mut().for_each(|g| g.has.clear());
    memory.set_marks(
        NodeId(0),
        Marks {
            min: 0,
            low: 0,
            high: 4096,
        },
    );
    givers.iter_mut().for_each(|g| g.asked = 0);
    for _ in 0..100 {
        let (ended, _) = run(&memory, &roster, Want::High, &mut givers);
        assert_eq!(ended, Reclaimed::Nothing);
    }
    assert!(givers.iter().all(|g| g.asked >= 6 && g.asked < 14));
    let (ended, asks) = run(&memory, &roster, Want::Frames(9), &mut givers);
    assert_eq!(
        (ended, asks.len()),
        (Reclaimed::Nothing, 3),
        "all are asked"
    );
    givers[1].has = kept;
    let mut wakes = 0;
    while memory.free_frames() < 1000 {
        run(&memory, &roster, Want::High, &mut givers);
        wakes += 1;
    }
    assert!(wakes <= 17, "{wakes}");
}

/// Who has left is not asked, not even by a reclaim that has begun.
#[test]
fn who_has_left_is_not_asked() {
    let memory = memory(4097);
    let roster = Roster::new(words(4));
    let [a, b, c] = [0; 3].map(|_| roster.add().expect("room"));
    for want in [Want::High, Want::Frames(3)] {
        let mut reclaim = Reclaim::new(&memory, &roster, want);
        let Turn::Ask { owner: first, .. } = reclaim.step() else {
            panic!("all are there")
        };
        let gone = if first == b { c } else { b };
        roster.remove(gone).expect("there");
        reclaim.answer(0);
        while let Turn::Ask { owner, .. } = reclaim.step() {
            assert_ne!(owner, gone);
        }
        roster.release(gone).expect("left");
        assert_eq!(roster.add(), Ok(gone));
    }
    assert!(roster.is_there(a));
}

/// Words and a roster at random, beside a naive table of both.
#[test]
fn the_words_say_what_a_naive_table_says() {
    const FRAMES: u64 = 64;
    let seed = setting("UNFRAG_SEED", 1);
    println!("UNFRAG_SEED={seed}");
    let mut chance = Chance(seed);
    let owners = Owners::new(Pfn(64), words(FRAMES as usize));
    let mut table = BTreeMap::<Pfn, Owned>::new();
    let fits = |p: Pfn, order: u8| {
        let size = 1 << order;
        (64..64 + FRAMES).contains(&p.0) && p.0.is_multiple_of(size) && p.0 + size <= 64 + FRAMES
    };
    for _ in 0..setting("UNFRAG_STEPS", 20_000) {
        let mut frame = || Pfn(60 + chance.below(FRAMES + 8));
        let (at, mut to) = (frame(), frame());
        if chance.below(16) == 0 {
            to = at;
        }
        let mut some = || Owned {
            owner: OwnerId(chance.below(3) as u16),
            order: Order(chance.of(&[0, 0, 0, 1, 3, 7])),
            tag: chance.below(2) as u32,
        };
        let (new, guess) = (some(), some());
        let is = table.get(&at).copied();
        // Half of those who name what is there are right.
        let was = if chance.below(2) == 0 {
            is
        } else {
            Some(guess)
        };
        match chance.below(4) {
            0 => {
                let done = owners.set(at, new);
                assert_eq!(done.is_ok(), fits(at, new.order.0));
                if done.is_ok() {
                    table.insert(at, new);
                }
            }
            1 if chance.below(2) == 0 => {
                owners.forget(at);
                table.remove(&at);
            }
            1 => assert_eq!(owners.clear(at), table.remove(&at)),
            2 => {
                let order = was.map_or(0, |o| o.order.0);
                let may = fits(at, order) && fits(at, new.order.0) && was == is;
                let done = owners.replace(at, was, Some(new));
                assert_eq!(done.is_ok(), may, "{done:?}");
                if may {
                    table.insert(at, new);
                }
            }
            _ => {
                let own = was.unwrap_or(guess);
                let order = own.order.0;
                let may = fits(at, order)
                    && fits(to, order)
                    && is == Some(own)
                    && !table.contains_key(&to);
                let done = owners.moved(at, to, own);
                assert_eq!(done.is_ok(), may, "{done:?}");
                if may {
                    table.remove(&at);
                    table.insert(to, own);
                }
            }
        }
        assert_eq!(owners.get(at), table.get(&at).copied());
        assert_eq!(owners.get(to), table.get(&to).copied());
    }
    for id in (0..3).map(OwnerId) {
        let own = table.iter().filter(|(_, o)| o.owner == id);
        assert!(owners.blocks_of(id).eq(own.map(|(p, o)| (*p, *o))));
    }
}

/// Many threads change owners: a number is one owner's at a time, and a block has one.
#[test]
fn no_number_and_no_block_has_two_owners() {
    let (roster, owners) = (Roster::new(words(5)), Owners::new(Pfn(0), words(1)));
    let has = [const { AtomicU64::new(0) }; 5];
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                for round in 0..setting("UNFRAG_STEPS", 5_000) {
                    let Ok(id) = roster.add() else { continue };
                    let count = &has[usize::from(id.0)];
                    assert_eq!(count.fetch_add(1, Relaxed), 0, "owner {id:?}");
                    let own = Owned {
                        owner: id,
                        order: Order(0),
                        tag: round as u32,
                    };
                    if owners.replace(Pfn(0), None, Some(own)).is_ok() {
                        assert_eq!(owners.clear(Pfn(0)), Some(own));
                    }
                    roster.remove(id).expect("mine");
                    count.fetch_sub(1, Relaxed);
                    roster.release(id).expect("mine");
                }
            });
        }
    });
    assert!(roster.is_empty() && owners.get(Pfn(0)).is_none());
}
