//! The prefix of a line (`spec: 7.8`).
//!
//! ```text
//! trace, trace_pipe      bash-123   (    120) [001] d..1.  7.643986: mm_page_free: page=...
//! trace-cmd report       bash-123   [001]     7.643986: mm_page_free:         page=...
//! perf script            bash   123 [001]     7.643986:         kmem:mm_page_free: page=...
//! latency format         bash-123     1d..1. 79911us+: mm_page_free: page=...
//! graph tracer           7.643986 |   1)  bash-123  |               |  /* mm_page_free: page=... */
//! ```
//!
//! Invariant: a line that has none of these forms is [`Line::Other`]; nothing here fails.

use crate::recording::UNKNOWN_COMM;

use super::value::{decimal, trim, trim_end};

/// The event's name where the kernel lists a stack.
pub(super) const STACK_TRACE: &[u8] = b"<stack trace>";

/// A line of a trace.
pub(super) enum Line<'a> {
    Event(Prefix<'a>),
    /// `CPU:1 [LOST 411 EVENTS]`.
    Lost {
        cpu: u16,
        count: Option<u64>,
    },
    /// `cpus=2`.
    Cpus(u32),
    Comment,
    /// A line of a stack, or of a call chain.
    Stack,
    /// What a tracer writes beside events: which CPUs recorded nothing, the file's version, calls of functions;
    /// and the fences of Markdown.
    Skipped,
    Blank,
    Other,
}

/// Time of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stamp {
    /// Nanoseconds, or the units of a clock that counts something else.
    Nanos(u64),
    #[default]
    None,
}

/// A line's prefix, and the text behind it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Prefix<'a> {
    pub comm: &'a [u8],
    pub pid: i32,
    pub cpu: u16,
    pub flags: u8,
    pub preempt: u8,
    pub time: Stamp,
    /// What perf writes before the event's name.
    pub system: Option<&'a [u8]>,
    pub event: &'a [u8],
    pub text: &'a [u8],
}

impl<'a> Line<'a> {
    /// Recognises a line.
    pub fn parse(line: &'a [u8]) -> Line<'a> {
        let start = trim(line);
        match start.first() {
            None => return Line::Blank,
            Some(b'#') => return Line::Comment,
            Some(b'=') if start.starts_with(b"=>") => return Line::Stack,
            Some(b'C') if start.starts_with(b"CPU:") => {
                if let Some(lost) = lost(start) {
                    return lost;
                }
            }
            Some(b'c') if start.starts_with(b"cpus=") => {
                if let Some(n) = decimal(&start[5..]) {
                    return Line::Cpus(n.min(u32::MAX.into()) as u32);
                }
            }
            _ => {}
        }
        if let Some(prefix) = bracketed(line)
            .or_else(|| graph(line))
            .or_else(|| latency(line))
        {
            return Line::Event(prefix);
        }
        if is_call_chain(start) {
            return Line::Stack;
        }
        if is_skipped(start) {
            return Line::Skipped;
        }
        Line::Other
    }
}

/// `CPU:1 [LOST 411 EVENTS]` of the kernel, `CPU:1 [411 EVENTS DROPPED]` of trace-cmd, either also
/// without a number.
fn lost(line: &[u8]) -> Option<Line<'_>> {
    let rest = &line[4..];
    let digits = rest.iter().take_while(|c| c.is_ascii_digit()).count();
    let cpu = u16::try_from(decimal(&rest[..digits])?).ok()?;
    let inside = trim(&rest[digits..])
        .strip_prefix(b"[")?
        .strip_suffix(b"]")?;
    let mut count = None;
    for word in inside.split(|&c| c == b' ') {
        match word {
            b"LOST" | b"EVENTS" | b"EVENT" | b"DROPPED" => {}
            number => count = Some(decimal(number)?),
        }
    }
    Some(Line::Lost { cpu, count })
}

