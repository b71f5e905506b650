//! What no file tells is not known: of files that are left out, no number becomes another one.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use unfrag_lab::doctor::{Evidence, examine};

const FILES: [&str; 6] = [
    "buddyinfo",
    "pagetypeinfo",
    "zoneinfo",
    "vmstat",
    "meminfo",
    "slabinfo",
];

fn files() -> BTreeMap<&'static str, Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../unfrag-linux/tests/fixtures/procfs");
    FILES
        .map(|name| (name, std::fs::read(root.join(name)).unwrap()))
        .into()
}

fn diagnosis(files: &BTreeMap<&'static str, Vec<u8>>) -> Option<Value> {
    let read = |name: &str| {
        files
            .get(name)
            .cloned()
            .ok_or(std::io::ErrorKind::NotFound.into())
    };
    let mut evidence = Evidence::read("here", read).ok()?;
    evidence.host.release = Some("6.1.0".into());
    Some(serde_json::to_value(&examine(&evidence).unwrap().diagnosis).unwrap())
}

/// Numbers by their place; those of a zone or node by its name. Bounds may be wider where less is known.
fn numbers(value: &Value, place: &str, all: &mut BTreeMap<String, f64>) {
    match value {
        Value::Number(n) => drop(all.insert(place.to_owned(), n.as_f64().unwrap())),
        Value::Object(fields) => {
            for (name, inner) in fields {
                let is_bound = name.contains("at_most")
                    || name.contains("perhaps")
                    || name.starts_with("in_a_row");
                let is_text = [
                    "advice",
                    "candidates",
                    "withdrawn",
                    "if_more_is_needed",
                    "atomic",
                ]
                .contains(&&name[..]);
                if !is_bound && !is_text {
                    numbers(inner, &format!("{place}/{name}"), all);
                }
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                let name = |key: &str| item.get(key).map_or(String::new(), |v| v.to_string() + ".");
                let own = ["node", "zone", "name", "counter"].map(name).concat();
                let own = if own.is_empty() { i.to_string() } else { own };
                numbers(item, &format!("{place}/{own}"), all);
            }
        }
        _ => {}
    }
}

#[test]
fn without_some_of_its_files_a_host_has_the_same_numbers_or_none() {
    let whole = files();
    let mut known = BTreeMap::new();
    numbers(&diagnosis(&whole).unwrap(), "", &mut known);
    assert!(known.len() > 50);
    for set in 1u32..1 << FILES.len() {
        let some: BTreeMap<_, _> = FILES
            .into_iter()
            .enumerate()
            .filter(|(i, _)| set & (1 << i) != 0)
            .map(|(_, name)| (name, whole[name].clone()))
            .collect();
        let Some(d) = diagnosis(&some) else { continue };
        let mut told = BTreeMap::new();
        numbers(&d, "", &mut told);
        for (place, n) in told {
            let is_derived = place.ends_with("page_size") || place.contains("huge_page_bytes");
            if is_derived {
                continue;
            }
            assert_eq!(
                known.get(&place),
                Some(&n),
                "{place} with {:?}",
                some.keys()
            );
        }
    }
}

/// Whether a bound of a cut text holds the number of the whole one, which stands without the bound's name.
fn holds(place: &str, bound: f64, known: &BTreeMap<String, f64>) -> bool {
    let whole = place.replace("_at_most", "").replace("_at_least", "");
    known.get(&whole).is_none_or(|&n| match place {
        _ if place.contains("_at_most") => bound >= n,
        _ if place.contains("_at_least") => bound <= n,
        _ => true,
    })
}

/// Numbers by their place, bounds and verdicts on requests that may not wait among them.
fn all_numbers(value: &Value) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    numbers(value, "", &mut all);
    for (place, list) in [
        ("/zones", &value["zones"]),
        ("/nodes", &value["nodes"]),
        ("/atomic", &value["atomic"]),
    ] {
        for item in list.as_array().unwrap() {
            let own = |key: &str| item.get(key).map_or(String::new(), |v| v.to_string() + ".");
            let own = ["node", "zone", "order"].map(own).concat();
            let fields = item.as_object().unwrap().iter();
            let forecast = item.get("huge_pages").and_then(Value::as_object);
            let inner = forecast.into_iter().flatten();
            for (name, n) in fields.chain(inner) {
                let bounded = name.contains("now") || name.starts_with("in_a_row");
                if let Some(n) = n.as_f64().filter(|_| bounded) {
                    all.insert(format!("{place}/{own}/{name}"), n);
                }
            }
        }
    }
    all
}

#[test]
fn a_text_that_is_cut_after_any_line_tells_nothing_that_the_whole_does_not() {
    let whole = files();
    let known = all_numbers(&diagnosis(&whole).unwrap());
    let verdicts = |d: &Value| -> Vec<Value> {
        let risks = d["atomic"].as_array().unwrap();
        risks.iter().map(|r| r["verdict"].clone()).collect()
    };
    let truth = verdicts(&diagnosis(&whole).unwrap());
    let mut wrong: Vec<String> = vec![];
    for file in FILES {
        let text = String::from_utf8(whole[file].clone()).unwrap();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let heads = (0..lines.len()).map(|n| (n, lines[..n].concat()));
        // Nor one that lacks a line, which may be a zone's only one, or its heading.
        // Old kernels have no line of shared memory.
        let may_lack = |n: &usize| !lines[*n].starts_with("Shmem:");
        let gaps = (0..lines.len())
            .filter(may_lack)
            .map(|n| (n, [&lines[..n], &lines[n + 1..]].concat().concat()));
        for (n, cut) in heads.chain(gaps) {
            let mut some = whole.clone();
            some.insert(file, cut.into_bytes());
            let Some(d) = diagnosis(&some) else { continue };
            for (place, n_cut) in all_numbers(&d) {
                let is_derived = place.ends_with("page_size") || place.contains("huge_page_bytes");
                // Of caches only the largest are shown.
                let is_not_shown = place.starts_with("/slabs/") && !known.contains_key(&place);
                if is_derived || is_not_shown {
                    continue;
                }
                let is_bound = place.contains("_at_most")
                    || place.contains("_at_least")
                    || place.contains("perhaps");
                let is_right = match is_bound {
                    true => holds(&place, n_cut, &known),
                    false => known.get(&place) == Some(&n_cut),
                };
                if !is_right {
                    let truth = known.get(&place);
                    wrong.push(format!(
                        "{file}, line {n}: {place} is {n_cut}, not {truth:?}"
                    ));
                }
            }
            for (one, other) in verdicts(&d).iter().zip(&truth) {
                if one != other && one != "unknown" {
                    wrong.push(format!("{file}, line {n}: {one}, not {other}"));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong numbers:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(40)].join("\n")
    );
}

#[test]
fn amounts_alone_tell_no_huge_pages_and_zones_alone_tell_bounds() {
    let whole = files();
    let with = |name: &'static str| diagnosis(&[(name, whole[name].clone())].into()).unwrap();
    let amounts = with("meminfo");
    assert!(
        amounts["huge_pages"]["now"].is_null() && amounts["pcp_fraction"].is_null(),
        "{amounts}"
    );
    let zones = with("zoneinfo");
    let of_host = &zones["huge_pages"];
    assert!(
        of_host["now"].is_null() && of_host["now_at_most"].is_u64(),
        "{of_host}"
    );
    let truth = diagnosis(&whole).unwrap()["huge_pages"]["now"]
        .as_u64()
        .unwrap();
    assert!(of_host["now_at_most"].as_u64().unwrap() >= truth);
}
