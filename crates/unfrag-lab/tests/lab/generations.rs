//! Reclaim by generations in a replay, held against what the same load did under 6.12 with it and without it. `spec: 4.10`

use crate::recording_support::{full, sample};
use unfrag_lab::era::settings::Setting;
use unfrag_lab::replay::answer::report::KernelReport;
use unfrag_lab::replay::{NoWatch, Options, replay};
use unfrag_linux::recording::Recording;

fn asked(rec: &Recording, kernel: Option<&str>, set: &[&str], recorded: &[&str]) -> KernelReport {
    let settings = |all: &[&str]| -> Vec<Setting> {
        let all = all.iter().map(|s| Setting::parse(s).expect("a setting"));
        all.collect()
    };
    let options = Options {
        kernels: kernel.iter().map(|k| (*k).to_owned()).collect(),
        set: settings(set),
        recorded: settings(recorded),
        ..Options::default()
    };
    let mut report = replay(rec, "a recording", &options, &mut NoWatch).expect("a replay");
    report.kernels.remove(0)
}

fn total(k: &KernelReport, name: &str) -> u64 {
    k.totals[name].unwrap_or_else(|| panic!("{name} is known"))
}

fn within(value: u64, of: u64, percent: u64, what: &str) {
    let off = value.abs_diff(of) * 100;
    assert!(off <= of * percent, "{what}: {value}, on the host {of}");
}

/// Of each row: what the host did with the setting that is asked for.
#[test]
fn pages_go_by_whom_they_went_on_a_host_with_generations() {
    let Some(mut rec) = full("service-640M-6.12", "trace.dat.zst", &["snapshots.tar.zst"]) else {
        return;
    };
    rec.meta.kernel_release = "6.12.117+deb12-cloud-amd64".into();
    let own = asked(&rec, None, &[], &[]);
    assert_eq!(on(&own), Some(1), "what its settings and its counters say");
    within(total(&own, "pgsteal_kswapd"), 82_376, 30, "freed by kswapd");
    within(
        total(&own, "pgsteal_direct"),
        2_813,
        30,
        "freed by requests",
    );
    let stalls = total(&own, "allocstall");
    assert!((46 / 3..=46 * 3).contains(&stalls), "{stalls} stalls");

    let other = asked(&rec, None, &["lru_gen/enabled=n"], &[]);
    within(
        total(&other, "pgsteal_kswapd"),
        44_156,
        30,
        "freed by kswapd, lists",
    );
    within(
        total(&other, "pgsteal_direct"),
        39_096,
        30,
        "freed by requests, lists",
    );
    let stalls = total(&other, "allocstall");
    assert!(
        (58 / 3..=58 * 3).contains(&stalls),
        "{stalls} stalls, lists"
    );
}

fn on(k: &KernelReport) -> Option<u64> {
    k.settings.get("lru_gen/enabled").and_then(|v| v.as_u64())
}

/// The sample is of 6.1, which says nothing of it.
#[test]
fn each_kernel_has_what_debian_builds_unless_somebody_says_otherwise() {
    for (kernel, recorded, set, want) in [
        ("6.1", &[][..], &[][..], Some(0)),
        ("6.12", &[], &[], Some(1)),
        ("6.18", &[], &[], Some(1)),
        ("7.2", &[], &[], Some(1)),
        ("5.9", &[], &[], None),
        ("6.1", &[], &["lru_gen/enabled=0x0007"], Some(1)),
        ("6.12", &[], &["lru_gen/enabled=n"], Some(0)),
        // Said to be what Debian builds: no choice of the administrator's.
        ("6.12", &["lru_gen/enabled=0x0000"], &[], Some(1)),
        ("6.1", &["lru_gen/enabled=n"], &[], Some(0)),
        // Chosen against it: for others, too.
        ("6.1", &["lru_gen/enabled=y"], &[], Some(1)),
        ("7.2", &["lru_gen/enabled=y"], &[], Some(1)),
        (
            "7.2",
            &["lru_gen/enabled=y"],
            &["lru_gen/enabled=0"],
            Some(0),
        ),
    ] {
        let k = asked(sample(), Some(kernel), set, recorded);
        assert_eq!(
            on(&k),
            want,
            "{kernel}, recorded {recorded:?}, asked {set:?}"
        );
    }
}
