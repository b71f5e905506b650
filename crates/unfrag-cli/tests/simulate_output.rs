//! `unfrag simulate` and `unfrag experiment`: same bytes on every run, and how they refuse.

mod support;

use support::{json, run, stdout, text};

const SMALL: &str = "samples/small-build.toml";

fn fails(args: &[&str], status: i32, words: &[&str]) {
    let out = run(args);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(status), "{args:?}: {said}");
    for word in words {
        assert!(
            said.contains(word),
            "{args:?} does not say {word:?}: {said}"
        );
    }
}

#[test]
fn same_scenario_kernel_and_seed_give_the_same_bytes() {
    for kernel in ["2.6.14", "2.6.32", "6.18"] {
        let args = [
            "simulate", SMALL, "--kernel", kernel, "--seed", "3", "--json",
        ];
        let (one, two) = (stdout(&args), stdout(&args));
        assert!(one == two, "{kernel}: two runs differ");
    }
    let seed = |s| json(&["simulate", SMALL, "--seed", s, "--json"])["trace_hash"].clone();
    assert_ne!(seed("1"), seed("2"), "the seed matters");
}

#[test]
fn a_run_accounts_for_what_it_did() {
    let o = json(&["simulate", SMALL, "--kernel", "2.6.32", "--json"]);
    assert_eq!(o["ended"], "finished");
    assert_eq!(o["programs"]["processes"], 121, "make and 120 compilers");
    assert_eq!(
        o["programs"]["high_order"][0]["attempts"]
            .as_array()
            .unwrap()
            .len(),
        8
    );
    let c = &o["counters"];
    let number = |name: &str| c[name].as_u64().unwrap();
    assert!(number("pgalloc") >= number("pgfree"));
    assert!(
        number("pgfault") > 50_000,
        "120 compilers of some megabytes each"
    );
    let out = stdout(&["simulate", SMALL, "--kernel", "2.6.32"]);
    assert!(out.contains("attempts of order 9"), "{out}");
}

#[test]
fn what_does_not_exist_is_refused_with_what_does() {
    fails(&["simulate", "no.toml"], 1, &["no.toml"]);
    fails(
        &["simulate", SMALL, "--kernel", "2.4"],
        1,
        &["2.4", "2.6.14"],
    );
    fails(
        &["simulate", SMALL, "--machine", "large"],
        1,
        &["large", "small"],
    );
    fails(
        &["experiment", "atomic", "--kernel", "3.0"],
        1,
        &["3.0", "2.6.31"],
    );
    fails(
        &["experiment", "atomic", "--machine", "arm"],
        1,
        &["arm", "x86-64"],
    );
    fails(&["experiment", "speed"], 2, &["highorder"]);
}

#[test]
fn an_experiment_has_the_shape_that_is_promised() {
    let args = [
        "experiment",
        "atomic",
        "--kernel",
        "2.6.30",
        "--runs",
        "2",
        "--json",
    ];
    let r = json(&args);
    assert_eq!(
        (&r["experiment"], &r["seed"], &r["runs"]),
        (&"atomic".into(), &1.into(), &2.into())
    );
    assert!(r["calibration"].is_string());
    let results = r["results"].as_array().unwrap();
    let machines: Vec<_> = results
        .iter()
        .map(|o| o["machine"].as_str().unwrap())
        .collect();
    assert_eq!(machines, ["x86", "x86-64"]);
    for o in results {
        assert_eq!(o["kernel"], "2.6.30");
        assert_eq!(o["variant"], "force-highorder");
        for metric in [
            "elapsed_s",
            "failures",
            "stalls",
            "stall_max_s",
            "congestion_wait_s",
        ] {
            let m = &o["metrics"][metric];
            let (min, median, max) = (&m["min"], &m["median"], &m["max"]);
            let f = |v: &serde_json::Value| v.as_f64().unwrap();
            assert!(f(min) <= f(median) && f(median) <= f(max), "{metric}: {m}");
            assert!(m["stderr"].is_number());
        }
    }
    assert_eq!(r, json(&args), "a second time");
}
