//! An exported tree as a real client reads it: Debian's prometheus-node-exporter. Where that is not
//! installed, the test says so aloud and passes.

use crate::support::{SAMPLE, json, skipped};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use unfrag_linux::procfs::{BuddyInfo, MemInfo, SlabInfo, VmStat, ZoneInfo};

const PROGRAM: &str = "prometheus-node-exporter";
const COLLECTORS: [&str; 5] = ["buddyinfo", "zoneinfo", "slabinfo", "vmstat", "meminfo"];

/// Values by name and labels, as they stand before the value.
type Metrics = BTreeMap<String, f64>;

/// The client at work; stopped when dropped.
struct Exporter(Child);

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_real_client_reads_an_exported_tree_and_sees_the_same_values() {
    match Command::new(PROGRAM)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
    {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return skipped(&format!(
                "{PROGRAM} is not installed, so no real client reads the export"
            ));
        }
        other => assert!(other.unwrap().success()),
    }
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().to_str().unwrap();
    let words = [
        "replay",
        SAMPLE,
        "--kernel",
        "6.1,6.18,2.6.32",
        "--export-procfs",
        to,
        "--json",
    ];
    let report = json(&words);
    for kernel in report["kernels"].as_array().unwrap() {
        let samples = kernel["samples"].as_array().unwrap();
        for i in [0, samples.len() / 2, samples.len() - 1] {
            let sample = &samples[i];
            let name = sample["name"].as_str().unwrap();
            let tree = dir
                .path()
                .join(kernel["kernel"].as_str().unwrap())
                .join(name);
            as_reported(&tree, sample);
            let metrics = scrape(&tree);
            for collector in COLLECTORS {
                let name = format!("node_scrape_collector_success{{collector=\"{collector}\"}}");
                assert_eq!(
                    metrics.get(&name),
                    Some(&1.0),
                    "{collector} of {}",
                    tree.display()
                );
            }
            as_scraped(&tree, &metrics);
        }
    }
}

/// What the tree says is what the report says.
fn as_reported(tree: &Path, sample: &Value) {
    let buddy = BuddyInfo::parse(&read(tree, "buddyinfo")).unwrap();
    let zones = sample["zones"].as_array().unwrap();
    assert_eq!(buddy.zones.len(), zones.len());
    for zone in zones {
        let row = buddy.zone(0, zone["zone"].as_str().unwrap()).unwrap();
        let blocks = zone["free_blocks"].as_array().unwrap();
        let blocks: Vec<u64> = blocks.iter().map(|b| b.as_u64().unwrap()).collect();
        assert_eq!(row.free, blocks);
    }
}

/// What the client says is what the tree says.
fn as_scraped(tree: &Path, metrics: &Metrics) {
    let mut compared = 0;
    let mut same = |metric: String, value: u64| {
        let seen = metrics
            .get(&metric)
            .unwrap_or_else(|| panic!("no {metric}"));
        assert_eq!(*seen, value as f64, "{metric} of {}", tree.display());
        compared += 1;
    };
    for row in BuddyInfo::parse(&read(tree, "buddyinfo")).unwrap().zones {
        for (order, &n) in row.free.iter().enumerate() {
            let (node, zone) = (row.node, &row.zone);
            let labels = format!("node=\"{node}\",size=\"{order}\",zone=\"{zone}\"");
            same(format!("node_buddyinfo_blocks{{{labels}}}"), n);
        }
    }
    for zone in ZoneInfo::parse(&read(tree, "zoneinfo")).unwrap().zones {
        let labels = format!("node=\"{}\",zone=\"{}\"", zone.node, zone.name);
        for name in ["min", "low", "high", "spanned", "present", "managed"] {
            let value = zone.pages(name).unwrap();
            same(format!("node_zoneinfo_{name}_pages{{{labels}}}"), value);
        }
        if zone.pagesets.is_some() {
            same(
                format!("node_zoneinfo_nr_free_pages{{{labels}}}"),
                zone.free,
            );
        }
        for (i, &pages) in zone.protection.iter().enumerate() {
            same(format!("node_zoneinfo_protection_{i}{{{labels}}}"), pages);
        }
    }
    for (name, value) in VmStat::parse(&read(tree, "vmstat"))
        .unwrap()
        .counters
        .iter()
    {
        same(format!("node_vmstat_{name}"), value);
    }
    for line in MemInfo::parse(&read(tree, "meminfo")).unwrap().lines {
        let name = line.name.replace('(', "_").replace(')', "");
        let (unit, bytes) = if line.kib { ("_bytes", 1024) } else { ("", 1) };
        same(format!("node_memory_{name}{unit}"), line.value * bytes);
    }
    for cache in SlabInfo::parse(&read(tree, "slabinfo")).unwrap().caches {
        let of = |what: &str| format!("node_slabinfo_{what}{{slab=\"{}\"}}", cache.name);
        same(of("active_objects"), cache.active_objs);
        same(of("objects"), cache.num_objs);
    }
    assert!(compared > 300, "only {compared} values");
}

fn read(tree: &Path, name: &str) -> Vec<u8> {
    fs::read(tree.join(name)).unwrap()
}

/// What the client says of a tree.
fn scrape(tree: &Path) -> Metrics {
    let address = free_address();
    let collectors = COLLECTORS.iter().map(|c| format!("--collector.{c}"));
    let child = Command::new(PROGRAM)
        .arg(format!("--path.procfs={}", tree.display()))
        .arg("--collector.disable-defaults")
        .args(collectors)
        .arg("--collector.vmstat.fields=.*")
        .arg(format!("--web.listen-address={address}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _stopped_at_the_end = Exporter(child);
    let give_up = Instant::now() + Duration::from_secs(60);
    let answer = loop {
        match get(address) {
            Ok(answer) => break answer,
            Err(e) if Instant::now() > give_up => panic!("{PROGRAM} does not answer: {e}"),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    answer
        .lines()
        .filter(|l| !l.starts_with('#'))
        .filter_map(|l| {
            let (name, value) = l.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        })
        .collect()
}

fn free_address() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap()
}

/// The page of metrics, over a connection of its own without chunks.
fn get(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.starts_with("HTTP/1.0 200") {
        Ok(answer)
    } else {
        Err(std::io::Error::other(answer))
    }
}
