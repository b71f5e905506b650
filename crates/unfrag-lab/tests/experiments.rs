//! The scenarios of the experiments: each runs, and twice the same. `spec: linux-mm 8`

use unfrag_lab::experiment::{Name, scenario};
use unfrag_machine::scenario::Scenario;

/// The beginning of each scenario, on its first kernel and its last one, twice.
#[test]
fn the_beginning_of_each_scenario_is_the_same_twice() {
    for name in Name::ALL {
        let kernels = name.kernels();
        for (file, text) in scenario::texts(name) {
            let limit = text
                .lines()
                .find(|l| l.starts_with("limit"))
                .expect("a limit");
            let text = text.replace(limit, "limit = \"15 s\"");
            let s = Scenario::parse(file, &text).expect("a sound scenario");
            let machine = s.file.machines[0].name.get_ref().clone();
            for kernel in [kernels.first(), kernels.last()].into_iter().flatten() {
                let once = || scenario::outcome(&s, kernel, &machine, 1).expect("a run");
                let (one, two) = (once(), once());
                assert!(one == two, "{file}, {}: two runs differ", kernel.name);
                assert!(one.counters["pgalloc"] > 0, "{file}");
                let other = scenario::outcome(&s, kernel, &machine, 2).expect("a run");
                assert_ne!(one.trace_hash, other.trace_hash, "{file}: the seed matters");
            }
        }
    }
}

/// What a scenario's numbers come from is said in the scenario.
#[test]
fn each_scenario_says_where_its_parameters_come_from() {
    for name in Name::ALL {
        for (file, text) in scenario::texts(name) {
            let s = Scenario::parse(file, text).expect("a sound scenario");
            assert!(s.file.parameters.len() >= 3, "{file}");
        }
    }
}

/// `spec: linux-mm 8.3`: the machine runs S4's load to its end, on each kernel of the source.
#[test]
fn atomic_ends_on_each_kernel() {
    for kernel in Name::Atomic.kernels() {
        let m = scenario::once(Name::Atomic, &kernel, "x86-64", 1).expect("a run");
        assert!(
            m["elapsed_s"] > 60.0,
            "{} {}: {m:?}",
            kernel.name,
            kernel.variant
        );
        assert_eq!(m["oom_kills"], 0.0, "{} {}", kernel.name, kernel.variant);
    }
}
