//! What `unfrag replay` prints.

use crate::report_support::{example_breakdown, example_ensemble, example_report};
use unfrag_lab::replay::Report;
use unfrag_lab::replay::answer::report::{Accuracy, Measure};
use unfrag_lab::replay::view::terminal::render;
use unfrag_lab::replay::view::trust::{Grade, trust};
use unfrag_lab::report::screen::Screen;

const PLAIN: Screen = Screen {
    width: 80,
    color: false,
    unicode: true,
};

#[test]
fn eighty_columns_in_unicode() {
    insta::assert_snapshot!(&*render(&example_report(), &PLAIN));
}

#[test]
fn plain_ascii_in_a_hundred_columns() {
    let options = Screen {
        width: 100,
        unicode: false,
        ..PLAIN
    };
    let text = render(&example_report(), &options);
    assert!(text.is_ascii());
    insta::assert_snapshot!(&*text);
}

#[test]
fn one_kernel_is_drawn_in_braille() {
    let mut report = example_report();
    report.kernels.truncate(1);
    insta::assert_snapshot!(&*render(&report, &PLAIN));
}

#[test]
fn an_ensemble_shows_how_far_its_replays_are_apart() {
    let row = "least - most of the replays";
    assert!(!render(&example_report(), &PLAIN).contains(row));
    let text = render(&example_ensemble(), &PLAIN);
    let line = text.lines().find(|l| l.contains(row)).expect("a row");
    let last = &example_ensemble().kernels[0].samples;
    let spread = last.last().and_then(|s| s.zones[1].spread.clone()).unwrap();
    let most = unfrag_lab::report::number::thousands(spread.free_pages[1]);
    assert!(line.contains(&format!("- {most}")), "{line}");
    assert!(
        line.contains("  -  "),
        "nobody asked the other kernel: {line}"
    );
}

