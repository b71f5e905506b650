//! One number for one thing: what the doctor, inspect, the exporter, replay and blame say of one host is the same, and what
//! the kernel's own files say.
//!
//! The hosts are the copies of procfs that other tests have: kernels from 2.6.14 on, one node and several, pages of 4 to
//! 64 KiB, pageblocks of several orders. The files are read here by their columns, not with the project's parsers.

use crate::support::{SAMPLE, json, lay_out_host, root, run, sample, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Values of one metric by its labels.
type Metrics = BTreeMap<String, f64>;

/// What differs, and how much was compared.
#[derive(Default)]
struct Compared {
    equal: usize,
    differ: Vec<String>,
}

impl Compared {
    /// Notes two numbers for one thing, if both are told.
    fn same(&mut self, what: &str, here: Option<f64>, there: Option<f64>) {
        match (here, there) {
            (Some(a), Some(b)) if a == b => self.equal += 1,
            (Some(_), Some(_)) => self.differ.push(format!("{what}: {here:?}, {there:?}")),
            _ => {}
        }
    }

    /// The same where what one tells, the other must tell too.
    fn both(&mut self, what: &str, here: Option<f64>, there: Option<f64>) {
        match here == there {
            true => self.equal += usize::from(here.is_some()),
            false => self.differ.push(format!("{what}: {here:?}, {there:?}")),
        }
    }

    fn end(self, least: usize) {
        assert!(self.differ.is_empty(), "{:#?}", self.differ);
        assert!(self.equal >= least, "only {} were compared", self.equal);
    }
}

/// One host as each command shows it.
struct Told {
    name: String,
    doctor: Value,
    inspect: Option<Value>,
    exporter: Metrics,
}

impl Told {
    fn of(dir: &Path) -> Told {
        let name = dir.display().to_string();
        let doctor = diagnosis(&[&name]);
        // Of counters alone there is nothing to inspect.
        let inspected = run(&["inspect", &name, "--json"]);
        let inspect = inspected.status.success().then(|| {
            let all: Value = serde_json::from_slice(&inspected.stdout).unwrap();
            all["snapshots"].as_array().unwrap().last().unwrap().clone()
        });
        Told {
            exporter: exported(&name),
            doctor,
            inspect,
            name,
        }
    }

    fn metric(&self, name: &str, labels: &str) -> Option<f64> {
        let series = match labels {
            "" => format!("unfrag_{name}"),
            labels => format!("unfrag_{name}{{{labels}}}"),
        };
        self.exporter.get(&series).copied()
    }

    fn page(&self) -> f64 {
        self.doctor["page_size"].as_f64().unwrap()
    }
}

fn diagnosis(words: &[&str]) -> Value {
    let mut answer = json(&[&["doctor", "--json"], words].concat());
    answer["diagnosis"].take()
}

fn exported(proc: &str) -> Metrics {
    let out = run(&["exporter", "--print", "--proc", proc]);
    assert!(out.status.success(), "{proc}: {}", text(&out.stderr));
    let printed = text(&out.stdout);
    let lines = printed.lines().filter(|l| !l.starts_with('#'));
    let series = lines.map(|l| {
        let (series, value) = l.rsplit_once(' ').unwrap();
        let series = series.trim_end_matches("{}").to_owned();
        (series, value.parse().unwrap())
    });
    series.collect()
}

/// Every directory with files of procfs that tests have.
fn hosts() -> Vec<PathBuf> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        let entries = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
        let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|p| p.is_dir());
        let tells = |f: &PathBuf| {
            ["buddyinfo", "zoneinfo", "pagetypeinfo"]
                .iter()
                .any(|n| f.ends_with(n))
        };
        if files.iter().any(tells) {
            found.push(dir.to_owned());
        }
        folders.iter().for_each(|f| walk(f, found));
    }
    let mut found = vec![];
    for folder in ["inputs", "fixtures"] {
        walk(
            &root().join("crates/unfrag-linux/tests").join(folder),
            &mut found,
        );
    }
    found.sort();
    found
}

fn zones(of: &Value) -> impl Iterator<Item = (String, &Value)> {
    let each = of["zones"].as_array().unwrap().iter();
    each.map(|z| {
        let zone = z["zone"].as_str().unwrap();
        (format!("node=\"{}\",zone=\"{zone}\"", z["node"]), z)
    })
}

