//! The measurements: what takes how long on this computer.
//!
//! Each runs the work itself, in an order and an amount that caches do not hold. Invariant: the work is not optimised
//! away, since its results pass through [`black_box`].

use std::hint::black_box;
use std::time::Instant;
use unfrag_eras::{Builder, CpuId, Gfp, NullHost, Order, Pfn, Request, Sysctl, preset};
use unfrag_machine::bare::{Bare, Description, Holes, Kept};
use unfrag_machine::{Calibration, Rng};

const PAGE: usize = 4096;
/// Words of a record that the kernel keeps of a page, and pages of a huge page.
const RECORD: usize = 8;
const HUGE: usize = 512;

/// One measurement.
pub(super) struct Measurement {
    /// The cost in a calibration.
    pub cost: &'static str,
    /// What is one of it.
    pub what: &'static str,
    /// Nanoseconds for one, with so many MiB.
    pub run: fn(u32) -> f64,
}

/// All of them.
pub(super) const ALL: [Measurement; 5] = [
    Measurement {
        cost: "zero-page",
        what: "4 KiB that no cache holds are zeroed",
        run: zero_page,
    },
    Measurement {
        cost: "copy-page",
        what: "4 KiB that no cache holds are copied",
        run: copy_page,
    },
    Measurement {
        cost: "prep-page",
        what: "the record of a page of a huge page is written",
        run: prep_page,
    },
    Measurement {
        cost: "compact-frame",
        what: "compaction looks at a page frame",
        run: compact_frame,
    },
    Measurement {
        cost: "split-page",
        what: "a page of a huge page becomes a page of its own",
        run: split_page,
    },
];

/// Nanoseconds for each of `n`.
fn each(n: usize, work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_nanos() as f64 / n.max(1) as f64
}

/// An order in which no page follows its neighbour, so that nothing is fetched ahead.
fn scattered(pages: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..pages).collect();
    let mut rng = Rng::named(1, "calibrate");
    for i in (1..pages).rev() {
        order.swap(i, rng.below(i as u64 + 1) as usize);
    }
    order
}

/// Memory that has been touched, so that no fault is measured.
fn touched(mib: u32) -> Vec<u8> {
    vec![1; (mib as usize) << 20]
}

fn zero_page(mib: u32) -> f64 {
    let mut memory = touched(mib);
    let order = scattered(memory.len() / PAGE);
    each(order.len(), || {
        for &page in &order {
            black_box(&mut memory[page * PAGE..][..PAGE]).fill(0);
        }
    })
}

fn copy_page(mib: u32) -> f64 {
    let mut memory = touched(mib);
    let (from, to) = memory.split_at_mut((mib as usize) << 19);
    let order = scattered(from.len() / PAGE);
    each(order.len(), || {
        for (i, &page) in order.iter().enumerate() {
            let source = black_box(&from[page * PAGE..][..PAGE]);
            to[order[order.len() - 1 - i] * PAGE..][..PAGE].copy_from_slice(source);
        }
        black_box(&to);
    })
}

fn prep_page(mib: u32) -> f64 {
    let mut records = vec![[1u64; RECORD]; ((mib as usize) << 20) / (RECORD * 8)];
    let blocks = records.len() / HUGE;
    let order = scattered(blocks);
    each(blocks * HUGE, || {
        for &block in &order {
            let head = block as u64;
            for record in black_box(&mut records[block * HUGE..][..HUGE]) {
                (record[0], record[1]) = (0, head << 1 | 1);
            }
        }
    })
}

/// Frames of a machine whose frame table takes this many MiB, 16 bytes a frame.
fn frames(mib: u32) -> u64 {
    (u64::from(mib) << 20) / 16
}

fn compact_frame(mib: u32) -> f64 {
    let Some(linux) = preset("6.18") else {
        return 0.0;
    };
    let of = Description {
        frames: frames(mib),
        rules: linux.rules,
        sysctl: Sysctl::default().with(|s| s.compaction_proactiveness = 0),
        costs: Calibration::modern().mem,
    };
    let Ok(layout) = of.layout() else { return 0.0 };
    let mut metadata = vec![0; layout.words];
    let Ok(mut bare) = Bare::boot(&of, &mut metadata) else {
        return 0.0;
    };
    let mut rng = Rng::named(1, "calibrate");
    bare.fragment(Holes::Random, Kept::Unmovable, &mut rng, |_| ());
    let begun = Instant::now();
    let looks = bare.looks();
    bare.compact_all();
    let looked = bare.looks() - looks;
    begun.elapsed().as_nanos() as f64 / looked.max(1) as f64
}

fn split_page(mib: u32) -> f64 {
    let config = Builder::new().region(Pfn(0), frames(mib)).era("6.18");
    let Ok(layout) = config.layout() else {
        return 0.0;
    };
    let mut memory = vec![0u64; layout.words];
    let Ok(mut m) = config.boot(NullHost, &mut memory) else {
        return 0.0;
    };
    let request = Request::new(Order::HUGE, Gfp::HIGHUSER_MOVABLE).on(CpuId(0));
    let heads: Vec<Pfn> = std::iter::from_fn(|| m.alloc(&request).ok()).collect();
    each(heads.len() * HUGE, || {
        for &head in &heads {
            let _ = black_box(m.split(head, Order::HUGE, Order::ZERO));
        }
    })
}
