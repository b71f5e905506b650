//! A host as text to paste, and what is read back of it after mails, chats and Markdown.

use crate::support::{SAMPLE, fails, given, json, sample, stdout, text, write_snapshot};
use serde_json::Value;
use std::fs;
use std::path::Path;
use unfrag_linux::file;
use unfrag_linux::kpageflags;

/// The diagnosis of a text, without what tells where it came from.
fn diagnosis(input: &str) -> Value {
    let out = given(&["doctor", "-", "--json"], input.as_bytes());
    assert!(out.status.success(), "{}\n{input}", text(&out.stderr));
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
    without_origin(answer["diagnosis"].clone())
}

fn without_origin(mut d: Value) -> Value {
    let all = d.as_object_mut().unwrap();
    // A paste holds a moment and the one before it, and says so.
    for name in ["source", "unread", "watched"] {
        all.remove(name);
    }
    // The names of caches may be somebody's.
    for cache in all["slabs"].as_array_mut().unwrap() {
        let cache = cache.as_object_mut().unwrap();
        cache.remove("name");
        if let Some(over) = cache["over_seconds"].as_f64() {
            cache.insert("over_seconds".into(), Value::from(over.round()));
        }
    }
    for advice in all["advice"].as_array_mut().unwrap() {
        let advice = advice.as_object_mut().unwrap();
        for name in ["prediction", "predicted"] {
            advice.remove(name);
        }
    }
    for work in all["work"].as_array_mut().unwrap() {
        // Two seconds that were written with three digits.
        if let Some(rate) = work["per_second"].as_f64() {
            work["per_second"] = Value::from((rate * 100.0).round());
        }
        if let Some(rate) = work["per_second_since_boot"].as_f64() {
            work["per_second_since_boot"] = Value::from((rate * 100.0).round());
        }
    }
    // What somebody called a kernel of his own is not told.
    if let Some(release) = all["kernel_release"].as_str() {
        let own = release.find(|c: char| !c.is_ascii_digit() && c != '.');
        let release = Value::from(&release[..own.unwrap_or(release.len())]);
        all.insert("kernel_release".into(), release);
    }
    if let Some(up) = all["uptime_seconds"].as_f64() {
        all.insert("uptime_seconds".into(), Value::from(up.round()));
    }
    d
}

/// Lines of at most `width` characters, as a mailer breaks them; blank lines stay.
fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut column = 0;
        for word in line.split_whitespace() {
            // Whoever breaks lines may break them at hyphens as well.
            for piece in word.split_inclusive('-') {
                if column > 0 && column + 1 + piece.len() > width {
                    out.push('\n');
                    column = 0;
                } else if column > 0 && word.starts_with(piece) {
                    out.push(' ');
                    column += 1;
                }
                out += piece;
                column += piece.len();
            }
        }
        out.push('\n');
    }
    out
}

fn each_line(text: &str, change: impl Fn(&str) -> String) -> String {
    text.lines().map(|l| change(l) + "\n").collect()
}

/// Lines of at most 60 signs, as mailers encode them: longer ones are broken with a `=` at the end.
fn quoted_printable(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let line = line.replace('=', "=3D").replace("vm.", "vm=2E");
        let mut rest = line.as_str();
        while rest.len() > 60 {
            // An encoded sign is not broken.
            let at = rest[57..60].find('=').map_or(60, |at| 57 + at);
            out += &format!("{}=\r\n", &rest[..at]);
            rest = &rest[at..];
        }
        out += &format!("{rest}\r\n");
    }
    out
}

