//! Kernel logs with their verdicts, in every way that such text reaches a reader. `spec: K.1, K.2, K.3, K.4`
//!
//! The logs under `kernel_logs` are made after public reports: numbers and forms carry over, people, hosts and
//! wording do not.

use std::fs;
use std::path::PathBuf;
use unfrag_lab::explain::{Explanation, explain};

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/kernel_logs")
}

fn log(case: &str) -> String {
    fs::read_to_string(directory().join(format!("{case}.txt"))).unwrap()
}

fn explained(text: &str) -> Explanation {
    explain(text.as_bytes()).unwrap()
}

/// Case, kind, order and verdicts of each row; `-` where there is none.
fn expected() -> Vec<[String; 4]> {
    let table = fs::read_to_string(directory().join("expected.tsv")).unwrap();
    let row = |line: &str| {
        let cells: Vec<String> = line.split('\t').map(str::to_owned).collect();
        cells.try_into().unwrap()
    };
    table.lines().skip(1).map(row).collect()
}

fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or("-".to_owned(), |v| v.to_string())
}

#[test]
fn every_log_has_its_kind_order_and_verdict() {
    let rows = expected();
    assert!(rows.len() >= 40, "{} cases", rows.len());
    for [case, kind, order, verdicts] in rows {
        let answer = explained(&log(&case));
        let first = &answer.reports[0];
        assert_eq!(first.kind, kind, "{case}");
        assert_eq!(or_dash(first.order), order, "{case}");
        let verdict = or_dash(first.verdict);
        assert!(
            verdicts.split('|').any(|v| v == verdict),
            "{case}: {verdict}, not {verdicts}"
        );
        assert_eq!(answer.skipped, [], "{case}");
        assert!(
            matches!(first.verdict, None | Some("raced")) || !first.advice.is_empty(),
            "{case}: no advice"
        );
    }
}

/// To 2.6.29 bit 0x100000 of a mask is `__GFP_MOVABLE`; bits that choose a zone have no name in old kernels, and are known.
/// A bit that no kernel of the report's form has stays a number. `spec: 7.7`
#[test]
fn a_mask_is_of_the_kernels_that_print_its_report() {
    let old = log("ia64-2nodes-oom");
    for (mask, rules, has) in [
        ("0x1201d2", "2.6.24 to 2.6.29", "GFP_HIGHUSER_MOVABLE"),
        ("0x201d3", "2.6.28 to 2.6.38", "GFP_HIGHUSER"),
        ("0x81201d2", "2.6.24 to 2.6.29", "0x8000000"),
        ("0x4000020", "2.6.28 to 2.6.38", "0x4000000"),
    ] {
        let answer = explained(&old.replace("0x1201d2", mask));
        let first = &answer.reports[0];
        let said = format!("{mask}: {} {:?} {}", first.rules, first.gfp, first.how);
        let form = rules.split_once(" to ").unwrap().1;
        assert!(first.rules.contains(form), "{said}");
        assert!(!first.rules.contains("do not know"), "{said}");
        assert!(first.gfp.iter().any(|n| n == has), "{said}");
        // The OOM killer runs for no other request.
        assert_eq!(first.may_wait, Some(true), "{said}");
        assert!(first.how.starts_with("it could wait"), "{said}");
        assert!(!first.sure.contains("4.4"), "{said}: {}", first.sure);
        let could_not = first
            .advice
            .iter()
            .any(|a| a.action.contains("could not wait"));
        assert!(!could_not, "{said}");
    }
}

#[test]
fn most_is_said_of_more_than_half_alone() {
    let mut seen = [0, 0];
    for [case, ..] in expected() {
        for report in explained(&log(&case)).reports {
            let is_short = report.verdict == Some("short");
            let Some(held) = report.held.iter().find(|h| h.kind == "counter") else {
                continue;
            };
            let is_most = held.per_mille.is_some_and(|p| p > 500);
            let says = report.answer.contains("; most is ");
            assert_eq!(says, is_short && is_most, "{case}: {}", report.answer);
            seen[usize::from(says)] += usize::from(is_short);
        }
    }
    assert!(seen.iter().all(|n| *n > 0), "{seen:?}");
}

