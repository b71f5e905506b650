//! The experiments on page frames alone, on small machines: what S1 found, and where nothing may be lost. `spec: 8.4`

use unfrag_lab::experiment::report::{Outcome, Report};
use unfrag_lab::experiment::{Name, Options, run};

fn of(name: Name, kernels: &[&str], machine: &str, seed: u64) -> Report {
    let options = Options {
        kernels: kernels.iter().map(|k| (*k).to_owned()).collect(),
        machines: vec![machine.to_owned()],
        runs: 1,
        seed,
        costs: None,
    };
    run(name, &options, &|done, all| assert!(done <= all)).expect("a run")
}

fn metric(o: &Outcome, name: &str) -> f64 {
    let found = o.metric(name);
    found
        .unwrap_or_else(|| panic!("{}: {name}", o.label()))
        .median
}

/// kcompactd looks each half second, so a machine must be large enough that it is not empty before the second look. And
/// 5.9 ends a run over a zone when the zone's share of the node's score is at the low mark, so that one zone must be
/// nearly all of the node. `spec: 5.5`
const LARGE: &str = "64GiB";

/// `spec: 8.4`
#[test]
fn ahead_of_demand_most_requests_are_served_without_work() {
    let r = of(Name::HugepageLatency, &[], LARGE, 1);
    let [without, with] = &r.results[..] else {
        panic!("{} results", r.results.len());
    };
    let served = |o| metric(o, "served_without_work_percent");
    assert!(served(without) < 10.0 && served(with) > 75.0);
    assert!(metric(without, "p50_us") > 50.0 * metric(with, "p50_us"));
    for o in [without, with] {
        assert!(metric(o, "huge_percent") >= 98.0);
        let copies = metric(o, "copies_per_block");
        assert!((100.0..210.0).contains(&copies), "{copies}");
        let percentiles = ["p5_us", "p25_us", "p50_us", "p75_us", "p95_us", "p99_us"];
        let all: Vec<f64> = percentiles.iter().map(|p| metric(o, p)).collect();
        assert!(all.is_sorted(), "{all:?}");
        let parts = ["alloc", "scanning", "copying", "waiting"];
        let sum: f64 = parts
            .iter()
            .map(|p| metric(o, &format!("{p}_percent")))
            .sum();
        assert!((sum - 100.0).abs() < 1e-9, "{sum}");
        assert_eq!(metric(o, "pages_lost"), 0.0);
    }
    assert_eq!(r.comparisons.len(), 3);
}

#[test]
fn the_evacuator_serves_each_request_and_copies_least() {
    let r = of(Name::HugepageLatency, &["unfrag"], LARGE, 1);
    let o = &r.results[0];
    assert!(metric(o, "served_without_work_percent") >= 95.0);
    assert!(metric(o, "copies_per_block") <= 131.0);
    assert_eq!(metric(o, "pages_lost"), 0.0);
}

/// `spec: 8.4`
#[test]
fn a_heap_is_touched_sooner_the_more_is_compacted_ahead() {
    let r = of(Name::JavaHeap, &[], "4GiB", 1);
    let elapsed: Vec<f64> = r.results.iter().map(|o| metric(o, "elapsed_s")).collect();
    assert!(
        elapsed[0] > elapsed[1] && elapsed[1] > elapsed[2],
        "{elapsed:?}"
    );
    for o in &r.results {
        assert!(
            (metric(o, "user_s") + metric(o, "system_s") - metric(o, "elapsed_s")).abs() < 1e-6
        );
        assert_eq!(metric(o, "huge_percent"), 100.0);
        assert_eq!(metric(o, "pages_lost"), 0.0);
    }
}

/// `spec: 5.5, 8.4`: 500 ms << 6.
#[test]
fn vain_attempts_are_32_seconds_apart() {
    let r = of(Name::Backoff, &["proactiveness-40", "unfrag"], "1GiB", 1);
    let [linux, own] = &r.results[..] else {
        panic!("two results");
    };
    assert!((metric(linux, "attempt_interval_s") - 32.0).abs() < 0.5);
    assert!(metric(linux, "cpu_percent") < 0.1);
    assert_eq!(metric(own, "cpu_percent"), 0.0);
}

#[test]
fn memory_is_compacted_in_one_go() {
    let r = of(Name::OneTime, &["5.9", "6.18", "unfrag"], "4GiB", 1);
    assert_eq!(r.results.len(), 3);
    for o in &r.results {
        assert!(metric(o, "huge_percent") >= 97.0, "{}", o.label());
        assert!((100.0..210.0).contains(&metric(o, "copies_per_block")));
        assert_eq!(metric(o, "pages_lost"), 0.0);
    }
}

#[test]
fn runs_are_reproducible_and_costs_are_named() {
    let json = |seed| {
        let r = of(Name::HugepageLatency, &["random-holes-20"], "1GiB", seed);
        serde_json::to_string(&r).expect("JSON")
    };
    assert_eq!(json(3), json(3));
    assert_ne!(json(3), json(4));
    let modern = unfrag_machine::Calibration::modern();
    assert!(json(3).contains(&format!("{:016x}", modern.hash)));
}
