//! Reports of failed allocations. `spec: 4.3 (9), 8.3`

use unfrag_eras::Gfp;
use unfrag_machine::alloc_failure::{AllocFailure, ZoneState};
use unfrag_machine::scenario::Outcome;

const SHORT: &str = include_str!("../short_of_memory.toml");

fn run(text: &str, kernel: &str) -> Outcome {
    crate::support::run("short_of_memory.toml", text, kernel)
}

/// A program that allocates with these flags until it fails.
fn greedy(rights: &str) -> String {
    let wanted = "count = 5600, rights = \"atomic\"";
    assert!(SHORT.contains(wanted));
    SHORT.replace(wanted, &format!("count = 100000, rights = \"{rights}\""))
}

fn what(f: &AllocFailure) -> (Option<&str>, u8, Gfp, bool) {
    let gfp = Gfp::from_bits_retain(f.gfp);
    (f.task.as_deref(), f.order, gfp, f.in_interrupt)
}

/// Pages by which the count of a zone this small may be late.
const UNTOLD: u64 = 8;

#[test]
fn lost_frame_is_reported_for_the_interrupted_task() {
    for kernel in ["2.6.31", "6.18"] {
        let o = run(SHORT, kernel);
        let all = &o.alloc_failures;
        assert_eq!(all.reported, o.counters["network_frames_lost"], "{kernel}");
        let first = &all.first[0];
        let atomic = Gfp::ATOMIC_MASK | Gfp::COMP;
        assert_eq!(what(first), (Some("busy"), 2, atomic, true), "{kernel}");
        assert!((1_050_000_000..1_550_000_000).contains(&first.at_ns));
        let names: Vec<_> = first.zones.iter().map(|z| z.name).collect();
        assert_eq!(names, ["DMA", "DMA32"]);
        for z in &first.zones {
            assert!(z.free < z.min && z.min < z.low && z.low < z.high, "{z:?}");
            let blocks = z.free_blocks.values().flat_map(|of| of.iter().enumerate());
            let pages: u64 = blocks.map(|(order, n)| n << order).sum();
            assert!(pages.abs_diff(z.free) <= UNTOLD, "{z:?}");
        }
        assert!(o == run(SHORT, kernel), "{kernel}: a second run differs");
    }
}

#[test]
fn on_an_idle_cpu_no_task_is_named() {
    let o = run(SHORT, "6.18");
    let idle: Vec<_> = o
        .alloc_failures
        .first
        .iter()
        .map(|f| f.task.as_deref())
        .collect();
    assert!(
        idle.contains(&Some("busy")) && idle.contains(&None),
        "{idle:?}"
    );
}

#[test]
fn the_first_ten_are_kept_and_all_are_counted() {
    let all = run(SHORT, "6.18").alloc_failures;
    assert!(all.reported > 10, "{}", all.reported);
    assert_eq!(all.first.len(), 10);
    assert!(all.first.is_sorted_by(|a, b| a.at_ns < b.at_ns));
}

#[test]
// `spec: 6.2`
fn slab_failure_is_reported_for_the_least_order_only() {
    let o = run(&greedy("atomic"), "2.6.31");
    let all = &o.alloc_failures;
    assert_eq!(all.reported, 1);
    assert_eq!(
        what(&all.first[0]),
        (Some("module"), 0, Gfp::ATOMIC_MASK, false)
    );
    assert!(o.counters["alloc_failed"] > 1, "those that want no report");
}

#[test]
// `spec: 4.3`
fn oom_victim_is_reported_without_reserves() {
    let o = run(&greedy("kernel"), "2.6.31");
    let all = &o.alloc_failures;
    assert_eq!((o.counters["oom_kill"], all.reported), (1, 1));
    assert_eq!(what(&all.first[0]), (Some("module"), 0, Gfp::KERNEL, false));
    let empty = |z: &ZoneState| z.free_blocks.is_empty() && z.free <= UNTOLD;
    assert!(all.first[0].zones.iter().all(empty), "{all:?}");
}

#[test]
fn a_run_with_enough_memory_has_no_failures() {
    let enough = SHORT.replace("count = 5600", "count = 100");
    assert_eq!(run(&enough, "2.6.31").alloc_failures, Default::default());
}