/// Before 4.5 a limit of memory is in a file of another name; the group is the one that the text names.
#[test]
fn the_limit_of_a_control_group_is_where_its_kernel_has_it() {
    let old = log("memcg-old");
    let old_file = "/sys/fs/cgroup/memory/docker/app/memory.limit_in_bytes";
    let new_file = "/sys/fs/cgroup/docker/app/memory.max";
    let of = |text: &str| {
        let advice = explained(text).reports.remove(0).advice.remove(0);
        (advice.command.unwrap(), advice.action)
    };
    let (command, action) = of(&old);
    assert_eq!(command, format!("echo BYTES > {old_file}"));
    assert!(!action.contains("version 1"), "{action}");
    let (command, action) = of(&old.replace("3.10.0-1160.el7.x86_64", "5.10.0-8-amd64"));
    assert_eq!(command, format!("echo BYTES > {new_file}"));
    assert!(action.contains(old_file), "{action}");
    for group in ["/a$(reboot)", "/../etc", "/a;b"] {
        let (command, _) = of(&old.replace("/docker/app", group));
        assert!(command.contains("/memory/GROUP/"), "{group}: {command}");
    }
}

#[test]
fn sizes_follow_the_page_size_of_the_report() {
    for (case, kib) in [
        ("spdk-order4", 64),
        ("arm64-64k", 2048),
        ("pages-16k", 2048),
        ("sh-nommu-order7", 512),
        ("ppc64-power7-order0", 64),
    ] {
        assert_eq!(
            explained(&log(case)).reports[0].bytes,
            Some(kib * 1024),
            "{case}"
        );
    }
    assert_eq!(explained(&log("linux-2.4")).reports[0].bytes, None);
}

#[test]
fn zones_are_judged_by_what_counts_for_the_request() {
    let answer = explained(&log("only-cma"));
    let zone = &answer.reports[0].zones[0];
    assert_eq!(
        (zone.free_kib, zone.usable_kib),
        (Some(248_812), Some(248_812 - 240_936))
    );
    // GFP_ATOMIC: 2444 KiB are 611 pages; half of them, less a quarter of that.
    assert_eq!(zone.mark_kib, Some(4 * (306 - 76)));
    assert_eq!(
        (zone.largest_usable_order, zone.largest_order),
        (Some(6), Some(10))
    );
    let answer = explained(&log("spdk-order4"));
    let dma = &answer.reports[0].zones[0];
    assert_eq!(
        (dma.allowed, dma.protection_kib),
        (Some(true), Some(4 * 1917))
    );
    let answer = explained(&log("dma-zone"));
    let allowed: Vec<_> = answer.reports[0].zones.iter().map(|z| z.allowed).collect();
    assert_eq!(allowed, [Some(true), Some(false)]);
}

