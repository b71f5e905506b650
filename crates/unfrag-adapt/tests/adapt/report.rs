//! Free page reporting: what is free goes back to the system of the monitor, each range once.

use crate::chance::Chance;
use crate::room::Room;
use rustix::mm::{Advice, madvise};
use spin::mutex::SpinMutex;
use unfrag::maps::Gigabyte;
use unfrag::{Memory, MemoryConfig, MemoryLayout, Request};
use unfrag::{MigrateType, Order, Pfn};
use unfrag_adapt::report::{ReportError, Sink, report};

const MOV: MigrateType = MigrateType::Movable;
const FRAMES: u64 = 1 << 14;

/// A monitor whose guest's memory is a mapping: it gives back what it is told is free.
struct Monitor {
    start: usize,
    /// Ranges that it may not refuse.
    patience: u32,
    released: Vec<bool>,
}

impl Sink for Monitor {
    type Error = &'static str;

    fn release(&mut self, first: Pfn, frames: u64) -> Result<(), &'static str> {
        self.patience = self.patience.checked_sub(1).ok_or("busy")?;
        for n in first.0..first.0 + frames {
            let known = std::mem::replace(&mut self.released[n as usize], true);
            assert!(!known, "frame {n:#x} is released already");
        }
        let at = core::ptr::with_exposed_provenance_mut(self.start + first.0 as usize * 4096);
        // SAFETY: The memory is free in the guest: its contents may go.
        unsafe { madvise(at, frames as usize * 4096, Advice::LinuxDontNeed) }.map_err(|_| "madvise")
    }
}

#[test]
fn free_memory_goes_back_and_comes_again_empty() {
    let room = Room::new(FRAMES as usize * 4096, 2 << 20);
    let config = MemoryConfig::new(Pfn(0), FRAMES);
    let mut directory = [Gigabyte::NONE];
    let mut words = vec![0; MemoryLayout::of(&config).words];
    let mut words = &mut words[..];
    let shared = Memory::<SpinMutex<()>>::new(config);
    shared.start(&mut directory, &mut words).expect("a memory");
    shared.add(Pfn(0), FRAMES, &mut words).expect("new");
    let word =
        |p: Pfn| core::ptr::with_exposed_provenance_mut::<u64>(room.start() + p.0 as usize * 4096);
    let mut monitor = Monitor {
        start: room.start(),
        patience: 3,
        released: vec![false; FRAMES as usize],
    };
    let mut c = Chance::new(1);
    let mut live = Vec::new();
    for round in 1..=40 {
        for _ in 0..60 {
            let order = Order([0, 3, 9, 10][c.below(4) as usize]);
            if c.below(2) == 0
                && let Ok(p) = shared.alloc(&Request::new(order, MOV))
            {
                for n in p.0..p.0 + u64::from(order.frames()) {
                    // What was released comes again empty; it is the guest's from now on.
                    // SAFETY: The frame was handed out to this test.
                    let found = unsafe { word(Pfn(n)).read() };
                    assert!(!monitor.released[n as usize] || found == 0);
                    monitor.released[n as usize] = false;
                    // SAFETY: As above.
                    unsafe { word(Pfn(n)).write(n + 1) };
                }
                live.push((p, order));
            } else if !live.is_empty() {
                let (p, order) = live.swap_remove(c.below(live.len() as u64) as usize);
                for n in p.0..p.0 + u64::from(order.frames()) {
                    // SAFETY: As above.
                    assert_eq!(
                        unsafe { word(Pfn(n)).read() },
                        n + 1,
                        "it was released in use"
                    );
                }
                // SAFETY: the block is this test's, which uses it no more.
                unsafe { shared.free(p, order, MOV) }.expect("in use");
            }
        }
        let free = shared.free_frames();
        let order = Order(9 + (round % 3) as u8);
        match report(&shared, order, u64::MAX, &mut monitor) {
            Ok(_) => assert!(round > 1),
            Err(e) => {
                assert_eq!(e, ReportError::Sink("busy"));
                monitor.patience = u32::MAX;
            }
        }
        assert_eq!(shared.free_frames(), free, "all of it is free again");
        shared.validate().expect("every invariant");
    }
    report(&shared, Order(9), u64::MAX, &mut monitor).expect("a patient monitor");
    let again = report(&shared, Order(9), u64::MAX, &mut monitor).expect("nothing new");
    assert_eq!((again.ranges, again.frames), (0, 0));
    let released = monitor.released.iter().filter(|&&r| r).count() as u64;
    assert_eq!(
        released,
        u64::from(shared.whole_blocks()) * 512,
        "every whole free block"
    );
}
