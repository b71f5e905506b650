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
    evidence.release = Some("6.1.0".into());
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
                let is_text = ["advice", "atomic"].contains(&&name[..]);
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
        let has = |name: &str| some.contains_key(name);
        for (place, n) in told {
            // Sums over zones, and what the marks allow, need the files that tell the zones.
            let of_marks =
                place.ends_with("huge_pages/now") && !(has("zoneinfo") && has("pagetypeinfo"));
            // Blocks that are kept back are told by pagetypeinfo alone; a score needs all zones.
            let of_zones = place.ends_with("/score") && !has("zoneinfo");
            let is_derived = place.ends_with("page_size") || place.contains("huge_page_bytes");
            if of_marks || of_zones || is_derived {
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
