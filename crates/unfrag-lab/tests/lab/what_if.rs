//! What would be different: replays of the sample, and bars against the comparisons with real kernels that ship.

use crate::recording_support::sample;
use std::collections::BTreeSet;
use unfrag_lab::era::settings::Setting;
use unfrag_lab::replay::answer::report::KernelReport;
use unfrag_lab::replay::answer::what_if::class::Asked;
use unfrag_lab::replay::answer::what_if::found::Verdict;
use unfrag_lab::replay::answer::what_if::measured::{Compared, Measured};
use unfrag_lab::replay::answer::what_if::quantity::QUANTITIES;
use unfrag_lab::replay::{NoWatch, Options, replay};

fn changes(options: &Options) -> KernelReport {
    let report = replay(sample(), "sample", options, &mut NoWatch).unwrap();
    report.kernels.into_iter().next().unwrap()
}

fn set(text: &str) -> Options {
    Options {
        set: vec![Setting::parse(text).unwrap()],
        ..Options::default()
    }
}

#[test]
fn the_recorded_kernel_as_it_was_is_no_what_if() {
    // The host's own value, which is no question either.
    let own = set("vm.watermark_scale_factor=10");
    let own = Options {
        recorded: own.set.clone(),
        ..own
    };
    for options in [Options::default(), own] {
        let kernel = changes(&options);
        let what_if = kernel.what_if.unwrap();
        assert_eq!(what_if.class.asked, Asked::Own, "{:?}", options.set);
        for c in what_if.changes {
            assert_eq!(c.verdict, None, "{c:?}");
            assert_eq!(c.own, Some(c.asked), "{c:?}");
        }
    }
}

#[test]
fn every_number_has_a_bar_that_holds_its_prediction() {
    let other = Options {
        kernels: vec!["6.18".into()],
        ..Options::default()
    };
    for options in [other, set("vm.watermark_scale_factor=300")] {
        let kernel = changes(&options);
        let what_if = kernel.what_if.unwrap();
        assert_ne!(what_if.class.asked, Asked::Own);
        assert!(what_if.changes.len() > 15, "{:?}", what_if.changes);
        for c in what_if.changes {
            let [low, high] = c.bar.unwrap();
            assert!(low <= c.predicted && c.predicted <= high, "{c:?}");
            assert_eq!(c.verdict.is_none(), c.reason.is_some(), "{c:?}");
            let Some(from) = c.instead_of else { continue };
            match c.verdict {
                Some(Verdict::More) => assert!(low > from, "{c:?}"),
                Some(Verdict::Less) => assert!(high < from, "{c:?}"),
                _ => {}
            }
        }
    }
}

/// Else a question that is asked beside another would have another answer.
#[test]
fn numbers_do_not_depend_on_what_else_is_asked() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../samples/fragmented-384M.unfrag"
    );
    let recording = unfrag_linux::file::read(std::path::Path::new(path)).unwrap();
    let of = |kernels: &[&str]| {
        let options = Options {
            kernels: kernels.iter().map(|k| k.to_string()).collect(),
            members: Some(7),
            ..Options::default()
        };
        let report = replay(&recording, "sample", &options, &mut NoWatch).unwrap();
        let asked = report.kernels.into_iter().find(|k| k.kernel == "6.18");
        format!("{:?}", asked.unwrap().what_if.unwrap().changes)
    };
    assert_eq!(of(&["6.18"]), of(&["6.12", "6.1", "6.18"]));
}

/// More members know no more of the host: the median of few lies inside the bars of many.
#[test]
fn more_members_do_not_move_a_median_out_of_the_bar() {
    let of = |members| {
        let options = Options {
            members: Some(members),
            ..set("vm.min_free_kbytes=32768")
        };
        changes(&options).what_if.unwrap().changes
    };
    for (few, many) in of(3).iter().zip(of(21)) {
        let [low, high] = many.bar.unwrap();
        assert!(
            low <= few.predicted && few.predicted <= high,
            "{few:?} {many:?}"
        );
    }
}

/// Options with what the host had of huge pages, and another value of one of these settings.
fn huge_pages(text: &str) -> Options {
    let had = [
        "transparent_hugepage/enabled=always",
        "transparent_hugepage/defrag=madvise",
    ];
    Options {
        recorded: had.map(|s| Setting::parse(s).unwrap()).into(),
        ..set(text)
    }
}

#[test]
fn faults_ask_for_huge_pages_as_the_settings_say() {
    let total = |k: &KernelReport, name: &str| k.totals[name].unwrap();
    let own = changes(&huge_pages("transparent_hugepage/enabled=always"));
    assert_eq!(own.what_if.as_ref().unwrap().class.asked, Asked::Own);
    assert!(total(&own, "thp_fault_alloc") > 100);
    let never = changes(&huge_pages("transparent_hugepage/enabled=never"));
    let asked = [
        "thp_fault_alloc",
        "thp_fault_fallback",
        "thp_collapse_alloc",
    ];
    assert_eq!(asked.map(|name| total(&never, name)), [0; 3]);
    let lost = total(&own, "thp_fault_alloc_recorded") + total(&own, "thp_collapse_alloc_recorded");
    assert_eq!(total(&never, "huge_pages_lost"), lost);
    assert_eq!(never.what_if.unwrap().class.asked, Asked::Setting);
    assert_eq!(never.settings["transparent_hugepage/enabled"], "never");
    // As many faults ask, each with another effort.
    let faults = |k: &KernelReport| total(k, "thp_fault_alloc") + total(k, "thp_fault_fallback");
    for defrag in ["never", "defer", "always"] {
        let k = changes(&huge_pages(&format!(
            "transparent_hugepage/defrag={defrag}"
        )));
        assert_eq!(faults(&k), faults(&own), "{defrag}");
    }
    let unknown = replay(
        sample(),
        "sample",
        &set("transparent_hugepage/enabled=never"),
        &mut NoWatch,
    );
    let e = unknown.unwrap_err().to_string();
    assert!(e.contains("transparent_hugepage/enabled"), "{e}");
}

