//! What stands before a kernel's message on a line: quoting, dates, hosts, levels, the kernel's own time.
//! `spec: K.3`
//!
//! Invariant: [`strip`] gives parts of the line it was given; it never fails, and takes time in the length of what it
//! strips.

use super::clock::{
    is_delta, is_short_date, is_zone_of_time, seconds_of_day, seconds_since_boot, syslog_date,
};
use super::loggers::{
    before_words, bracketed_time, facility, file_and_line, is_caller, is_program,
};
use super::report::Stamp;

/// A line without what stands before the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stripped<'a> {
    /// The message, with the blank that it begins with.
    pub text: &'a str,
    /// The date that a logger wrote, or else a console.
    pub date: &'a str,
    /// The kernel's own time.
    pub uptime: &'a str,
    /// The kernel's own time in microseconds, as its ring buffer has it.
    pub micros: &'a str,
    /// The host that a logger named; empty if none.
    pub host: &'a str,
    /// The task or CPU that printed it, where the kernel says so; empty if not.
    pub printer: &'a str,
    /// Whether anything of a log stood before it; quoting is not.
    pub is_framed: bool,
    /// Whether the logger says that it is no message of the kernel.
    pub is_foreign: bool,
}

impl Stripped<'_> {
    /// The kernel's own time, in seconds.
    pub fn uptime(&self) -> Option<f64> {
        match self.micros.parse::<u64>() {
            Ok(micros) => Some(micros as f64 / 1e6),
            Err(_) => seconds_since_boot(self.uptime),
        }
    }

    /// The time of the message; the kernel's own for its clock, the date for its text.
    pub fn stamp(&self) -> Option<Stamp> {
        let shown = if self.date.is_empty() {
            self.uptime
        } else {
            self.date
        };
        if let Ok(micros) = self.micros.parse::<u64>() {
            let seconds = micros as f64 / 1e6;
            return Some(Stamp {
                text: format!("{seconds:.6}"),
                seconds,
                since_boot: true,
            });
        }
        let since_boot = seconds_since_boot(self.uptime);
        let of_day = seconds_of_day(self.date).or_else(|| seconds_of_day(self.uptime));
        let seconds = since_boot.or(of_day)?;
        Some(Stamp {
            text: shown.split_whitespace().collect::<Vec<_>>().join(" "),
            seconds,
            since_boot: since_boot.is_some(),
        })
    }
}

/// Takes off what stands before the message.
pub fn strip(line: &str) -> Stripped<'_> {
    let mut out = Stripped {
        text: unquoted(line),
        ..Stripped::default()
    };
    // No line carries more than a handful of prefixes.
    for _ in 0..8 {
        if !strip_one(&mut out) {
            break;
        }
        out.is_framed = true;
    }
    out
}

/// A line without the marks of quoted mail.
pub fn unquoted(mut line: &str) -> &str {
    loop {
        let rest = line.trim_start_matches(' ');
        match rest.strip_prefix('>') {
            // A level such as `<4>` begins with another sign.
            Some(rest) => line = rest.strip_prefix(' ').unwrap_or(rest),
            None => return line,
        }
    }
}

fn strip_one<'a>(out: &mut Stripped<'a>) -> bool {
    let text = out.text;
    let Some(&first) = text.trim_start_matches(' ').as_bytes().first() else {
        return false;
    };
    let trimmed = text.trim_start_matches(' ');
    match first {
        b'<' => level(out, trimmed),
        b'[' => bracket(out, trimmed),
        b'0'..=b'9' => named(out, trimmed) || numbered(out, trimmed),
        b'A'..=b'Z' | b'a'..=b'z' => named(out, trimmed) || worded(out, trimmed),
        b'@' => tai(out, trimmed),
        _ => false,
    }
}

/// Bytes before the name of the kernel at most.
const MOST_BEFORE_NAME: usize = 160;

