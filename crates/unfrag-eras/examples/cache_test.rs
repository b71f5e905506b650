//! The allocator's paths under a workload like that of a rendered page: bursts of user pages that come
//! and go, kernel pages between them. Run it under a cache simulator; `checks/cache-test/run` does.
//!
//!     cache_test KERNEL ROUNDS

use std::process::ExitCode;
use unfrag_eras::{Builder, CpuId, Gfp, NullHost, Order, Pfn, Request, preset};

/// 256 MiB.
const FRAMES: u64 = 65536;
/// Pages of a burst: what one process of a small program takes.
const BURST: usize = 2000;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let kernel = args.next().unwrap_or_default();
    let rounds: u32 = args.next().and_then(|n| n.parse().ok()).unwrap_or(0);
    if preset(&kernel).is_none() {
        eprintln!("usage: cache_test KERNEL ROUNDS, such as: cache_test v19 20");
        return ExitCode::from(2);
    }
    let config = Builder::new().region(Pfn(0x1000), FRAMES).era(&kernel);
    let mut memory = vec![0; config.layout().expect("a sound configuration").words];
    let mut m = config.boot(NullHost, &mut memory).expect("enough memory");
    let page = |gfp| Request::new(Order(0), gfp);
    let mut user = Vec::with_capacity(BURST);
    let mut kernel_pages = Vec::with_capacity(BURST);
    let mut sum = 0;
    for round in 0..rounds {
        for i in 0..BURST {
            user.extend(m.alloc(&page(Gfp::HIGHUSER_MOVABLE)));
            // One kernel page in sixteen; a quarter of them outlive the round.
            if i % 16 == 0 {
                let gfp = if i % 32 == 0 {
                    Gfp::KERNEL
                } else {
                    Gfp::KERNEL | Gfp::RECLAIMABLE
                };
                kernel_pages.extend(m.alloc(&page(gfp)));
            }
        }
        for p in user.drain(..).rev() {
            sum += p.0;
            m.free(CpuId(0), p, Order(0)).expect("it was allocated");
        }
        let keep = if round % 8 == 7 {
            0
        } else {
            kernel_pages.len() / 4
        };
        for p in kernel_pages.drain(keep..) {
            m.free(CpuId(0), p, Order(0)).expect("it was allocated");
        }
    }
    let allocated = m.inspect().counters().pgalloc;
    println!("{allocated} pages, sum of frames {sum}");
    ExitCode::SUCCESS
}
