//! What `--mode observe` found, as text: whether the recording explains itself.
//!
//! Invariant: plain text, no line wider than asked for but for a single unbreakable word.

use super::wording::recording_sentence;
use crate::replay::answer::Report;
use crate::replay::answer::report::{ClassCheck, Observed};
use crate::report::number::{percent, thousands};
use crate::report::screen::Text;
use std::fmt::Write as _;

/// Share of unexplained events below which a recording counts as sound.
const FEW: f64 = 0.001;

/// The text, `width` columns wide; empty if the report is no observation.
pub fn render(report: &Report, width: usize) -> Text {
    let Some(seen) = &report.observe else {
        return Text::new();
    };
    let mut out = String::new();
    wrap(&mut out, &recording_sentence(report), width);
    let text = format!(
        "Observed: every page where the trace put it, starting at the {} of the first snapshot in \
         the trace. Nothing is predicted; this checks the recording.",
        report.start
    );
    wrap(&mut out, &text, width);
    let verdict = if seen.unclassified_share < FEW {
        "so the recording explains itself"
    } else {
        "so something is missing from it (events that were not traced, or lost)"
    };
    let text = format!(
        "Of {} allocations and frees between the first and the last snapshot, {} have no \
         explanation ({}), {verdict}.",
        thousands(seen.events),
        thousands(seen.unclassified),
        percent(seen.unclassified_share)
    );
    wrap(&mut out, &text, width);
    counters(seen, &mut out, width);
    layouts(seen, &mut out);
    out.into()
}

fn counters(seen: &Observed, out: &mut String, width: usize) {
    let _ = writeln!(
        out,
        "\nEvents in the trace against the kernel's own counters"
    );
    for check in &seen.classes {
        wrap(out, &counter(check), width);
    }
}

fn counter(check: &ClassCheck) -> String {
    let pages = thousands(check.pages);
    match (check.counted, check.difference) {
        (Some(counted), Some(difference)) => format!(
            "- {}: {pages}; {} rose by {} ({}{})",
            check.class,
            check.counter,
            thousands(counted),
            if difference < 0.0 { "-" } else { "+" },
            percent(difference.abs()),
        ),
        _ => format!(
            "- {}: {pages}; the kernel does not count them ({})",
            check.class, check.counter
        ),
    }
}

fn layouts(seen: &Observed, out: &mut String) {
    if seen.layouts.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\nFrames that are free by the events, against the kernel's free lists"
    );
    let widest = seen.layouts.iter().map(|l| l.name.chars().count()).max();
    let width = widest.unwrap_or(0).max(4);
    let _ = writeln!(
        out,
        "{:<width$} {:>10} {:>13} {:>13}",
        "mark", "free there", "wrongly free", "wrongly used"
    );
    for l in &seen.layouts {
        let _ = writeln!(
            out,
            "{:<width$} {:>10} {:>13} {:>13}",
            l.name,
            thousands(l.free_pages),
            thousands(l.wrongly_free),
            thousands(l.wrongly_used)
        );
    }
}

fn wrap(out: &mut String, text: &str, width: usize) {
    let indent = if text.starts_with("- ") { "  " } else { "" };
    let mut used = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            out.push('\n');
            out.push_str(indent);
            used = indent.len();
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::answer::report::{LayoutCheck, RecordingSummary};

    fn report(unclassified: u64) -> Report {
        Report {
            recording: RecordingSummary {
                file: "a.unfrag".into(),
                kernel_release: "6.1.0".into(),
                cpus: 2,
                events: 20_000,
                lost_events: 0,
                share_of_allocations: None,
                seconds: 60.0,
                managed_bytes: 1 << 30,
                snapshots: 60,
                sizes: crate::geometry::Sizes::default(),
            },
            mode: "observe".into(),
            start: "exact".into(),
            asked_settings: vec![],
            start_lists: None,
            recorded: vec![],
            kernels: vec![],
            own: None,
            observe: Some(Observed {
                events: 10_000,
                classes: vec![
                    ClassCheck {
                        class: "pages freed".into(),
                        pages: 990,
                        counter: "pgfree".into(),
                        counted: Some(1000),
                        difference: Some(-0.01),
                    },
                    ClassCheck {
                        class: "pages migrated away".into(),
                        pages: 5,
                        counter: "pgmigrate_success".into(),
                        counted: None,
                        difference: None,
                    },
                ],
                unclassified,
                unclassified_share: unclassified as f64 / 10_000.0,
                layouts: vec![LayoutCheck {
                    name: "filled".into(),
                    free_pages: 4_000,
                    wrongly_free: 1,
                    wrongly_used: 2,
                }],
            }),
        }
    }

    #[test]
    fn each_class_stands_against_its_counter() {
        let text = render(&report(5), 80).to_string();
        assert!(text.contains("explains itself"), "{text}");
        assert!(
            text.contains("pages freed: 990; pgfree rose by 1,000 (-1"),
            "{text}"
        );
        assert!(text.contains("does not count them"), "{text}");
        assert!(
            text.lines()
                .any(|l| l.starts_with("filled") && l.ends_with('2')),
            "{text}"
        );
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_recording_that_leaves_much_unexplained_is_not_called_sound() {
        assert!(render(&report(100), 80).contains("something is missing"));
    }

    #[test]
    fn a_prediction_is_no_observation() {
        let mut report = report(0);
        report.observe = None;
        assert!(render(&report, 80).is_empty());
    }
}
