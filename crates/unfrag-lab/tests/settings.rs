//! Settings by their Linux names: which there are, and what they may be.

use unfrag::Sysctl;
use unfrag_lab::era::sysctl::{NAMES, changes_marks, describe, recorded, set};
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
        with("vm.swappiness", "60")
            .unwrap_err()
            .contains("vm.swappiness")
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
    let rules = unfrag::preset("6.1").unwrap().rules;
    let shown = describe(&rules, &with("vm.min_free_kbytes", "777").unwrap());
    assert!(NAMES.iter().all(|n| shown.contains_key(*n)));
    assert_eq!(shown["vm.min_free_kbytes"], 777);
}