/// `ffffffff8112 symbol+0x4 (file)`, as perf lists call chains.
fn is_call_chain(line: &[u8]) -> bool {
    let digits = line.iter().take_while(|c| c.is_ascii_hexdigit()).count();
    digits >= 4 && matches!(line.get(digits), None | Some(b' '))
}

/// Whether a line is one that a tracer writes beside events, or a fence of Markdown.
fn is_skipped(line: &[u8]) -> bool {
    let line = trim_end(line);
    let digits = |s: &[u8]| s.iter().take_while(|c| c.is_ascii_digit()).count();
    if let Some(rest) = line.strip_prefix(b"CPU ") {
        let n = digits(rest);
        return n > 0 && trim(&rest[n..]) == b"is empty";
    }
    if let Some(rest) = line.strip_prefix(b"version") {
        let number = trim(rest).strip_prefix(b"=").map(trim);
        return number.is_some_and(|n| decimal(n).is_some());
    }
    if line.starts_with(b"```") || line.starts_with(b"~~~") {
        return true;
    }
    // The function tracer names the caller, the graph tracer draws columns behind the CPU and lines between tasks.
    let calls = memchr::memmem::find(line, b" <-").is_some() && head_end(line).is_some();
    let mut columns = line.split(|&c| c == b'|').map(trim);
    let is_cpu = |column: &[u8]| {
        let n = digits(column);
        n > 0 && column.get(n) == Some(&b')')
    };
    let graph = match columns.next() {
        Some(first) if is_cpu(first) => {
            columns.next().is_some() || memchr::memmem::find(line, b" => ").is_some()
        }
        Some(first) if stamp(trim_end(first)).is_some() => columns.next().is_some_and(is_cpu),
        _ => false,
    };
    calls || graph || (line.len() >= 10 && line.iter().all(|&c| c == b'-'))
}

/// Where the CPU's bracket ends, in a line that begins with a task and a CPU.
fn head_end(line: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let open = from + memchr::memchr(b'[', &line[from..])?;
        let rest = &line[open + 1..];
        let digits = rest.iter().take_while(|c| c.is_ascii_digit()).count();
        if digits > 0 && rest.get(digits) == Some(&b']') && task(&line[..open], false).is_some() {
            return Some(open + digits + 2);
        }
        from = open + 1;
    }
}

/// Whether a line has a task and a CPU, perhaps flags and a time, and ends there.
pub(super) fn is_head(line: &[u8]) -> bool {
    let Some(end) = head_end(line) else {
        return false;
    };
    let mut rest = trim(&line[end..]);
    let mut word = &rest[..word_end(rest)];
    if !word.is_empty() && flag_columns(word).is_some() {
        rest = trim(&rest[word.len()..]);
        word = &rest[..word_end(rest)];
    }
    let time = word.strip_suffix(b":").is_some_and(|t| stamp(t).is_some());
    let after = trim(&rest[word.len()..]);
    // perf may put the period before the event.
    word.is_empty() || (time && (after.is_empty() || decimal(trim_end(after)).is_some()))
}

/// A prefix with the CPU in brackets.
fn bracketed(line: &[u8]) -> Option<Prefix<'_>> {
    let mut from = 0;
    loop {
        let open = from + memchr::memchr(b'[', &line[from..])?;
        let digits = line[open + 1..]
            .iter()
            .take_while(|c| c.is_ascii_digit())
            .count();
        let close = open + 1 + digits;
        if digits > 0 && line.get(close) == Some(&b']') {
            let cpu = decimal(&line[open + 1..close])?;
            let after = after_cpu(&line[close + 1..]);
            // A task's name may hold brackets too: then what follows is no time.
            if let (Ok(cpu), Some(after)) = (u16::try_from(cpu), after) {
                let (comm, pid) = task(&line[..open], after.system.is_some())?;
                return Some(Prefix {
                    comm,
                    pid,
                    cpu,
                    ..after
                });
            }
        }
        from = open + 1;
    }
}