/// What a text goes through on its way.
fn on_its_way(text: &str) -> Vec<(&'static str, String)> {
    let quote = |text: &str| each_line(text, |l| format!("> {l}"));
    let fence = |text: &str| format!("Hello,\n\n```text\n{text}```\n\nRegards\n");
    let filled: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    vec![
        ("as it is", text.to_owned()),
        ("fenced", fence(text)),
        ("quoted twice", quote(&quote(text))),
        ("wrapped at 72", wrapped(text, 72)),
        (
            "fenced, wrapped at 72, quoted twice",
            quote(&quote(&wrapped(&fence(text), 72))),
        ),
        (
            "quoted twice, wrapped at 72",
            wrapped(&quote(&quote(text)), 72),
        ),
        (
            "quoted, wrapped at 60, quoted",
            quote(&wrapped(&quote(text), 60)),
        ),
        (
            "quoted without blanks",
            each_line(text, |l| format!(">>{l}")),
        ),
        ("a list", each_line(text, |l| format!("- {l}"))),
        ("a numbered list", each_line(text, |l| format!("1. {l}"))),
        ("a table", each_line(text, |l| format!("| {l} |"))),
        ("a block of code", each_line(text, |l| format!("    {l}"))),
        ("one line", filled.clone()),
        ("filled at 40", wrapped(&filled, 40)),
        ("a word a line", filled.replace(' ', "\n")),
        ("ends of lines of Windows", text.replace('\n', "\r\n")),
        (
            "marks as HTML writes them",
            each_line(text, |l| format!("&gt; &gt; {l}")),
        ),
        (
            "under a head",
            format!(
                "On Sat, 28 Nov 2026 at 10:30, someone wrote:\n{}",
                quote(text)
            ),
        ),
        ("twice", format!("{text}\nand again\n\n{text}")),
        ("quoted-printable", quoted_printable(text)),
        (
            "quoted, then quoted-printable",
            quoted_printable(&quote(text)),
        ),
        ("quoted-printable, quoted", quote(&quoted_printable(text))),
        ("lines broken as HTML does", text.replace('\n', "<br>\n")),
        (
            "lines broken as HTML does, alone",
            text.replace('\n', "<br/>"),
        ),
        (
            "a web page",
            format!(
                "<html><body class=\"a:1\"><p>Hello</p><div dir=\"ltr\">{}</div></body></html>",
                text.replace('\n', "</div><div>")
            ),
        ),
        (
            "a quote in HTML",
            each_line(text, |l| {
                format!("&gt;&nbsp;{}<br />", l.replace(' ', "&nbsp;"))
            }),
        ),
        ("preformatted", format!("<pre><code>{text}</code></pre>")),
        (
            "a string of JSON",
            format!("{{\"body\": \"{}\"}}", text.replace('\n', "\\n")),
        ),
        (
            "signs without width",
            text.replace("part:", "part:\u{200b}"),
        ),
        (
            "spoken of below",
            format!("{text}\nSuch text begins with unfragpaste:1 , as you see.\n"),
        ),
        ("code in lines", each_line(text, |l| format!("`{l}`"))),
    ]
}

#[test]
fn the_diagnosis_survives_mails_chats_and_markdown() {
    let paste = stdout(&["paste", SAMPLE]);
    assert!(paste.len() <= 8 << 10, "{} bytes", paste.len());
    assert!(paste.lines().all(|l| l.len() <= 66), "{paste}");
    let wanted = without_origin(json(&["doctor", SAMPLE, "--json"])["diagnosis"].clone());
    for (way, arrived) in on_its_way(&paste) {
        assert_eq!(diagnosis(&arrived), wanted, "{way}");
    }
}

#[test]
fn any_moment_of_a_recording_and_a_copy_of_procfs_are_told_alike() {
    let scratch = tempfile::tempdir().unwrap();
    let rec = sample();
    for at in [0, 1, rec.snapshots.len() / 2, rec.snapshots.len() - 1] {
        let snapshot = &rec.snapshots[at];
        let dir = scratch.path().join(format!("s{at}"));
        write_snapshot(snapshot, &dir);
        let version = format!("Linux version {} (x@y) #1\n", rec.meta.kernel_release);
        fs::write(dir.join("version"), version).unwrap();
        let dir = dir.to_str().unwrap();
        let wanted = without_origin(json(&["doctor", dir, "--json"])["diagnosis"].clone());
        assert_eq!(
            diagnosis(&stdout(&["paste", dir])),
            wanted,
            "{}",
            snapshot.name
        );
        let name = snapshot.name.as_str();
        let wanted = json(&["doctor", SAMPLE, "--snapshot", name, "--json"])["diagnosis"].clone();
        let paste = stdout(&["paste", SAMPLE, "--snapshot", name]);
        assert_eq!(diagnosis(&paste), without_origin(wanted), "{name}");
    }
}

/// Page flags do not fit into the text; the rest is the same.
#[test]
#[cfg(target_os = "linux")]
fn this_host_is_told_as_it_is() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("now.unfrag");
    let path = path.to_str().unwrap();
    stdout(&["snapshot", "-o", path]);
    let mut rec = file::read(Path::new(path)).unwrap();
    for s in &mut rec.snapshots {
        s.files.retain(|f| f.name != kpageflags::NAME);
    }
    file::write(&rec, Path::new(path)).unwrap();
    let wanted = without_origin(json(&["doctor", path, "--json"])["diagnosis"].clone());
    let paste = stdout(&["paste", path]);
    for (way, arrived) in on_its_way(&paste) {
        assert_eq!(diagnosis(&arrived), wanted, "{way}");
    }
    let live = stdout(&["paste", "--for", "0"]);
    assert!(
        live.len() <= 8 << 10 && live.contains("unfragpaste:1"),
        "{live}"
    );
    let hostname = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let hostname = hostname.trim();
    assert!(hostname.len() < 4 || !live.contains(hostname), "{live}");
}