/// Compares what the three commands say of a host.
fn commands(told: &Told, c: &mut Compared) {
    let Told {
        doctor,
        inspect,
        name,
        ..
    } = told;
    let page = told.page();
    for (key, metric) in [
        ("page_size", "page_size_bytes"),
        ("huge_page_bytes", "huge_page_size_bytes"),
    ] {
        c.both(
            &format!("{name} {key}"),
            doctor[key].as_f64(),
            told.metric(metric, ""),
        );
    }
    for (labels, z) in zones(doctor) {
        let what = |of: &str| format!("{name} {labels} {of}");
        for (key, metric, unit) in [
            ("free_pages", "free_bytes", page),
            ("managed_pages", "managed_bytes", page),
            ("pcp_pages", "per_cpu_bytes", page),
            ("free_huge_blocks", "free_huge_pages", 1.0),
        ] {
            let value = z[key].as_f64().map(|n| n * unit);
            c.both(&what(key), value, told.metric(metric, &labels));
        }
        for (i, mark) in ["min", "low", "high"].iter().enumerate() {
            let with = format!("{labels},mark=\"{mark}\"");
            let value = z["watermarks"][i].as_f64().map(|n| n * page);
            c.both(&what(mark), value, told.metric("watermark_bytes", &with));
        }
        let share = z["extfrag_for_order_9"].as_f64().map(|n| n / 100.0);
        c.both(
            &what("outside"),
            share,
            told.metric("free_outside_huge_pages_ratio", &labels),
        );
        for key in ["unusable_index", "fragmentation_index"] {
            for (order, value) in z[key].as_object().unwrap() {
                let with = format!("{labels},order=\"{order}\"");
                c.both(
                    &what(key),
                    value.as_f64(),
                    told.metric(&format!("{key}_ratio"), &with),
                );
            }
        }
        for (key, means) in [
            ("now", "now"),
            ("now_at_most", "now_at_most"),
            ("after_compaction", "compaction"),
            ("after_reclaim", "reclaim"),
            ("by_asking_again", "asking_again"),
            ("at_most", "at_most"),
        ] {
            let with = format!("{labels},means=\"{means}\"");
            let value = z["huge_pages"][key].as_f64();
            c.both(
                &what(key),
                value,
                told.metric("obtainable_huge_pages", &with),
            );
        }
        for o in z["obstacles"].as_array().into_iter().flatten() {
            let with = format!("{labels},kind=\"{}\"", o["kind"].as_str().unwrap());
            let bytes = o["pages"].as_f64().map(|n| n * page);
            c.both(
                &what("obstacle"),
                bytes,
                told.metric("obstacle_bytes", &with),
            );
            c.both(
                &what("obstacle"),
                o["blocks"].as_f64(),
                told.metric("obstacle_pageblocks", &with),
            );
        }
    }
    for n in doctor["nodes"].as_array().unwrap() {
        let score = n["score"].as_f64().map(|s| s / 100.0);
        let labels = format!("node=\"{}\"", n["node"]);
        c.both(
            &format!("{name} score"),
            score,
            told.metric("fragmentation_score_ratio", &labels),
        );
    }
    for a in doctor["atomic"].as_array().unwrap() {
        let labels = format!("node=\"{}\",order=\"{}\"", a["node"], a["order"]);
        let value = a["in_a_row"].as_f64();
        c.both(
            &format!("{name} atomic"),
            value,
            told.metric("atomic_requests_in_a_row", &labels),
        );
    }
    for w in doctor["work"].as_array().unwrap() {
        let metric = format!("vmstat_{}_total", w["counter"].as_str().unwrap());
        c.both(
            &format!("{name} {metric}"),
            w["total"].as_f64(),
            told.metric(&metric, ""),
        );
    }
    for s in doctor["slabs"].as_array().unwrap() {
        // Of a recording, the doctor names those that grew: they may be small.
        let labels = format!("cache=\"{}\"", s["name"].as_str().unwrap());
        let bytes = s["pages"].as_f64().map(|n| n * page);
        c.same(
            &format!("{name} {labels}"),
            bytes,
            told.metric("slab_cache_bytes", &labels),
        );
    }
    if let Some(inspect) = inspect {
        inspected(told, inspect, c);
    }
}

