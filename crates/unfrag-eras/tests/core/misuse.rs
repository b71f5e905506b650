//! Wrong calls, and the answer that each must get, with and without debug assertions: requests, frees, claims and memory
//! offline with wrong arguments. An error names the place, and nothing has changed.

use unfrag_eras::drive::Operation;
use unfrag_eras::need::{Answer, Step};
use unfrag_eras::{
    AllocError, Builder, Claim, ClaimError, CpuId, FreeError, Gfp, Manager, NodeId, NullHost,
    Offline, OnlineError, Order, Pfn, Request,
};

const CPU: CpuId = CpuId(0);
const START: u64 = 5;
const FRAMES: u64 = 65_536;
const ORDERS: [u8; 9] = [11, 12, 18, 31, 32, 40, 63, 64, 255];

fn with(era: &str, f: impl FnOnce(&mut Manager<'_, NullHost>)) {
    let config = Builder::new().region(Pfn(START), FRAMES).cpus(2).era(era);
    let mut memory = vec![0; config.layout().expect("a layout").words];
    let mut m = config.boot(NullHost, &mut memory).expect("a memory");
    f(&mut m);
    m.inspect().validate().expect("a sound state");
}

const ERAS: [&str; 3] = ["2.6.32", "6.1", "6.18"];

fn free_pages(m: &Manager<'_, NullHost>) -> u64 {
    let all = m.inspect();
    all.zones()
        .map(|z| all.zone(z).free_pages + all.pcp_pages(z))
        .sum()
}

/// Runs an operation for a while, in a world that meets no need.
fn run<O: Operation>(m: &mut Manager<'_, NullHost>, o: &mut O) -> Option<O::Output> {
    (0..1000).find_map(|_| match o.step(m, CPU, Answer::Go) {
        Step::Done(output) => Some(output),
        Step::Need(_) => None,
    })
}

#[test]
fn orders_that_no_block_has_are_refused() {
    for era in ERAS {
        with(era, |m| {
            let free = free_pages(m);
            for order in ORDERS {
                for gfp in [Gfp::KERNEL, Gfp::HIGHUSER_MOVABLE] {
                    let request = Request::new(Order(order), gfp);
                    assert_eq!(
                        m.alloc(&request),
                        Err(AllocError::OrderTooLarge),
                        "{era} {order}"
                    );
                    let begun = m.begin(&request).err();
                    assert_eq!(begun, Some(AllocError::OrderTooLarge), "{era} {order}");
                }
                for pfn in [0, START, 4096, START + FRAMES, u64::MAX] {
                    let freed = m.free(CPU, Pfn(pfn), Order(order));
                    assert!(freed.is_err(), "{era} {pfn:#x} {order}");
                    let split = m.split(Pfn(pfn), Order(order), Order(0));
                    assert!(split.is_err(), "{era} {pfn:#x} {order}");
                }
            }
            assert_eq!(free_pages(m), free, "{era}");
        });
    }
}

#[test]
fn what_was_not_taken_is_not_freed() {
    for era in ERAS {
        with(era, |m| {
            let p = m
                .alloc(&Request::new(Order(3), Gfp::KERNEL))
                .expect("memory")
                .0;
            let free = free_pages(m);
            let rows: [(u64, u8); 13] = [
                (p + 1, 3),
                (p, 2),
                (p, 4),
                (p + 1, 0),
                (p ^ 8, 3),
                (0, 0),
                (START - 1, 0),
                (START, 0),
                (START, 3),
                (START + FRAMES, 0),
                (u64::MAX, 0),
                (u64::MAX, 3),
                (1 << 32, 0),
            ];
            for (pfn, order) in rows {
                let freed: Result<(), FreeError> = m.free(CPU, Pfn(pfn), Order(order));
                assert!(freed.is_err(), "{era} {pfn:#x} {order}");
                assert_eq!(free_pages(m), free, "{era} {pfn:#x} {order}");
            }
            // Into pieces that are larger than it is: it stays one.
            for to in [3, 4, 11, 32, 255] {
                m.split(Pfn(p), Order(3), Order(to)).expect("in use");
            }
            m.free(CPU, Pfn(p), Order(3)).expect("in use");
            assert!(m.free(CPU, Pfn(p), Order(3)).is_err(), "{era}: twice");
            assert_eq!(free_pages(m), free + 8, "{era}");
        });
    }
}

#[test]
fn runs_that_cannot_be_are_not_claimed() {
    for era in ERAS {
        with(era, |m| {
            let free = free_pages(m);
            for align in [19, 31, 32, 40, 63, 64, 255] {
                for frames in [0, 1, 511, 65_536, u32::MAX] {
                    let claimed = run(m, &mut Claim::run(NodeId(0), frames, Order(align)));
                    assert_eq!(
                        claimed,
                        Some(Err(ClaimError::NoRun)),
                        "{era} {frames} {align}"
                    );
                }
            }
            for frames in [0, u32::MAX] {
                let claimed = run(m, &mut Claim::run(NodeId(0), frames, Order(0)));
                assert_eq!(claimed, Some(Err(ClaimError::NoRun)), "{era} {frames}");
            }
            let rows = [
                (0, 0),
                (START, 0),
                (START, u64::MAX),
                (u64::MAX, 1),
                (u64::MAX, u64::MAX),
                (0, 10),
                (START + FRAMES - 1, 2),
                (START + FRAMES, 1),
                (START, 1 << 33),
            ];
            for (start, frames) in rows {
                let claimed = run(m, &mut Claim::range(Pfn(start), frames));
                assert!(
                    matches!(claimed, Some(Err(_))),
                    "{era} {start:#x} {frames}: {claimed:?}"
                );
                let offline = run(m, &mut Offline::new(Pfn(start), frames));
                assert!(
                    matches!(offline, Some(Err(_))),
                    "{era} {start:#x} {frames}: {offline:?}"
                );
                let at_once = m.offline_unused(CPU, Pfn(start), frames);
                assert!(at_once.is_err(), "{era} {start:#x} {frames}");
                let online: Result<(), OnlineError> = m.online(Pfn(start), frames);
                assert!(online.is_err(), "{era} {start:#x} {frames}");
            }
            assert!(m.online(Pfn(1024), 512).is_err(), "{era}: it is online");
            assert_eq!(free_pages(m), free, "{era}");
        });
    }
}
