//! Paths into `--json` that the book names lead to something: from the top of what a command prints.
//!
//! A path is a code span with `[]` or `[0]` in it (`diagnosis.nodes[].score`), or one that begins at the top of the doctor's
//! answer. Names alone are not looked at, nor the pages whose brackets are another language's.

use crate::support::book::{chapters, code_spans, name, prose};
use crate::support::json;
use serde_json::Value;

const FRAGMENTED: &str = "samples/fragmented-384M.unfrag";
const LOG: &str = "samples/page-allocation-failure.log";
/// The doctor's answer, which pages name without brackets too.
const OF_DOCTOR: [&str; 3] = ["diagnosis.", "needs.", "huge."];
/// Pages on Python's objects, and on files of the kernel.
const OF_OTHERS: [&str; 2] = ["docs/ask-from-python.md", "docs/rules/"];

/// What commands print that pages tell paths of.
fn printed() -> Vec<Value> {
    let frag = FRAGMENTED;
    [
        &["doctor", frag, "--need", "5x2M", "--huge", "5", "--json"][..],
        &[
            "replay",
            frag,
            "--set",
            "vm.compaction_proactiveness=0",
            "--json",
        ],
        &["inspect", frag, "--json"],
        &["account", frag, "--json"],
        &["explain", LOG, "--json"],
        &["blame", "samples/gcc-768M.unfrag", "--json"],
        &["summary", "samples/gcc-768M.unfrag", "--json"],
    ]
    .map(json)
    .into()
}

/// Names of keys with whether they are of a list; `None` if the text is no path.
fn steps(path: &str) -> Option<Vec<(&str, bool)>> {
    let step = |part: &'_ str| {
        let (name, list) = match part.split_once('[') {
            Some((name, rest)) => (name, Some(rest.strip_suffix(']')?)),
            None => (part, None),
        };
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let is_index = list.is_none_or(|i| i.chars().all(|c| c.is_ascii_digit()));
        (!name.is_empty() && name.chars().all(is_name) && is_index)
            .then_some((name.len(), list.is_some()))
    };
    path.split('.')
        .map(|part| step(part).map(|(len, list)| (&part[..len], list)))
        .collect()
}

/// Whether a value has it; of a list any item. A list that is empty has nothing that could be told.
fn has(value: &Value, steps: &[(&str, bool)]) -> bool {
    let Some(((key, is_list), rest)) = steps.split_first() else {
        return true;
    };
    match (value.get(*key), is_list) {
        (None, _) => false,
        (Some(found), false) => has(found, rest),
        (Some(Value::Array(items)), true) => rest.is_empty() || items.iter().any(|i| has(i, rest)),
        (Some(_), true) => false,
    }
}

#[test]
fn every_json_path_in_the_book_leads_somewhere() {
    let printed = printed();
    let (mut wrong, mut tested) = (vec![], 0);
    for page in chapters() {
        let page_name = name(&page);
        if OF_OTHERS.iter().any(|p| page_name.starts_with(p)) {
            continue;
        }
        let text = prose(&page);
        for span in code_spans(&text).0 {
            let is_path = span.contains('[') || OF_DOCTOR.iter().any(|p| span.starts_with(p));
            let Some(steps) = steps(span).filter(|_| is_path) else {
                continue;
            };
            tested += 1;
            if !printed.iter().any(|value| has(value, &steps)) {
                wrong.push(format!("{page_name}: `{span}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "no command prints\n{}", wrong.join("\n"));
    assert!(tested > 20, "only {tested}");
}

#[test]
fn a_path_begins_at_the_top() {
    let value = serde_json::json!({"diagnosis": {"nodes": [{"score": null}], "none": []}});
    let is = |path: &str| has(&value, &steps(path).expect("a path"));
    assert!(is("diagnosis.nodes[].score") && is("diagnosis.none[]"));
    assert!(!is("nodes[].score") && !is("diagnosis.nodes[].high") && !is("diagnosis.none[].name"));
    assert_eq!(steps("node 0[]"), None);
    assert_eq!(steps("a[b]"), None);
}
