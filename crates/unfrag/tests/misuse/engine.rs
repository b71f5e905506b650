//! The engine, which one caller has: its maps judge all that is given to it.

use unfrag::maps::GiveError::{
    InUse, NoFrames, NoMemory, NotABlock, NotTaken, Present, TooManyHoles,
};
use unfrag::maps::{Engine, EngineCounts, EngineLayout, FreeBlocks, Gigabyte, GiveError};
use unfrag::{MigrateType, Order, Pfn};

const MOV: MigrateType = MigrateType::Movable;
/// Ten blocks; the first and the ninth are partly memory, the last one is none.
const FRAMES: u64 = 5120;
const START: u64 = 3;
const END: u64 = 4503;
/// In use: four frames, and a block as a whole.
const FOUR: u64 = 600;
const HUGE: u64 = 1024;

type Row<'a> = (u64, u64, fn(Pfn) -> GiveError, u64);

/// The end of the span.
const BEHIND: u64 = 1 << 18;

fn memory() -> Vec<u64> {
    vec![!0; EngineLayout::GIGABYTE]
}

type One<'m> = Engine<'m, [Gigabyte<'m>; 1]>;

fn empty<'m>() -> One<'m> {
    Engine::new(Pfn(0), [Gigabyte::NONE]).expect("an engine")
}

fn engine(mut memory: &mut [u64]) -> One<'_> {
    let mut e = empty();
    e.add(Pfn(START), END - START, &mut memory).expect("new");
    e.take_range(Pfn(FOUR), 4, MOV).expect("free");
    e.take_range(Pfn(HUGE), 512, MOV).expect("free");
    e
}

fn state(e: &mut One) -> (EngineCounts, FreeBlocks) {
    e.validate().expect("a sound state");
    (e.counts(), e.free_blocks())
}

/// Adds what needs no more tables.
fn add(e: &mut One, at: u64, frames: u64) -> Result<(), GiveError> {
    e.add(Pfn(at), frames, &mut &mut [][..])
}

/// Each row: two numbers, the error, and the frame that it names.
fn refuse(what: &str, rows: &[Row], call: impl Fn(&mut One, u64, u64) -> Result<(), GiveError>) {
    let mut memory = memory();
    let mut e = engine(&mut memory);
    let before = state(&mut e);
    for &(a, b, why, at) in rows {
        let got = call(&mut e, a, b);
        assert_eq!(got, Err(why(Pfn(at))), "{what} {a:#x} {b}");
        let text = got.expect_err("an error").to_string();
        assert!(text.contains(&format!("{at:#x}")), "{text}");
        // Miri takes too long to look at everything after each.
        if !cfg!(miri) {
            assert_eq!(state(&mut e), before, "{what} {a:#x} {b}");
        }
    }
    assert_eq!(state(&mut e), before, "{what}");
}

#[test]
fn a_block_that_was_not_taken_is_not_given_back() {
    let rows: [Row; 30] = [
        (FOUR + 1, 1, NotABlock, FOUR + 1),
        (HUGE + 3, 9, NotABlock, HUGE + 3),
        (HUGE + 256, 9, NotABlock, HUGE + 256),
        (512, 10, NotABlock, 512),
        (u64::MAX, 1, NotABlock, u64::MAX),
        (0, 19, NotABlock, 0),
        (0, 31, NotABlock, 0),
        (0, 32, NotABlock, 0),
        (FOUR, 33, NotABlock, FOUR),
        (0, 40, NotABlock, 0),
        (0, 64, NotABlock, 0),
        (0, 128, NotABlock, 0),
        (0, 255, NotABlock, 0),
        (FOUR + 4, 0, NotTaken, FOUR + 4),
        (FOUR, 3, NotTaken, FOUR),
        (512, 9, NotTaken, 512),
        (HUGE, 10, NotTaken, HUGE),
        (0, 0, NoMemory, 0),
        (2, 0, NoMemory, 2),
        (2, 1, NoMemory, 2),
        (0, 9, NoMemory, 0),
        (END, 0, NoMemory, END),
        (END - 1, 1, NoMemory, END - 1),
        (4096, 9, NoMemory, 4096),
        (4608, 0, NoMemory, 4608),
        (4608, 9, NoMemory, 4608),
        (FRAMES, 0, NoMemory, FRAMES),
        (u64::MAX, 0, NoMemory, u64::MAX),
        (u64::MAX - 511, 9, NoMemory, u64::MAX - 511),
        (0, 18, NoMemory, 0),
    ];
    let types = if cfg!(miri) { 1 } else { 7 };
    for mt in MigrateType::ALL.into_iter().take(types) {
        refuse("give", &rows, |e, frame, order| {
            e.give(&[frame], Order(order as u8), mt)
        });
    }
}

