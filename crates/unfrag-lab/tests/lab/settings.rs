//! Settings by their Linux names: which there are, and what they may be.

use unfrag_eras::Sysctl;
use unfrag_lab::era::settings::{RecordedSettings, Setting, recorded};
use unfrag_lab::era::sysctl::{NAMES, changes_marks, describe, set};
use unfrag_linux::recording::{Recording, Snapshot, SnapshotFile};

fn with(name: &str, value: &str) -> Result<Sysctl, String> {
    let mut sysctl = Sysctl::default();
    set(&mut sysctl, name, value).map_err(|e| e.to_string())?;
    Ok(sysctl)
}

#[test]
fn each_setting_takes_the_ends_of_its_range_and_nothing_beyond() {
    for (name, good, bad) in [
        (
            "vm.min_free_kbytes",
            ["1", "4294967296"],
            ["0", "4294967297"],
        ),
        ("vm.watermark_scale_factor", ["1", "3000"], ["0", "3001"]),
        (
            "vm.watermark_boost_factor",
            ["0", "1048576"],
            ["-1", "1048577"],
        ),
        ("vm.percpu_pagelist_high_fraction", ["0", "8"], ["1", "7"]),
        ("vm.defrag_mode", ["0", "1"], ["2", "yes"]),
        ("vm.page_group_by_mobility_disabled", ["0", "1"], ["2", ""]),
        ("lru_gen/enabled", ["n", "0x0007"], ["8", "on"]),
        (
            "lru_gen/min_ttl_ms",
            ["0", "4294967296"],
            ["-1", "4294967297"],
        ),
        (
            "vm.lowmem_reserve_ratio",
            ["256", "256 256 32,0"],
            ["", "a"],
        ),
    ] {
        assert!(NAMES.contains(&name));
        for value in good {
            assert!(with(name, value).is_ok(), "{name}={value}");
        }
        for value in bad {
            let e = with(name, value).unwrap_err();
            assert!(e.contains(name), "{e}");
        }
    }
}

#[test]
fn every_name_that_is_offered_is_taken() {
    for name in NAMES {
        assert!(
            ["0", "1", "8"].iter().any(|v| with(name, v).is_ok()),
            "{name}"
        );
    }
}

#[test]
fn a_value_lands_in_its_own_place() {
    assert_eq!(
        with("vm.min_free_kbytes", " 4096 ")
            .unwrap()
            .min_free_kbytes,
        4096
    );
    assert!(with("vm.defrag_mode", "1").unwrap().defrag_mode);
    let ratio = with("vm.lowmem_reserve_ratio", "9 8")
        .unwrap()
        .lowmem_reserve_ratio;
    let before = Sysctl::default().lowmem_reserve_ratio;
    assert_eq!(
        (ratio[..2].to_vec(), &ratio[2..]),
        (vec![9, 8], &before[2..])
    );
    // The old name of the same.
    let old = with("vm.percpu_pagelist_fraction", "16").unwrap();
    assert_eq!(old.percpu_pagelist_high_fraction, 16);
}

#[test]
fn more_ratios_than_zones_and_unknown_names_are_errors() {
    assert!(with("vm.lowmem_reserve_ratio", "1 2 3 4 5 6 7 8").is_err());
    assert!(
        with("vm.zone_reclaim_mode", "0")
            .unwrap_err()
            .contains("vm.zone_reclaim_mode")
    );
}

#[test]
fn a_setting_that_moves_watermarks_makes_the_recorded_ones_void() {
    assert!(changes_marks("vm.min_free_kbytes"));
    assert!(changes_marks("vm.percpu_pagelist_high_fraction"));
    assert!(!changes_marks("vm.defrag_mode"));
    assert!(!changes_marks("vm.watermark_boost_factor"));
}

