//! Whether a text is a kernel's log at all, failures or not: a line in it that a kernel printed. `spec: K.3`
//!
//! Invariant: a line counts only for what stands before its message (the kernel's own time, its level, its name), or as one
//! of the few messages that begin a log or say that it is empty; text passes unchanged, and a line is kept to [`MOST`] bytes.

use super::decode::Decoder;
use super::envelope::strip;
use super::phrases::searcher;
use aho_corasick::AhoCorasick;
use memchr::memmem::Finder;
use memchr::{memchr, memchr_iter, memchr2, memrchr};
use std::io::{self, Read};
use std::sync::LazyLock;

/// Bytes of a line that are looked at.
const MOST: usize = 16 << 10;

/// Signs without which no line is a kernel's: only lines with one of these words or marks, or with a bracket that is not
/// that of a process's number, are looked at.
const SIGNS: [&str; 7] = [
    "kern",
    // A bracket, where a mailer encoded it.
    "=5B",
    "Linux version ",
    "-- ",
    // Hours of a date in one word.
    "T0",
    "T1",
    "T2",
];

/// The marks among them: of a level, and of a record of the ring buffer.
const MARKS: [u8; 2] = [b'<', b';'];

/// A text that is looked at as it is read, until a line of a kernel is found.
pub struct Watched<R> {
    input: R,
    signs: AhoCorasick,
    /// What was read of the last line.
    rest: Vec<u8>,
    is_found: bool,
}

impl<R: Read> Watched<R> {
    /// The text of `input`.
    pub fn new(input: R) -> Watched<R> {
        Watched {
            input,
            signs: searcher(SIGNS.iter()),
            rest: vec![],
            is_found: false,
        }
    }

    /// Whether a line of a kernel was in what was read.
    pub fn has_line(self) -> bool {
        self.is_found || is_line_of_kernel(&self.rest)
    }

    fn look(&mut self, bytes: &[u8]) {
        if self.is_found {
            return;
        }
        let whole = memrchr(b'\n', bytes).map_or(0, |at| at + 1);
        let (lines, rest) = bytes.split_at(whole);
        let first = memchr(b'\n', lines).map_or(0, |at| at + 1);
        let (first, lines) = lines.split_at(first);
        self.keep(first);
        if !first.is_empty() {
            self.is_found = is_line_of_kernel(&std::mem::take(&mut self.rest));
        }
        self.find(lines);
        self.keep(rest);
    }

    /// Adds to the last line, as far as it is looked at.
    fn keep(&mut self, bytes: &[u8]) {
        let room = MOST.saturating_sub(self.rest.len()).min(bytes.len());
        self.rest.extend_from_slice(&bytes[..room]);
    }

    /// Looks for a line of a kernel among whole ones.
    fn find(&mut self, lines: &[u8]) {
        let word = |from: usize| Some(from + self.signs.find(&lines[from..])?.start());
        let mark = |from: usize| Some(from + memchr2(MARKS[0], MARKS[1], &lines[from..])?);
        let bracket = |from: usize| bracket(lines, from);
        let finders: [&dyn Fn(usize) -> Option<usize>; 3] = [&word, &mark, &bracket];
        let mut next = finders.map(|find| find(0));
        while let Some(at) = next.into_iter().flatten().min() {
            let from = memrchr(b'\n', &lines[..at]).map_or(0, |at| at + 1);
            let behind = memchr(b'\n', &lines[at..]).map_or(lines.len(), |end| at + end + 1);
            if is_line_of_kernel(&lines[from..behind]) {
                self.is_found = true;
                return;
            }
            for (next, find) in next.iter_mut().zip(finders) {
                if next.is_some_and(|next| next < behind) {
                    *next = find(behind);
                }
            }
        }
    }
}

/// The next bracket from a place on that does not hold a number alone. Programs write their process's number so, and a
/// kernel nothing that it is told by.
fn bracket(lines: &[u8], from: usize) -> Option<usize> {
    let brackets = memchr_iter(b'[', &lines[from..]);
    let is_no_number = |&at: &usize| {
        let mut inside = lines[at + 1..].iter();
        let digits = inside.position(|b| !b.is_ascii_digit());
        digits.is_none_or(|n| n == 0 || lines[at + 1 + n] != b']')
    };
    brackets.map(|at| from + at).find(is_no_number)
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.input.read(buffer)?;
        self.look(&buffer[..n]);
        Ok(n)
    }
}

fn is_line_of_kernel(line: &[u8]) -> bool {
    let line = &line[..line.len().min(MOST)];
    /// A field of the journal that names who wrote a line.
    static TRANSPORT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("_TRANSPORT"));
    let mut is_kernels =
        TRANSPORT.find(line).is_some() && memchr::memmem::find(line, b"kernel").is_some();
    Decoder::default().decode(0, line, &mut |clean| {
        is_kernels |= is_of_kernel(&clean.text);
    });
    is_kernels
}

