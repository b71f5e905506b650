//! Looks out of a range of Prometheus: the same answer as of copies of procfs, and nothing of what has a hole.

use serde_json::{Value, json};
use std::path::Path;
use unfrag_lab::find::days::foretold;
use unfrag_lab::forecast::Forecast;
use unfrag_lab::forecast::report::{DatedBy, When, Why};
use unfrag_linux::segments::Window;

const HOURS: u64 = 120;
const BEGIN: u64 = 1_793_000_000;

/// Free blocks of the orders 0 to 10 at an hour.
fn free(hour: u64) -> [u64; 11] {
    let mut all = [7; 11];
    all[9] = 900 - 2 * hour - hour * 7 % 5;
    all
}

fn times(of: impl Fn(u64) -> Value) -> Value {
    let values = (0..HOURS).map(|h| json!([BEGIN + h * 3600, of(h)]));
    values.collect::<Vec<_>>().into()
}

/// Series of a host as one of the two exporters names them.
fn series(name: &str, label: &str, host: &str) -> Vec<Value> {
    let one = |order: usize| {
        json!({
            "metric": {"__name__": name, "instance": host, "job": "node", "node": "0", "zone": "Normal", label: order.to_string()},
            "values": times(|h| free(h)[order].to_string().into()),
        })
    };
    (0..11).map(one).collect()
}

fn own(name: &str, labels: Value, of: impl Fn(u64) -> u64) -> Value {
    let mut metric = json!({"__name__": name, "instance": "db7:19809", "job": "node"});
    for (key, value) in labels.as_object().unwrap() {
        metric[key] = value.clone();
    }
    json!({"metric": metric, "values": times(|h| of(h).to_string().into())})
}

fn reply(result: Vec<Value>) -> Value {
    json!({"status": "success", "data": {"resultType": "matrix", "result": result}})
}

fn asked(reply: &Value, need: &str) -> Result<Forecast, String> {
    asked_of(reply.to_string().as_bytes(), need)
}

fn asked_of(bytes: &[u8], need: &str) -> Result<Forecast, String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("range.json");
    std::fs::write(&file, bytes).unwrap();
    ask(&file, need)
}

fn ask(path: &Path, need: &str) -> Result<Forecast, String> {
    let need = need.parse().unwrap();
    match foretold(path, &Window::default(), need, None, 1) {
        Ok((found, _)) => Ok(found),
        Err(e) => Err(e.to_string()),
    }
}

#[test]
fn a_range_has_the_answer_of_copies_of_procfs_of_the_same_moments() {
    let dir = tempfile::tempdir().unwrap();
    for hour in 0..HOURS {
        let look = dir.path().join((BEGIN + hour * 3600).to_string());
        std::fs::create_dir(&look).unwrap();
        let counts: Vec<String> = free(hour).iter().map(u64::to_string).collect();
        let text = format!("Node 0, zone   Normal {}\n", counts.join(" "));
        std::fs::write(look.join("buddyinfo"), text).unwrap();
    }
    let copies = ask(dir.path(), "500x2M").unwrap();
    assert!(matches!(copies.free.when, When::In { .. }), "{copies:?}");
    for (name, label) in [
        ("node_buddyinfo_blocks", "size"),
        ("unfrag_free_blocks", "order"),
    ] {
        let range = asked(&reply(series(name, label, "db7:9100")), "500x2M").unwrap();
        assert_eq!(range.dated_by, DatedBy::Series);
        assert_eq!(
            (range.looks, range.free, range.page_size_from),
            (copies.looks, copies.free, copies.page_size_from),
            "{name}"
        );
        let why = range.at_best.when;
        assert!(
            matches!(
                why,
                When::NotKnown {
                    why: Why::NotInLooks
                }
            ),
            "{why:?}"
        );
    }
}

