use crate::engine::{Ended, MS, SEC, Spec};
use crate::kernel::Engine;
use crate::kernel::mm::Who;
use crate::mm::frames::Use;
use crate::net::StreamConfig;
use crate::test_support::machine_config;
use std::iter::once;
use unfrag_eras::Gfp;

fn machine(frames: u64) -> Engine {
    Engine::new(&machine_config("2.6.32", frames, 2)).unwrap()
}

fn config(order: u8, frames: u64) -> StreamConfig {
    StreamConfig {
        interval: MS,
        order,
        frames,
        window: 20,
        retransmit: 200 * MS,
    }
}

#[test]
fn frames_arrive_at_their_rate() {
    for order in [0, 2] {
        let mut e = machine(16 << 8);
        e.spawn(Spec::new("reader"), move |cx| {
            let id = cx.with(|sim| sim.open_stream(config(order, 500)));
            assert_eq!(cx.receive(id, 100), Ok(100));
            assert!((100 * MS..103 * MS).contains(&cx.now()), "{}", cx.now());
            assert_eq!(cx.receive(id, u64::MAX), Ok(400));
        });
        assert_eq!(e.run(10 * SEC), Ended::Finished);
        let t = e.sim().kernel().net.totals();
        assert_eq!((t.received, t.read, t.lost), (500, 500, 0));
        let a = e.sim().check(0).unwrap();
        assert_eq!(a.kernel[Use::Net as usize], 0);
    }
}

#[test]
fn a_slow_reader_stops_the_sender() {
    let mut e = machine(16 << 8);
    e.spawn(Spec::new("reader"), |cx| {
        let id = cx.with(|sim| sim.open_stream(config(2, 100)));
        cx.sleep(SEC);
        assert_eq!(cx.with(|sim| sim.kernel().net.waiting()), (20, 80));
        cx.with(|sim| sim.check(0).unwrap());
        assert_eq!(cx.receive(id, u64::MAX), Ok(100));
    });
    assert_eq!(e.run(10 * SEC), Ended::Finished);
    assert!(e.sim().kernel().net.totals().stopped >= 1);
}

#[test]
fn lost_frame_is_sent_again() {
    let mut e = machine(16 << 8);
    e.spawn(Spec::new("reader"), |cx| {
        // Two processes take pages in turn, and one ends: free are single pages only.
        let procs = ["stays", "goes"].map(|n| cx.create_process(Who::KERNEL, &n.into()).unwrap());
        let areas = procs.map(|p| cx.with(|sim| sim.map_anon(p, 1 << 20, true, None)));
        let free = cx.with(|sim| sim.free_and_total().0) as u32;
        for i in 0..(free - 150) / 2 {
            for k in 0..2 {
                cx.touch(procs[k], areas[k], &mut once(i..i + 1), true, 0)
                    .unwrap();
            }
        }
        let [hog, goes] = procs;
        cx.destroy_process(goes);
        let pinned = cx.with(|sim| {
            let mut all = vec![];
            while let Ok(pfn) = sim.alloc_in_interrupt(2, Gfp::ATOMIC_MASK) {
                sim.take_kernel(pfn, 2, Use::Pinned);
                all.push(pfn);
            }
            all
        });
        let id = cx.with(|sim| sim.open_stream(config(2, 50)));
        cx.sleep(SEC);
        let lost = cx.with(|sim| sim.kernel().net.totals().lost);
        assert!((4..=6).contains(&lost), "{lost} lost in a second");
        cx.with(|sim| pinned.into_iter().for_each(|pfn| sim.free_kernel(pfn)));
        cx.destroy_process(hog);
        assert_eq!(cx.receive(id, u64::MAX), Ok(50));
    });
    assert_eq!(e.run(10 * SEC), Ended::Finished);
    e.sim().check(0).unwrap();
}

#[test]
fn close_frees_queued_frames() {
    let mut e = machine(16 << 8);
    e.spawn(Spec::new("reader"), |cx| {
        let id = cx.with(|sim| sim.open_stream(config(2, 1000)));
        cx.sleep(10 * MS);
        cx.with(|sim| sim.close_stream(id));
        cx.sleep(SEC);
        assert_eq!(cx.with(|sim| sim.kernel().net.waiting()), (0, 0));
        assert_eq!(cx.receive(id, 10), Ok(0));
    });
    assert_eq!(e.run(10 * SEC), Ended::Finished);
    e.sim().check(0).unwrap();
}
