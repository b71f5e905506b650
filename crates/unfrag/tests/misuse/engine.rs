//! The engine, which one caller has: its maps judge all that is given to it.

use unfrag::maps::GiveError::{
    InUse, NoFrames, NoMemory, NotABlock, NotTaken, Present, TooManyHoles,
};
use unfrag::maps::{Engine, EngineCounts, EngineLayout, FreeBlocks, GiveError};
use unfrag::{MigrateType, Order, Pfn};

const MOV: MigrateType = MigrateType::Movable;
/// Ten blocks; the first and the ninth are partly memory, the last one is none.
const FRAMES: u32 = 5120;
const START: u32 = 3;
const END: u32 = 4503;
/// In use: four frames, and a block as a whole.
const FOUR: u32 = 600;
const HUGE: u32 = 1024;

type Row<'a> = (u32, u32, fn(Pfn) -> GiveError, u32);

fn memory(frames: u32) -> Vec<u64> {
    vec![!0; EngineLayout::of(frames).words]
}

fn engine(memory: &mut [u64]) -> Engine<'_> {
    let mut e = Engine::new(FRAMES, memory).expect("memory");
    e.add(START, END - START).expect("new");
    e.take_range(FOUR, 4, MOV).expect("free");
    e.take_range(HUGE, 512, MOV).expect("free");
    e
}

fn state(e: &mut Engine) -> (EngineCounts, FreeBlocks) {
    e.validate().expect("a sound state");
    (e.counts(), e.free_blocks())
}

/// Each row: two numbers, the error, and the frame that it names.
fn refuse(what: &str, rows: &[Row], call: impl Fn(&mut Engine, u32, u32) -> Result<(), GiveError>) {
    let mut memory = memory(FRAMES);
    let mut e = engine(&mut memory);
    let before = state(&mut e);
    for &(a, b, why, at) in rows {
        let got = call(&mut e, a, b);
        assert_eq!(got, Err(why(Pfn(at.into()))), "{what} {a:#x} {b}");
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
        (u32::MAX, 1, NotABlock, u32::MAX),
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
        (u32::MAX, 0, NoMemory, u32::MAX),
        (u32::MAX - 511, 9, NoMemory, u32::MAX - 511),
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
        (FRAMES - 1, 2, NoMemory, FRAMES),
        (0, u32::MAX, NoMemory, FRAMES),
        (u32::MAX, 1, NoMemory, u32::MAX),
        (u32::MAX, u32::MAX, NoMemory, u32::MAX),
    ];
    refuse("give_range", &rows, |e, at, n| e.give_range(at, n, MOV));
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
        (FRAMES - 1, 2, NoMemory, FRAMES),
        (u32::MAX, 2, NoMemory, u32::MAX),
        (0, u32::MAX, NoMemory, FRAMES),
    ];
    refuse("take_range", &rows, |e, at, n| e.take_range(at, n, MOV));
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
        (FRAMES - 1, 2, NoMemory, FRAMES),
        (FRAMES + 1, 0, NoMemory, FRAMES + 1),
        (u32::MAX, 1, NoMemory, u32::MAX),
        (u32::MAX, u32::MAX, NoMemory, u32::MAX),
    ];
    refuse("add", &rows, |e, at, n| {
        assert_eq!(e.can_add(at, n).err(), e.add(at, n).err());
        e.add(at, n)
    });
}

