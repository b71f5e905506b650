//! Settings of a replay or a simulated kernel: sysctls by their Linux names.

use super::huge_pages;
use crate::error::{Asked, Error, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use unfrag_eras::kernel::{ClaimTest, Fallback, MarkGap, Merge, Pcp, Placement, Reserve};
use unfrag_eras::{Rules, Sysctl};

/// The value of `vm.min_free_kbytes` by which the kernel computes it from the size of memory.
pub const COMPUTED: &str = "computed";

/// Names that `--set` takes.
pub const NAMES: [&str; 13] = [
    "vm.min_free_kbytes",
    "vm.watermark_scale_factor",
    "vm.watermark_boost_factor",
    "vm.lowmem_reserve_ratio",
    "vm.percpu_pagelist_high_fraction",
    "vm.defrag_mode",
    "vm.page_group_by_mobility_disabled",
    "vm.compaction_proactiveness",
    "vm.extfrag_threshold",
    "vm.compact_unevictable_allowed",
    "vm.swappiness",
    "lru_gen/enabled",
    "lru_gen/min_ttl_ms",
];

/// Whether a setting changes watermarks or per-CPU lists, so that the recorded ones no longer hold.
pub fn changes_marks(name: &str) -> bool {
    !matches!(
        name,
        "vm.defrag_mode"
            | "vm.watermark_boost_factor"
            | "vm.compaction_proactiveness"
            | "vm.extfrag_threshold"
            | "vm.compact_unevictable_allowed"
            | "vm.swappiness"
            | "lru_gen/enabled"
            | "lru_gen/min_ttl_ms"
    )
}

/// Whether a kernel has a setting.
pub fn known_to(name: &str, sw: &Rules) -> bool {
    match name {
        "vm.watermark_scale_factor" => sw.marks.gap != MarkGap::Quarter,
        "vm.watermark_boost_factor" => sw.boost().is_some(),
        "vm.defrag_mode" => sw.pageblocks().is_some_and(|p| p.defrag_mode),
        "vm.page_group_by_mobility_disabled" => sw.pageblocks().is_some(),
        "vm.compaction_proactiveness" => sw.compact.is_some_and(|c| c.proactive.is_some()),
        "vm.extfrag_threshold" => sw.compact.is_some(),
        "vm.compact_unevictable_allowed" => sw.compact.is_some_and(|c| c.modes),
        "lru_gen/enabled" | "lru_gen/min_ttl_ms" => sw.generations().is_some(),
        _ => true,
    }
}

/// Sets one sysctl.
///
/// # Errors
/// If the name is not one of [`NAMES`], or the value is out of its range.
pub fn set(sysctl: &mut Sysctl, name: &str, value: &str) -> Result<()> {
    let bad = |what: &str| {
        Error::option(Asked::Setting, format!("{name}={value}: {what}"))
            .help(format!("settings are {}", NAMES.join(", ")))
    };
    let number = |range: std::ops::RangeInclusive<u64>| {
        value
            .trim()
            .parse()
            .ok()
            .filter(|n| range.contains(n))
            .ok_or_else(|| {
                bad(&format!(
                    "the value must be a number from {} to {}",
                    range.start(),
                    range.end()
                ))
            })
    };
    match name {
        "vm.min_free_kbytes" => {
            sysctl.min_free_kbytes = match value.trim() {
                COMPUTED => 0,
                _ => number(1..=1 << 32)?,
            };
        }
        "vm.watermark_scale_factor" => sysctl.watermark_scale_factor = number(1..=3000)?,
        "vm.watermark_boost_factor" => sysctl.watermark_boost_factor = number(0..=1 << 20)?,
        "vm.percpu_pagelist_high_fraction" | "vm.percpu_pagelist_fraction" => {
            let n = number(0..=1 << 20)?;
            if (1..8).contains(&n) {
                return Err(bad("the value must be 0, or 8 and more"));
            }
            sysctl.percpu_pagelist_high_fraction = n;
        }
        "vm.compaction_proactiveness" => {
            sysctl.compaction_proactiveness = number(0..=100)? as u8;
        }
        "vm.extfrag_threshold" => sysctl.extfrag_threshold = number(0..=1000)? as u16,
        "vm.compact_unevictable_allowed" => {
            sysctl.compact_unevictable_allowed = number(0..=1)? == 1;
        }
        "vm.swappiness" => sysctl.swappiness = number(0..=200)?,
        "lru_gen/enabled" => {
            sysctl.lru_gen = switch(value).ok_or_else(|| {
                bad("the value must be y, n, or a number from 0 to 7 whose lowest bit is the switch, such as 0x0007")
            })?;
        }
        "lru_gen/min_ttl_ms" => sysctl.lru_gen_min_ttl_ms = number(0..=1 << 32)?,
        "vm.defrag_mode" => sysctl.defrag_mode = number(0..=1)? == 1,
        "vm.page_group_by_mobility_disabled" => {
            sysctl.group_by_mobility_disabled = number(0..=1)? == 1;
        }
        "vm.lowmem_reserve_ratio" => {
            let parts: Vec<_> = value
                .split([' ', '\t', ','])
                .filter(|p| !p.is_empty())
                .collect();
            if parts.is_empty() || parts.len() > sysctl.lowmem_reserve_ratio.len() {
                return Err(bad(
                    "one number for each zone, separated by spaces or commas",
                ));
            }
            for (to, p) in sysctl.lowmem_reserve_ratio.iter_mut().zip(parts) {
                *to = p.parse().map_err(|_| bad("not a number"))?;
            }
        }
        _ => return Err(bad("there is no such setting, or it is not modelled yet")),
    }
    Ok(())
}

/// Whether a value of `lru_gen/enabled` turns it on: `y` and `n` set all its bits, and the lowest one is the switch.
pub fn switch(value: &str) -> Option<bool> {
    let value = value.trim();
    let is_plain = value.bytes().all(|b| b.is_ascii_alphanumeric());
    let bits = match value.strip_prefix("0x").or(value.strip_prefix("0X")) {
        Some(hex) => u8::from_str_radix(hex, 16).ok(),
        None => match value {
            "y" | "Y" => Some(7),
            "n" | "N" => Some(0),
            _ => value.parse().ok(),
        },
    };
    bits.filter(|b| is_plain && *b <= 7).map(|b| b & 1 == 1)
}

/// Name and value of a setting as a user writes it, `NAME=VALUE`; `vm.` may be left out.
///
/// # Errors
/// If there is no such setting, or it cannot have the value: a sentence that says what is possible.
pub fn parse(text: &str) -> std::result::Result<(String, String), String> {
    let names = || {
        format!(
            "settings are {}, {}, {}",
            NAMES.join(", "),
            huge_pages::ENABLED,
            huge_pages::DEFRAG
        )
    };
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("it should be NAME=VALUE; {}", names()))?;
    let (name, value) = (name.trim(), value.trim());
    let full = format!("vm.{name}");
    let name = match NAMES.contains(&&full[..]) {
        true => &full,
        false => name,
    };
    match set(&mut Sysctl::default(), name, value) {
        Ok(()) => Ok((name.to_owned(), value.to_owned())),
        Err(e) => Err(format!("{}; {}", e.cause, names())),
    }
}