#[test]
fn the_recorded_hosts_own_settings_are_taken_from_its_sysctls() {
    let text = "/proc/sys/vm/watermark_scale_factor = 125\n/proc/sys/vm/swappiness = 3\n\
        /proc/sys/vm/watermark_boost_factor=0\nno value\n";
    let rec = Recording {
        snapshots: vec![Snapshot {
            name: "info".into(),
            files: vec![SnapshotFile {
                name: "sysctl-vm".into(),
                time: None,
                content: text.into(),
            }],
        }],
        ..Recording::default()
    };
    let found = recorded(&rec);
    assert_eq!(
        (found.watermark_scale_factor, found.watermark_boost_factor),
        (125, 0)
    );
    let none = recorded(&Recording::default());
    assert_eq!(
        none.watermark_scale_factor,
        Sysctl::default().watermark_scale_factor
    );
}

#[test]
fn the_report_names_every_setting() {
    let rules = unfrag_eras::preset("6.1").unwrap().rules;
    let shown = describe(&rules, &with("vm.min_free_kbytes", "777").unwrap());
    assert!(NAMES.iter().all(|n| shown.contains_key(*n)));
    assert_eq!(shown["vm.min_free_kbytes"], 777);
}

/// A recording whose snapshots, one a second from the first on, hold these lines in these files.
fn snapshots(all: &[&[(&str, &str)]]) -> Recording {
    let snapshot = |(second, files): (usize, &&[(&str, &str)])| Snapshot {
        name: format!("s{second:04}"),
        files: files
            .iter()
            .map(|(name, text)| SnapshotFile {
                name: (*name).into(),
                time: Some((second as u64 * SECOND, second as u64 * SECOND + 1000)),
                content: (*text).into(),
            })
            .collect(),
    };
    Recording {
        snapshots: all.iter().enumerate().map(snapshot).collect(),
        ..Recording::default()
    }
}

const SECOND: u64 = 1_000_000_000;
const PROACTIVENESS: &str = "vm.compaction_proactiveness";

fn values(rec: &Recording, given: &[Setting], name: &str) -> Vec<(u64, String)> {
    // The first event is at one second.
    let settings = RecordedSettings::of(rec, SECOND, 0, given);
    let all = settings.values(name).iter();
    all.map(|(t, v)| (t / SECOND, v.clone())).collect()
}

fn at(second: u64, value: &str) -> (u64, String) {
    (second, value.into())
}

#[test]
fn a_setting_that_changes_while_the_trace_runs_shows_at_the_next_snapshot() {
    let proc = "/proc/sys/vm/compaction_proactiveness";
    let of = |v: u8| format!("{proc}={v}\n/proc/sys/vm/swappiness=60\n");
    let [none, some] = [of(0), of(20)];
    let rec = snapshots(&[
        &[("sysctl-vm", &none)],
        &[],
        &[("sysctl-vm", &none)],
        &[("sysctl-vm", &some)],
        &[("sysctl-vm", &some)],
    ]);
    assert_eq!(values(&rec, &[], PROACTIVENESS), [at(0, "0"), at(3, "20")]);
    assert_eq!(values(&rec, &[], "vm.swappiness"), [at(0, "60")]);
    let settings = RecordedSettings::of(&rec, 0, 0, &[]);
    let then = |second| settings.at(second * SECOND, false).compaction_proactiveness;
    assert_eq!([then(0), then(2), then(3), then(9)], [0, 0, 20, 20]);
}