/// All frames are in use: no count tells them from what was never added.
#[test]
fn memory_in_use_is_not_added_and_what_was_never_added_is_not_freed() {
    let mut memory = memory(512);
    let mut e = Engine::new(512, &mut memory).expect("memory");
    e.add(0, 256).expect("new");
    let mut all = [0; 256];
    assert_eq!(e.take(&mut all, Order(0), MOV, true), 256);
    for at in [0, 100, 255] {
        assert_eq!(e.add(at, 1), Err(Present(Pfn(at.into()))));
    }
    assert_eq!(e.add(0, 256), Err(Present(Pfn(0))));
    for at in [256, 300, 511] {
        let given = e.give(&[at], Order(0), MOV);
        assert_eq!(given, Err(NoMemory(Pfn(at.into()))));
    }
    assert_eq!(e.take(&mut [0], Order(0), MOV, true), 0, "all are in use");
    e.validate().expect("a sound state");
    e.add(300, 212).expect("new");
    e.add(256, 44).expect("new");
    e.give(&all, Order(0), MOV).expect("in use");
    assert_eq!((e.free_frames(), e.whole_blocks()), (512, 1));
    e.validate().expect("a sound state");
}

#[test]
fn what_is_not_there_is_not_found() {
    let mut memory = memory(FRAMES);
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
    let mut memory = memory(FRAMES);
    let mut e = engine(&mut memory);
    let run = e.take_unreported(Order(9)).expect("a free block");
    let first = run.stretches().next().expect("one").0;
    assert_eq!(e.take_range(first, 1, MOV), Err(InUse(Pfn(first.into()))));
    assert_eq!(e.add(first, 1), Err(Present(Pfn(first.into()))));
    // One that is forgotten is in use, and comes back as any other block.
    drop(run);
    e.validate().expect("a sound state");
    e.give(&[first], Order(9), MOV).expect("in use");
    // What somebody freed meanwhile is not given back again.
    let run = e.take_unreported(Order(9)).expect("a free block");
    let first = run.stretches().next().expect("one").0;
    e.give(&[first + 8], Order(3), MOV).expect("in use");
    let given = e.give_reported(run, true);
    assert_eq!(given, Err(NotTaken(Pfn(first.into()))));
    e.validate().expect("a sound state");
}

/// A batch with bad blocks of every kind frees all others, and names the first bad one.
#[test]
fn a_batch_frees_what_it_can() {
    let mut memory = memory(FRAMES);
    let mut e = engine(&mut memory);
    let free = e.free_frames();
    let batch = [FOUR, END, FOUR, u32::MAX, 0, FOUR + 1, FOUR + 4];
    let given = e.give(&batch, Order(0), MOV);
    assert_eq!(given, Err(NoMemory(Pfn(END.into()))));
    assert_eq!(e.free_frames(), free + 2);
    let batch = [HUGE + 1, HUGE, HUGE, u32::MAX, 0, 4096];
    let given = e.give(&batch, Order(9), MOV);
    assert_eq!(given, Err(NotABlock(Pfn(u64::from(HUGE + 1)))));
    assert_eq!(e.free_frames(), free + 2 + 512);
    e.validate().expect("a sound state");
}

/// Where too many blocks would be partly memory, nothing is added; what completes a block is, and whole ones are.
#[test]
#[cfg_attr(miri, ignore = "it has 640 blocks")]
fn too_many_holes_are_refused() {
    let blocks = 640;
    let mut memory = memory(blocks * 512);
    let mut e = Engine::new(blocks * 512, &mut memory).expect("memory");
    let room = blocks / 8 + 512;
    for i in 0..room {
        e.add(i * 512 + 7, 1).expect("room for its map");
    }
    let at = room * 512;
    let refused = Err(TooManyHoles(Pfn((at + 7).into())));
    assert_eq!(e.add(at + 7, 1), refused);
    assert_eq!(e.add(at + 7, 600), refused);
    assert_eq!(e.free_frames(), room.into());
    e.add(at, 512).expect("a whole block");
    assert!(e.add(at + 512, 513).is_err(), "its end is a part of one");
    e.add(0, 7).expect("new");
    e.add(8, 504).expect("what completes a block");
    e.add(at + 512, 513).expect("there is room again");
    assert_eq!(e.free_frames(), u64::from(room - 1) + 512 * 3 + 1);
    assert_eq!(e.whole_blocks(), 3);
    e.validate().expect("a sound state");
}