/// Anything with a time that ends in `host kernel: ` or `host kernel[n/a]: `.
fn named<'a>(out: &mut Stripped<'a>, text: &'a str) -> bool {
    let window = &text[..text.floor_char_boundary(MOST_BEFORE_NAME)];
    let Some(at) = window.find(" kernel") else {
        return false;
    };
    let (before, rest) = (&text[..at], &text[at + " kernel".len()..]);
    let rest = match rest.strip_prefix('[') {
        Some(inside) => match inside.split_once(']') {
            Some((pid, rest)) if pid.len() < 12 && !pid.contains(' ') => rest,
            _ => return false,
        },
        None => rest,
    };
    let Some(rest) = rest.strip_prefix(':') else {
        return false;
    };
    let words: Vec<&str> = before.split_whitespace().collect();
    // The host is a word by itself, and a time stands before it.
    let is_host = |w: &str| {
        !w.ends_with([':', ']', ')', ','])
            && w.parse::<f64>().is_err()
            && seconds_of_day(w).is_none()
    };
    let has_time = words
        .iter()
        .any(|w| seconds_of_day(w).is_some() || w.len() > 8 && w.parse::<f64>().is_ok());
    if words.len() > 8 || !has_time {
        return false;
    }
    let hosts = words.iter().rev().take_while(|w| is_host(w)).count();
    out.date = match hosts {
        0 => before,
        _ => before_words(before, hosts),
    };
    // `UTC` and `router kern.warn` are more words than a host.
    let names = &words[words.len() - hosts..];
    out.host = match names {
        [zone, host, ..] if is_zone_of_time(zone) => host,
        [host, ..] => host,
        [] => out.host,
    };
    if let Ok(seconds) = out.date.trim().parse::<f64>()
        && seconds.is_finite()
    {
        out.uptime = out.date.trim();
        out.date = "";
    }
    out.text = rest.strip_prefix(' ').unwrap_or(rest);
    true
}

/// `@` and a time in 24 hexadecimal digits, as multilog writes it.
fn tai<'a>(out: &mut Stripped<'a>, text: &'a str) -> bool {
    let digits = text[1..].bytes().take_while(u8::is_ascii_hexdigit).count();
    let Some(rest) = text[1 + digits..]
        .strip_prefix(' ')
        .filter(|_| digits == 24)
    else {
        return false;
    };
    out.text = rest;
    true
}

/// The time in a prefix of any form: the kernel's own, or that of a clock.
pub fn stamp_in(prefix: &str) -> Stripped<'_> {
    let mut known = strip(prefix);
    if known.uptime.is_empty() && known.micros.is_empty() {
        known.uptime = bracketed_time(prefix);
    }
    if !known.date.is_empty() || !known.uptime.is_empty() || !known.micros.is_empty() {
        return Stripped {
            is_framed: true,
            ..known
        };
    }
    let mut out = Stripped {
        is_framed: true,
        ..Stripped::default()
    };
    for word in prefix.split(|c: char| c.is_whitespace() || "[](){}\"',;=|<>".contains(c)) {
        let is_number = word.contains('.') && word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        if is_number && word.matches('.').count() == 1 {
            out.uptime = word;
        } else if seconds_of_day(word).is_some() {
            out.date = word;
        }
    }
    out
}

fn level<'a>(out: &mut Stripped<'a>, text: &'a str) -> bool {
    let Some((digits, rest)) = text[1..].split_once('>') else {
        return false;
    };
    if digits.is_empty() || digits.len() > 3 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return false;
    }
    out.text = rest;
    true
}