#[test]
fn a_range_that_was_not_taken_is_not_given_back() {
    let rows: [Row; 9] = [
        (FOUR, 0, NoFrames, FOUR),
        (FOUR + 4, 4, NotTaken, FOUR + 4),
        (0, 1, NoMemory, 0),
        (END, 1, NoMemory, END),
        (FRAMES, 0, NoFrames, FRAMES),
        (BEHIND - 1, 2, NoMemory, BEHIND),
        (0, u64::MAX, NoMemory, BEHIND),
        (u64::MAX, 1, NoMemory, u64::MAX),
        (u64::MAX, u64::MAX, NoMemory, u64::MAX),
    ];
    refuse("give_range", &rows, |e, at, n| {
        e.give_range(Pfn(at), n, MOV)
    });
}

#[test]
fn a_range_that_is_not_free_is_not_taken() {
    let rows: [Row; 11] = [
        (FOUR, 1, InUse, FOUR),
        (FOUR - 1, 2, InUse, FOUR),
        (HUGE, 512, InUse, HUGE),
        (0, 1, NoMemory, 0),
        (2, 2, NoMemory, 2),
        (END, 1, NoMemory, END),
        (4608, 512, NoMemory, 4608),
        (512, 0, NoFrames, 512),
        (BEHIND - 1, 2, NoMemory, BEHIND),
        (u64::MAX, 2, NoMemory, u64::MAX),
        (0, u64::MAX, NoMemory, BEHIND),
    ];
    refuse("take_range", &rows, |e, at, n| {
        e.take_range(Pfn(at), n, MOV)
    });
}

#[test]
fn memory_that_is_there_is_not_added() {
    let rows: [Row; 12] = [
        (START, 1, Present, START),
        (0, 4, Present, 0),
        (FOUR, 1, Present, FOUR),
        (FOUR + 4, 1, Present, FOUR + 4),
        (HUGE, 512, Present, HUGE),
        (END - 1, 1, Present, END - 1),
        (0, FRAMES, Present, 0),
        (END, 0, NoFrames, END),
        (BEHIND - 1, 2, NoMemory, BEHIND),
        (BEHIND + 1, 0, NoMemory, BEHIND + 1),
        (u64::MAX, 1, NoMemory, u64::MAX),
        (u64::MAX, u64::MAX, NoMemory, u64::MAX),
    ];
    refuse("add", &rows, |e, at, n| {
        assert_eq!(e.can_add(Pfn(at), n).err(), add(e, at, n).err());
        add(e, at, n)
    });
}

/// All frames are in use: no count tells them from what was never added.
#[test]
fn memory_in_use_is_not_added_and_what_was_never_added_is_not_freed() {
    let mut memory = memory();
    let mut e = empty();
    e.add(Pfn(0), 256, &mut &mut memory[..]).expect("new");
    let mut all = [0; 256];
    assert_eq!(e.take(&mut all, Order(0), MOV, true), 256);
    for at in [0, 100, 255] {
        assert_eq!(add(&mut e, at, 1), Err(Present(Pfn(at))));
    }
    assert_eq!(add(&mut e, 0, 256), Err(Present(Pfn(0))));
    for at in [256, 300, 511] {
        let given = e.give(&[at], Order(0), MOV);
        assert_eq!(given, Err(NoMemory(Pfn(at))));
    }
    assert_eq!(e.take(&mut [0], Order(0), MOV, true), 0, "all are in use");
    e.validate().expect("a sound state");
    add(&mut e, 300, 212).expect("new");
    add(&mut e, 256, 44).expect("new");
    e.give(&all, Order(0), MOV).expect("in use");
    assert_eq!((e.free_frames(), e.whole_blocks()), (512, 1));
    e.validate().expect("a sound state");
}

