//! What `unfrag replay` prints.

use crate::report_support::{example_ensemble, example_report};
use unfrag_lab::replay::Report;
use unfrag_lab::replay::answer::report::{Accuracy, Measure};
use unfrag_lab::replay::view::detail::Detail;
use unfrag_lab::replay::view::grade::Grade;
use unfrag_lab::replay::view::terminal;
use unfrag_lab::replay::view::trust::{Question, Trust, trust};
use unfrag_lab::report::screen::{Screen, Text};

const PLAIN: Screen = Screen {
    width: 80,
    color: false,
    unicode: true,
};

fn render(report: &Report, screen: &Screen) -> Text {
    terminal::render(report, screen, Detail::Short)
}

fn render_all(report: &Report, screen: &Screen) -> Text {
    terminal::render(report, screen, Detail::All)
}

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
    let text = render_all(&example_report(), &options);
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
    assert!(!render_all(&example_report(), &PLAIN).contains(row));
    let text = render_all(&example_ensemble(), &PLAIN);
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
            for text in [render(&report, &options), render_all(&report, &options)] {
                for line in text.lines() {
                    assert!(line.chars().count() <= width, "{width}: {line}");
                }
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

fn grade(trust: &Trust, of: Question) -> Option<Grade> {
    trust.of(of).grade
}

#[test]
fn each_question_is_trusted_as_far_as_the_worst_of_its_measures() {
    use Grade::{Fair, High, Low};
    use Question::{Fragmentation, FreeMemory};
    let cases: [(Change, Question, Grade, &str); 17] = [
        (|_| {}, FreeMemory, High, "free memory"),
        (|_| {}, Fragmentation, High, "pageblocks"),
        (|a| a.snapshots = 9, FreeMemory, Fair, "number of snapshots"),
        (
            |a| a.snapshots = 1,
            Fragmentation,
            Fair,
            "number of snapshots",
        ),
        (
            |a| a.order_distribution_error.skill = Some(0.6),
            FreeMemory,
            Fair,
            "sizes of free blocks",
        ),
        (
            |a| a.free_pages_error.skill = Some(0.3),
            FreeMemory,
            Low,
            "free memory",
        ),
        (
            |a| a.free_pages_error.skill = Some(-306.0),
            FreeMemory,
            Grade::None,
            "free memory",
        ),
        (
            |a| a.unusable_index_error.get_mut("3").unwrap().skill = Some(0.0),
            FreeMemory,
            Grade::None,
            "below 32 KiB",
        ),
        (
            |a| a.unusable_index_error.get_mut("9").unwrap().skill = Some(0.7),
            FreeMemory,
            Fair,
            "below 2 MiB",
        ),
        (
            |a| a.pageblock_type_error.as_mut().unwrap().skill = Some(0.2),
            Fragmentation,
            Low,
            "pageblocks",
        ),
        // Far off, though a forecaster who only counts is further off still, or not off at all.
        (
            |a| a.free_pages_error.p90 = 0.487,
            FreeMemory,
            Grade::None,
            "free memory",
        ),
        (
            |a| (a.free_pages_error.p90, a.free_pages_error.skill) = (0.487, None),
            FreeMemory,
            Grade::None,
            "free memory",
        ),
        (
            |a| a.free_pages_error.p90 = 0.2,
            FreeMemory,
            Low,
            "free memory",
        ),
        (
            |a| a.free_pages_error.skill = None,
            FreeMemory,
            Fair,
            "free memory",
        ),
        // An error that is smaller than what reading the files one after the other makes, and larger than that of counting.
        (
            |a| (a.free_pages_error.max, a.free_pages_error.skill) = (0.01, Some(-9.0)),
            FreeMemory,
            Low,
            "free memory",
        ),
        (
            |a| a.huge_faults.as_mut().unwrap().both = 300,
            FreeMemory,
            Low,
            "huge page",
        ),
        (
            |a| a.huge_faults.as_mut().unwrap().both = 0,
            FreeMemory,
            Grade::None,
            "huge page",
        ),
    ];
    for (change, question, wanted, by) in cases {
        let mut report = example_report();
        change(good(&mut report));
        let all = trust(&report);
        let t = all.of(question);
        assert_eq!(t.grade, Some(wanted), "{t:?}");
        let decided = t.decided_by.as_ref();
        assert!(decided.is_some_and(|d| d.contains(by)), "{by}: {t:?}");
        assert!(t.because.contains(by), "{t:?}");
    }
}

/// A model that is right about free memory may be wrong about what fragments it, and about who waits.
#[test]
fn one_question_says_nothing_of_another() {
    let mut report = example_report();
    good(&mut report)
        .pageblock_type_error
        .as_mut()
        .unwrap()
        .skill = Some(-0.42);
    let all = trust(&report);
    let grades = Question::ALL.map(|q| grade(&all, q));
    assert_eq!(
        grades,
        [Some(Grade::High), Some(Grade::None), Some(Grade::High)]
    );
    let because = &all.of(Question::Fragmentation).because;
    assert!(
        because.contains("1.42 times that of only counting"),
        "{because}"
    );
}

#[test]
fn waits_are_trusted_by_what_both_counted_and_not_at_all_where_nothing_was() {
    let of = |asked: f64, recorded: f64| {
        let mut report = example_report();
        let own = report.kernels[0].what_if.as_mut().unwrap();
        for c in &mut own.changes {
            (c.asked, c.recorded) = match c.name {
                "allocstall" => (asked, Some(recorded)),
                _ => (0.0, Some(0.0)),
            };
        }
        trust(&report).of(Question::Waits).clone()
    };
    assert_eq!(of(178.0, 178.0).grade, Some(Grade::High));
    let off = of(2.0, 57.0);
    assert_eq!(off.grade, Some(Grade::None));
    assert!(
        off.because.contains("2 in the model, 57 recorded"),
        "{off:?}"
    );
    for few in [of(0.0, 0.0), of(3.0, 9.0)] {
        assert_eq!((few.grade, few.word()), (None, "not measured"), "{few:?}");
        assert_eq!(few.error, None);
    }
    // What was taken as recorded measures nothing.
    let mut report = example_report();
    let totals = &mut report.kernels[0].totals;
    totals.insert("reclaimed_pages_as_given".into(), Some(9));
    totals.insert("migrated_pages_as_given".into(), Some(9));
    assert_eq!(trust(&report).of(Question::Waits).grade, None);
}

#[test]
fn what_is_not_measured_limits_no_trust() {
    let mut report = example_report();
    let a = good(&mut report);
    a.pageblock_type_error = None;
    a.huge_faults = None;
    let all = trust(&report);
    assert_eq!(grade(&all, Question::FreeMemory), Some(Grade::High));
    assert_eq!(grade(&all, Question::Fragmentation), None);
    report.kernels[0].accuracy = None;
    let all = trust(&report);
    for question in Question::ALL {
        let t = all.of(question);
        assert_eq!((t.grade, t.word()), (None, "not measured"));
    }
}

/// What was never measured is trusted little, however well the recorded kernel is replayed.
#[test]
fn trust_goes_by_the_kind_of_question_too() {
    let mut report = example_report();
    good(&mut report);
    let free = |r: &Report| trust(r).of(Question::FreeMemory).clone();
    assert_eq!(free(&report).grade, Some(Grade::High));
    report.kernels[1].what_if.as_mut().unwrap().comparisons = 0;
    let t = free(&report);
    assert_eq!(
        (t.grade, t.decided_by.as_deref()),
        (Some(Grade::Low), Some("the kind of question"))
    );
    let words = render(&report, &PLAIN).to_string();
    let words: Vec<&str> = words.split_whitespace().collect();
    assert!(words.join(" ").contains("were not measured"));
    report.kernels[1].what_if = None;
    report.kernels[0].guessed_settings = vec!["vm.compaction_proactiveness".into()];
    assert_eq!(
        free(&report).grade,
        Some(Grade::Fair),
        "{:?}",
        free(&report)
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
    assert!(text.contains("has no answer here"), "{text}");
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
        let labels = text
            .matches("Share in pieces below 2 MiB (unusable index)")
            .count();
        assert_eq!(labels, text.matches("Free memory, MiB").count(), "{width}");
    }
}