/// A copy of procfs in which every file names somebody.
fn planted(dir: &Path) {
    let rec = sample();
    write_snapshot(rec.snapshots.last().unwrap(), dir);
    let add = |name: &str, more: &str| {
        let old = fs::read_to_string(dir.join(name)).unwrap_or_default();
        fs::write(dir.join(name), format!("{old}{more}")).unwrap();
    };
    add(
        "version",
        "Linux version 6.1.0-alice-web3 (alice@web3.example.org) (gcc /home/alice/bin) #1\n",
    );
    add(
        "vmstat",
        "alice_stalls 5\ncompact_alice@web3 7\ncompact_4711 8\nthp_alice 9\nallocstall_web3 10\npgalloc_dma4711 11\n",
    );
    add("meminfo", "AliceMem:  5 kB\n/home/alice: 7 kB\n");
    add("buddyinfo", "Node 0, zone    alice      1      2      3\n");
    add(
        "slabinfo",
        "alice_cache 9000000 9000000 4096 8 8 : tunables 0 0 0 : slabdata 1125000 1125000 0\n\
         dentry(12:alice.service) 9000000 9000000 4096 8 8 : tunables 0 0 0 : slabdata 1125000 1125000 0\n\
         kmalloc-alice 9000000 9000000 4096 8 8 : tunables 0 0 0 : slabdata 1125000 1125000 0\n\
         kmalloc-31337k 9000000 9000000 4096 8 8 : tunables 0 0 0 : slabdata 1125000 1125000 0\n\
         kmalloc-rnd-4711-64 9000000 9000000 4096 8 8 : tunables 0 0 0 : slabdata 1125000 1125000 0\n",
    );
    add(
        "sysctl-vm",
        "vm.min_free_kbytes = 67584\nvm.alice = 5\nvm.swappiness = /home/alice\n/alice/vm/extfrag_threshold=500\n",
    );
    add(
        "zoneinfo",
        "Node 0, zone    alice\n  pages free     5\n        min      1\n",
    );
    fs::create_dir_all(dir.join("thp")).unwrap();
    fs::write(dir.join("thp/enabled"), "always [alice] never\n").unwrap();
}

#[test]
fn it_names_nobody() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("alice-web3");
    planted(&dir);
    let paste = stdout(&["paste", dir.to_str().unwrap()]);
    let small = paste.to_lowercase();
    for planted in [
        "alice", "web3", "example", "home", "/", "@", "0x", "gcc", "4711", "31337",
    ] {
        assert!(!small.contains(planted), "{planted}: {paste}");
    }
    assert!(
        paste.contains("release:6.1.0 ") && paste.contains("vm.min_free_kbytes:67584"),
        "{paste}"
    );
    diagnosis(&paste);
    let paste = stdout(&["paste", SAMPLE]);
    for task in sample().tasks.iter().filter(|t| t.comm.len() > 4) {
        assert!(!paste.contains(&task.comm), "{}: {paste}", task.comm);
    }
}

#[test]
fn a_damaged_one_is_refused_and_what_is_missing_named() {
    let paste = stdout(&["paste", SAMPLE]);
    let lines: Vec<&str> = paste.lines().collect();
    let begin = lines
        .iter()
        .position(|l| l.contains("unfragpaste:1"))
        .unwrap();
    let refused = |text: &str, what: &str| {
        let out = given(&["doctor", "-"], text.as_bytes());
        let said = crate::support::text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{what}: {said}");
        assert!(said.contains("damaged on its way"), "{what}: {said}");
        said
    };
    for at in begin + 1..lines.len() {
        let mut rest = lines.clone();
        let lost = rest.remove(at);
        let said = refused(&rest.join("\n"), lost);
        let names = [
            "host",
            "buddyinfo",
            "zoneinfo",
            "meminfo",
            "vmstat",
            "settings",
            "pagetypeinfo",
            "before",
            "slabinfo",
            "last word",
            "first line",
        ];
        assert!(names.iter().any(|n| said.contains(n)), "{lost}: {said}");
        refused(&lines[..at].join("\n"), "cut off");
    }
    // Each digit in turn is another one.
    let whole = lines[begin + 1..].join("\n");
    let digits: Vec<usize> = whole
        .char_indices()
        .filter(|(_, c)| c.is_ascii_digit())
        .map(|(at, _)| at)
        .collect();
    for &at in digits.iter().step_by(97) {
        let digit = whole.as_bytes()[at];
        let other = if digit == b'9' {
            '8'
        } else {
            char::from(digit + 1)
        };
        let changed = format!("{}{other}{}", &whole[..at], &whole[at + 1..]);
        refused(&format!("unfragpaste:1 {changed}"), "a changed digit");
    }
}

/// Words of a part, with the last word of it, as the writer makes them.
fn parts(paste: &str) -> Vec<String> {
    let words: Vec<&str> = paste.split_whitespace().collect();
    let is_part = |w: &&&str| w.starts_with("part:");
    words
        .chunk_by(|_, next| !is_part(&next))
        .filter(|words| is_part(&&words[0]))
        .map(|words| words.join(" "))
        .collect()
}