/// `[ 123.456] `, `[  +0.002] `, `[Mon Apr 20 15:08:07 2020] `, `[2020-04-20 15:08:07] `, `[ T123] `.
fn bracket<'a>(out: &mut Stripped<'a>, text: &'a str) -> bool {
    let Some(end) = text.as_bytes().iter().take(48).position(|b| *b == b']') else {
        return false;
    };
    let (inner, rest) = (text[1..end].trim(), &text[end + 1..]);
    let is_number = |t: &str| {
        let t = t.strip_prefix(['+', '-']).unwrap_or(t);
        t.contains('.') && t.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    };
    // `[761945.327441 <    0.000020>]` has the time since the line before as well.
    let first = inner
        .split_once(" <")
        .filter(|(_, delta)| is_number(delta.trim_end_matches('>').trim()))
        .map_or(inner, |(first, _)| first.trim());
    if is_number(first) {
        // A time since the line before is told from one since boot by its sign.
        if first.starts_with('+') && !out.uptime.is_empty() {
            out.text = rest.strip_prefix(' ').unwrap_or(rest);
            return true;
        }
        out.uptime = first;
    } else if seconds_of_day(inner).is_some() {
        out.date = inner;
    } else if is_caller(inner) {
        out.printer = inner;
    } else if !is_short_date(inner) && !is_delta(inner) {
        return false;
    }
    out.text = rest.strip_prefix(' ').unwrap_or(rest);
    true
}

/// `2016-10-10T20:14:39.1-07:00 host kernel: `, `12:34:56 `, `06-01 12:00:00.0  12  34 W tag: `, `4,123,456789,-;`.
fn numbered<'a>(out: &mut Stripped<'a>, text: &'a str) -> bool {
    if let Some(message) = kmsg(out, text) {
        out.text = message;
        return true;
    }
    let words: Vec<&str> = text.splitn(3, ' ').collect();
    let first = words[0];
    let is_date = |t: &str| t.contains('-') && t.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    let is_time = |t: &str| {
        seconds_of_day(t).is_some()
            && t.bytes()
                .all(|b| b.is_ascii_digit() || b":.,+-TZ".contains(&b))
    };
    let stamp_len = if is_time(first) {
        first.len()
    } else if is_date(first) && words.get(1).is_some_and(|t| is_time(t)) {
        first.len() + 1 + words[1].len()
    } else {
        return false;
    };
    let (stamp, rest) = text.split_at(stamp_len);
    if !rest.starts_with(' ') {
        return false;
    }
    out.date = stamp;
    after_date(out, rest, first.len() < 6);
    true
}

/// A record of `/dev/kmsg` and of netconsole.
fn kmsg<'a>(out: &mut Stripped<'a>, text: &'a str) -> Option<&'a str> {
    let semicolon = text.as_bytes().iter().take(64).position(|b| *b == b';')?;
    let (head, rest) = (&text[..semicolon], &text[semicolon + 1..]);
    let mut parts = head.split(',');
    let numbers = [parts.next()?, parts.next()?, parts.next()?];
    let all_digits = |t: &&str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    if !numbers.iter().all(all_digits) {
        return None;
    }
    out.micros = numbers[2];
    Some(rest)
}

/// `Feb  9 08:09:39 host kernel: `, `kern  :warn  : `, `host kernel: `, `kernel: `.
fn worded<'a>(out: &mut Stripped<'a>, text: &'a str) -> bool {
    if let Some(len) = syslog_date(text) {
        let (stamp, rest) = text.split_at(len);
        out.date = stamp;
        after_date(out, rest, false);
        return true;
    }
    if let Some(rest) = text.strip_prefix("kernel:") {
        out.text = rest.strip_prefix(' ').unwrap_or(rest);
        return true;
    }
    if let Some(rest) = facility(text).or_else(|| file_and_line(text)) {
        out.text = rest;
        return true;
    }
    // `journalctl -o short-monotonic` names the host behind the time.
    if out.is_framed
        && let Some((host, rest)) = text.split_once(' ')
        && let Some(rest) = rest.trim_start().strip_prefix("kernel:")
    {
        out.host = host;
        out.text = rest.strip_prefix(' ').unwrap_or(rest);
        return true;
    }
    false
}