/// What follows the CPU: flags, if there are any, time and event. Task and CPU are left empty.
fn after_cpu(rest: &[u8]) -> Option<Prefix<'_>> {
    let mut rest = trim(rest);
    let mut word = &rest[..word_end(rest)];
    let (mut flags, mut preempt) = (0, 0);
    if word.last() != Some(&b':') {
        (flags, preempt) = flag_columns(word)?;
        rest = trim(&rest[word.len()..]);
        word = &rest[..word_end(rest)];
    }
    let time = Stamp::Nanos(stamp(word.strip_suffix(b":")?)?);
    Some(Prefix {
        flags,
        preempt,
        time,
        ..event(&rest[word.len()..])?
    })
}

/// `kmem:mm_page_free: page=...`, or without the system; perf may put the period before it. All else
/// is left empty.
fn event(rest: &[u8]) -> Option<Prefix<'_>> {
    let mut rest = trim(rest);
    if rest.starts_with(STACK_TRACE) {
        return Some(Prefix {
            event: STACK_TRACE,
            ..Prefix::default()
        });
    }
    let mut word = &rest[..word_end(rest)];
    if decimal(word).is_some() {
        rest = trim(&rest[word.len()..]);
        word = &rest[..word_end(rest)];
    }
    let name = word.strip_suffix(b":").filter(|n| !n.is_empty())?;
    let text = trim_end(trim(&rest[word.len()..]));
    let (system, event) = match memchr::memchr(b':', name) {
        Some(i) if i + 1 < name.len() => (Some(&name[..i]), &name[i + 1..]),
        _ => (None, name),
    };
    Some(Prefix {
        system,
        event,
        text,
        ..Prefix::default()
    })
}

/// Name and pid of what stands before the CPU: `bash-123`, `bash-123 (120)`, `bash 123`,
/// `bash 120/123`.
fn task(before: &[u8], perf: bool) -> Option<(&[u8], i32)> {
    let mut before = trim_end(before);
    if before.last() == Some(&b')') {
        // The thread group, which the recording does not hold.
        let open = memchr::memrchr(b'(', before)?;
        before = trim_end(&before[..open]);
    }
    let digits = before
        .iter()
        .rev()
        .take_while(|c| c.is_ascii_digit())
        .count();
    let (name, pid) = before.split_at(before.len() - digits);
    let pid = i32::try_from(decimal(pid)?).ok()?;
    Some(match name.split_last()? {
        (b'-', comm) if perf && comm.last().is_none_or(u8::is_ascii_whitespace) => {
            (trim_end(trim(comm)), -pid)
        }
        (b'-', comm) => (trim(comm), pid),
        (b'/', rest) => {
            let digits = rest.iter().rev().take_while(|c| c.is_ascii_digit()).count();
            (trim_end(trim(&rest[..rest.len() - digits])), pid)
        }
        (b' ', comm) => (trim_end(trim(comm)), pid),
        _ => return None,
    })
}

