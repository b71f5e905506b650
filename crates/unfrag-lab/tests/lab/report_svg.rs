//! The still picture.

use crate::report_support::{SAMPLES, example_ensemble, example_report};
use unfrag_lab::replay::view::svg::render;

#[test]
fn a_dot_for_each_recorded_snapshot_and_a_line_for_each_kernel() {
    let picture = render(&example_report());
    // Two plots, and three dots in the legend.
    assert_eq!(picture.matches("<circle").count(), 2 * SAMPLES + 3);
    assert_eq!(picture.matches("stroke=\"#0072B2\"").count(), 3);
    assert_eq!(picture.matches("stroke=\"#D55E00\"").count(), 3);
    assert!(picture.contains("Unusable index, order 9"));
}

#[test]
fn an_area_behind_the_line_where_several_replays_differ() {
    assert!(!render(&example_report()).contains("<polygon"));
    let picture = render(&example_ensemble());
    assert_eq!(picture.matches("<polygon").count(), 2, "one a plot");
    assert_eq!(
        picture.matches("opacity=\"0.2\" fill=\"#0072B2\"").count(),
        2
    );
}

#[test]
fn the_picture_loads_nothing_and_is_the_same_every_time() {
    let picture = render(&example_report());
    assert!(!picture.contains("href") && !picture.contains("url("));
    assert_eq!(picture, render(&example_report()));
    assert!(picture.len() < 40_000, "{} bytes", picture.len());
}

#[test]
fn names_are_escaped() {
    let mut report = example_report();
    report.recording.file = "</svg><script>".into();
    assert!(!render(&report).contains("<script"));
}

#[test]
fn nothing_recorded_or_nothing_asked_is_still_drawn() {
    let mut report = example_report();
    report.recorded.clear();
    assert!(!render(&report).contains("<circle"));
    report.kernels.clear();
    assert!(render(&report).ends_with("</svg>\n"));
}

#[test]
fn what_would_be_different_stands_below() {
    let picture = render(&example_report());
    for words in ["fewer waits for reclaim", "cannot be said", "20 to 60"] {
        assert!(picture.contains(words), "{words}");
    }
    let mut own = example_report();
    own.kernels.truncate(1);
    assert!(!render(&own).contains("cannot be said"));
}