#[test]
fn what_somebody_says_holds_where_snapshots_say_something_else_or_nothing() {
    let rec = snapshots(&[&[("sysctl-vm", "vm.compaction_proactiveness = 0\n")]]);
    let given = |texts: &[&str]| -> Vec<Setting> {
        texts.iter().map(|t| Setting::parse(t).unwrap()).collect()
    };
    for (texts, expected) in [
        (
            &["vm.compaction_proactiveness=20@61"][..],
            vec![at(0, "0"), at(62, "20")],
        ),
        (&["compaction_proactiveness=20"], vec![at(0, "20")]),
        (
            &[
                "compaction_proactiveness=80@9",
                "compaction_proactiveness=20@4",
            ],
            vec![at(0, "0"), at(5, "20"), at(10, "80")],
        ),
    ] {
        assert_eq!(
            values(&rec, &given(texts), PROACTIVENESS),
            expected,
            "{texts:?}"
        );
        // The same as facts of the recording.
        let mut with_facts = rec.clone();
        with_facts
            .meta
            .facts
            .extend(given(texts).iter().map(Setting::fact));
        assert_eq!(
            values(&with_facts, &[], PROACTIVENESS),
            expected,
            "{texts:?}"
        );
    }
    assert_eq!(
        values(
            &rec,
            &given(&["extfrag_threshold=9"]),
            "vm.extfrag_threshold"
        ),
        [at(0, "9")]
    );
}

#[test]
fn settings_of_huge_pages_and_generations_are_read_with_the_word_that_is_chosen() {
    let text = "/sys/kernel/mm/lru_gen/enabled = 0x0007 \n\
        /sys/kernel/mm/transparent_hugepage/defrag = always defer [madvise] never \n";
    let rec = snapshots(&[&[("settings", text)]]);
    assert_eq!(values(&rec, &[], "lru_gen/enabled"), [at(0, "0x0007")]);
    assert_eq!(
        values(&rec, &[], "transparent_hugepage/defrag"),
        [at(0, "madvise")]
    );
}

#[test]
fn wrong_settings_and_times_are_refused_with_what_is_possible() {
    for (text, says) in [
        ("vm.compaction_proactiveness", "NAME=VALUE"),
        ("vm.compaction_proactiveness=", "from 0 to 100"),
        ("vm.compaction_proactiveness=101", "from 0 to 100"),
        ("vm.compaction_proactiveness=20@", "seconds"),
        ("vm.compaction_proactiveness=20@-1", "seconds"),
        ("vm.compaction_proactiveness=20@soon", "seconds"),
        ("vm.compaction_proactiveness=20@1.0000000001", "seconds"),
        (
            "vm.compaction_proactiveness=20@99999999999999999999",
            "seconds",
        ),
        ("vm.compaction_proactiveness=20@1@2", "seconds"),
        ("vm.no_such=1@2", "vm.no_such"),
        ("=1", "settings are"),
    ] {
        let e = Setting::parse(text).unwrap_err();
        assert!(e.contains(says), "{text}: {e}");
    }
    let s = Setting::parse("vm.compaction_proactiveness=20@61.5").unwrap();
    assert_eq!(s.at, Some(61_500_000_000));
    assert_eq!(s.to_string(), "vm.compaction_proactiveness=20@61.5");
    assert_eq!(s.fact().0, "vm.compaction_proactiveness@61.5");
}

#[test]
fn each_way_to_say_lru_gen_is_understood_and_all_else_refused() {
    let of = |value: &str| {
        let mut sysctl = Sysctl::default();
        set(&mut sysctl, "lru_gen/enabled", value).map(|()| sysctl.lru_gen)
    };
    for (value, on) in [
        ("y", true),
        ("Y", true),
        ("n", false),
        ("N", false),
        ("0", false),
        ("0x0000", false),
        ("0x0007", true),
        ("0x0006", false),
        ("1", true),
        ("7", true),
        (" 0x0007\n", true),
    ] {
        assert_eq!(of(value).ok(), Some(on), "{value:?}");
    }
    for value in [
        "", "yes", "no", "on", "8", "-1", "0x8", "0x", "x", "256", "y n", "1.0", "+1", "0x+1",
        "0x-1",
    ] {
        let e = of(value).expect_err(value).to_string();
        assert!(e.contains("lru_gen/enabled") && e.contains("0x0007"), "{e}");
    }
    for value in ["", "-1", "1s", "99999999999999999999"] {
        let e = Setting::new("lru_gen/min_ttl_ms", value);
        assert!(
            e.is_err_and(|e| e.contains("lru_gen/min_ttl_ms")),
            "{value}"
        );
    }
}