/// The flags' columns: interrupts, need-resched, context, preempt depth, migrate-disable. Gives
/// `common_flags` and `common_preempt_count`, as far as the characters tell them.
fn flag_columns(word: &[u8]) -> Option<(u8, u8)> {
    const IRQS_OFF: u8 = 0x01;
    const NO_IRQ_STATE: u8 = 0x02;
    const NEED_RESCHED: u8 = 0x04;
    const HARD_IRQ: u8 = 0x08;
    const SOFT_IRQ: u8 = 0x10;
    const PREEMPT_RESCHED: u8 = 0x20;
    const NMI: u8 = 0x40;
    const BH_OFF: u8 = 0x80;
    if !(3..=8).contains(&word.len()) {
        return None;
    }
    let irqs = match word[0] {
        b'.' => 0,
        b'd' => IRQS_OFF,
        b'D' => IRQS_OFF | BH_OFF,
        b'b' => BH_OFF,
        b'X' => NO_IRQ_STATE,
        _ => return None,
    };
    let resched = match word[1] {
        b'.' => 0,
        b'N' => NEED_RESCHED | PREEMPT_RESCHED,
        b'n' => NEED_RESCHED,
        b'p' => PREEMPT_RESCHED,
        // Lazy rescheduling takes the bit of NO_IRQ_STATE.
        b'L' => NO_IRQ_STATE | PREEMPT_RESCHED,
        b'l' => NO_IRQ_STATE,
        b'B' => NO_IRQ_STATE | NEED_RESCHED | PREEMPT_RESCHED,
        b'b' => NO_IRQ_STATE | NEED_RESCHED,
        _ => return None,
    };
    let context = match word[2] {
        b'.' => 0,
        b's' => SOFT_IRQ,
        b'h' => HARD_IRQ,
        b'H' => HARD_IRQ | SOFT_IRQ,
        b'z' => NMI,
        b'Z' => NMI | HARD_IRQ,
        _ => return None,
    };
    let depth = |i: usize| match word.get(i) {
        None | Some(b'.') => Some(0),
        Some(&c) => (c as char).to_digit(16).map(|d| d as u8),
    };
    Some((irqs | resched | context, depth(3)? | depth(4)? << 4))
}

/// `7.643986` in nanoseconds; a number without a point as it is.
fn stamp(word: &[u8]) -> Option<u64> {
    let Some(point) = memchr::memchr(b'.', word) else {
        return decimal(word);
    };
    let (seconds, fraction) = (decimal(&word[..point])?, &word[point + 1..]);
    if fraction.len() > 9 {
        return None;
    }
    let scale = 10u64.pow(9 - fraction.len() as u32);
    let nanos = decimal(fraction)? * scale;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}

/// The latency format: `bash-123   1d..1. 79911us+: name: text`, or with seconds as trace-cmd writes.
fn latency(line: &[u8]) -> Option<Prefix<'_>> {
    // The CPU and its flags are the first word after the task that looks so.
    let mut at = line.len() - trim(line).len();
    loop {
        at += word_end(&line[at..]);
        let rest = trim(&line[at..]);
        if rest.is_empty() {
            return None;
        }
        at = line.len() - rest.len();
        let word = &rest[..word_end(rest)];
        let digits = word.iter().take_while(|c| c.is_ascii_digit()).count();
        let Some(cpu) = decimal(&word[..digits]).and_then(|c| u16::try_from(c).ok()) else {
            continue;
        };
        let Some((flags, preempt)) = flag_columns(&word[digits..]) else {
            continue;
        };
        let (comm, pid) = task(&line[..at], false)?;
        let rest = trim(&rest[word.len()..]);
        // A mark of delay may stand before the colon.
        let colon = rest.windows(2).position(|w| w == b": ")?;
        let time = rest[..colon].trim_ascii_end();
        let time = time.strip_suffix(b"!").unwrap_or(time);
        let time = time.trim_ascii_end();
        let is_mark = |c: &u8| matches!(c, b'+' | b'#' | b'*' | b'@' | b'$' | b'!');
        let time = time
            .strip_suffix(&[*time.last()?])
            .filter(|_| time.last().is_some_and(is_mark))
            .unwrap_or(time);
        let time = match time.strip_suffix(b"us") {
            Some(micros) => decimal(micros)?.checked_mul(1000)?,
            None => stamp(time)?,
        };
        return Some(Prefix {
            comm,
            pid,
            cpu,
            flags,
            preempt,
            time: Stamp::Nanos(time),
            ..event(&rest[colon + 1..])?
        });
    }
}