/// Compares what inspect says with the two others.
fn inspected(told: &Told, inspect: &Value, c: &mut Compared) {
    let Told { doctor, name, .. } = told;
    for key in ["page_size", "huge_page_bytes", "huge_order"] {
        c.both(
            &format!("{name} {key}"),
            doctor[key].as_f64(),
            inspect[key].as_f64(),
        );
    }
    let by_doctor: BTreeMap<String, &Value> = zones(doctor).collect();
    for (labels, z) in zones(inspect) {
        let what = |of: &str| format!("{name} {labels} {of}");
        let d = by_doctor
            .get(&labels)
            .unwrap_or_else(|| panic!("{name}: the doctor has no {labels}"));
        for key in [
            "free_pages",
            "managed_pages",
            "pcp_pages",
            "free_huge_blocks",
            "extfrag_for_order_9",
        ] {
            c.both(&what(key), z[key].as_f64(), d[key].as_f64());
        }
        for (i, mark) in ["min", "low", "high"].iter().enumerate() {
            c.same(
                &what(mark),
                z["watermarks"][mark].as_f64(),
                d["watermarks"][i].as_f64(),
            );
        }
        for key in ["unusable_index", "fragmentation_index"] {
            for (order, value) in d[key].as_object().unwrap() {
                let order: usize = order.parse().unwrap();
                c.both(&what(key), z[key][order].as_f64(), value.as_f64());
            }
        }
        let is_exact = z["is_capped"] == false;
        for (order, n) in z["free_blocks"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            let exported = told.metric("free_blocks", &format!("{labels},order=\"{order}\""));
            c.both(&what("blocks"), n.as_f64().filter(|_| is_exact), exported);
        }
        let mut all = 0.0;
        for (kind, n) in z["pageblocks"].as_object().into_iter().flatten() {
            let exported = told.metric("pageblocks", &format!("{labels},migratetype=\"{kind}\""));
            c.both(&what(kind), n.as_f64(), exported);
            all += n.as_f64().unwrap();
        }
        let order = told.metric("pageblock_size_bytes", "");
        let are_huge = order == doctor["huge_page_bytes"].as_f64();
        c.same(
            &what("pageblocks"),
            Some(all).filter(|&n| are_huge && n > 0.0),
            d["blocks"].as_f64(),
        );
    }
}

/// Compares what the exporter says with the kernel's files, read by their columns.
fn kernels_files(told: &Told, dir: &Path, c: &mut Compared) {
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap_or_default();
    let of_zone = |line: &str| -> Option<(String, Vec<String>)> {
        let (node, rest) = line.strip_prefix("Node")?.split_once(',')?;
        let mut words = rest
            .trim()
            .strip_prefix("zone")?
            .split_whitespace()
            .map(|w| w.trim_matches(',').to_owned());
        let zone = words.next()?;
        Some((
            format!("node=\"{}\",zone=\"{zone}\"", node.trim()),
            words.collect(),
        ))
    };
    for (labels, blocks) in read("buddyinfo").lines().filter_map(of_zone) {
        let blocks: Option<Vec<f64>> = blocks.iter().map(|w| w.parse().ok()).collect();
        // Rows that were broken, and files that are none, are other tests'.
        for (order, n) in blocks.into_iter().flatten().enumerate() {
            let exported = told.metric("free_blocks", &format!("{labels},order=\"{order}\""));
            c.same(
                &format!("{} {labels} {order}", told.name),
                Some(n),
                exported,
            );
        }
    }
    let types = read("pagetypeinfo");
    if let Some((_, table)) = types.split_once("Number of blocks type") {
        let mut lines = table.lines();
        let names: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
        // What follows, if anything, are mixed blocks.
        for (labels, counts) in lines.map_while(of_zone) {
            for (kind, n) in names.iter().zip(counts) {
                let exported =
                    told.metric("pageblocks", &format!("{labels},migratetype=\"{kind}\""));
                c.same(
                    &format!("{} {labels} {kind}", told.name),
                    n.parse().ok(),
                    exported,
                );
            }
        }
    }
    let vmstat = read("vmstat");
    for line in vmstat.lines() {
        let Some((counter, value)) = line.split_once(' ') else {
            continue;
        };
        let exported = told.metric(&format!("vmstat_{counter}_total"), "");
        c.same(
            &format!("{} {counter}", told.name),
            value.parse().ok(),
            exported,
        );
    }
    for line in read("slabinfo")
        .lines()
        .filter(|l| !l.starts_with("slabinfo") && !l.starts_with('#'))
    {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (Some(slabs), Some(pages)) = (words.get(14), words.get(5)) else {
            continue;
        };
        let (Ok(slabs), Ok(pages)) = (slabs.parse::<f64>(), pages.parse::<f64>()) else {
            continue;
        };
        let exported = told.metric("slab_cache_bytes", &format!("cache=\"{}\"", words[0]));
        c.same(
            &format!("{} {}", told.name, words[0]),
            Some(slabs * pages * told.page()),
            exported,
        );
    }
}