#[test]
fn no_line_is_wider_than_asked_for() {
    let mut report = example_report();
    for name in ["2.6.24", "5.6", "5.9", "6.18", "2.6.32-rc6", "unfrag"] {
        let mut kernel = report.kernels[1].clone();
        kernel.kernel = name.into();
        report.kernels.push(kernel);
    }
    for width in [60, 72, 80, 132, 200] {
        for unicode in [false, true] {
            let options = Screen {
                width,
                unicode,
                ..PLAIN
            };
            for line in render(&report, &options).lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn colour_changes_nothing_but_escape_sequences() {
    let mut report = example_report();
    report.kernels.truncate(1);
    let colored = render(
        &report,
        &Screen {
            color: true,
            ..PLAIN
        },
    );
    let mut bare = String::new();
    for (i, part) in colored.split("\x1b[").enumerate() {
        bare.push_str(if i == 0 {
            part
        } else {
            part.split_once('m').expect("a colour sequence ends in m").1
        });
    }
    assert_eq!(bare, *render(&report, &PLAIN));
}

#[test]
fn an_empty_replay_is_still_readable() {
    let mut report = example_report();
    report.recorded.clear();
    for kernel in &mut report.kernels {
        kernel.samples.clear();
        kernel.accuracy = None;
        kernel.block_map = None;
    }
    let text = render(&report, &PLAIN);
    assert!(text.contains("Trust: not measured"), "{}", text.to_string());
    report.kernels.clear();
    assert!(render(&report, &PLAIN).contains("pressure.unfrag"));
}

/// What is changed in an accuracy of which every measure is good.
type Change = fn(&mut Accuracy);

/// An accuracy with which nothing is wrong.
fn good(report: &mut Report) -> &mut Accuracy {
    let a = report.kernels[0].accuracy.as_mut().unwrap();
    let measure = Measure {
        median: 0.01,
        p90: 0.02,
        max: 0.03,
        skill: Some(0.9),
    };
    a.order_distribution_error = measure;
    a.free_pages_error = measure;
    a.unusable_index_error = ["3", "9"].map(|o| (o.to_string(), measure)).into();
    a.pageblock_type_error = Some(measure);
    a.snapshots = 10;
    a
}

#[test]
fn trust_goes_by_the_worst_measure_and_names_it() {
    use Grade::{Fair, High, Low};
    let cases: [(Change, Grade, &str); 16] = [
        (|_| {}, High, "free memory"),
        (|a| a.snapshots = 9, Fair, "number of snapshots"),
        (|a| a.snapshots = 1, Fair, "number of snapshots"),
        (
            |a| a.order_distribution_error.skill = Some(0.6),
            Fair,
            "sizes of free blocks",
        ),
        (|a| a.free_pages_error.skill = Some(0.3), Low, "free memory"),
        (
            |a| a.free_pages_error.skill = Some(-306.0),
            Grade::None,
            "free memory",
        ),
        (
            |a| a.unusable_index_error.get_mut("3").unwrap().skill = Some(0.0),
            Grade::None,
            "order 3",
        ),
        (
            |a| a.unusable_index_error.get_mut("9").unwrap().skill = Some(0.7),
            Fair,
            "order 9",
        ),
        (
            |a| a.pageblock_type_error.as_mut().unwrap().skill = Some(0.2),
            Low,
            "pageblocks",
        ),
        // Far off, though a forecaster who only counts is further off still, or not off at all.
        (
            |a| a.free_pages_error.p90 = 0.487,
            Grade::None,
            "free memory",
        ),
        (
            |a| (a.free_pages_error.p90, a.free_pages_error.skill) = (0.487, None),
            Grade::None,
            "free memory",
        ),
        (|a| a.free_pages_error.p90 = 0.2, Low, "free memory"),
        (|a| a.free_pages_error.skill = None, Fair, "free memory"),
        // An error that is smaller than what reading the files one after the other makes.
        (
            |a| (a.free_pages_error.max, a.free_pages_error.skill) = (0.01, Some(-9.0)),
            Fair,
            "free memory",
        ),
        (
            |a| a.huge_faults.as_mut().unwrap().both = 300,
            Low,
            "huge page",
        ),
        (
            |a| a.huge_faults.as_mut().unwrap().both = 0,
            Grade::None,
            "huge page",
        ),
    ];
    for (change, grade, by) in cases {
        let mut report = example_report();
        change(good(&mut report));
        let t = trust(&report);
        assert_eq!(t.grade, Some(grade), "{t:?}");
        assert!(t.decided_by.is_some_and(|d| d.contains(by)), "{by}: {t:?}");
        assert!(t.sentences.iter().any(|s| s.contains(by)), "{t:?}");
    }
}

#[test]
fn what_is_not_measured_limits_no_trust() {
    let mut report = example_report();
    let a = good(&mut report);
    a.pageblock_type_error = None;
    a.huge_faults = None;
    assert_eq!(trust(&report).grade, Some(Grade::High));
    report.kernels[0].accuracy = None;
    let t = trust(&report);
    assert_eq!((t.grade, t.word()), (None, "not measured"));
}

/// The first kernel of the example is the recorded one as it was, of which nothing would be different.
#[test]
fn what_can_be_said_is_said_with_its_bar_and_what_cannot_is_named() {
    let wide = Screen {
        width: 400,
        ..PLAIN
    };
    let text = render(&example_report(), &wide).to_string();
    let words: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "Under 2.6.32: fewer stalls in direct reclaim: 20 to 60 instead of 178; more pages moved: 9,000 to 15,000 instead of 1,204",
        "higher unusable index of huge pages at the end: 0.800 to 1.000 instead of 0.609.",
        "About the same: huge pages for faults.",
        "Cannot say whether there is more or less of: free huge blocks at the end and unmovable pageblocks at the end.",
        "2 - 60 cannot say",
        "about 74 cannot say",
        "held against real kernels; loads: build, service.",
    ] {
        assert!(words.contains(said), "{said}: {words}");
    }
    assert!(!words.contains("Under 6.1:"), "{words}");
    assert!(
        !words.contains("stalls in compaction:"),
        "of none there are none"
    );
    let mut own = example_report();
    own.kernels.truncate(1);
    assert!(!render(&own, &PLAIN).contains("different"));
}

#[test]
fn where_the_model_broke_down_no_view_has_a_number_of_it() {
    let report = example_breakdown();
    let text = render(&report, &PLAIN).to_string();
    let html = unfrag_lab::replay::view::html::render(&report);
    let svg = unfrag_lab::replay::view::svg::render(&report);
    for (view, text) in [("text", &text), ("page", &html), ("picture", &svg)] {
        let words: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("No answer under 2.6.32"), "{view}");
        assert!(!words.contains("instead of 178"), "{view}");
    }
    assert!(
        text.contains("milder setting"),
        "what the user can do: {text}"
    );
    assert!(!text.contains("         2.6.32\n"), "no column: {text}");
}

/// What was never measured is trusted little, however well the recorded kernel is replayed.
#[test]
fn trust_goes_by_the_kind_of_question_too() {
    let mut report = example_report();
    good(&mut report);
    assert_eq!(trust(&report).grade, Some(Grade::High));
    report.kernels[1].what_if.as_mut().unwrap().comparisons = 0;
    let t = trust(&report);
    assert_eq!(
        (t.grade, t.decided_by),
        (Some(Grade::Low), Some("the kind of question"))
    );
    let words = render(&report, &PLAIN).to_string();
    let words: Vec<&str> = words.split_whitespace().collect();
    assert!(words.join(" ").contains("were not measured"));
    report.kernels[1].what_if = None;
    report.kernels[0].guessed_settings = vec!["vm.compaction_proactiveness".into()];
    assert_eq!(
        trust(&report).grade,
        Some(Grade::Fair),
        "{:?}",
        trust(&report)
    );
}

#[test]
fn another_setting_of_the_recorded_kernel_is_not_another_kernel() {
    let mut report = example_report();
    report.kernels.truncate(1);
    report.kernels[0].accuracy = None;
    report.asked_settings = vec!["vm.min_free_kbytes=65536".into()];
    let text = render(&report, &PLAIN).to_string();
    assert!(!text.contains("None of the kernels"), "{text}");
    assert!(text.contains("under other settings"), "{text}");
}

#[test]
fn many_kernels_are_broken_into_tables_not_into_lines() {
    let mut report = example_report();
    for i in 0..12 {
        let mut kernel = report.kernels[1].clone();
        kernel.kernel = format!("5.{i}");
        report.kernels.push(kernel);
    }
    for width in 80..130 {
        let text = render(&report, &Screen { width, ..PLAIN });
        let labels = text.matches("Unusable index, order 9 (2 MiB)").count();
        assert_eq!(labels, text.matches("Free memory, MiB").count(), "{width}");
    }
}
