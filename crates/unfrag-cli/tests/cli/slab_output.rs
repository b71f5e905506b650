//! What `unfrag slab` prints, and how it refuses.

use crate::support::{SAMPLE, fails, json, stdout};
use std::fs;
use unfrag_linux::procfs::SlabInfo;

const SLAB: &str = "samples/slab-find.unfrag";

#[test]
fn the_three_allocators_stand_side_by_side_with_the_same_requests() {
    let report = json(&["slab", SLAB, "--json"]);
    let all = report["allocators"].as_array().unwrap();
    let names: Vec<&str> = all
        .iter()
        .map(|a| a["allocator"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["slab", "slub", "slqb"]);
    // 1,180 + 128 allocations were traced; 943 + 469 frees, 335 of them of nothing or of objects
    // from before the trace.
    assert_eq!(report["allocations"], 1308);
    let number = |name: &str| report[name].as_u64().unwrap();
    let frees = number("frees") + number("unknown_frees") + number("null_frees");
    assert_eq!(frees - number("silent_frees"), 943 + 469);
    for a in all {
        let end = &a["end"];
        assert_eq!(end["requested_bytes"], all[0]["end"]["requested_bytes"]);
        let (pages, asked) = (
            end["pages"].as_u64().unwrap(),
            end["requested_bytes"].as_u64().unwrap(),
        );
        assert_eq!(end["waste_bytes"].as_u64().unwrap(), pages * 4096 - asked);
        assert!(a["pages_after_shrink"].as_u64().unwrap() <= pages);
        assert!(a["peak"]["pages"].as_u64().unwrap() >= pages);
        let by_order = a["slabs_of_order"].as_array().unwrap().iter().enumerate();
        let in_slabs: u64 = by_order.map(|(o, n)| n.as_u64().unwrap() << o).sum();
        assert!(in_slabs <= pages, "whole pages of kmalloc are the rest");
        assert_eq!(a["failures"], 0);
    }
}

#[test]
fn slub_max_order_0_leaves_no_slab_above_it() {
    let args = ["slab", SLAB, "--allocator", "slub", "--json"];
    let slabs = |more: &[&str]| {
        let report = json(&[&args[..], more].concat());
        let orders = report["allocators"][0]["slabs_of_order"]
            .as_array()
            .unwrap()
            .clone();
        orders
            .iter()
            .map(|n| n.as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    assert!(slabs(&[])[3] > 0);
    let single = slabs(&["--slub-max-order", "0"]);
    // What is larger than a page needs its order all the same.
    assert!(single[0] > 0 && single[3] <= 1, "{single:?}");
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let args = ["slab", SLAB, "--json"];
    assert_eq!(stdout(&args), stdout(&args));
}

#[test]
fn slabinfo_of_the_end_is_written_as_the_kernel_does() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("slabinfo");
    let file = path.to_str().unwrap();
    stdout(&["slab", SLAB, "--allocator", "slab", "--slabinfo", file]);
    let info = SlabInfo::parse(&fs::read(&path).unwrap()).unwrap();
    let dentry = info.cache("dentry").unwrap();
    assert_eq!((dentry.objsize, dentry.limit), (192, 120));
    fails(&["slab", SLAB, "--slabinfo", file], 2, &["--allocator"]);
}

#[test]
fn tables_are_aligned() {
    let shown = stdout(&["slab", SLAB]);
    let rows: Vec<&str> = shown
        .lines()
        .skip_while(|l| !l.contains("slqb"))
        .take_while(|l| !l.is_empty())
        .collect();
    assert!(rows.len() > 8, "{shown}");
    assert!(rows.iter().all(|r| r.len() == rows[0].len()), "{shown}");
}

#[test]
fn a_recording_without_slab_events_is_told_how_to_make_one() {
    fails(
        &["slab", SAMPLE],
        1,
        &["no slab events", "kmem:kmem_cache_alloc", SAMPLE],
    );
}

#[test]
fn wrong_options_are_answered() {
    fails(&["slab", SLAB, "--allocator", "slob"], 2, &["slob", "slub"]);
    fails(&["slab", SLAB, "--slub-max-order", "11"], 2, &["11", "10"]);
    fails(
        &["slab", SLAB, "--slub-min-order", "5"],
        2,
        &["--slub-max-order"],
    );
    fails(&["slab", SLAB, "--memory", "16K"], 1, &["--memory"]);
    fails(&["slab", "no-such-file"], 1, &["check the path"]);
}
