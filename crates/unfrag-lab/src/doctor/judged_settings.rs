//! What becomes of each setting: to leave it, to change it, or not yet; one rule for the first screen, `--json` and the book.
//!
//! Invariant: what is advised, a candidate or withdrawn is said to be that, and to leave it is said of what was judged alone.

use super::advice::{Advice, JudgedSetting, Lasts, SettingVerdict};
use super::advice_text::while_watched;
use super::diagnosis::Diagnosis;
use crate::report::number::thousands;

/// Settings that decide most, by their names in [`Diagnosis::settings`], in this order.
const DECIDE_MOST: [&str; 4] = [
    "compaction_proactiveness",
    "thp_enabled",
    "thp_defrag",
    "min_free_kbytes",
];

/// The name that a setting has for people.
pub(super) fn path(name: &str) -> String {
    match name.strip_prefix("thp_") {
        Some(name) => format!("transparent_hugepage/{name}"),
        None => format!("vm.{name}"),
    }
}

/// The settings that decide most, and every other that is advised or may be.
pub fn judged(d: &Diagnosis) -> Vec<JudgedSetting> {
    let mut all: Vec<JudgedSetting> = DECIDE_MOST
        .iter()
        .filter_map(|name| of_setting(d, name))
        .collect();
    let advised = d
        .advice
        .iter()
        .map(|a| (a, SettingVerdict::Change, a.reason.as_str()));
    let candidates = d
        .candidates
        .iter()
        .map(|n| (&n.advice, SettingVerdict::NotYet, n.advice.reason.as_str()));
    for (advice, verdict, why) in advised.chain(candidates) {
        let Some(name) = name_of(advice) else {
            continue;
        };
        if all.iter().all(|s| s.setting != name) {
            all.push(JudgedSetting {
                setting: name,
                current: advice.current.clone(),
                verdict,
                advised: advice.value.clone(),
                why: before_zones(why).to_owned(),
            });
        }
    }
    all
}

/// The name of the setting that advice sets; `None` if it sets none.
fn name_of(a: &Advice) -> Option<String> {
    let of_thp = || a.command.split("/sys/kernel/mm/").nth(1).map(str::to_owned);
    (a.lasts == Lasts::Setting).then(|| a.setting.clone().or_else(of_thp))?
}

fn of_setting(d: &Diagnosis, name: &str) -> Option<JudgedSetting> {
    let setting = path(name);
    let is_it = |a: &Advice| name_of(a).as_ref() == Some(&setting);
    let current = d.settings.get(name).cloned();
    let given = |verdict, advised: &Advice, why: &str| {
        Some(JudgedSetting {
            setting: setting.clone(),
            current: current.clone().or_else(|| advised.current.clone()),
            verdict,
            advised: advised.value.clone(),
            why: before_zones(why).to_owned(),
        })
    };
    if let Some(a) = d.advice.iter().find(|a| is_it(a)) {
        return given(SettingVerdict::Change, a, &a.reason);
    }
    if let Some(n) = d.candidates.iter().find(|n| is_it(&n.advice)) {
        return given(SettingVerdict::NotYet, &n.advice, &n.advice.reason);
    }
    if let Some(n) = d.withdrawn.iter().find(|n| is_it(&n.advice)) {
        return given(SettingVerdict::Leave, &n.advice, &n.why_not);
    }
    let (verdict, why) = match (name, &current) {
        ("thp_defrag", None) if faults_wait(d) => (
            SettingVerdict::NotJudged,
            "not read; with always each fault that may have a huge page waits for compaction"
                .into(),
        ),
        (_, None) => return None,
        // Rates decide all but one, and without the kernel's counters there are none.
        ("compaction_proactiveness", _) => proactiveness(d),
        _ if d.work.is_empty() => (
            SettingVerdict::NotJudged,
            "the kernel's counters were not read".into(),
        ),
        _ => (SettingVerdict::Leave, String::new()),
    };
    Some(JudgedSetting {
        setting,
        current,
        verdict,
        advised: None,
        why,
    })
}

/// Whether requests compacted and faults got no huge page while the host was watched.
fn faults_wait(d: &Diagnosis) -> bool {
    let rose = |counter| while_watched(d, counter).is_some_and(|n| n > 0);
    rose("compact_stall") && rose("thp_fault_fallback")
}

/// What the score says of proactive compaction.
fn proactiveness(d: &Diagnosis) -> (SettingVerdict, String) {
    let Some((node, score)) = d
        .nodes
        .iter()
        .filter_map(|n| Some((n, n.score?)))
        .max_by_key(|(_, score)| *score)
    else {
        return (
            SettingVerdict::NotJudged,
            "the score is not known without the free blocks and sizes of all zones".into(),
        );
    };
    let at = match d.nodes.len() {
        1 => String::new(),
        _ => format!(" on node {}", node.node),
    };
    let why = match node.proactive_low_high {
        None => format!("score {score}{at}, never begins"),
        Some([_, high]) if score > high => format!(
            "score {score}{at}, begins above {}: it compacts already, and a larger value only burns CPU",
            thousands(high)
        ),
        Some([_, high]) => format!("score {score}{at}, begins above {}", thousands(high)),
    };
    (SettingVerdict::Leave, why)
}

/// A reason without what it says of single zones, which the cause says of all: unless it says nothing else.
pub(super) fn before_zones(reason: &str) -> &str {
    reason
        .split_once("; node ")
        .map_or(reason, |(before, _)| before)
}