/// An event among the function graph: `7.643986 |   1)  bash-123  |    |  /* name: text */`; time and
/// task are there only if the tracer was told to show them.
fn graph(line: &[u8]) -> Option<Prefix<'_>> {
    let open = line.windows(3).position(|w| w == b"/* ")?;
    let inside = trim_end(&line[open + 3..]);
    let inside = trim_end(inside.strip_suffix(b"*/")?);
    let mut prefix = Prefix {
        comm: UNKNOWN_COMM.as_bytes(),
        ..event(inside)?
    };
    let mut found = false;
    for column in line[..open].split(|&c| c == b'|') {
        let mut column = trim_end(trim(column));
        if let Some(time) = stamp(column).filter(|_| column.contains(&b'.')) {
            prefix.time = Stamp::Nanos(time);
            continue;
        }
        if let Some(close) = memchr::memchr(b')', column)
            && let Some(cpu) = decimal(trim(&column[..close]))
        {
            prefix.cpu = u16::try_from(cpu).ok()?;
            found = true;
            column = trim(&column[close + 1..]);
        }
        if let Some((comm, pid)) = task(column, false) {
            (prefix.comm, prefix.pid) = (comm, pid);
        }
    }
    found.then_some(prefix)
}

/// Where the word ends that `rest` begins with.
fn word_end(rest: &[u8]) -> usize {
    rest.iter()
        .position(|c| *c == b' ' || *c == b'\t')
        .unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(line: &str) -> Prefix<'_> {
        match Line::parse(line.as_bytes()) {
            Line::Event(p) => p,
            _ => panic!("{line:?} is an event"),
        }
    }
    fn brief(line: &str) -> (&str, i32, u16, u64, &str, &str) {
        let p = prefix(line);
        let text = |b| std::str::from_utf8(b).unwrap();
        let Stamp::Nanos(time) = p.time else {
            panic!("{line:?} has a time");
        };
        (
            text(p.comm),
            p.pid,
            p.cpu,
            time,
            text(p.event),
            text(p.text),
        )
    }

    /// `spec: 7.8`
    #[test]
    fn prefixes_of_all_tools() {
        let t = 889_213_383_000;
        let samples = [
            "   <...>-22275 [006] ....   889.213383: mm_page_alloc: pfn=970744",
            "   <...>-22275 [006]   889.213383: mm_page_alloc:        pfn=970744",
            "   <...>-22275 [006] d.h1.  889.213383: mm_page_alloc: pfn=970744",
            "   <...>-22275 (  22270) [006] d.h1.  889.213383: mm_page_alloc: pfn=970744",
            "   <...>-22275 (-------) [006] 889.213383: mm_page_alloc: pfn=970744",
            "<...> 22275 [006]    889.213383:             kmem:mm_page_alloc: pfn=970744",
            "<...> 22270/22275 [006]  889.213383383:   1 kmem:mm_page_alloc: pfn=970744",
        ];
        for line in samples {
            let (comm, pid, cpu, time, event, text) = brief(line);
            assert_eq!((comm, pid, cpu), ("<...>", 22275, 6), "{line}");
            assert_eq!(time / 1000 * 1000, t, "{line}");
            assert_eq!((event, text), ("mm_page_alloc", "pfn=970744"), "{line}");
        }
    }

    /// `spec: 7.8`
    #[test]
    fn task_names_with_spaces_hyphens_and_brackets() {
        let b = brief("  Web Content-x-17 [001] ....  1.000001: kfree: ptr=0");
        assert_eq!((b.0, b.1), ("Web Content-x", 17));
        let b = brief("Web Content-x   17 [001]  1.000001: kmem:kfree: ptr=0");
        assert_eq!((b.0, b.1), ("Web Content-x", 17));
        let b = brief("  a [12] b-17 [001] ....  1.000001: kfree: ptr=0");
        assert_eq!((b.0, b.1, b.2), ("a [12] b", 17, 1));
        assert_eq!(brief(":-1    -1 [001]  1.000001: kmem:kfree: ptr=0").1, -1);
        assert_eq!(
            brief("  kworker/1:2-53 [001]  1.000001: kfree: ptr=0").0,
            "kworker/1:2"
        );
    }

    #[test]
    fn flags_become_bits() {
        let p = prefix(" a-1 [001] dNh2.  1.000001: kfree: ptr=0");
        assert_eq!((p.flags, p.preempt), (0x2d, 2));
        let p = prefix(" a-1 [001] ..s14  1.000001: kfree: ptr=0");
        assert_eq!((p.flags, p.preempt), (0x10, 0x41));
    }

    #[test]
    fn latency_and_graph_formats() {
        let b = brief("    bash-30217     0d.s1. 112960us+: kmem_cache_free: name=x");
        assert_eq!(
            (b.1, b.2, b.3, b.4),
            (30217, 0, 112_960_000, "kmem_cache_free")
        );
        let b = brief("    bash-30135   1.....  2186.657127: mm_page_alloc:        pfn=0x1");
        assert_eq!((b.1, b.2, b.3), (30135, 1, 2_186_657_127_000));
        let b = brief(" bash-3 [000] ..... 5800956095690: mm_page_alloc: pfn=0x1");
        assert_eq!(b.3, 5_800_956_095_690);
        let p = prefix("  24)               |  /* mm_page_alloc: pfn=0 order=9 */");
        assert_eq!(
            (p.cpu, p.time, p.event),
            (24, Stamp::None, &b"mm_page_alloc"[..])
        );
        let b = brief("  7.250000 |   1)  bash-123   |               |  /* kfree: ptr=0 */");
        assert_eq!((b.0, b.1, b.2, b.3), ("bash", 123, 1, 7_250_000_000));
    }

    #[test]
    fn gaps_and_lines_that_are_no_events() {
        let lost = |l: &str| match Line::parse(l.as_bytes()) {
            Line::Lost { cpu, count } => (cpu, count),
            _ => panic!("{l:?} is a gap"),
        };
        assert_eq!(lost("CPU:1 [LOST 411 EVENTS]"), (1, Some(411)));
        assert_eq!(lost("CPU:12 [411 EVENTS DROPPED]"), (12, Some(411)));
        assert_eq!(lost("CPU:0 [EVENTS DROPPED]"), (0, None));
        assert!(matches!(
            Line::parse(b" => asm_exc_page_fault"),
            Line::Stack
        ));
        let chain = b"\tffffffff8112a2b3 get_page+0x3 ([kernel.kallsyms])";
        assert!(matches!(Line::parse(chain), Line::Stack));
        assert!(matches!(Line::parse(b"# tracer: nop"), Line::Comment));
        assert!(matches!(Line::parse(b"cpus=2"), Line::Cpus(2)));
        assert!(matches!(Line::parse(b"hello [world]"), Line::Other));
    }

    #[test]
    fn what_tracers_write_beside_events_is_skipped() {
        for line in [
            "CPU 1 is empty",
            "version = 6",
            "```text",
            " 1)   0.123 us    |  kfree();",
            " 1)               |  __alloc_pages() {",
            " 1)  bash-123 => sh-44",
            "  7.250000 |   1)   0.123 us    |  kfree();",
            " ------------------------------------------",
            "  bash-123 [001] ....  7.643986: kfree <-free_task",
        ] {
            assert!(
                matches!(Line::parse(line.as_bytes()), Line::Skipped),
                "{line}"
            );
        }
        for line in ["CPU 1 is full", "version 6 of this patch", "1) first", "--"] {
            assert!(
                matches!(Line::parse(line.as_bytes()), Line::Other),
                "{line}"
            );
        }
    }

    #[test]
    fn a_head_has_a_task_and_a_cpu_and_no_event() {
        for line in [
            " sh-14869 [000] ....  6850.456639:",
            "sh 14869 [000]  6850.456639:   1",
            " sh-14869 [000] ....",
            " sh-14869 [000]",
        ] {
            assert!(is_head(line.as_bytes()), "{line}");
        }
        for line in [
            "see [1]",
            " sh-1 [000] ....  6.5: kfree: ptr=1",
            " sh-1 [000] hello",
        ] {
            assert!(!is_head(line.as_bytes()), "{line}");
        }
    }
}