#[test]
fn a_part_under_another_name_is_missing_and_never_none_of_it() {
    let paste = stdout(&["paste", SAMPLE]);
    for part in ["buddyinfo", "zoneinfo", "meminfo", "vmstat", "pagetypeinfo"] {
        let doctor = |text: &str| {
            let out = given(&["doctor", "-"], text.as_bytes());
            (out.status.code(), text_of(&out))
        };
        let other = &part.replace("info", "inf0").replace("vmstat", "vmstaf");
        // In its own place, in the first line, or in both.
        let (status, said) =
            doctor(&paste.replace(&format!("part:{part}"), &format!("part:{other}")));
        assert_eq!(status, Some(1), "{said}");
        assert!(said.contains(&format!("{part} is missing")), "{said}");
        let (head, tail) = paste.split_once("part:").unwrap();
        let (status, said) = doctor(&format!("{}part:{tail}", head.replace(part, other)));
        assert_eq!(status, Some(1), "{said}");
        assert!(said.contains(&format!("{other} is missing")), "{said}");
        let (status, said) = doctor(&paste.replace(part, other));
        assert_eq!(status, Some(0), "{said}");
        assert!(
            said.contains(&format!(
                "{other}: no part that this release of unfrag reads"
            )),
            "{said}"
        );
        // A part that is there twice is one too many.
        let twice = parts(&paste)
            .into_iter()
            .find(|p| p.starts_with(&format!("part:{part}")))
            .unwrap();
        let (status, said) = doctor(&paste.replace("unfragend", &format!("{twice} unfragend")));
        assert_eq!(status, Some(1), "{said}");
        assert!(said.contains(&format!("{part} is there twice")), "{said}");
    }
}

/// What a command said, without the breaks of its lines.
fn text_of(out: &std::process::Output) -> String {
    let said = text(&out.stdout) + &text(&out.stderr);
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn of_several_pastes_the_answer_says_which_it_is_about() {
    let rec = sample();
    let first = stdout(&["paste", SAMPLE, "--snapshot", &rec.snapshots[0].name]);
    let last = stdout(&["paste", SAMPLE]);
    let both = format!("{last}\nand an hour ago\n\n{first}");
    for command in ["doctor", "inspect"] {
        let out = given(&[command, "-"], both.as_bytes());
        let said = text_of(&out);
        assert!(out.status.success(), "{said}");
        assert!(said.contains("paste 2 of 2"), "{command}: {said}");
        assert!(
            said.contains("paste 1 of 2: the last one in the text is read"),
            "{command}: {said}"
        );
    }
    let head = given(&["doctor", "-"], both.as_bytes());
    assert!(
        text(&head.stdout)
            .lines()
            .next()
            .unwrap()
            .contains("paste 2 of 2")
    );
    assert_eq!(diagnosis(&both), diagnosis(&first));
    // One that is there twice is one.
    let again = format!("{last}\n{last}");
    let out = given(&["doctor", "-"], again.as_bytes());
    assert!(!text_of(&out).contains("paste 1 of 2"));
    // The one that is damaged is named, and no other is read in its place.
    let out = given(
        &["doctor", "-"],
        format!("{last}\n{}", &first[..first.len() / 2]).as_bytes(),
    );
    let said = text_of(&out);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(
        said.contains("paste 2 of 2 was damaged on its way"),
        "{said}"
    );
}

#[test]
fn lines_joined_with_commas_are_refused_with_the_way_out() {
    let paste = stdout(&["paste", SAMPLE]);
    for joint in [", ", "; ", ",\n"] {
        let joined = paste.replace('\n', joint);
        let out = given(&["doctor", "-"], joined.as_bytes());
        let said = text_of(&out);
        assert_eq!(out.status.code(), Some(1), "{said}");
        assert!(
            said.contains("signs between its lines that are not its own, such as commas"),
            "{said}"
        );
        assert!(said.contains("line by line"), "{said}");
    }
}

#[test]
fn what_cannot_be_pasted_is_said() {
    fails(&["paste", "-"], 2, &["write the input to a file"]);
    fails(&["paste", "/nonexistent"], 1, &["/nonexistent"]);
    fails(
        &["paste", "samples/page-allocation-failure.log"],
        1,
        &["page-allocation-failure.log"],
    );
    fails(
        &["paste", SAMPLE, "--from", "1h"],
        1,
        &["the recording is from 0s to"],
    );
    let out = given(&["explain", "-"], stdout(&["paste", SAMPLE]).as_bytes());
    let said = text(&out.stdout) + &text(&out.stderr);
    assert!(said.contains("unfrag doctor -"), "{said}");
}