/// A rule in words: `HighAtomic(PercentPlusBlock)` is `high_atomic percent_plus_block`.
fn in_words(rule: &dyn std::fmt::Debug) -> String {
    let mut out = String::new();
    for c in format!("{rule:?}").replace(": ", "=").chars() {
        let begins = out.is_empty() || out.ends_with([' ', '=']);
        match c {
            '(' | ' ' if !begins => out.push(' '),
            '(' | ' ' | ')' | '{' | '}' | ',' => {}
            _ => {
                if c.is_ascii_uppercase() && !begins {
                    out.push('_');
                }
                out.push(c.to_ascii_lowercase());
            }
        }
    }
    out.trim_end().to_owned()
}

/// Every setting and switch by name, for the report. What the kernel computes by itself is `null`.
pub fn describe(sw: &Rules, sysctl: &Sysctl) -> BTreeMap<String, Value> {
    let text = |v: &dyn std::fmt::Debug| json!(in_words(v));
    // These names are part of the report format, and do not follow the structure of the rules.
    let grouping = match sw.placement {
        Placement::Ungrouped => "none",
        Placement::V19 => "v19",
        Placement::Pageblocks(_) => "pageblocks",
    };
    let (scan, merge, boost) = match sw.pageblocks().map(|p| p.fallback) {
        None => ("descending", "free", "no"),
        Some(Fallback::ScanDown(s)) => (
            match s.movable_ascends {
                true => "movable_ascends",
                false => "descending",
            },
            match s.merge {
                Merge::All => "free",
                Merge::Ordinary => "ordinary",
            },
            s.boost.map_or("no", |_| "each_fallback"),
        ),
        Some(Fallback::ClaimThenSteal { boost, .. }) => (
            "claim_then_steal",
            "ordinary_retype",
            boost.map_or("no", |_| "claim_tries"),
        ),
    };
    let min_free_kbytes = match sysctl.min_free_kbytes {
        0 => Value::Null,
        set => json!(set),
    };
    let claim_test = sw
        .pageblocks()
        .map_or(ClaimTest::HalfFree, |p| p.claim_test);
    let reserve = match (&sw.placement, sw.reserve()) {
        (Placement::V19, Reserve::None) => json!("fallback"),
        (_, reserve) => text(&reserve),
    };
    let pcp = match sw.pcp {
        Pcp::Orders { tuned } => {
            let (tuned, late) = (tuned.is_some(), sw.lists_follow_blocks());
            json!(format!("orders tuned={tuned} type_at_drain={late}"))
        }
        other => text(&other),
    };
    let mut all = BTreeMap::from([
        ("vm.min_free_kbytes".into(), min_free_kbytes),
        (
            "vm.watermark_scale_factor".into(),
            json!(sysctl.watermark_scale_factor),
        ),
        (
            "vm.watermark_boost_factor".into(),
            json!(sysctl.watermark_boost_factor),
        ),
        (
            "vm.lowmem_reserve_ratio".into(),
            json!(sysctl.lowmem_reserve_ratio),
        ),
        (
            "vm.percpu_pagelist_high_fraction".into(),
            json!(sysctl.percpu_pagelist_high_fraction),
        ),
        ("vm.defrag_mode".into(), json!(u8::from(sysctl.defrag_mode))),
        (
            "vm.page_group_by_mobility_disabled".into(),
            json!(u8::from(sysctl.group_by_mobility_disabled)),
        ),
        (
            "vm.compaction_proactiveness".into(),
            json!(sysctl.compaction_proactiveness),
        ),
        (
            "vm.extfrag_threshold".into(),
            json!(sysctl.extfrag_threshold),
        ),
        ("vm.swappiness".into(), json!(sysctl.swappiness)),
        (
            "vm.compact_unevictable_allowed".into(),
            json!(u8::from(sysctl.compact_unevictable_allowed)),
        ),
        ("grouping".into(), json!(grouping)),
        ("fallback_scan".into(), json!(scan)),
        ("claim_test".into(), text(&claim_test)),
        ("merge".into(), json!(merge)),
        ("mark_check".into(), text(&sw.marks.check)),
        ("boost".into(), json!(boost)),
        ("reserve".into(), reserve),
        ("pcp".into(), pcp),
    ]);
    if sw.generations().is_some() {
        let on = u8::from(sysctl.lru_gen);
        all.insert("lru_gen/enabled".into(), json!(on));
        all.insert(
            "lru_gen/min_ttl_ms".into(),
            json!(sysctl.lru_gen_min_ttl_ms),
        );
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use unfrag_eras::kernel::{kernels, preset};

    #[test]
    fn every_rule_is_described_in_plain_words() {
        for kernel in kernels() {
            for (name, value) in describe(&kernel.rules, &Sysctl::default()) {
                let Value::String(text) = value else { continue };
                let is_plain =
                    |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || " _=".contains(c);
                assert!(text.chars().all(is_plain), "{} {name}: {text}", kernel.name);
            }
        }
    }

    #[test]
    fn what_the_kernel_computes_is_null_and_can_be_asked_for() {
        let mut sysctl = Sysctl::default();
        set(&mut sysctl, "vm.min_free_kbytes", "4096").unwrap();
        let described =
            |s: &Sysctl| describe(&preset("6.1").unwrap().rules, s)["vm.min_free_kbytes"].clone();
        assert_eq!(described(&sysctl), 4096);
        set(&mut sysctl, "vm.min_free_kbytes", COMPUTED).unwrap();
        assert_eq!(described(&sysctl), Value::Null);
        assert!(set(&mut sysctl, "vm.min_free_kbytes", "0").is_err());
    }
}
