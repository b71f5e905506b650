//! What `unfrag inspect` prints.

use crate::support::{SAMPLE, json, run, sample, stdout, text, write_snapshot};
use std::fs;
use unfrag_linux::procfs::{ExtfragIndex, UnusableIndex};

#[test]
fn indexes_are_those_that_the_recorded_kernel_printed() {
    let recorded = sample();
    let shown = json(&["inspect", SAMPLE, "--json"]);
    let shown = shown["snapshots"].as_array().unwrap();
    assert_eq!(shown.len(), recorded.snapshots.len());
    let mut compared = 0;
    for (snapshot, shown) in recorded.snapshots.iter().zip(shown) {
        assert_eq!(shown["name"], snapshot.name.as_str());
        let unusable = UnusableIndex::parse(snapshot.file("unusable_index").unwrap()).unwrap();
        let extfrag = ExtfragIndex::parse(snapshot.file("extfrag_index").unwrap()).unwrap();
        for zone in shown["zones"].as_array().unwrap() {
            let name = zone["zone"].as_str().unwrap();
            // The kernel read its lists again for these files. Compare where nothing moved.
            let thousandths = |file: &str| -> Vec<i32> {
                let values = zone[file].as_array().unwrap().iter();
                values
                    .map(|v| (v.as_f64().unwrap() * 1000.0).round() as i32)
                    .collect()
            };
            compared += u32::from(
                unusable.zone(0, name).unwrap().thousandths == thousandths("unusable_index")
                    && extfrag.zone(0, name).unwrap().thousandths
                        == thousandths("fragmentation_index"),
            );
        }
    }
    let all = 2 * recorded.snapshots.len() as u32;
    assert!(
        compared * 4 > all * 3,
        "only {compared} of {all} zones agree"
    );
}

#[test]
fn a_directory_a_set_of_them_and_a_file_show_the_same() {
    let recorded = sample();
    let dir = tempfile::tempdir().unwrap();
    for snapshot in &recorded.snapshots[..3] {
        write_snapshot(snapshot, &dir.path().join(&snapshot.name));
    }
    let name = recorded.snapshots[1].name.as_str();
    let path = dir.path().to_str().unwrap();
    let one = dir.path().join(name);
    let of = |words: &[&str]| json(&[&["inspect", "--json"], words].concat())["snapshots"].clone();
    let set = of(&[path]);
    assert_eq!(set.as_array().unwrap().len(), 3);
    let chosen = of(&[path, "--snapshot", name]);
    assert_eq!(chosen[0], set[1]);
    assert_eq!(chosen, of(&[SAMPLE, "--snapshot", name]));
    assert_eq!(chosen[0]["zones"], of(&[one.to_str().unwrap()])[0]["zones"]);
}

#[test]
fn the_table_shows_every_order_and_stresses_two() {
    let shown = stdout(&["inspect", SAMPLE, "--snapshot", "1050"]);
    for needed in [
        "zone DMA32",
        "unusable",
        "free 2 MiB blocks: ",
        "pageblocks by type: ",
    ] {
        assert!(shown.contains(needed), "{needed}: {shown}");
    }
    let stressed: Vec<_> = shown
        .lines()
        .filter(|l| l.ends_with('◂'))
        .filter_map(|l| l.split_whitespace().next())
        .collect();
    assert_eq!(stressed, ["3", "9", "3", "9"]);
}

#[test]
fn what_is_missing_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let buddy = sample().snapshots[1].file("buddyinfo").unwrap().to_vec();
    fs::write(dir.path().join("buddyinfo"), buddy).unwrap();
    let shown = stdout(&["inspect", dir.path().to_str().unwrap()]);
    assert!(shown.contains("pagetypeinfo: not there"), "{shown}");
    fs::write(dir.path().join("zoneinfo"), "Node 0, zone\n").unwrap();
    let shown = stdout(&["inspect", dir.path().to_str().unwrap()]);
    assert!(shown.contains("zoneinfo: byte 12: "), "{shown}");
    assert!(shown.contains("it begins with `Node 0, zone`"), "{shown}");
    fs::write(dir.path().join("buddyinfo"), "no numbers\n").unwrap();
    let out = run(&["inspect", dir.path().to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(1));
    assert!(
        text(&out.stderr).contains("buddyinfo: byte 0"),
        "{}",
        text(&out.stderr)
    );
}

#[test]
fn this_host_can_be_inspected() {
    let Ok(buddy) = fs::read_to_string("/proc/buddyinfo") else {
        crate::support::skipped("there is no /proc/buddyinfo to read here");
        return;
    };
    let out = run(&["inspect", "/proc", "--json"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let shown: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let zones = shown["snapshots"][0]["zones"].as_array().unwrap().len();
    assert_eq!(zones, buddy.lines().count());
}