#[test]
fn what_is_not_there_is_not_found() {
    let mut memory = memory();
    let mut e = engine(&mut memory);
    let before = state(&mut e);
    let mut out = [0; 4];
    for order in [19, 31, 32, 40, 63, 64, 255] {
        assert_eq!(e.take(&mut out, Order(order), MOV, true), 0, "{order}");
        assert_eq!(e.take_run(1, Order(order), MOV, true), None, "{order}");
        assert_eq!(e.take_beside(Order(order)), None, "{order}");
        assert!(e.take_unreported(Order(order)).is_none(), "{order}");
    }
    assert_eq!(e.take(&mut [], Order(0), MOV, true), 0);
    for frames in [0, (1 << 18) + 1, u32::MAX] {
        assert_eq!(e.take_run(frames, Order(0), MOV, true), None, "{frames}");
    }
    for order in [9, 10, 18] {
        assert_eq!(e.take_beside(Order(order)), None, "{order}");
    }
    for order in [0, 8] {
        assert!(e.take_unreported(Order(order)).is_none(), "{order}");
    }
    assert_eq!(state(&mut e), before);
}

/// A run that is being reported is not free, and is found again.
#[test]
fn what_is_being_reported_is_not_taken_by_its_place() {
    let mut memory = memory();
    let mut e = engine(&mut memory);
    let run = e.take_unreported(Order(9)).expect("a free block");
    let first = run.stretches().next().expect("one").0.0;
    assert_eq!(e.take_range(Pfn(first), 1, MOV), Err(InUse(Pfn(first))));
    assert_eq!(add(&mut e, first, 1), Err(Present(Pfn(first))));
    // One that is forgotten is in use, and comes back as any other block.
    drop(run);
    e.validate().expect("a sound state");
    e.give(&[first], Order(9), MOV).expect("in use");
    // What somebody freed meanwhile is not given back again.
    let run = e.take_unreported(Order(9)).expect("a free block");
    let first = run.stretches().next().expect("one").0.0;
    e.give(&[first + 8], Order(3), MOV).expect("in use");
    let given = e.give_reported(run, true);
    assert_eq!(given, Err(NotTaken(Pfn(first))));
    e.validate().expect("a sound state");
}

/// A batch with bad blocks of every kind frees all others, and names the first bad one.
#[test]
fn a_batch_frees_what_it_can() {
    let mut memory = memory();
    let mut e = engine(&mut memory);
    let free = e.free_frames();
    let batch = [FOUR, END, FOUR, u64::MAX, 0, FOUR + 1, FOUR + 4];
    let given = e.give(&batch, Order(0), MOV);
    assert_eq!(given, Err(NoMemory(Pfn(END))));
    assert_eq!(e.free_frames(), free + 2);
    let batch = [HUGE + 1, HUGE, HUGE, u64::MAX, 0, 4096];
    let given = e.give(&batch, Order(9), MOV);
    assert_eq!(given, Err(NotABlock(Pfn(HUGE + 1))));
    assert_eq!(e.free_frames(), free + 2 + 512);
    e.validate().expect("a sound state");
}

