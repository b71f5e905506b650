//! Host time of page operations of the simulated kernel.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::iter::once;
use unfrag_eras::preset;
use unfrag_machine::kernel::mm::Who;
use unfrag_machine::{Cx, Ended, Engine, MachineConfig, Spec};

const PAGES: u32 = 50_000;
const ROUNDS: u32 = 4;

/// A machine of 1 GiB on which `body` runs as a program.
fn run(kernel: &str, body: impl FnOnce(&mut Cx) + 'static) -> u64 {
    let rules = preset(kernel).expect("a preset").rules;
    let config = MachineConfig::flat(1 << 18, 2, rules);
    let mut engine = Engine::new(&config).expect("a machine");
    engine.spawn(Spec::new("bench"), body);
    assert_eq!(engine.run(u64::MAX / 2), Ended::Finished);
    engine.sim().kernel().counters.pgfault
}

fn faults(c: &mut Criterion) {
    let mut group = c.benchmark_group("memory");
    group.sample_size(10);
    for kernel in ["2.6.32", "6.18"] {
        group.throughput(Throughput::Elements(u64::from(PAGES * ROUNDS)));
        group.bench_function(format!("fault, map, LRU, unmap and free, {kernel}"), |b| {
            b.iter(|| {
                let faults = run(kernel, |cx| {
                    for _ in 0..ROUNDS {
                        let p = cx.create_process(Who::KERNEL, &"p".into()).expect("memory");
                        let a = cx.with(|sim| sim.map_anon(p, PAGES, true, None));
                        cx.touch(p, a, &mut once(0..PAGES), true, 0)
                            .expect("memory");
                        cx.destroy_process(p);
                    }
                });
                assert_eq!(black_box(faults), u64::from(PAGES * ROUNDS));
            });
        });
        group.bench_function(format!("touch what is there, {kernel}"), |b| {
            b.iter(|| {
                black_box(run(kernel, |cx| {
                    let p = cx.create_process(Who::KERNEL, &"p".into()).expect("memory");
                    let a = cx.with(|sim| sim.map_anon(p, PAGES, true, None));
                    for _ in 0..ROUNDS {
                        cx.touch(p, a, &mut once(0..PAGES), true, 0)
                            .expect("memory");
                    }
                    cx.destroy_process(p);
                }))
            });
        });
    }
}

criterion_group!(benches, faults);
criterion_main!(benches);
