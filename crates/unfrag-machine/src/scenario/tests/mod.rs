//! Scenario files: contents, mistakes, runs.

mod docs;
mod inheritance;
mod kernel_table;
mod mistakes;
mod runs;

use super::{Kernel, Scenario, ScenarioError};
use crate::Calibration;
use crate::block::{CongestionWake, DeviceId, Fault, SECTOR};
use crate::engine::{Fair, MS, Policy, SEC, US};
use crate::kmem::caches::Word;

const SMALL: &str = include_str!("small.toml");

fn small() -> Scenario {
    Scenario::parse("small.toml", SMALL).unwrap()
}

/// The file without its second machine, which has no file systems.
fn desk_alone() -> String {
    let (desk, rest) = SMALL.split_once("[[machine]]\nname = \"old\"").unwrap();
    let (_, programs) = rest.split_once("[programs.work]").unwrap();
    format!("{desk}[programs.work]{programs}")
}

fn kernel(name: &str) -> Kernel {
    Kernel::preset(name).unwrap()
}

/// The error of a file.
fn mistake(text: &str) -> ScenarioError {
    let e = Scenario::parse("s.toml", text).err();
    e.unwrap_or_else(|| panic!("nothing wrong with\n{text}"))
}

#[test]
fn machine_has_given_and_default_values() {
    let s = small();
    let c = s
        .machine(None)
        .unwrap()
        .config(&kernel("2.6.31"), &Calibration::standard(), 7);
    assert_eq!((c.seed, c.cpus, c.hz), (7, 2, 250));
    assert_eq!(c.sched.policy, Policy::Fair(Fair::rounds(MS)));
    assert_eq!(c.sched.irq_cpu, 1);
    assert_eq!((c.costs.crypt_page, c.costs.interrupt), (20 * US, US));
    let standard = Calibration::standard();
    // A cost that is given is not scaled.
    assert_eq!(c.mem.costs.fault, standard.mem.fault * 5 / 2);
    assert_eq!(c.costs.context_switch, standard.costs.context_switch);
    assert_eq!((c.mem.costs.fork, c.mem.word), (70 * US, Word::W64));
    assert_eq!(c.congestion_wake, CongestionWake::BelowThreshold);
    let d = &c.disks[0];
    assert_eq!((d.sectors, d.bandwidth), ((160 << 30) / SECTOR, 60_000_000));
    assert_eq!((d.queue.nr_requests, d.queue.async_expire), (64, 3 * SEC));
    assert_eq!((d.queue.batch, d.seek_min), (16, 800 * US));
    let stall = Fault::Stall {
        from: SEC,
        to: 2 * SEC,
    };
    assert_eq!(d.faults, [stall]);
    let crypt = &c.crypts[0];
    assert_eq!((crypt.disk, crypt.first_sector), (0, (100 << 30) / SECTOR));
    let swap = c.mem.swap.unwrap();
    assert_eq!(
        (swap.device, swap.sector, swap.pages),
        (DeviceId(1), 0, 1 << 18)
    );
    let zones: Vec<_> = c.zones.iter().map(|z| (z.kind.name(), z.spanned)).collect();
    assert_eq!(zones, [("DMA", 4096), ("DMA32", 126_976)]);

    let c = s
        .machine(Some("old"))
        .unwrap()
        .config(&kernel("2.6.14"), &Calibration::standard(), 0);
    assert_eq!(c.mem.word, Word::W32);
    assert!(c.mem.highpte && c.mem.swap.is_none());
    assert_eq!(c.congestion_wake, CongestionWake::Leaving);
    let zones: Vec<_> = c
        .zones
        .iter()
        .map(|z| (z.kind.name(), z.present - z.managed))
        .collect();
    assert_eq!(zones, [("DMA", 22), ("Normal", 6144), ("HighMem", 0)]);
}

#[test]
fn io_thread_defaults_to_the_kernels() {
    let io = |text: &str, name| {
        let s: Scenario = Scenario::parse("s.toml", text).unwrap();
        let c = s
            .machine(None)
            .unwrap()
            .config(&kernel(name), &Calibration::standard(), 0);
        c.crypts[0].io_thread
    };
    assert!(!io(SMALL, "2.6.33"));
    assert!(io(SMALL, "6.1"));
    let said = SMALL.replace("disk = \"sda\"\n", "disk = \"sda\"\nio-thread = false\n");
    assert!(!io(&said, "6.1"));
}