/// The table that ships.
const TABLE: &str = include_str!("../../src/replay/answer/what_if/measured.tsv");

#[test]
fn every_line_of_the_table_is_read() {
    let all = Measured::parse(TABLE).unwrap();
    let lines = TABLE
        .lines()
        .filter(|l| !l.starts_with('#') && !l.is_empty());
    assert_eq!(all.all().len(), lines.count());
    assert!(all.all() == Measured::shipped().all());
    let names: BTreeSet<usize> = all.all().iter().map(|c| c.quantity).collect();
    assert_eq!(names.len(), QUANTITIES.len(), "a number was never compared");
}

/// Comparisons whose real value the error of its class, as other recordings tell it, reaches: how many, of how many.
fn inside(
    all: &Measured,
    of: impl Fn(&Compared) -> bool,
    held_out: impl Fn(&Compared, &Compared) -> bool,
) -> (usize, usize) {
    let (mut inside, mut known) = (0, 0);
    // That nothing happens where nothing happened is no achievement.
    let is_of_nothing = |c: &Compared| c.predicted == 0.0 && c.real == [0.0; 2];
    for c in all.all().iter().filter(|c| of(c) && !is_of_nothing(c)) {
        let others = all.filtered(|other| !held_out(c, other));
        let Some(error) = others.error(&QUANTITIES[c.quantity], c.class).error else {
            continue;
        };
        known += 1;
        inside += usize::from(c.error().abs() <= error + 1e-9);
    }
    (inside, known)
}

/// The bars are made of this and of what differs between replays, and so are wider still.
#[test]
fn four_of_five_real_numbers_lie_inside_bars_of_other_recordings() {
    let all = Measured::shipped();
    let same_recording = |a: &Compared, b: &Compared| a.recording == b.recording;
    let same_load = |a: &Compared, b: &Compared| a.load == b.load;
    let asked = |c: &Compared| c.class.asked != Asked::Own;
    for (name, of) in [("own", false), ("asked", true)] {
        let by_recording = inside(all, |c| asked(c) == of, same_recording);
        let by_load = inside(all, |c| asked(c) == of, same_load);
        for (held_out, (inside, known)) in [("recording", by_recording), ("load", by_load)] {
            println!("{name}: {inside} of {known} inside, by bars without that {held_out}");
            let share = inside as f64 / known as f64;
            assert!((0.7..=0.92).contains(&share), "{name}: {inside} of {known}");
        }
    }
}

/// A direction that is named should be that of the real kernels; where they hardly differ there is none.
#[test]
fn nine_of_ten_directions_that_are_named_come_true() {
    let all = Measured::shipped();
    let (mut right, mut named, mut differ) = (0, 0, 0);
    for c in all.all().iter().filter(|c| c.class.asked != Asked::Own) {
        let quantity = &QUANTITIES[c.quantity];
        let others = all.filtered(|other| other.recording != c.recording);
        let error = others.error(quantity, c.class).error;
        let (Some(recorded), Some(error)) = (c.recorded, error) else {
            continue;
        };
        let up = |v: f64| quantity.scale.up(v);
        let real = (c.real[0] + c.real[1]) / 2.0;
        if (real - recorded).abs() <= quantity.scale.negligible(recorded) {
            continue;
        }
        differ += 1;
        let predicted = up(c.predicted) - up(recorded);
        if predicted.abs() > error {
            named += 1;
            right += usize::from(predicted * (up(real) - up(recorded)) > 0.0);
        }
    }
    println!("{right} right of {named} directions named, of {differ} differences");
    assert!(named > 10 && right * 10 >= named * 9, "{right} of {named}");
}

/// Of each: the kernel, what is asked for, and what the answer says.
#[test]
fn a_setting_that_would_change_nothing_is_refused() {
    let cases = [
        (
            "2.6.32",
            &["lru_gen/enabled=y"][..],
            "2.6.32 has no lru_gen/enabled",
        ),
        (
            "2.6.32",
            &["vm.compaction_proactiveness=50"],
            "2.6.32 has no vm.compaction_proactiveness",
        ),
        ("6.1", &["vm.defrag_mode=1"], "6.1 has no vm.defrag_mode"),
        (
            "6.1",
            &["vm.compaction_proactiveness=80@999999"],
            "the recording ends before 999999 s",
        ),
        (
            "6.1",
            &[
                "vm.watermark_scale_factor=20",
                "vm.watermark_scale_factor=30",
            ],
            "asked for twice",
        ),
    ];
    for (kernel, set, says) in cases {
        let options = Options {
            kernels: vec![kernel.into()],
            set: set.iter().map(|s| Setting::parse(s).unwrap()).collect(),
            ..Options::default()
        };
        let e = replay(sample(), "a recording", &options, &mut NoWatch).unwrap_err();
        assert!(e.to_string().contains(says), "{set:?}: {e}");
    }
}
