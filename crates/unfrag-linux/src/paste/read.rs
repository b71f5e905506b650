//! Words as a snapshot.
//!
//! Invariant: a part is read only if it has as many words as it says, and their sum is the one that it says.

use super::files::{
    buddyinfo, counters, meminfo, nodes, pagetypeinfo, seconds_of, settings, slabinfo, zoneinfo,
};
use super::form::{BEGIN, END, PART, PARTS};
use super::plain::plain;
use super::words::{Word, Words};
use crate::error::{Error, Result};
use crate::procfs::VmStat;
use crate::recording::{Snapshot, SnapshotFile};
use crate::snapshots::Skipped;
use std::collections::HashSet;

/// What was read of a text.
#[derive(Debug, Default)]
pub struct Pasted {
    /// The snapshots: one, and before it those with what earlier readings told.
    pub snapshots: Vec<Snapshot>,
    /// What the text has, or says that it has not, and is not in them.
    pub skipped: Vec<Skipped>,
}

/// The last paste in a text: what `unfrag paste` wrote, in any mail or issue. `None` if there is none.
///
/// # Errors
/// If it was damaged; names what is missing.
pub fn read(text: &[u8]) -> Option<Result<Pasted>> {
    // The mark is looked for first: texts of gigabytes are read here, too.
    let first = memchr::memmem::find(text, BEGIN.as_bytes())?;
    let text = plain(&String::from_utf8_lossy(&text[first..]));
    let words: Vec<Word> = text.split_whitespace().filter_map(Word::of).collect();
    let is_begin = |w: &&[Word]| w.first().is_some_and(|w| w.text() == BEGIN);
    let of_one = |words: &'_ [Word]| {
        let end = words.iter().position(|w| w.key == END);
        1..end.map_or(words.len(), |at| at + 1)
    };
    let mut last: Option<&[Word]> = None;
    let mut different = HashSet::new();
    let pastes = words.chunk_by(|_, next| next.text() != BEGIN);
    for words in pastes.filter(is_begin) {
        let words = &words[of_one(words)];
        // Who answers to a paste may speak of it, or quote it.
        let is_mention = last.is_some() && !words.iter().any(|w| w.key == PART);
        if !is_mention {
            different.insert(words);
            last = Some(words);
        }
    }
    let (last, n) = (last?, different.len());
    let name = (n > 1).then(|| format!("{OF_SEVERAL}{n} of {n}"));
    let mut read = one(last, name.as_deref());
    if let Ok(read) = &mut read
        && n > 1
    {
        read.skipped.push(Skipped {
            file: match n {
                2 => format!("{OF_SEVERAL}1 of 2"),
                n => format!("{OF_SEVERAL}1 to {} of {n}", n - 1),
            },
            why: "the last one in the text is read; give the text of another alone to read it"
                .into(),
        });
    }
    Some(read)
}

/// Whether a snapshot is of one of several pastes in a text; its name says which.
pub fn is_of_several(snapshot: &Snapshot) -> bool {
    snapshot.name.starts_with(OF_SEVERAL)
}

/// How the name of such a snapshot begins.
const OF_SEVERAL: &str = "paste ";

/// Whether a paste is in a text that comes in pieces.
#[derive(Debug, Default)]
pub struct Mark {
    /// The end of the pieces so far, in which the mark may begin.
    end: Vec<u8>,
    is_there: bool,
}

impl Mark {
    /// Looks at the next piece.
    pub fn look(&mut self, piece: &[u8]) {
        if self.is_there {
            return;
        }
        let (head, keep) = (piece.len().min(BEGIN.len()), BEGIN.len() - 1);
        self.end.extend_from_slice(&piece[..head]);
        let is_in = |text: &[u8]| memchr::memmem::find(text, BEGIN.as_bytes()).is_some();
        self.is_there = is_in(&self.end) || is_in(piece);
        if piece.len() >= keep {
            self.end = piece[piece.len() - keep..].to_vec();
        } else {
            let from = self.end.len().saturating_sub(keep);
            self.end.drain(..from);
        }
    }

    /// Whether it was seen.
    pub fn is_there(&self) -> bool {
        self.is_there
    }
}

/// The part that is being read.
struct Part {
    name: String,
    words: Words,
    /// What it says its sum is.
    sum: Option<String>,
}