/// Another way in which the same log may come, and its name.
type Change = (&'static str, fn(&str) -> String);

fn each_line(text: &str, change: impl Fn(&str) -> String) -> String {
    text.lines().map(|l| change(l) + "\n").collect()
}

/// Lines cut after `width` characters.
fn cut(text: &str, width: usize) -> String {
    each_line(text, |line| {
        let chars: Vec<char> = line.chars().collect();
        let pieces: Vec<String> = chars.chunks(width).map(|c| c.iter().collect()).collect();
        pieces.join("\n")
    })
}

/// Lines wrapped between words at `width` characters.
fn wrapped(text: &str, width: usize) -> String {
    each_line(text, |line| {
        let mut out = String::new();
        let mut column = 0;
        for word in line.split(' ') {
            if column > 0 && column + word.len() > width {
                out.truncate(out.trim_end().len());
                out.push('\n');
                column = 0;
            }
            out += word;
            out.push(' ');
            column += word.len() + 1;
        }
        out.truncate(out.len() - 1);
        out
    })
}

fn quoted_printable(text: &str) -> String {
    each_line(text, |line| {
        let encoded = line.replace('=', "=3D");
        let mut out = String::new();
        let mut column = 0;
        for piece in encoded.split_inclusive(|c: char| c != '=') {
            // An escape is not broken.
            if column + piece.len() + 3 > 76 && !out.ends_with('=') && !out.ends_with("=3") {
                out += "=\n";
                column = 0;
            }
            out += piece;
            column += piece.len();
        }
        out
    })
}

fn html(text: &str) -> String {
    let escaped = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    format!("<pre>\n{escaped}</pre>\n")
}

/// Changes that fit every log.
const ANY: &[Change] = &[
    ("quoted mail", |t| each_line(t, |l| format!("> {l}"))),
    ("CRLF", |t| t.replace('\n', "\r\n")),
    ("HTML", html),
    ("quoted-printable", quoted_printable),
    ("fences", |t| format!("Look:\n```\n{t}\n```\nThanks\n")),
    ("no last newline", |t| t.trim_end().to_owned()),
    ("among other lines", |t| {
        let noise = "usb 1-1: new high-speed USB device number 5\n".repeat(2000);
        format!("{noise}{t}{noise}")
    }),
];

/// Changes that break lines; of JSON they would make none.
const LINES: &[Change] = &[
    ("cut at 72", |t| cut(t, 72)),
    ("cut at 80", |t| cut(t, 80)),
    ("cut at 97", |t| cut(t, 97)),
    ("wrapped at 70", |t| wrapped(t, 70)),
    ("wrapped at 76", |t| wrapped(t, 76)),
    ("wrapped at 100", |t| wrapped(t, 100)),
    ("wrapped and quoted", |t| {
        each_line(&wrapped(t, 74), |l| format!("> {l}"))
    }),
    ("double blanks", |t| each_line(t, |l| l.replace(' ', "  "))),
];

/// Prefixes before plain lines of a kernel.
const PREFIXES: &[Change] = &[
    ("syslog", |t| {
        each_line(t, |l| format!("Mar  3 01:02:03 host-p kernel: {l}"))
    }),
    ("ISO date", |t| {
        each_line(t, |l| {
            format!("2021-03-03T01:02:03.123456+01:00 host-p kernel: {l}")
        })
    }),
    ("dmesg -T", |t| {
        each_line(t, |l| format!("[Mon Apr 20 15:08:07 2020] {l}"))
    }),
    ("short-monotonic", |t| {
        each_line(t, |l| format!("[   10.123456] host-p kernel: {l}"))
    }),
    ("level", |t| each_line(t, |l| format!("<4>{l}"))),
    ("kmsg", |t| {
        each_line(t, |l| format!("4,1234,10123456,-;{l}"))
    }),
    ("dmesg -x", |t| {
        each_line(t, |l| format!("kern  :warn  : [   10.123456] {l}"))
    }),
    ("journal", |t| {
        each_line(t, |l| {
            serde_json::json!({"MESSAGE": l, "__REALTIME_TIMESTAMP": "1707462579000000"})
                .to_string()
        })
    }),
];

/// What must stay: of each report kind, order, verdict and the numbers of its zones.
fn essence(answer: &Explanation) -> Vec<String> {
    let zones = |f: &unfrag_lab::explain::answer::Failure| serde_json::to_string(&f.zones).unwrap();
    let line = |f| -> String {
        let f: &unfrag_lab::explain::answer::Failure = f;
        format!(
            "{} {} {} {}",
            f.kind,
            or_dash(f.order),
            or_dash(f.verdict),
            zones(f)
        )
    };
    answer.reports.iter().map(line).collect()
}

#[test]
fn however_it_was_logged_mailed_or_pasted_the_answer_is_the_same() {
    let mut tried = 0;
    for [case, ..] in expected() {
        let text = log(&case);
        let whole = essence(&explained(&text));
        let is_json = text.starts_with('{');
        let is_html = text.starts_with('<') && !text.starts_with("<4>");
        let is_plain =
            text.starts_with('[') && text.lines().all(|l| l.starts_with('[') || l.is_empty());
        let lines = LINES.iter().filter(|_| !is_json && !is_html);
        let prefixes = PREFIXES.iter().filter(|_| is_plain);
        for (name, change) in ANY.iter().filter(|_| !is_html).chain(lines) {
            assert_eq!(essence(&explained(&change(&text))), whole, "{case}, {name}");
            tried += 1;
        }
        // The kernel's own time stands before each line: take it off, and put other prefixes there.
        let bare = each_line(&text, |l| {
            l.split_once("] ")
                .map_or(String::new(), |(_, l)| l.to_owned())
        });
        let bare_whole = essence(&explained(&bare));
        for (name, change) in prefixes {
            assert_eq!(
                essence(&explained(&change(&bare))),
                bare_whole,
                "{case}, {name}"
            );
            tried += 1;
        }
    }
    assert!(tried > 500, "{tried} logs");
}

#[test]
fn equal_failures_are_counted_with_their_first_and_last_time() {
    let report = |at: u64| log("spdk-order4").replace("15:08:07", &format!("15:08:{at:02}"));
    let text: String = (10..60).map(report).collect();
    let answer = explained(&text);
    assert_eq!(answer.reports.len(), 1);
    let f = &answer.reports[0];
    assert_eq!(f.count, 50);
    assert_eq!(f.first.as_deref(), Some("Mon Apr 20 15:08:10 2020"));
    assert_eq!(f.last.as_deref(), Some("Mon Apr 20 15:08:59 2020"));
}

#[test]
fn reports_printed_into_one_another_are_told_apart() {
    let bare = |t: &str| -> Vec<String> {
        t.lines()
            .map(|l| l.split_once("] ").unwrap().1.to_owned())
            .collect()
    };
    let one = bare(&log("spdk-order4"));
    let other: Vec<String> = one
        .iter()
        .map(|l| {
            let l = l
                .replace("order:4", "order:9")
                .replace("kworker/u16:3", "nginx")
                .replace("free:7128", "free:5126");
            l.replace("free:24892kB", "free:16884kB")
                .replace("2003*4kB", "1*4kB")
                .replace("= 24892kB", "= 16884kB")
        })
        .collect();
    let pairs = one.iter().zip(&other).flat_map(|(a, b)| [a, b]);
    let text: String = pairs
        .enumerate()
        .map(|(i, l)| format!("[ 4192.{i:06}] {l}\n"))
        .collect();
    let answer = explained(&text);
    let got: Vec<_> = answer
        .reports
        .iter()
        .map(|f| (f.task.as_deref(), f.order, f.verdict, f.zones[1].free_kib))
        .collect();
    let expected = [
        (
            Some("kworker/u16:3"),
            Some(4),
            Some("fragmented"),
            Some(24892),
        ),
        (Some("nginx"), Some(9), Some("fragmented"), Some(16884)),
    ];
    assert_eq!(got, expected);
}

#[test]
fn a_half_of_a_report_is_named_not_passed_over() {
    let answer = explained(
        "[ 1.5] lowmem_reserve[]: 0 0\n[ 1.6] app: page allocation failure: mode:0xcc0\n",
    );
    let lines: Vec<_> = answer.skipped.iter().map(|s| s.line).collect();
    assert_eq!(lines, [1, 2]);
}

#[test]
fn no_cut_of_a_log_panics() {
    for [case, ..] in expected() {
        let text = log(&case);
        for at in (0..text.len())
            .step_by(97)
            .filter(|&at| text.is_char_boundary(at))
        {
            explained(&text[..at]);
            explained(&text[at..]);
        }
    }
}
