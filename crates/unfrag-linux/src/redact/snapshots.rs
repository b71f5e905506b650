//! Files of snapshots: those that are read are written anew from what they say; all others are left out.
//!
//! Invariant: no line that was not understood stays.

use super::names::Names;
use super::removed::Removed;
use crate::content::Content;
use crate::freelists::FreeLists;
use crate::kpageflags;
use crate::procfs::{
    BuddyInfo, ExtfragIndex, MemInfo, Notes, PageTypeInfo, SlabInfo, UnusableIndex, VmStat,
    ZoneInfo, uptime,
};
use crate::recording::Snapshot;
use crate::snapshots::KNOWN;
use crate::snapshots::settings::is_setting;

/// The snapshots, with what they say in the kernel's own words alone.
pub(super) fn redact(
    snapshots: Vec<Snapshot>,
    names: &mut Names,
    removed: &mut Removed,
) -> Vec<Snapshot> {
    let mut out = vec![];
    for (number, snapshot) in snapshots.into_iter().enumerate() {
        let name = match is_plain(&snapshot.name) {
            true => snapshot.name,
            false => format!("s{number:04}"),
        };
        let mut files = vec![];
        for mut file in snapshot.files {
            match redacted(&file.name, &file.content, names) {
                Some(content) => {
                    file.content = content;
                    files.push(file);
                }
                None => {
                    let known = KNOWN.contains(&file.name.as_str());
                    let name = if known { &file.name } else { "another file" };
                    removed.files_of_snapshots.insert(name.to_owned());
                }
            }
        }
        out.push(Snapshot { name, files });
    }
    out
}

/// Whether a recorder gave a snapshot this name.
fn is_plain(name: &str) -> bool {
    let number = name.strip_prefix('s').unwrap_or(name);
    matches!(name, "begin" | "end" | "now" | "started")
        || !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

/// What a file says; `None` if it is none that is read, or says nothing that could stay.
fn redacted(name: &str, content: &Content, names: &mut Names) -> Option<Content> {
    if name == kpageflags::NAME {
        return Some(content.clone());
    }
    let bytes = content.plain()?;
    macro_rules! plainly {
        ($format:ty) => {{
            let mut read = <$format>::parse(bytes).ok()?;
            read.notes = Notes::default();
            read.write()
        }};
    }
    let text = match name {
        "buddyinfo" => plainly!(BuddyInfo),
        "pagetypeinfo" => plainly!(PageTypeInfo),
        "zoneinfo" => plainly!(ZoneInfo),
        "vmstat" => plainly!(VmStat),
        "meminfo" => plainly!(MemInfo),
        "extfrag_index" => plainly!(ExtfragIndex),
        "unusable_index" => plainly!(UnusableIndex),
        "freelists" => FreeLists::parse(bytes).ok()?.write(),
        "slabinfo" => slabinfo(bytes, names)?,
        "uptime" => {
            uptime::parse(bytes).ok()?;
            let text = std::str::from_utf8(bytes).ok()?;
            let is_number = |w: &str| w.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            let numbers: Vec<&str> = text
                .split_whitespace()
                .take(2)
                .filter(|w| is_number(w))
                .collect();
            numbers.join(" ") + "\n"
        }
        "version" => version(bytes)?,
        "sysctl-vm" => settings(bytes),
        "settings" => listing(bytes),
        _ => return None,
    };
    Some(text.into())
}

fn slabinfo(bytes: &[u8], names: &mut Names) -> Option<String> {
    let mut read = SlabInfo::parse(bytes).ok()?;
    let usual = SlabInfo::default();
    let is_number = |b: u8| b.is_ascii_digit() || b == b'.';
    if !read.version.bytes().all(is_number) {
        read.version = usual.version;
    }
    read.columns = usual.columns;
    read.notes = Notes::default();
    for cache in &mut read.caches {
        cache.name = names.cache(&cache.name);
        cache.statistics.clear();
    }
    Some(read.write())
}

/// The kernel's release, without who built it and where.
fn version(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let release = text
        .strip_prefix("Linux version ")?
        .split_whitespace()
        .next()?;
    is_release(release).then(|| format!("Linux version {release}\n"))
}

/// Whether this is the release of a kernel.
pub(super) fn is_release(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-+~".contains(&b))
}

/// Settings that are numbers, by their files' names below `/proc/sys/vm`.
fn settings(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = |line: &str| {
        let (path, value) = line.split_once(['=', ':'])?;
        let name = path.trim().rsplit(['/', '.']).next()?;
        let value = value.trim();
        let is_name = !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit());
        let is_number = value
            .bytes()
            .all(|b| b.is_ascii_digit() || b" \t-".contains(&b));
        (is_name && is_number).then(|| format!("/proc/sys/vm/{name}={value}\n"))
    };
    text.lines().filter_map(line).collect()
}

/// Lines of settings below `/sys/kernel/mm` that the recorder takes, whose values are numbers or a choice of the kernel's words.
fn listing(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = |line: &str| {
        let (path, value) = line.split_once('=')?;
        let name = path.strip_prefix("/sys/kernel/mm/")?;
        let is_word = |w: &str| {
            let word = w.strip_prefix('[').and_then(|w| w.strip_suffix(']'));
            CHOICES.contains(&word.unwrap_or(w))
        };
        let digits = value.strip_prefix("0x").unwrap_or(value);
        let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
        let is_plain = is_number || value.split(' ').all(is_word);
        (is_setting(name) && is_plain).then(|| format!("{line}\n"))
    };
    text.lines().filter_map(line).collect()
}

/// What transparent huge pages can be set to.
const CHOICES: [&str; 11] = [
    "always",
    "defer",
    "defer+madvise",
    "madvise",
    "never",
    "inherit",
    "within_size",
    "advise",
    "deny",
    "force",
    "none",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_says_beside_its_numbers_is_left_out() {
        let mut names = Names::default();
        for (name, text, expected) in [
            (
                "vmstat",
                "pgalloc_normal 5\nowner = alice\npgfree 6\n",
                Some("pgalloc_normal 5\npgfree 6\n"),
            ),
            (
                "version",
                "Linux version 6.1.0-9-amd64 (alice@box) (gcc 12) #1 SMP\n",
                Some("Linux version 6.1.0-9-amd64\n"),
            ),
            ("version", "Linux version alice's\n", None),
            (
                "sysctl-vm",
                "/host/alice/proc/sys/vm/min_free_kbytes=67\nvm.lowmem_reserve_ratio = 256\t32 1\n/proc/sys/vm/owner=alice\n",
                Some(
                    "/proc/sys/vm/min_free_kbytes=67\n/proc/sys/vm/lowmem_reserve_ratio=256\t32 1\n",
                ),
            ),
            (
                "uptime",
                "350735.47 234388.90\n",
                Some("350735.47 234388.90\n"),
            ),
            ("uptime", "12.50 alice\n", Some("12.50\n")),
            ("cmdline", "root=/dev/alice\n", None),
            ("dmesg", "alice\n", None),
            ("vmstat", "alice was here\n", None),
        ] {
            let content: Content = text.as_bytes().to_vec().into();
            let new = redacted(name, &content, &mut names);
            let new = new
                .as_ref()
                .map(|c| String::from_utf8(c.bytes().into_owned()).unwrap());
            assert_eq!(new.as_deref(), expected, "{name}: {text}");
        }
        for (name, plain) in [
            ("begin", true),
            ("s0012", true),
            ("0007", true),
            ("alice-9", false),
            ("s", false),
        ] {
            assert_eq!(is_plain(name), plain, "{name}");
        }
    }
}
