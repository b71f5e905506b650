//! Options: what the recorder says of host and clock. Both formats have them; those that say where
//! sections are exist in format 7 only.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::recording::Meta;
use crate::trace::bytes::Bytes;
use crate::trace::event::columns::MAX_CPUS;

use super::header::Header;

/// Option numbers.
pub(super) mod id {
    pub const DONE: u16 = 0;
    pub const DATE: u16 = 1;
    pub const CPUSTAT: u16 = 2;
    pub const BUFFER: u16 = 3;
    pub const TRACECLOCK: u16 = 4;
    pub const UNAME: u16 = 5;
    pub const OFFSET: u16 = 7;
    pub const CPUCOUNT: u16 = 8;
    pub const VERSION: u16 = 9;
    pub const TRACEID: u16 = 11;
    pub const TSC2NSEC: u16 = 14;
    pub const HEADER_INFO: u16 = 16;
    pub const FTRACE_EVENTS: u16 = 17;
    pub const EVENT_FORMATS: u16 = 18;
    pub const CMDLINES: u16 = 21;
    pub const BUFFER_TEXT: u16 = 22;
}

/// What the options say.
#[derive(Default)]
pub(super) struct Options {
    /// `uname -r`.
    pub kernel_release: String,
    /// The clock, from the file `trace_clock`.
    pub clock: String,
    /// CPUs of the host.
    pub cpus: u32,
    /// Multiplier, shift and offset from ticks of the time stamp counter to nanoseconds.
    pub tsc: Option<(u32, u32, u64)>,
    /// Further facts, by name.
    pub facts: BTreeMap<String, String>,
}

impl Options {
    /// Takes an option; others than those known are left aside.
    pub fn take(&mut self, id: u16, data: &[u8], at: u64, big_endian: bool) -> Result<()> {
        let mut b = Bytes::new(data, at, big_endian);
        let text = text_of(data);
        let mut fact = |name: &str, value: &str| {
            if !value.is_empty() {
                self.facts.insert(name.to_owned(), value.to_owned());
            }
        };
        match id {
            id::UNAME => {
                let mut words = text.split_ascii_whitespace().skip(2);
                self.kernel_release = words.next().unwrap_or_default().to_owned();
                fact("machine", words.last().unwrap_or_default());
            }
            id::TRACECLOCK => self.clock = clock_of(&text),
            id::CPUCOUNT => {
                let cpus = b.u32("the number of CPUs")?;
                if cpus > MAX_CPUS {
                    let e = Error::too_large("the number of CPUs", cpus.into(), MAX_CPUS.into());
                    return Err(e.at(at));
                }
                self.cpus = cpus;
            }
            id::CPUSTAT => cpu_stat(&text, fact),
            id::DATE => fact("date offset", &text),
            id::OFFSET => fact("time offset", &text),
            id::VERSION => fact("trace-cmd version", &text),
            id::TRACEID => fact("trace id", &format!("{:#x}", b.u64("the trace id")?)),
            id::TSC2NSEC => {
                let what = "the option TSC2NSEC";
                let (mult, shift, offset) = (b.u32(what)?, b.u32(what)?, b.u64(what)?);
                self.tsc = Some((mult, shift, offset));
            }
            _ => {}
        }
        Ok(())
    }
    /// The recording's meta data, but for what only the events tell.
    pub fn meta(&self, header: &Header, clock: &str) -> Meta {
        let clock = clock_of(clock);
        Meta {
            kernel_release: self.kernel_release.clone(),
            page_size: header.page_size,
            cpus: self.cpus,
            source: format!("trace.dat v{}", header.version),
            clock: if clock.is_empty() {
                self.clock.clone()
            } else {
                clock
            },
            facts: self.facts.clone(),
            ..Meta::default()
        }
    }
}

/// The overruns of a CPU's ring buffer, if there were any.
fn cpu_stat(text: &str, mut fact: impl FnMut(&str, &str)) {
    let mut cpu = "";
    for (key, value) in text.lines().filter_map(|l| l.split_once(':')) {
        let value = value.trim();
        match key.trim() {
            "CPU" => cpu = value,
            key @ ("overrun" | "commit overrun" | "dropped events") if value != "0" => {
                fact(&format!("cpu {cpu} {key}"), value);
            }
            _ => {}
        }
    }
}

/// Option text without its terminating zero and line end.
fn text_of(data: &[u8]) -> String {
    let end = data.iter().position(|&b| b == 0).unwrap_or(data.len());
    String::from_utf8_lossy(&data[..end]).trim().to_owned()
}

/// `local [global] counter` is `global`; a single name is itself.
fn clock_of(text: &str) -> String {
    let chosen = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or(text, |(name, _)| name);
    chosen.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_release_clock_and_overruns() {
        let mut o = Options::default();
        let uname = b"Linux (none) 6.1.0-56-cloud-amd64 x86_64\0";
        o.take(id::UNAME, uname, 0, false).unwrap();
        o.take(id::TRACECLOCK, b"local [mono] tai\n\0", 0, false)
            .unwrap();
        let stat = b"CPU: 3\nentries: 0\noverrun: 12\ndropped events: 0\n\0";
        o.take(id::CPUSTAT, stat, 0, false).unwrap();
        assert!(o.take(id::CPUCOUNT, b"\0", 7, false).is_err());
        assert_eq!(o.kernel_release, "6.1.0-56-cloud-amd64");
        assert_eq!(o.facts["machine"], "x86_64");
        assert_eq!(o.clock, "mono");
        assert_eq!(o.facts["cpu 3 overrun"], "12");
        assert!(!o.facts.contains_key("cpu 3 dropped events"));
    }
}
