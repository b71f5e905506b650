//! What `unfrag replay` prints.

mod report_support;

use report_support::{example_ensemble, example_report};
use unfrag_lab::replay::view::terminal::render;
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
    assert!(text.contains("Trust: not measured"), "{text}");
    report.kernels.clear();
    assert!(render(&report, &PLAIN).contains("pressure.unfrag"));
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