#[test]
fn our_own_series_tell_the_size_of_a_page_and_pageblocks_that_can_be_emptied() {
    let mut all = series("unfrag_free_blocks", "order", "db7:19809");
    let zone = |kind: &str| json!({"node": "0", "zone": "Normal", "migratetype": kind});
    all.push(own("unfrag_page_size_bytes", json!({}), |_| 4096));
    all.push(own("unfrag_pageblock_size_bytes", json!({}), |_| 2 << 20));
    all.push(own("unfrag_pageblocks", zone("Movable"), |h| 4000 - h));
    all.push(own("unfrag_pageblocks", zone("Unmovable"), |h| 100 + h));
    // Those of node_exporter beside them are the same blocks, and count once.
    all.extend(series("node_buddyinfo_blocks", "size", "db7:9100"));
    let found = asked(&reply(all), "500x2M").unwrap();
    assert_eq!(found.looks, HOURS);
    assert_eq!(found.free.last, Some(free(HOURS - 1)[9] + 2 * 7));
    assert_eq!(found.at_best.last, Some(4000 - (HOURS - 1)));
    assert!(found.page_size_from == unfrag_lab::geometry::PageSizeFrom::Derived);
}

#[test]
fn a_moment_with_a_hole_counts_nowhere_and_is_told() {
    let mut all = series("node_buddyinfo_blocks", "size", "db7:9100");
    // The order that is needed lacks two moments; another one has none that is a number.
    all[9]["values"].as_array_mut().unwrap().drain(50..52);
    all[3]["values"][60][1] = "NaN".into();
    all[4]["values"][70][1] = "-1".into();
    let found = asked(&reply(all), "500x2M").unwrap();
    let not_read = found.not_read.unwrap();
    assert_eq!(
        (found.looks, not_read.looks, not_read.of),
        (HOURS - 4, 4, HOURS)
    );
    assert!(
        not_read.why.contains("a number of blocks that is none"),
        "{}",
        not_read.why
    );
    // Where the last moment has a hole, NOW is of the one before.
    let mut all = series("node_buddyinfo_blocks", "size", "db7:9100");
    all[10]["values"].as_array_mut().unwrap().pop();
    let found = asked(&reply(all), "500x2M").unwrap();
    assert_eq!(found.free.last, Some(free(HOURS - 2)[9] + 2 * 7));
    assert_eq!(
        found.not_read.unwrap().why,
        "it lacks order 10 of zone Normal of node 0"
    );
}

#[test]
fn what_is_no_range_of_one_host_is_refused_with_the_way_out() {
    let good = || series("node_buddyinfo_blocks", "size", "db7:9100");
    let two = || {
        let mut all = good();
        all.extend(series("node_buddyinfo_blocks", "size", "db8:9100"));
        all
    };
    let without = |label: &str| {
        let mut all = good();
        all[5]["metric"].as_object_mut().unwrap().remove(label);
        all
    };
    let with = |label: &str, value: &str| {
        let mut all = good();
        all[5]["metric"][label] = value.into();
        all
    };
    let text = |value: &str| {
        let mut all = good();
        all[5]["values"][7][1] = value.into();
        all
    };
    let table = [
        (json!({}), "it is no answer of Prometheus"),
        (json!({"status": "success"}), "it has no data"),
        (
            json!({"status": "error", "errorType": "bad_data", "error": "invalid parameter \"query\""}),
            "Prometheus answered with an error: invalid parameter",
        ),
        (
            json!({"status": "success", "data": {"resultType": "vector", "result": []}}),
            "is a vector, and no range",
        ),
        (reply(vec![]), "no series of free blocks"),
        (
            reply(vec![own("up", json!({}), |_| 1)]),
            "no series of free blocks",
        ),
        (reply(two()), "of several hosts"),
        (reply(without("zone")), "has no label zone"),
        (reply(without("size")), "has no label size"),
        (reply(with("size", "64")), "size=\"64\""),
        (reply(with("node", "-1")), "node=\"-1\""),
        (reply(text("many")), "a value=\"many\""),
    ];
    for (reply, says) in table {
        let said = asked(&reply, "500x2M").unwrap_err();
        assert!(said.contains(says), "{said:?} does not say {says:?}");
    }
    let whole = reply(good()).to_string();
    for end in [1, 2, 20, whole.len() / 2, whole.len() - 1] {
        let said = asked_of(&whole.as_bytes()[..end], "500x2M").unwrap_err();
        assert!(said.contains("no answer of Prometheus"), "{said}");
    }
}
