//! Host time of the engine, per operation of the simulated machine.
//!
//! - `spend`: CPU time without interference.
//! - `turns`: two tasks on one CPU, each time slice used up in one piece.
//! - `switch`: two tasks that wake each other: a wait, a wake-up, a switch of coroutines.
//! - `cpus`: four CPUs, each with a task that uses 300 ns at a time, so that they alternate.
//! - `timers`: sleeps on an idle machine.
//! - `events`: interrupts that post the next one.
//! - `births`: a task that starts, and ends at once.
//! - `bios`: transfers of a page anywhere on a disk, 64 under way at a time.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use unfrag_machine::block::{Bio, DeviceId, Dir, DiskConfig, Done, PAGE_SECTORS};
use unfrag_machine::{Channel, Cx, Engine, MachineConfig, Nanos, Rng, Sim, Spec};

const N: u64 = 100_000;
const FOREVER: Nanos = 1 << 60;

fn machine(cpus: usize) -> Engine {
    let rules = unfrag_eras::preset("2.6.32").expect("a preset").rules;
    let mut config = MachineConfig::flat(4096, cpus, rules);
    config.costs.context_switch = 0;
    config.costs.interrupt = 0;
    Engine::new(&config).expect("a machine")
}

fn spend(cx: &mut Cx) {
    for _ in 0..N {
        cx.spend(300);
    }
}

fn turns(m: &mut Engine) {
    for _ in 0..2 {
        m.spawn(Spec::new("hog"), |cx| cx.spend(N / 2 * 100_000));
    }
}

fn switch(m: &mut Engine) {
    let channels = [Channel::new(300, 0), Channel::new(300, 1)];
    for i in 0..2 {
        m.spawn(Spec::new("player"), move |cx| {
            for _ in 0..N / 2 {
                cx.with(|sim| sim.wake(channels[1 - i]));
                cx.wait(channels[i], None);
            }
        });
    }
}

fn again(sim: &mut Sim, left: u64) {
    if left > 0 {
        let at = sim.now() + 1_000;
        sim.interrupt(at, move |sim| again(sim, left - 1));
    }
}

fn read_anywhere(cx: &mut Cx, reader: u64) {
    let mut rng = Rng::named(reader, "pages");
    for _ in 0..N / 64 {
        let page = rng.below(160 << 18);
        let mut bio = Bio::new(
            DeviceId(0),
            page * PAGE_SECTORS,
            Dir::Read,
            true,
            Done::User(0),
        );
        bio.push(0);
        cx.transfer(bio).expect("a disk without faults");
    }
}

fn engine(c: &mut Criterion) {
    let mut g = c.benchmark_group("engine");
    g.throughput(Throughput::Elements(N)).sample_size(20);
    let mut case = |name: &str, cpus, start: fn(&mut Engine)| {
        g.bench_function(name, |b| {
            b.iter(|| {
                let mut m = machine(cpus);
                start(&mut m);
                m.run_to(FOREVER)
            })
        });
    };
    case("spend", 1, |m| {
        m.spawn(Spec::new("a"), spend);
    });
    case("turns", 1, turns);
    case("switch", 1, switch);
    case("cpus", 4, |m| {
        for _ in 0..4 {
            m.spawn(Spec::new("a"), |cx| {
                for _ in 0..N / 4 {
                    cx.spend(300);
                }
            });
        }
    });
    case("timers", 1, |m| {
        m.spawn(Spec::new("a"), |cx| {
            for _ in 0..N {
                cx.sleep(1_000);
            }
        });
    });
    case("events", 1, |m| again(m.sim(), N));
    g.bench_function("bios", |b| {
        b.iter(|| {
            let rules = unfrag_eras::preset("2.6.32").expect("a preset").rules;
            let mut config = MachineConfig::flat(4096, 1, rules);
            config.disks.push(DiskConfig::desktop("sda", 160 << 30));
            let mut m = Engine::new(&config).expect("a machine");
            for reader in 0..64 {
                m.spawn(Spec::new("reader"), move |cx| read_anywhere(cx, reader));
            }
            m.run(FOREVER)
        })
    });
    let mut case = |name: &str, cpus, start: fn(&mut Engine)| {
        g.bench_function(name, |b| {
            b.iter(|| {
                let mut m = machine(cpus);
                start(&mut m);
                m.run_to(FOREVER)
            })
        });
    };
    case("births", 1, |m| {
        m.spawn(Spec::new("a"), |cx| {
            for _ in 0..N {
                let child = cx.spawn(Spec::new("b"), |_| ());
                cx.join(child);
            }
        });
    });
}

criterion_group!(benches, engine);
criterion_main!(benches);