#[test]
fn a_copy_of_procfs_has_one_number_for_one_thing() {
    let mut compared = Compared::default();
    let hosts = hosts();
    for dir in &hosts {
        let told = Told::of(dir);
        commands(&told, &mut compared);
        kernels_files(&told, dir, &mut compared);
    }
    assert!(hosts.len() > 25, "only {}", hosts.len());
    compared.end(5000);
}

#[test]
fn page_flags_have_one_number_for_one_thing() {
    let dir = tempfile::tempdir().unwrap();
    lay_out_host(dir.path());
    let told = Told::of(dir.path());
    assert!(
        told.doctor["obstacles"].is_array(),
        "page flags were not read"
    );
    let mut compared = Compared::default();
    commands(&told, &mut compared);
    kernels_files(&told, dir.path(), &mut compared);
    compared.end(150);
}

#[test]
fn a_recording_has_one_number_for_one_thing() {
    let recording = sample();
    let replay = json(&["replay", SAMPLE, "--json"]);
    let last = replay["recorded"].as_array().unwrap().last().unwrap();
    let name = last["name"].as_str().unwrap();
    let snapshot = recording.snapshots.iter().find(|s| s.name == name).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for file in &snapshot.files {
        let to = dir.path().join(&file.name);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(to, file.content.bytes()).unwrap();
    }
    let mut compared = Compared::default();
    let mut told = Told::of(dir.path());
    // The copy and the recording alike.
    for from_recording in [false, true] {
        if from_recording {
            told.doctor = diagnosis(&[SAMPLE, "--snapshot", name]);
            let all = json(&["inspect", SAMPLE, "--snapshot", name, "--json"]);
            told.inspect = Some(all["snapshots"][0].clone());
        }
        commands(&told, &mut compared);
        kernels_files(&told, dir.path(), &mut compared);
        let inspect: BTreeMap<String, &Value> = zones(told.inspect.as_ref().unwrap()).collect();
        for (labels, z) in zones(last) {
            let i = inspect[&labels];
            for key in [
                "managed_pages",
                "free_pages",
                "pcp_pages",
                "free_huge_blocks",
            ] {
                compared.both(key, z[key].as_f64(), i[key].as_f64());
            }
            for key in ["free_blocks", "pageblocks"] {
                assert_eq!(z[key], i[key], "{labels} {key}");
            }
            // A replay has the share as it is, for errors and means; the kernel cuts it off after thousandths.
            for (order, share) in z["unusable_index"].as_object().unwrap() {
                let order: usize = order.parse().unwrap();
                let cut = (share.as_f64().unwrap() * 1000.0 + 1e-9).floor() / 1000.0;
                compared.both(
                    "unusable_index",
                    Some(cut),
                    i["unusable_index"][order].as_f64(),
                );
            }
        }
    }
    let blame = json(&["blame", SAMPLE, "--json"]);
    for key in ["events", "lost_events", "seconds"] {
        compared.both(key, blame[key].as_f64(), replay["recording"][key].as_f64());
    }
    assert_eq!(
        blame["kernel_release"],
        replay["recording"]["kernel_release"]
    );
    assert_eq!(
        told.doctor["kernel_release"],
        replay["recording"]["kernel_release"]
    );
    compared.end(200);
}