/// One paste, called `name` where the text has several.
fn one(words: &[Word], name: Option<&str>) -> Result<Pasted> {
    let mut held = String::new();
    let mut left = String::new();
    let mut parts: Vec<Part> = vec![];
    let mut ends = None;
    for word in words {
        let is_open = parts.last().is_some_and(|p| p.sum.is_none());
        match (word.key.as_str(), parts.last_mut()) {
            (END, _) => {
                ends = word.value.parse::<usize>().ok();
                break;
            }
            (PART, _) => parts.push(Part {
                name: word.value.clone(),
                words: Words::default(),
                sum: None,
            }),
            ("sum", Some(part)) if is_open => part.sum = Some(word.value.clone()),
            (_, Some(part)) if is_open => part.words.0.push(word.clone()),
            ("holds", None) => held += &word.value,
            ("left", None) => left += &word.value,
            // What stands between two parts is of neither.
            _ => {}
        }
    }
    let this = name.unwrap_or("the paste");
    let names = |list: &'_ str| -> Vec<String> {
        let names = list.split(',').filter(|n| !n.is_empty());
        names.map(str::to_owned).collect()
    };
    let (held, left) = (names(&held), names(&left));
    let bad = faults(&held, &parts, ends);
    if !bad.is_empty() {
        if is_joined(words) {
            let what =
                format!("{this} has signs between its lines that are not its own, such as commas");
            return Err(Error::malformed(what).help(
                "paste what `unfrag paste` printed line by line, or with blanks between its lines",
            ));
        }
        let what = format!("{this} was damaged on its way: {}", bad.join(", "));
        return Err(Error::malformed(what).help(
            "paste all of what `unfrag paste` printed again, from its first line to its last",
        ));
    }
    let unknown = parts.iter().filter(|p| !PARTS.contains(&p.name.as_str()));
    let unknown = unknown.map(|p| Skipped {
        file: p.name.clone(),
        why: "no part that this release of unfrag reads: it was changed on its way, or written by \
              another release"
            .into(),
    });
    let no_room = left.into_iter().map(|file| Skipped {
        file,
        why: "there was no room for it in the paste".into(),
    });
    let skipped = unknown.chain(no_room).collect();
    let snapshots = built(&parts, name).ok_or_else(|| {
        Error::malformed(format!(
            "{this} has a word that `unfrag paste` does not write"
        ))
        .help("paste what it printed, as it is")
    })?;
    Ok(Pasted { snapshots, skipped })
}

/// What is wrong with a paste that says that it holds these parts, and has so many by its last word.
fn faults(held: &[String], parts: &[Part], ends: Option<usize>) -> Vec<String> {
    let mut bad = vec![];
    for name in held {
        match parts.iter().find(|p| p.name == *name) {
            None => bad.push(format!("{name} is missing")),
            Some(part) => bad.extend(part.fault()),
        }
    }
    for (at, part) in parts.iter().enumerate() {
        let name = &part.name;
        if !held.contains(name) {
            bad.push(format!(
                "{name} is not among the parts that its first line names"
            ));
        } else if parts[..at].iter().any(|p| p.name == *name) {
            bad.push(format!("{name} is there twice"));
        }
    }
    match ends {
        None if bad.is_empty() => bad.push("its last word is missing".to_owned()),
        Some(parts) if parts != held.len() => {
            bad.push("a part of its first line is missing".to_owned());
        }
        _ => {}
    }
    bad
}

/// Whether lines were joined with a sign that became the end of their last words.
fn is_joined(words: &[Word]) -> bool {
    /// One list may have lost the line on which it goes on.
    const LOST: usize = 2;
    let goes_on = |pair: &[Word]| pair[0].key == pair[1].key;
    let is_added = |pair: &&[Word]| pair[0].value.ends_with([',', ';']) && !goes_on(pair);
    words.windows(2).filter(is_added).count() > LOST
}

impl Part {
    /// What is wrong with it.
    fn fault(&self) -> Option<String> {
        let name = &self.name;
        let Some(sum) = &self.sum else {
            return Some(format!("the end of {name} is missing"));
        };
        let there = self.words.sum();
        if *sum == there {
            return None;
        }
        let (wanted, found) = (sum.split('.').next(), there.split('.').next());
        Some(match (wanted, found) {
            (Some(wanted), Some(found)) if wanted != found => {
                format!("of {name} {found} words are there, which had {wanted}")
            }
            _ => format!("a number of {name} was changed"),
        })
    }

    /// Its keys and values, where one that ends in a comma goes on in the next.
    fn values(&self) -> Vec<(&str, String)> {
        let mut all: Vec<(&str, String)> = vec![];
        for word in &self.words.0 {
            let value = word.value.replace(';', "-");
            match all.last_mut() {
                Some((key, before)) if before.ends_with(',') && *key == word.key => {
                    *before += &value
                }
                _ => all.push((&word.key, value)),
            }
        }
        all
    }
}

