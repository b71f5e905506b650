//! The scenarios of the experiments: each runs, and everywhere the same. `spec: 8`

use sha2::{Digest, Sha256};
use unfrag_lab::experiment::scenario::RunResult;
use unfrag_lab::experiment::{Name, Options, measure, run, scenario};
use unfrag_machine::Calibration;
use unfrag_machine::scenario::{Kernel, Outcome, Scenario};

/// The digest of a run's whole outcome.
fn digest(o: &Outcome) -> String {
    let json = serde_json::to_vec(o).expect("an outcome is JSON");
    let digits = Sha256::digest(json);
    digits.iter().take(8).map(|b| format!("{b:02x}")).collect()
}

/// The beginning of each scenario on its first kernel and its last one (of `highorder` that is `unfrag`): two runs are
/// equal, and equal to the digests kept here. A change of what a run computes updates them (`INSTA_UPDATE=always`), and the numbers in
/// `docs/experiments.md` with them.
#[test]
fn scenarios_are_reproducible() {
    let mut digests = String::new();
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
                let (kernel, digest) =
                    (format!("{} {}", kernel.name, kernel.variant), digest(&one));
                digests += &format!("{file:26}{kernel:40}{digest}\n");
            }
        }
    }
    insta::assert_snapshot!(digests);
}

/// The sample, to its end, on every kernel: equal to the digests kept here.
#[test]
fn the_sample_is_reproducible_on_each_kernel() {
    let text = include_str!("../../../../samples/small-build.toml");
    let s = Scenario::parse("small-build.toml", text).expect("a sound scenario");
    let mut digests = String::new();
    for preset in unfrag_eras::kernel::kernels() {
        let kernel = Kernel::preset(preset.name).expect("a preset");
        let machine = s.machine(None).expect("a machine");
        let run = s.start(machine, &kernel, &Calibration::standard(), 1);
        let o = run.expect("a run").finish(|_| ());
        assert_eq!(o.ended, "finished", "{}", preset.name);
        digests += &format!("{:12}{}\n", preset.name, digest(&o));
    }
    insta::assert_snapshot!(digests);
}

/// The last seed is the largest number.
#[test]
fn seeds_beyond_the_last_are_refused() {
    let options = |seed| Options {
        kernels: vec!["2.6.30".into()],
        machines: vec!["x86".into()],
        runs: 2,
        seed,
        costs: None,
    };
    let e = run(Name::Atomic, &options(u64::MAX), &|_, _| ()).expect_err("no seed after it");
    assert!(e.to_string().contains(&(u64::MAX - 1).to_string()), "{e}");
    let r = run(Name::Atomic, &options(u64::MAX - 1), &|_, _| ()).expect("two runs");
    assert_eq!(r.unfinished(), 0);
}

#[test]
fn each_scenario_documents_its_parameters() {
    for name in Name::ALL {
        for (file, text) in scenario::texts(name) {
            let s = Scenario::parse(file, text).expect("a sound scenario");
            assert!(s.file.parameters.len() >= 3, "{file}");
        }
    }
}

/// `spec: 8.3`
#[test]
fn atomic_finishes_on_each_kernel() {
    for kernel in Name::Atomic.kernels() {
        let mut times = vec![];
        let costs = Calibration::standard();
        let mut progress = |part| times.push(part);
        let result = scenario::run_once(Name::Atomic, &kernel, "x86-64", 1, &costs, &mut progress)
            .expect("a run");
        let RunResult::Finished(m) = result else {
            panic!("{} {}: {result:?}", kernel.name, kernel.variant);
        };
        assert!(
            times.len() > 60 && times.is_sorted(),
            "progress is reported"
        );
        assert!(
            m["elapsed_s"] > 60.0,
            "{} {}: {m:?}",
            kernel.name,
            kernel.variant
        );
        assert_eq!(m["oom_kills"], 0.0, "{} {}", kernel.name, kernel.variant);
        for part in ["read_mib_s", "written_mib_s", "writeback_mib"] {
            let tenths: Vec<f64> = (1..=10).map(|n| m[&format!("{part}_{n}")]).collect();
            assert!(tenths.iter().all(|&t| t >= 0.0), "{part}: {tenths:?}");
            assert!(tenths.iter().sum::<f64>() > 1.0, "{part}: {tenths:?}");
        }
    }
}

/// The scenario of `defrag_mode` with two builds in place of fifteen: each kernel has its setting, and its numbers are
/// those of its builds.
#[test]
fn bursts_of_huge_pages_are_counted_by_build() {
    let of = |name: &str| {
        let kernels = Name::ThpBurst.kernels();
        let kernel = kernels
            .iter()
            .find(|k| k.variant == name)
            .expect("a variant");
        let (file, text) = scenario::texts(Name::ThpBurst)[0];
        let text = text.replace("times = 15", "times = 2");
        let s = Scenario::parse(file, &text).expect("a sound scenario");
        let o = scenario::outcome(&s, kernel, "small", 1).expect("a run");
        assert_eq!(o.ended, "finished");
        measure::metrics(Name::ThpBurst, &o)
    };
    let (off, on) = (of("defrag-mode-0"), of("defrag-mode-1"));
    assert_ne!(off, on, "the setting matters");
    for m in [off, on] {
        let sum = m["thp_fault_alloc_first"] + m["thp_fault_alloc_last"];
        assert_eq!(sum, m["thp_fault_alloc"]);
        assert!(m["thp_fault_fallback"] > 0.0 && m["allocstall"] > 0.0);
        assert!(m["build_seconds"] > 5.0 && m["system_s"] > 1.0);
    }
}
