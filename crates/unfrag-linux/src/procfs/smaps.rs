//! `/proc/PID/smaps`: the mappings of a process, with how much of each is in memory (`spec: 7.10`).
//!
//! Invariant: a number that the text does not have is `None`. What is read is what is asked of it here: it is not written back.

use crate::error::Error;
use std::ops::Range;

/// A mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// Its addresses.
    pub addresses: Range<u64>,
    /// Its rights, such as `rw-p`.
    pub rights: String,
    /// Bytes of the file before it.
    pub offset: u64,
    /// Number of the file; 0 if it is of none.
    pub inode: u64,
    /// What it is of: a path, `[heap]`, or nothing.
    pub name: String,
    /// Amounts in KiB, by name.
    amounts: Vec<(String, u64)>,
    /// The kernel's flags of it, two letters each; `None` where the kernel tells none.
    pub flags: Option<Vec<String>>,
    /// Whether the kernel may make huge pages of it by itself; `None` where it does not tell.
    pub thp_eligible: Option<bool>,
}

impl Mapping {
    /// An amount in bytes, such as `Rss`.
    pub fn bytes(&self, name: &str) -> Option<u64> {
        let amount = self.amounts.iter().find(|(n, _)| n == name);
        amount.map(|(_, kib)| kib.saturating_mul(1024))
    }

    /// Whether the kernel has this flag of it; `None` where it tells none.
    pub fn has_flag(&self, flag: &str) -> Option<bool> {
        let flags = self.flags.as_ref()?;
        Some(flags.iter().any(|f| f == flag))
    }

    /// Whether several processes may share what is written to it.
    pub fn is_shared(&self) -> bool {
        self.rights.ends_with('s')
    }
}

/// Reads the text, or that of `maps`, which has no amounts.
///
/// # Errors
/// If a line is neither the head of a mapping nor says something of one; names the byte at which it begins.
pub fn parse(text: &str) -> Result<Vec<Mapping>, Error> {
    let mut all: Vec<Mapping> = vec![];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let read = read_line(line.trim_end_matches('\n'), &mut all);
        read.ok_or_else(|| Error::malformed("smaps: no line of a mapping").at(at))?;
        at += line.len() as u64;
    }
    Ok(all)
}

fn read_line(line: &str, all: &mut Vec<Mapping>) -> Option<()> {
    if let Some(head) = read_head(line) {
        all.push(head);
        return Some(());
    }
    let mapping = all.last_mut()?;
    let (name, value) = line.split_once(':')?;
    let mut words = value.split_ascii_whitespace();
    match name {
        "VmFlags" => mapping.flags = Some(words.map(str::to_owned).collect()),
        "THPeligible" => mapping.thp_eligible = Some(words.next()? != "0"),
        _ => {
            let value = words.next().and_then(|n| n.parse().ok());
            // Others than amounts, such as a protection key, are passed over.
            if let (Some(value), Some("kB")) = (value, words.next()) {
                mapping.amounts.push((name.to_owned(), value));
            }
        }
    }
    Some(())
}

/// The head: `begin-end rights offset device inode name`; the name may hold blanks.
fn read_head(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut word = || {
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after.trim_start_matches(' ');
        word
    };
    let (begin, end) = word().split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let addresses = number(begin)?..number(end)?;
    let rights = word();
    let offset = number(word())?;
    let _device = word();
    let inode = word().parse().ok()?;
    (addresses.start < addresses.end && rights.len() == 4).then(|| Mapping {
        addresses,
        rights: rights.to_owned(),
        offset,
        inode,
        name: rest.to_owned(),
        ..Mapping::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
7f0000000000-7f0000400000 rw-p 00000000 00:00 0
Size:               4096 kB
Rss:                2048 kB
AnonHugePages:      2048 kB
ProtectionKey:         0
THPeligible:           1
VmFlags: rd wr mr mw me ac sd hg
7f0000400000-7f0000600000 rw-s 00200000 00:01 77                         /memfd:a name (deleted)
Rss:                   4 kB
";

    #[test]
    fn a_mapping_has_its_amounts_and_flags() {
        let all = parse(TEXT).unwrap();
        let [anon, shared] = &all[..] else {
            panic!("{all:?}")
        };
        assert_eq!(anon.addresses, 0x7f00_0000_0000..0x7f00_0040_0000);
        assert_eq!(anon.bytes("AnonHugePages"), Some(2 << 20));
        assert_eq!(anon.bytes("Swap"), None);
        assert_eq!(anon.has_flag("hg"), Some(true));
        assert_eq!(anon.thp_eligible, Some(true));
        assert_eq!(shared.name, "/memfd:a name (deleted)");
        assert_eq!((shared.offset, shared.inode), (0x20_0000, 77));
        assert!(shared.is_shared() && shared.has_flag("hg").is_none());
    }

    #[test]
    fn what_is_no_mapping_is_refused_where_it_stands() {
        let e = parse(&format!("{TEXT}no mapping\n")).unwrap_err();
        assert_eq!(e.offset, Some(TEXT.len() as u64));
        assert!(parse("Rss: 4 kB\n").is_err());
        assert!(parse("").unwrap().is_empty());
    }
}