/// Behind a date: the host and `kernel:`, where they are. `is_android`: numbers of process and thread, a level and a tag.
fn after_date<'a>(out: &mut Stripped<'a>, rest: &'a str, is_android: bool) {
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    out.text = rest;
    let window = &rest[..rest.floor_char_boundary(120)];
    if let Some(at) = window.find("kernel: ").or_else(|| window.find("kernel:["))
        && rest[..at].split_whitespace().count() <= 3
        && rest[..at].ends_with([' ', '.']) | (at == 0)
    {
        // A logger's line within another's may name none.
        out.host = rest[..at].split_whitespace().next().unwrap_or(out.host);
        let message = &rest[at + "kernel:".len()..];
        out.text = message.strip_prefix(' ').unwrap_or(message);
        return;
    }
    if let Some(before) = window.trim_end().strip_suffix("kernel:")
        && window.len() == rest.len()
    {
        out.host = before.split_whitespace().next().unwrap_or(out.host);
        out.text = "";
        return;
    }
    let mut words = window.split_whitespace();
    if is_android {
        let skipped: Vec<&str> = words.by_ref().take(3).collect();
        if let [pid, tid, level] = skipped[..]
            && [pid, tid]
                .iter()
                .all(|t| t.bytes().all(|b| b.is_ascii_digit()))
            && level.len() == 1
            && let Some(at) = rest.find(&format!(" {level} "))
        {
            let behind = &rest[at + 3..];
            // A tag, which may be empty.
            let tag = behind.trim_start();
            out.text = match tag.split_once(": ") {
                Some((name, text)) if name.trim().is_empty() || name.trim() == "kernel" => text,
                _ => behind,
            };
        }
        return;
    }
    // `host systemd[1]: ` is of another program; `host [ 12.3] ` and a bare message are the kernel's.
    let (Some(_), Some(program)) = (words.next(), words.next()) else {
        return;
    };
    if rest.trim_start().starts_with('[') {
        // The kernel's own time follows.
    } else if is_program(program) {
        out.is_foreign = true;
    } else if program.starts_with('[')
        && let Some(at) = rest.find(" [")
        && rest[at + 2..]
            .trim_start()
            .starts_with(|c: char| c.is_ascii_digit())
    {
        out.host = rest[..at].trim();
        out.text = &rest[at + 1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `spec: K.3`
    #[test]
    fn every_way_of_logging_leaves_the_message() {
        for line in [
            "app: page allocation failure",
            "<4>app: page allocation failure",
            "[ 4192.154241] app: page allocation failure",
            "<4>[ 4192.154241] app: page allocation failure",
            "[Mon Apr 20 15:08:07 2020] app: page allocation failure",
            "[  +0.002367] app: page allocation failure",
            "[    1.5][    T1] app: page allocation failure",
            "Feb  9 08:09:39 host-a kernel: app: page allocation failure",
            "Feb  9 08:09:39 host-a kernel: [ 4192.154241] app: page allocation failure",
            "Jan  24 13:49:59 host1 kernel: [267104.374271] app: page allocation failure",
            "Aug 27 17:20:03 kernel: app: page allocation failure",
            "2016-10-10T20:14:39.164501-07:00 host-c kernel: [ 4192.154241] app: page allocation failure",
            "2016-10-10 20:14:39 host-c kernel: app: page allocation failure",
            "[ 4192.154241] host-a kernel: app: page allocation failure",
            "[2020-04-20 15:08:07] [ 4192.154241] app: page allocation failure",
            "15:08:07.123 [ 4192.154241] app: page allocation failure",
            "kern  :warn  : [ 4192.154241] app: page allocation failure",
            "06-01 12:00:00.123     0     0 W [ 4192.154241] app: page allocation failure",
            "4,1234,4192154241,-;app: page allocation failure",
            "> > [ 4192.154241] app: page allocation failure",
            "Jan  1 00:00:01 router kern.warn kernel: [ 1.5] app: page allocation failure",
            "Fri 2026-01-02 03:04:05 UTC host-d kernel: app: page allocation failure",
            "Fri 2026-01-02 03:04:05 UTC host-d kernel[n/a]: app: page allocation failure",
            "1767323045.123456 host-d kernel: app: page allocation failure",
            "2026-01-02T03:04:05+0000 host-d kernel: app: page allocation failure",
            "[ 4192.154241 <    0.000020>] app: page allocation failure",
            "[ 4192.154241 <    0.000020 >] host-d kernel: app: page allocation failure",
            "[<    0.000020>] app: page allocation failure",
            "[Jan  2 03:04] app: page allocation failure",
            "2026-01-02T03:04:05,123456+00:00 app: page allocation failure",
            "2026-01-02T03:04:05.123000000Z [ 4192.154241] app: page allocation failure",
            "Jan 02 03:04:05 [ 4192.154241] app: page allocation failure",
            "01-02 03:04:05.678     0     0 W         : app: page allocation failure",
            "@4000000037c219bf2ef02e94 app: page allocation failure",
            "kern.log:12:app: page allocation failure",
            "kern.log-112-app: page allocation failure",
        ] {
            assert_eq!(strip(line).text, "app: page allocation failure", "{line}");
        }
    }

    #[test]
    fn a_continuation_keeps_its_blank() {
        assert_eq!(strip("[ 1.5]  active_file:3").text, " active_file:3");
        assert!(!strip(" active_file:3").is_framed);
        assert_eq!(
            strip("  [<ffffffff81123daf>] ? f+0x1/0x2").text,
            "  [<ffffffff81123daf>] ? f+0x1/0x2"
        );
    }

    #[test]
    fn another_programs_line_is_foreign() {
        assert!(strip("Feb  9 08:09:39 host systemd[1]: page allocation failure").is_foreign);
        assert!(!strip("Feb  9 08:09:39 host kernel: x").is_foreign);
        let reserve = strip("2026-01-02T03:04:05Z [ 1.5] lowmem_reserve[]: 0 1");
        assert_eq!(
            (reserve.text, reserve.is_foreign),
            ("lowmem_reserve[]: 0 1", false)
        );
    }

    #[test]
    fn the_host_is_named() {
        for (line, host) in [
            ("Feb  9 08:09:39 web1 kernel: x", "web1"),
            ("Fri 2026-01-02 03:04:05 UTC web1 kernel: x", "web1"),
            ("1767323045.123456 web1 kernel: x", "web1"),
            ("[ 4192.154241] web1 kernel: x", "web1"),
            ("2026-01-02 03:04:05 web1 [ 1.5] x", "web1"),
            ("[ 4192.154241] x", ""),
            ("Aug 27 17:20:03 kernel: x", ""),
        ] {
            assert_eq!(strip(line).host, host, "{line}");
        }
        assert_eq!(strip("[    1.5][  T12] x").printer, "T12");
    }

    #[test]
    fn a_prefix_of_any_form_tells_its_time() {
        let time = |prefix| stamp_in(prefix).stamp().map(|s| (s.seconds, s.since_boot));
        assert_eq!(time("pod/a [ 12.500000] "), Some((12.5, true)));
        assert_eq!(time("x y 01:00:07.5 z: "), Some((3607.5, false)));
        assert_eq!(time("{host=\"a\"} "), None);
    }

    #[test]
    fn times_are_seconds_since_boot_where_the_kernel_wrote_them() {
        let s = strip("Feb  9 08:09:39 host kernel: [ 12.5] x")
            .stamp()
            .unwrap();
        assert_eq!(
            (s.text.as_str(), s.seconds, s.since_boot),
            ("Feb 9 08:09:39", 12.5, true)
        );
        let s = strip("[Mon Apr 20 01:00:07 2020] x").stamp().unwrap();
        assert_eq!((s.seconds, s.since_boot), (3607.0, false));
    }
}
