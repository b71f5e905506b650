//! `unfrag simulate` and `unfrag experiment`: same bytes on every run, pages that show what the numbers say.

use crate::support::{json, root, stdout};
use serde_json::Value;
use std::fs;
use tempfile::tempdir;

const SMALL: &str = "samples/small-build.toml";

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

/// Runs the small build with a page: what it printed as JSON, and the page.
fn with_page(scenario: &str, kernel: &str) -> (Value, String) {
    let dir = tempdir().unwrap();
    let page = dir.path().join("run.html");
    let to = page.to_str().unwrap();
    let o = json(&[
        "simulate", scenario, "--kernel", kernel, "--json", "--html", to,
    ]);
    (o, fs::read_to_string(&page).unwrap())
}

/// What the page draws from.
fn drawn(page: &str) -> Value {
    let (_, rest) = page
        .split_once("id=\"data\">")
        .expect("the page carries data");
    serde_json::from_str(rest.split_once("</script>").unwrap().0).expect("the data is JSON")
}

fn floats(v: &Value) -> Vec<f64> {
    v.as_array()
        .unwrap()
        .iter()
        .map(|v| v.as_f64().unwrap())
        .collect()
}

/// The curve of this name in a chart of the page.
fn curve(data: &Value, chart: &str, name: &str) -> Vec<f64> {
    let named = |list: &Value, key: &str, name: &str| {
        let found = list.as_array().unwrap().iter().find(|c| c[key] == name);
        found.unwrap_or_else(|| panic!("no {name}")).clone()
    };
    floats(&named(&named(&data["charts"], "id", chart)["series"], "name", name)["values"])
}

#[test]
fn the_page_draws_what_the_samples_say() {
    // So little memory that it is reclaimed and swapped.
    let dir = tempdir().unwrap();
    let file = dir.path().join("pressed.toml");
    let source = fs::read_to_string(root().join(SMALL)).unwrap();
    let less = source.replace("memory = \"64 MiB\"", "memory = \"28 MiB\"");
    fs::write(&file, less).unwrap();
    let (o, page) = with_page(file.to_str().unwrap(), "2.6.32");
    let (samples, data) = (o["samples"].as_array().unwrap(), drawn(&page));
    let zones = o["zones"].as_array().unwrap();
    for chart in [
        "memory", "free-0", "free-1", "waits", "stalls", "dirty", "io", "swap", "cpu", "kswapd",
    ] {
        assert!(
            page.contains(&format!(
                "<div class=\"chart{}\" id=\"{chart}\">",
                match chart {
                    "memory" | "free-0" | "free-1" | "cpu" => " tall",
                    _ => "",
                }
            )),
            "{chart} has no place"
        );
    }
    let seconds = floats(&data["seconds"]);
    let at = |key: &str| -> Vec<f64> { samples.iter().map(|s| s[key].as_f64().unwrap()).collect() };
    assert_eq!(
        seconds,
        at("at_ns").iter().map(|t| t / 1e9).collect::<Vec<_>>()
    );

    let uses = [
        "free",
        "anon",
        "file",
        "page_tables",
        "stacks",
        "slab",
        "network",
        "pinned",
        "other",
    ];
    for name in uses {
        let mib: Vec<f64> = samples
            .iter()
            .map(|s| s["memory"][name].as_f64().unwrap() / 256.0)
            .collect();
        assert_eq!(
            curve(&data, "memory", &name.replace('_', " ")),
            mib,
            "{name}"
        );
    }
    for (name, key) in [
        ("dirty", "dirty"),
        ("writeback", "writeback"),
        ("writeback to swap", "swap_writeback"),
    ] {
        let mib = |s: &Value| s["memory"][key].as_f64().unwrap() / 256.0;
        let mib: Vec<f64> = samples.iter().map(mib).collect();
        assert_eq!(curve(&data, "dirty", name), mib, "{name}");
        assert!(mib.iter().any(|m| *m > 0.0), "{name}: nothing, all along");
    }
    assert_eq!(zones.len(), 2);
    for z in 0..2 {
        for order in 0..=10 {
            let mib = |s: &Value| s["free_blocks"][z][order].as_u64().unwrap() << order;
            let mib: Vec<f64> = samples.iter().map(|s| mib(s) as f64 / 256.0).collect();
            assert_eq!(
                curve(&data, &format!("free-{z}"), &format!("order {order}")),
                mib,
                "{z} {order}"
            );
        }
    }
    // Rates times their time are the sums at the end.
    let lengths: Vec<f64> = seconds.windows(2).map(|t| t[1] - t[0]).collect();
    let sums = [
        ("waits", "direct reclaim", "direct_reclaim_ns", 1e6),
        ("waits", "congestion_wait", "congestion_wait_ns", 1e6),
        ("stalls", "allocstall", "allocstall", 1.0),
        ("io", "read", "pgpgin", 1024.0),
        ("io", "written", "pgpgout", 1024.0),
        ("swap", "in", "pswpin", 256.0),
        ("swap", "out", "pswpout", 256.0),
        ("kswapd", "kswapd", "kswapd_cpu_ns", 1e6),
    ];
    let mut still = vec![];
    for (chart, name, key, unit) in sums {
        let sum: f64 = curve(&data, chart, name)[1..]
            .iter()
            .zip(&lengths)
            .map(|(v, t)| v * t)
            .sum();
        let truth = samples.last().unwrap()[key].as_f64().unwrap() / unit;
        assert!(
            (sum - truth).abs() <= 0.001 * seconds.last().unwrap() + 1e-6,
            "{name}: {sum}, not {truth}"
        );
        if truth == 0.0 {
            still.push(name);
        }
    }
    assert_eq!(still, ["in"], "all happens here but reading from swap");
    let cpu = [
        "user",
        "system",
        "interrupts",
        "switching",
        "iowait",
        "idle",
    ];
    let cpu = cpu.map(|name| curve(&data, "cpu", name));
    for i in 0..seconds.len() {
        let all: f64 = cpu.iter().map(|c| c[i]).sum();
        assert!((all - 100.0).abs() < 0.01, "{all} % at {} s", seconds[i]);
    }
}