/// Where too many blocks of a gigabyte would be partly memory, nothing is added; what completes a block is, and whole ones
/// are.
#[test]
#[cfg_attr(miri, ignore = "it has 64 blocks")]
fn too_many_holes_are_refused() {
    let mut memory = memory();
    let mut e = engine(&mut memory);
    // The first and the last block that it has.
    let room = 62;
    for i in 10..10 + room {
        add(&mut e, i * 512 + 7, 1).expect("room for its map");
    }
    let at = (10 + room) * 512;
    let refused = Err(TooManyHoles(Pfn(at + 7)));
    assert_eq!(add(&mut e, at + 7, 1), refused);
    assert_eq!(add(&mut e, at + 7, 600), refused);
    // Nor is a part removed of what is memory as a whole.
    assert_eq!(e.remove(Pfn(HUGE), 1), Err(TooManyHoles(Pfn(HUGE))));
    e.remove(Pfn(HUGE), 512).expect("a whole block");
    add(&mut e, at, 512).expect("a whole block");
    assert!(
        add(&mut e, at + 512, 513).is_err(),
        "its end is a part of one"
    );
    add(&mut e, 5120, 7).expect("new");
    add(&mut e, 5128, 504).expect("what completes a block");
    add(&mut e, at + 512, 513).expect("there is room again");
    e.validate().expect("a sound state");
}

/// What is removed was in use; it is no memory then, and may be added again.
#[test]
fn what_is_not_in_use_is_not_removed() {
    let rows: [Row; 10] = [
        (FOUR, 0, NoFrames, FOUR),
        (FOUR, 5, NotTaken, FOUR + 4),
        (FOUR - 1, 2, NotTaken, FOUR - 1),
        (HUGE, 513, NotTaken, HUGE + 512),
        (0, 1, NoMemory, 0),
        (END, 1, NoMemory, END),
        (BEHIND - 1, 2, NoMemory, BEHIND),
        (BEHIND, 1, NoMemory, BEHIND),
        (u64::MAX, 1, NoMemory, u64::MAX),
        (FOUR, u64::MAX, NoMemory, BEHIND),
    ];
    refuse("remove", &rows, |e, at, n| e.remove(Pfn(at), n));
    let mut memory = memory();
    let mut e = engine(&mut memory);
    let before = state(&mut e);
    for (at, n) in [(FOUR, 4), (HUGE, 512), (HUGE, 3), (HUGE + 200, 312)] {
        e.remove(Pfn(at), n).expect("in use");
        assert_eq!(e.give(&[at], Order(0), MOV), Err(NoMemory(Pfn(at))));
        assert_eq!(e.remove(Pfn(at), n), Err(NoMemory(Pfn(at))), "once");
        assert_eq!(e.counts().present, before.0.present - n);
        e.validate().expect("a sound state");
        add(&mut e, at, n).expect("it may come again");
        e.take_range(Pfn(at), n, MOV).expect("free");
        assert_eq!(state(&mut e), before);
    }
}

/// What no span can be is no engine.
#[test]
fn a_span_that_cannot_be_is_none() {
    assert!(Engine::new(Pfn(1), [Gigabyte::NONE]).is_none());
    assert!(Engine::new(Pfn(u64::MAX << 18), [Gigabyte::NONE]).is_none());
    let many: Vec<Gigabyte> = (0..1 << 14).map(|_| Gigabyte::NONE).collect();
    let many = Vec::leak(many);
    assert!(Engine::new(Pfn(0), &mut many[..]).is_none());
    assert!(Engine::new(Pfn(0), &mut many[1..]).is_some());
}

/// A block for a device that reaches no further ends at its limit at the latest.
#[test]
fn what_a_device_reaches_ends_at_its_limit() {
    let mut memory = memory();
    let mut e = engine(&mut memory);
    let before = state(&mut e);
    for (limit, order) in [
        (0, 0),
        (3, 0),
        (5, 1),
        (1535, 9),
        (END, 13),
        (u64::MAX, 19),
        (2, 255),
    ] {
        assert_eq!(
            e.take_below(Pfn(limit), Order(order), MOV),
            None,
            "{limit} {order}"
        );
    }
    assert_eq!(state(&mut e), before);
    assert_eq!(e.take_below(Pfn(4), Order(0), MOV), Some(Pfn(3)));
    assert_eq!(e.take_below(Pfn(16), Order(2), MOV), Some(Pfn(4)));
    assert_eq!(e.take_below(Pfn(2048), Order(9), MOV), Some(Pfn(1536)));
    assert_eq!(e.take_below(Pfn(u64::MAX), Order(10), MOV), Some(Pfn(2048)));
    e.validate().expect("a sound state");
}