/// The snapshots of these parts: one, and before it those with what earlier readings told.
fn built(parts: &[Part], name: Option<&str>) -> Option<Vec<Snapshot>> {
    let mut files: Vec<(String, String)> = vec![];
    let (mut vmstat, mut before, mut slabs) = (None, None, None);
    let mut uptime = None;
    for part in parts {
        let values = part.values();
        let file = part.name.as_str();
        let text = match file {
            "host" => {
                for line in &values {
                    let (key, value) = line;
                    match *key {
                        "release" if value != "unknown" => {
                            files.push(("version".into(), format!("Linux version {value}\n")));
                        }
                        "uptime" => {
                            uptime = Some(seconds_of(line, "uptime")?);
                            files.push(("uptime".into(), format!("{value} 0.00\n")));
                        }
                        _ => {}
                    }
                }
                continue;
            }
            "settings" => {
                settings(&values, &mut files)?;
                continue;
            }
            "before" => {
                before = Some(values);
                continue;
            }
            "nodes" => {
                nodes(&values, &mut files)?;
                continue;
            }
            "buddyinfo" => buddyinfo(&values)?,
            "zoneinfo" => zoneinfo(&values)?,
            "meminfo" => meminfo(&values)?,
            "vmstat" => {
                let read = VmStat {
                    counters: counters(&values)?,
                    ..VmStat::default()
                };
                vmstat = Some(read.clone());
                read.write()
            }
            "pagetypeinfo" => pagetypeinfo(&values)?,
            "slabinfo" => {
                let (now, earlier) = slabinfo(&values)?;
                slabs = earlier;
                now
            }
            // It is among those that were skipped.
            _ => continue,
        };
        files.push((file.to_owned(), text));
    }
    let snapshot = |name: &str, files: Vec<(String, String)>, time: Option<u64>| Snapshot {
        name: name.to_owned(),
        files: files
            .into_iter()
            .map(|(name, text)| SnapshotFile {
                name,
                time: time.map(|t| (t, t)),
                content: text.into_bytes().into(),
            })
            .collect(),
    };
    // Files and how long before they were read, the first ones first.
    let mut earlier: Vec<(&str, String, u64)> = vec![];
    if let Some((text, ns)) = slabs {
        earlier.push(("slabinfo", text, ns));
    }
    if let (Some(vmstat), Some(before)) = (vmstat, before) {
        let (seconds, rest) = before.split_first()?;
        let ns = seconds_of(seconds, "seconds")?;
        let grown = counters(rest)?;
        let mut stat = vmstat;
        for (name, value) in &mut stat.counters.0 {
            *value = value.saturating_sub(grown.get(name).unwrap_or(0));
        }
        earlier.push(("vmstat", stat.write(), ns));
    }
    if earlier.is_empty() {
        return Some(vec![snapshot(name.unwrap_or("."), files, None)]);
    }
    let longest = earlier.iter().map(|(.., ns)| *ns).max().unwrap_or(0);
    let now = uptime.unwrap_or(0).max(longest);
    let before = |(file, text, ns): (&str, String, u64)| {
        snapshot(
            &format!("before.{file}"),
            vec![(file.to_owned(), text)],
            Some(now - ns),
        )
    };
    let mut all: Vec<Snapshot> = earlier.into_iter().map(before).collect();
    all.push(snapshot(name.unwrap_or("pasted"), files, Some(now)));
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_seen_however_the_text_is_cut() {
        let text = format!("some words {BEGIN} and more");
        for size in 1..text.len() {
            let mut mark = Mark::default();
            text.as_bytes()
                .chunks(size)
                .for_each(|piece| mark.look(piece));
            assert!(mark.is_there(), "{size}");
        }
        let mut mark = Mark::default();
        mark.look(b"unfragpaste");
        mark.look(b" :1");
        assert!(!mark.is_there());
    }

    /// Words that no writer made, with a sum that is right: read or refused, never a panic.
    #[test]
    fn made_up_words_are_no_panic() {
        for (part, word) in [
            ("buddyinfo", "0.Normal:,,,"),
            ("buddyinfo", "99999999999.Normal:1"),
            ("buddyinfo", "0.Normal:99999999999999999999"),
            ("zoneinfo", "z.min:1"),
            ("zoneinfo", "lists:1"),
            ("pagetypeinfo", "orders:x"),
            ("pagetypeinfo", "0.Normal.Movable:1+,+"),
            ("slabinfo", "dentry:1,2"),
            ("slabinfo", "over:nan"),
            ("slabinfo", "over:1"),
            ("host", "uptime:nan"),
            ("host", "uptime:1.2.3"),
            ("settings", "vm.alice:1"),
            ("settings", "thp.other:1"),
            ("before", "nr:1"),
            ("before", "seconds:inf"),
            ("meminfo", "MemTotal:k"),
        ] {
            let mut words = Words::default();
            words.0.extend(Word::of(word));
            let sum = words.sum();
            for more in ["", "part:vmstat compact_stall:1 sum:1."] {
                let text =
                    format!("{BEGIN} holds:{part} part:{part} {word} sum:{sum} {more} {END}:1");
                let _ = read(text.as_bytes()).unwrap();
            }
        }
        assert!(read(b"no paste").is_none());
        assert!(read(BEGIN.as_bytes()).unwrap().is_err());
    }
}