#[test]
fn tables_of_page_and_text_hold_the_numbers_of_json() {
    let (o, page) = with_page(SMALL, "2.6.32");
    let shown = stdout(&["simulate", SMALL, "--kernel", "2.6.32"]);
    let columns: Vec<Vec<&str>> = shown
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    for (name, value) in o["counters"].as_object().unwrap() {
        let row = format!("<th scope=\"row\">{name}</th><td>{value}</td>");
        let there = value.as_u64() != Some(0);
        assert_eq!(page.contains(&row), there, "{name} {value} on the page");
        assert_eq!(
            columns.contains(&vec![name, &value.to_string()]),
            there,
            "{name} {value} in the text"
        );
    }
    let marks = o["programs"]["marks"].as_array().unwrap();
    assert_eq!(marks[0]["name"], "built");
    for z in marks[0]["obstacles"].as_array().unwrap() {
        let zone = z["zone"].as_str().unwrap();
        let [blocks, free, easy] = ["blocks", "free", "easy"].map(|key| z[key].to_string());
        assert!(
            columns.contains(&vec![zone, &blocks, &free, &easy]),
            "{zone}: {shown}"
        );
        let held = z["held"].as_object().unwrap().iter();
        let hard: Vec<_> = held
            .filter(|(name, _)| *name != "file" && *name != "anon")
            .collect();
        let most = hard
            .iter()
            .map(|(_, h)| h["blocks"].as_u64().unwrap())
            .max()
            .unwrap();
        let of_zone = |row: &&Vec<&str>| row.len() >= 5 && row[row.len() - 4] == zone;
        let rows: Vec<_> = columns.iter().filter(of_zone).collect();
        assert_eq!(rows.len(), hard.len().min(5), "five a zone: {shown}");
        let in_blocks = rows[0][rows[0].len() - 2];
        assert_eq!(
            in_blocks,
            most.to_string(),
            "the worst comes first: {shown}"
        );
    }
    let slabs = o["slabs"].as_array().unwrap();
    let largest = slabs.iter().max_by_key(|s| s["pages"].as_u64()).unwrap();
    assert!(page.contains(&format!(
        "<th scope=\"row\">{}</th>",
        largest["name"].as_str().unwrap()
    )));
}