/// Whether a kernel printed the line, or a reader of its log says that it has none.
fn is_of_kernel(line: &str) -> bool {
    /// What begins a line without a prefix.
    const BEGINNINGS: [&str; 5] = [
        "Linux version ",
        "-- No entries --",
        "-- Journal begins ",
        "-- Logs begin ",
        "-- Boot ",
    ];
    let found = strip(line);
    if found.is_foreign {
        return false;
    }
    if BEGINNINGS.iter().any(|b| found.text.starts_with(b)) {
        return true;
    }
    let before = &line[..line.len() - found.text.len()];
    let before = before.trim_start_matches(['>', ' ']);
    let is_level = || {
        let level = before.strip_prefix('<').and_then(|l| l.split_once('>'));
        level.is_some_and(|(level, _)| level.parse::<u8>().is_ok_and(|n| n < 8))
    };
    // `[Mon Apr 20 15:08:07 2020]`; programs begin such a date with a number.
    let is_date_of_dmesg = || {
        let inner = before.strip_prefix('[').map(|l| l.trim_start());
        inner.is_some_and(|l| l.starts_with(|c: char| c.is_ascii_uppercase()))
    };
    // `2026-01-02T03:04:05,123456+00:00`; programs put fewer digits behind a comma.
    let is_iso_of_dmesg = || {
        let fraction = before.split_once('T').and_then(|(_, t)| t.split_once(','));
        fraction.is_some_and(|(_, f)| f.bytes().take_while(u8::is_ascii_digit).count() == 6)
    };
    !found.uptime.is_empty()
        || !found.micros.is_empty()
        || before.contains("kern")
        || is_level()
        || is_date_of_dmesg()
        || is_iso_of_dmesg()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_line(text: &str) -> bool {
        let mut watched = Watched::new(text.as_bytes());
        let mut read = String::new();
        watched.read_to_string(&mut read).unwrap();
        assert_eq!(read, text);
        watched.has_line()
    }

    /// `spec: K.3`
    #[test]
    fn a_log_without_failures_is_told_by_how_its_lines_begin() {
        for line in [
            "[    1.500000] usb 1-1: new high-speed USB device",
            "<6>usb 1-1: new high-speed USB device",
            "[Mon Apr 20 15:08:07 2020] usb 1-1: new",
            "[Apr20 15:08] usb 1-1: new\n[  +0.002367] usb",
            "Feb  9 08:09:39 host-a kernel: usb 1-1: new",
            "2016-10-10T20:14:39.164501-07:00 host-c kernel: usb 1-1: new",
            "2026-01-02T03:04:05,123456+00:00 usb 1-1: new",
            "kern  :info  : [    1.500000] usb 1-1: new",
            "6,1234,4192154241,-;usb 1-1: new",
            "> > [    1.500000] usb 1-1: new",
            r#"{"_TRANSPORT":"kernel","MESSAGE":"usb 1-1: new"}"#,
            "_TRANSPORT=kernel",
            "Linux version 6.1.0 (gcc)",
            "-- No entries --",
        ] {
            assert!(has_line(line), "{line}");
            let noise = "another line of no program [1]\n".repeat(2000);
            assert!(has_line(&format!("{noise}{line}\n{noise}")), "{line}");
            let long = "x".repeat(5 * MOST);
            assert!(has_line(&format!("{long}\n{line}")), "{line}");
        }
    }

    /// A process's number in brackets says nothing of what else is in its line.
    #[test]
    fn a_line_of_a_kernel_is_found_behind_and_between_the_numbers_of_processes() {
        for line in [
            "[123] [    1.500000] usb 1-1: new",
            "[    1.500000] task[77]: new [8]",
            "[7][    1.500000] usb 1-1: new",
            "[12] =5B    1.500000=5D a=3Db",
            "[12] &#91;    1.500000] usb",
        ] {
            let alone = has_line(line);
            let noise = "Feb  9 08:09:39 host-a app[77]: state [1] of [22]\n".repeat(3000);
            assert!(!has_line(&noise));
            assert_eq!(
                has_line(&format!("{noise}{line}\n{noise}")),
                alone,
                "{line}"
            );
        }
        assert!(has_line("[    1.500000] task[77]: new [8]"));
    }

    #[test]
    fn other_text_is_no_log() {
        for text in [
            "",
            "\n\n",
            "# tracer: nop\n#\n            bash-1234  [000] d..1.  1234.567890: mm_page_alloc: page=0x1 pfn=0x1 order=0 migratetype=0 gfp_flags=GFP_KERNEL\n",
            "          <idle>-0     [001] d.h1.  1234.567890: mm_page_free: page=0x1 pfn=0x1 order=0\n",
            "Node 0, zone   Normal  1 2 3 4 5 6 7 8 9 10 11\n",
            "Look at the kernel: it has no free memory. [1] says why.\n",
            "Feb  9 08:09:39 host systemd[1]: Started a unit.\n",
            "<30>Feb  9 08:09:39 app: started\n",
            "2026-01-02 03:04:05,123 INFO started\n",
            "[2026-01-02 03:04:05] started\n",
            "{\"a\": 1}\n",
        ] {
            assert!(!has_line(text), "{text}");
        }
    }
}
