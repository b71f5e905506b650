//! One report in every way that loggers, viewers and mailers wrap it: the answer is the same. `spec: K.3`

use std::fs;
use std::path::PathBuf;
use unfrag_lab::explain::{Explanation, explain};

/// Lines of a report without the kernel's times.
fn bare() -> Vec<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/kernel_logs/spdk-order4.txt");
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|l| l.split_once("] ").unwrap().1.to_owned())
        .collect()
}

fn explained(text: &str) -> Explanation {
    explain(text.as_bytes()).unwrap()
}

/// What must stay of the answer.
fn essence(answer: &Explanation) -> Vec<String> {
    let line = |f: &unfrag_lab::explain::answer::Failure| {
        format!(
            "{} {:?} {:?} {:?} {:?} {} {:?}",
            f.kind,
            f.task,
            f.order,
            f.verdict,
            f.kernel,
            serde_json::to_string(&f.zones).unwrap(),
            f.calls
        )
    };
    answer.reports.iter().map(line).collect()
}

type Wrapper = fn(usize, &str) -> String;

/// The kernel's own time of a line.
fn time(i: usize) -> f64 {
    761_945.327 + i as f64 / 1e4
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Ways in which one line is written, each in its own line or lines.
const WRAPPERS: &[(&str, Wrapper)] = &[
    ("dmesg", |i, l| format!("[{:.6}] {l}", time(i))),
    ("dmesg -d", |i, l| {
        format!("[{:.6} <    0.000020>] {l}", time(i))
    }),
    ("dmesg --time-format=delta", |_, l| {
        format!("[<    0.000020>] {l}")
    }),
    ("dmesg --time-format=reltime", |i, l| match i {
        0 => format!("[Jan  2 03:04] {l}"),
        _ => format!("[  +0.000020] {l}"),
    }),
    ("dmesg --time-format=iso", |_, l| {
        format!("2026-01-02T03:04:05,123456+00:00 {l}")
    }),
    ("dmesg -x", |i, l| {
        format!(
            "{} [{:.6}] {l}",
            if i % 2 == 0 {
                "kern  :warn  :"
            } else {
                "kern  :info  :"
            },
            time(i)
        )
    }),
    ("dmesg -r", |i, l| format!("<4>[{:.6}] {l}", time(i))),
    ("a kernel that names the task", |i, l| {
        format!("[{:.6}][ T1234] {l}", time(i))
    }),
    ("journalctl -o short", |_, l| {
        format!("Jan 02 03:04:05 host kernel: {l}")
    }),
    ("journalctl -o short-precise", |_, l| {
        format!("Jan 02 03:04:05.123456 host kernel: {l}")
    }),
    ("journalctl -o short-iso", |_, l| {
        format!("2026-01-02T03:04:05+0000 host kernel: {l}")
    }),
    ("journalctl -o short-iso-precise", |_, l| {
        format!("2026-01-02T03:04:05.123456+0000 host kernel: {l}")
    }),
    ("journalctl -o short-full", |_, l| {
        format!("Fri 2026-01-02 03:04:05 UTC host kernel: {l}")
    }),
    ("journalctl -o short-monotonic", |i, l| {
        format!("[{:.6}] host kernel: {l}", time(i))
    }),
    ("journalctl -o short-unix", |i, l| {
        format!("{:.6} host kernel: {l}", 1_767_323_045.0 + i as f64 / 1e3)
    }),
    ("journalctl -o short-delta", |i, l| {
        format!("[{:.6} <    0.000020 >] host kernel: {l}", time(i))
    }),
    ("journalctl -o with-unit", |_, l| {
        format!("Fri 2026-01-02 03:04:05 UTC host kernel[n/a]: {l}")
    }),
    ("journalctl -o verbose", |i, l| {
        format!(
            "Fri 2026-01-02 03:04:05.123456 UTC [s=abc;i={i:x};b=1]\n    _TRANSPORT=kernel\n    PRIORITY=4\n    MESSAGE={l}\n    _HOSTNAME=host"
        )
    }),
    ("journalctl -o export", |i, l| {
        format!(
            "__CURSOR=s=1;i={i:x}\n__REALTIME_TIMESTAMP=1700000000000000\n_HOSTNAME=host\nMESSAGE={l}\n"
        )
    }),
    ("journalctl -o json", |_, l| {
        format!(
            "{{\"_HOSTNAME\":\"host\",\"MESSAGE\":{},\"__REALTIME_TIMESTAMP\":\"1700000000000000\"}}",
            json(l)
        )
    }),
    ("journalctl -o json-pretty", |_, l| {
        format!(
            "{{\n\t\"_HOSTNAME\" : \"host\",\n\t\"MESSAGE\" : {},\n\t\"PRIORITY\" : \"4\"\n}}",
            json(l)
        )
    }),
    ("journalctl -o json-sse", |_, l| {
        format!("data: {{\"MESSAGE\":{}}}\n", json(l))
    }),
    ("journalctl -o cat", |_, l| l.to_owned()),
    ("dmesg -J", |i, l| {
        format!(
            "      }},{{\n         \"pri\": 4,\n         \"time\": {:.6},\n         \"msg\": {}",
            time(i),
            json(l)
        )
    }),
    ("kubectl --timestamps", |i, l| {
        format!("2026-01-02T03:04:05.{:09}Z [{:.6}] {l}", i * 1000, time(i))
    }),
    ("kubectl --prefix", |_, l| {
        format!("[pod/watch-x7f/main] {l}")
    }),
    ("docker compose", |_, l| format!("watch-1  | {l}")),
    ("containers of CRI", |_, l| {
        format!("2026-01-02T03:04:05.123456789Z stderr F {l}")
    }),
    ("docker's JSON", |_, l| {
        format!(
            "{{\"log\":{},\"stream\":\"stderr\",\"time\":\"2026-01-02T03:04:05Z\"}}",
            json(&format!("{l}\n"))
        )
    }),
    ("ts", |i, l| format!("Jan 02 03:04:05 [{:.6}] {l}", time(i))),
    ("ts -s", |i, l| format!("00:00:{:02} {l}", i % 60)),
    ("ts %.s", |i, l| {
        format!("{:.6} {l}", 1_767_323_045.0 + i as f64)
    }),
    ("multilog", |i, l| format!("@4000000037c219bf{i:08x} {l}")),
    ("loki", |i, l| {
        format!("2026-01-02T03:04:05Z {{host=\"a\",job=\"kmsg\",n=\"{i}\"}} {l}")
    }),
    ("logcat", |_, l| {
        format!("01-02 03:04:05.678     0     0 W         : {l}")
    }),
    ("logcat -v tag", |i, l| {
        format!(
            "{}/kernel  ( {i:3}): {l}",
            if i % 2 == 0 { "W" } else { "I" }
        )
    }),
    ("ECS", |_, l| {
        format!(
            "{{\"@timestamp\":\"2026-01-02T03:04:05Z\",\"host\":{{\"name\":\"h\"}},\"message\":{}}}",
            json(l)
        )
    }),
    ("JSON behind a time", |i, l| {
        format!("{:.6}\t{{\"message\":{}}}", time(i), json(l))
    }),
    ("syslog over JSON", |_, l| {
        format!(
            "{{\"host\":\"h\",\"message\":{},\"program\":\"kernel\"}}",
            json(&format!("kernel: {l}"))
        )
    }),
    ("JSON in JSON", |_, l| {
        format!("{{\"line\":{}}}", json(&format!("{{\"msg\":{}}}", json(l))))
    }),
    ("JSON of a field of any name", |i, l| {
        format!(
            "{{\"severity\":\"x\",\"n\":{i},\"payload\":{{\"said\":{}}}}}",
            json(l)
        )
    }),
    ("a list of texts", |_, l| {
        format!("            {},", json(l))
    }),
    ("logfmt", |i, l| {
        format!(
            "ts={:.3} level={} msg=\"{l}\"",
            time(i),
            if i % 3 == 0 { "warn" } else { "info" }
        )
    }),
    ("RFC 5424", |_, l| {
        format!("<4>1 2026-01-02T03:04:05Z host kernel - - - {l}")
    }),
    ("grep -n", |i, l| format!("{}:{l}", i + 1)),
    ("grep with names and context", |i, l| {
        format!(
            "kern.log{0}{1}{0}{l}",
            if i % 4 == 0 { ":" } else { "-" },
            i + 100
        )
    }),
    ("cat -n", |i, l| format!("{:6}\t{l}", i + 1)),
    ("cat -A", |_, l| format!("{l}$")),
    ("diff", |_, l| format!("+{l}")),
    ("a comment", |_, l| format!(" * {l}")),
    ("a box", |_, l| format!("| {l} |")),
    ("a console server", |_, l| {
        format!("[2026-01-02 03:04:05] {l}")
    }),
    ("a CI system", |_, l| {
        format!("2026-01-02T03:04:05.1234567Z {l}")
    }),
    ("a logger that nobody knows", |i, l| {
        format!("#{i} @rack-7/blade{{3}} ~~ {l}")
    }),
    ("bytes without a width", |_, l| {
        format!("\u{feff}\u{200b}{l}\u{0}")
    }),
];

/// `spec: K.3`
#[test]
fn every_wrapper_leaves_the_answer_as_it_is() {
    let lines = bare();
    let whole = essence(&explained(&lines.join("\n")));
    assert_eq!(whole.len(), 1);
    let mut wrong = vec![];
    for (name, wrap) in WRAPPERS {
        let wrapped: Vec<String> = lines.iter().enumerate().map(|(i, l)| wrap(i, l)).collect();
        for (how, text) in [
            ("", wrapped.join("\n")),
            (", CRLF", wrapped.join("\r\n")),
            (", among other lines", {
                let noise: Vec<String> = (0..300).map(|i| wrap(i, "usb 1-1: new device")).collect();
                [noise.clone(), wrapped.clone(), noise].concat().join("\n")
            }),
        ] {
            let answer = explained(&text);
            if essence(&answer) != whole {
                wrong.push(format!(
                    "{name}{how}: {:?} {:?}",
                    essence(&answer),
                    answer.skipped
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// `spec: K.3`
#[test]
fn the_newest_line_first_is_put_in_order() {
    let lines = bare();
    let whole = essence(&explained(&lines.join("\n")));
    // What takes several lines is not reversed within.
    let single = |wrap: &Wrapper| !wrap(0, "x").contains('\n');
    for (name, wrap) in WRAPPERS.iter().filter(|(_, w)| single(w)) {
        let mut wrapped: Vec<String> = lines.iter().enumerate().map(|(i, l)| wrap(i, l)).collect();
        wrapped.reverse();
        assert_eq!(essence(&explained(&wrapped.join("\n"))), whole, "{name}");
    }
}

/// `spec: K.3`
#[test]
fn reports_of_two_hosts_are_told_apart_line_by_line() {
    let one = bare();
    let other: Vec<String> = one
        .iter()
        .map(|l| {
            l.replace("kworker/u16:3", "nginx")
                .replace("24892kB", "16892kB")
                .replace("2003*4kB", "3*4kB")
        })
        .collect();
    for wrap in [
        (|host, l| format!("Jan 02 03:04:05 {host} kernel: {l}")) as fn(&str, &str) -> String,
        |host, l| format!("2026-01-02T03:04:05Z {{host=\"{host}\"}} {l}"),
        |host, l| format!("{{\"_HOSTNAME\":\"{host}\",\"MESSAGE\":{}}}", json(l)),
        |host, l| format!("[   12.345678][ T{}] {l}", host.len()),
        |host, l| format!("[pod/{host}/main] {l}"),
    ] {
        let pairs = one.iter().zip(&other);
        let text: String = pairs
            .map(|(a, b)| wrap("web1", a) + "\n" + &wrap("database", b) + "\n")
            .collect();
        let answer = explained(&text);
        let got: Vec<_> = answer
            .reports
            .iter()
            .map(|f| {
                (
                    f.task.as_deref(),
                    f.verdict,
                    f.zones.get(1).and_then(|z| z.free_kib),
                    f.calls.len(),
                )
            })
            .collect();
        let calls = explained(&one.join("\n")).reports[0].calls.len();
        assert_eq!(
            got,
            [
                (
                    Some("kworker/u16:3"),
                    Some("fragmented"),
                    Some(24_892),
                    calls
                ),
                (Some("nginx"), Some("fragmented"), Some(16_892), calls),
            ],
            "{}",
            wrap("web1", "x")
        );
    }
}

/// `spec: K.1`
#[test]
fn prose_and_subjects_are_no_reports() {
    for text in [
        "We ran it again and mkfs -t ext4 invoked oom-killer.\n",
        "the page allocation failure: order problem has not come back\n",
        "Subject: [bug] nginx: page allocation failure: order:4 since 5.10\n\nHello,\nplease help.\n",
        "Why does java invoked oom-killer mean that memory is short?\n",
    ] {
        let answer = explained(text);
        assert_eq!(answer.reports.len(), 0, "{text}");
    }
    let subject = "Subject: nginx: page allocation failure: order:9 on 5.10\n\n";
    let report = bare().join("\n");
    assert_eq!(
        essence(&explained(&format!("{subject}{report}"))),
        essence(&explained(&report))
    );
}