#[test]
fn the_page_has_the_same_bytes_twice_and_loads_nothing() {
    let (one, two) = (with_page(SMALL, "6.18").1, with_page(SMALL, "6.18").1);
    assert!(one == two, "two pages differ");
    assert!(one.contains("default-src 'none'") && !one.contains("{{"));
    for word in [" src=", " href=", "<link", "@import", "fetch("] {
        assert!(!one.contains(word), "{word}");
    }
}

#[test]
fn no_name_in_a_scenario_breaks_out_of_the_page() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("evil.toml");
    let evil = "</script><script>alert(1)</script>";
    let source = fs::read_to_string(root().join(SMALL)).unwrap();
    let source = source.replace("\"small-build\"", &format!("\"{evil}\""));
    let source = source.replace("record = \"built\"", &format!("record = \"{evil}\""));
    fs::write(&file, source).unwrap();
    let (o, page) = with_page(file.to_str().unwrap(), "6.18");
    assert_eq!(
        (&o["scenario"], &o["programs"]["marks"][0]["name"]),
        (&evil.into(), &evil.into())
    );
    assert_eq!(
        page.matches("<script").count(),
        with_page(SMALL, "6.18").1.matches("<script").count()
    );
    assert!(page.contains("&lt;/script&gt;"));
}

#[test]
fn an_allocation_that_failed_is_told_in_the_words_of_the_kernel_spec_4_3() {
    const SHORT: &str = "crates/unfrag-machine/tests/short_of_memory.toml";
    let first = |kernel| {
        let text = stdout(&["simulate", SHORT, "--kernel", kernel]);
        let mut lines = text
            .lines()
            .skip_while(|l| !l.starts_with("allocations that failed: "));
        let head = lines.next().unwrap_or_else(|| panic!("{text}")).to_owned();
        let report: Vec<_> = lines
            .skip(1)
            .take_while(|l| !l.is_empty())
            .map(str::to_owned)
            .collect();
        (head, report)
    };
    let (o, page) = with_page(SHORT, "2.6.31");
    let failures = &o["alloc_failures"];
    let (head, report) = first("2.6.31");
    assert_eq!(
        head,
        format!("allocations that failed: {}", failures["reported"])
    );
    let known = &failures["first"][0];
    let at = known["at_ns"].as_u64().unwrap();
    assert_eq!(
        report[0],
        format!("At {:.6} s, in an interrupt:", at as f64 / 1e9)
    );
    assert_eq!(
        (&known["task"], &known["order"]),
        (&"busy".into(), &2.into())
    );
    assert_eq!(
        report[1],
        "busy: page allocation failure. order:2, mode:0x4020"
    );
    assert_eq!(report[2], "Mem-Info:");
    let zones = known["zones"].as_array().unwrap();
    for (zone, line) in zones.iter().zip(&report[3..]) {
        let kb = |key: &str| zone[key].as_u64().unwrap() * 4;
        let says = format!(
            "free:{}kB min:{}kB low:{}kB",
            kb("free"),
            kb("min"),
            kb("low")
        );
        assert!(line.contains(&says), "{says}: {line}");
    }
    for (zone, line) in zones.iter().zip(&report[3 + zones.len()..]) {
        // What the lists hold; the count of free pages is late by what the CPUs keep to themselves.
        let (_, sum) = line.split_once("*4096kB = ").expect("all orders");
        let listed: u64 = sum.strip_suffix("kB").unwrap().parse().unwrap();
        let counted = zone["free"].as_u64().unwrap() * 4;
        assert!(listed.abs_diff(counted) <= 8 * 4, "{counted}kB: {line}");
    }
    assert_eq!(report.len(), 3 + 2 * zones.len());
    let (_, pre) = page.split_once("<pre").expect("the page has the report");
    let pre = pre.split_once("</pre>").unwrap().0;
    assert!(report.iter().all(|l| pre.contains(l)), "{pre}");

    let (head, report) = first("6.18");
    assert!(head.ends_with("; the first 10:"), "{head}");
    let line = "busy: page allocation failure: order:2, mode:0x40820(GFP_ATOMIC|__GFP_COMP), \
                nodemask=(null),cpuset=/,mems_allowed=0";
    assert_eq!(report[1], line);
}

