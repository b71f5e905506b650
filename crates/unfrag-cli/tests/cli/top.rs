//! `unfrag top`: of a pool's directory, of a replay, and what it refuses.

use crate::support::{SAMPLE, fails, stdout};
use serde_json::Value;
use std::fs;
use unfrag_pool::{Order, Pool};

fn lines(text: &str) -> Vec<Value> {
    let parse = |l: &str| serde_json::from_str(l).expect("a line of JSON");
    text.lines().map(parse).collect()
}

#[test]
fn a_pool_is_shown_by_its_blocks() {
    let dir = tempfile::tempdir().expect("a directory");
    let pool = Pool::builder().arena(64 << 20).build().expect("a pool");
    let held: Vec<_> = (0..3000)
        .map(|_| pool.alloc(Order(0)).expect("a frame"))
        .collect();
    pool.write_procfs(dir.path()).expect("files");
    let path = dir.path().to_str().expect("a name");
    let shown = lines(&stdout(&["top", path, "--json"]));
    assert_eq!(shown.len(), 1, "without a terminal it is shown once");
    let view = &shown[0];
    assert_eq!(view["frames"], 64 << 8);
    assert_eq!(view["free_frames"], (64 << 8) - 3000);
    let blocks = view["blocks"]["Node 0"].as_str().expect("blocks");
    assert_eq!(blocks.len(), 2 * 32);
    let in_use = blocks.as_bytes().chunks(2).filter(|b| b[0] == b'u').count();
    assert_eq!(in_use, 6, "3000 frames in blocks of 512: {blocks}");
    let text = stdout(&["top", path]);
    assert!(text.contains("Node 0: a cell is 2 MiB"), "{text}");
    assert!(text.contains("UUUUU"), "{text}");
    drop(held);
}

#[test]
fn rates_come_between_two_pictures() {
    let dir = tempfile::tempdir().expect("a directory");
    let pool = Pool::builder().arena(64 << 20).build().expect("a pool");
    pool.write_procfs(dir.path()).expect("files");
    let path = dir.path().to_str().expect("a name");
    let out = std::thread::scope(|s| {
        let top =
            s.spawn(|| stdout(&["top", path, "--json", "--count", "20", "--interval", "0.1"]));
        for _ in 0..10 {
            std::thread::sleep(std::time::Duration::from_millis(100));
            drop(pool.alloc(Order(4)));
            pool.write_procfs(dir.path()).expect("files");
        }
        top.join().expect("it ends")
    });
    let shown = lines(&out);
    assert_eq!(shown.len(), 20);
    assert!(
        shown[0]["per_second"]
            .as_object()
            .expect("rates")
            .is_empty()
    );
    let any = shown
        .iter()
        .any(|v| v["per_second"]["pgfree"].as_f64() > Some(1.0));
    assert!(any, "{out}");
}

#[test]
fn a_replay_is_shown_snapshot_by_snapshot() {
    let words = ["top", SAMPLE, "--kernel", "6.18", "--count", "3", "--json"];
    let shown = lines(&stdout(&words));
    assert_eq!(shown.len(), 3);
    let seconds: Vec<f64> = shown
        .iter()
        .map(|v| v["seconds"].as_f64().expect("seconds"))
        .collect();
    assert!(
        seconds[0] < seconds[1] && seconds[1] < seconds[2],
        "{seconds:?}"
    );
    let areas = shown[0]["blocks"].as_object().expect("areas");
    let blocks: usize = areas
        .values()
        .map(|a| a.as_str().expect("blocks").len() / 2)
        .sum();
    assert!(
        (370..400).contains(&blocks),
        "768 MiB in blocks of 2: {blocks}"
    );
}

#[test]
fn what_it_cannot_show_is_named_with_the_way_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().to_str().expect("a name");
    fails(
        &["top", path],
        1,
        &["no file buddyinfo", "Pool::write_procfs"],
    );
    fails(
        &["top", path, "--kernel", "6.1"],
        2,
        &["--kernel", "leave it out"],
    );
    fails(&["top", path, "--interval", "0"], 2, &["0.01 s to a day"]);
    fails(&["top", "no-such-file.unfrag"], 1, &["no-such-file.unfrag"]);
    let pool = Pool::builder().arena(4 << 20).build().expect("a pool");
    pool.write_procfs(dir.path()).expect("files");
    fs::write(dir.path().join("unfrag_blocks"), "node 0 frame 0x0 m8x1\n").expect("a file");
    fails(&["top", path], 1, &["unfrag_blocks", "line 1"]);
}