#[test]
fn a_run_without_failures_does_not_speak_of_them() {
    let (o, page) = with_page(SMALL, "2.6.32");
    assert_eq!(o["alloc_failures"]["reported"], 0);
    assert_eq!(o["alloc_failures"]["first"], serde_json::json!([]));
    let shown = stdout(&["simulate", SMALL, "--kernel", "2.6.32"]);
    for out in [page, shown] {
        assert!(!out.contains("that failed"), "{out}");
    }
}

#[test]
fn a_scenario_names_its_kernel_and_what_it_changes() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("kernel.toml");
    let source = fs::read_to_string(root().join(SMALL)).unwrap();
    let table = "[kernel]\nname = \"2.6.31\"\ncongestion-wait = \"both\"\n\n[[machine]]";
    fs::write(&file, source.replacen("[[machine]]", table, 1)).unwrap();
    let file = file.to_str().unwrap();
    let of = |args: &[&str]| {
        let o = json(&[&["simulate", file, "--json"], args].concat());
        (o["kernel"].clone(), o["kernel_changes"].clone())
    };
    let changes = |all: &[&str]| serde_json::json!(all);
    assert_eq!(
        of(&[]),
        ("2.6.31".into(), changes(&["congestion-wait = both"]))
    );
    let more = of(&["--kernel", "2.6.30", "--set", "vm.min_free_kbytes=4096"]);
    let both = ["congestion-wait = both", "vm.min_free_kbytes = 4096"];
    assert_eq!(more, ("2.6.30".into(), changes(&both)));
    let text = stdout(&["simulate", file]);
    assert!(
        text.contains("kernel 2.6.31 (congestion-wait = both), seed 1"),
        "{text}"
    );
    assert_eq!(
        json(&["simulate", SMALL, "--json"])["kernel"],
        "6.18",
        "where none is named"
    );
}

#[test]
fn a_setting_of_the_kernel_changes_what_it_does() {
    let free = |kb: &str| {
        let set = format!("vm.min_free_kbytes={kb}");
        let o = json(&["simulate", SMALL, "--json", "--set", &set]);
        let least = |s: &Value| s["memory"]["free"].as_u64().unwrap();
        o["samples"].as_array().unwrap().iter().map(least).min()
    };
    assert!(free("24000") > free("512"));
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
        assert!(o["settings"]["oom_killer"].is_boolean());
        assert_eq!(o["settings"]["kswapd_nap"], "trouble");
        assert!(o["source"]["elapsed_s"].as_f64().unwrap() > 500.0, "S4");
    }
    assert_eq!(r["comparisons"].as_array().unwrap().len(), 0, "one kernel");
    assert_eq!(r, json(&args), "a second time");
}

/// Costs are measured, written, and taken: the result names their hash.
#[test]
fn measured_costs_are_what_an_experiment_is_run_with() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("costs.toml");
    let path = file.to_str().unwrap();
    let costs = json(&[
        "calibrate",
        "--mib",
        "8",
        "--rounds",
        "1",
        "-o",
        path,
        "--json",
    ]);
    assert_eq!(costs["measured"].as_array().unwrap().len(), 5);
    let args = ["experiment", "one-time", "--machine", "1GiB", "--json"];
    let own = json(&args);
    let with = json(&[&args[..], &["--costs", path]].concat());
    assert_eq!(with["calibration"], costs["calibration"]);
    assert_ne!(with["calibration"], own["calibration"]);
    assert_eq!(own["runs"], 1);
    let metrics = &own["results"][0]["metrics"];
    assert_eq!(metrics["pages_lost"]["median"], 0.0);
}
