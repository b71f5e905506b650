//! Settings of the kernel in pasted text: files of one value, as `cat`, `head` and `grep .` print them.
//!
//! Invariant: a value is taken only where the line tells its file, or where the command before it named the file and the
//! value has the form that this file has.

use super::line::{Line, is_number, prompt};
use std::collections::VecDeque;

/// Where `/proc/sys/vm` is.
const VM: &str = "/proc/sys/vm/";
/// Where settings of transparent huge pages are.
const HUGE: &str = "/sys/kernel/mm/transparent_hugepage/";
/// Commands that print the contents of files, one after the other.
const PRINTERS: [&str; 6] = ["cat", "head", "tail", "more", "less", "sudo"];

/// A setting of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// The file of the snapshot.
    file: &'static str,
    /// Its name, where the file holds several.
    name: String,
}

impl Setting {
    /// The setting whose file is at this path.
    fn at(path: &str) -> Option<Setting> {
        if let Some(name) = path.strip_prefix(VM) {
            let fits = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            return (fits && !name.is_empty()).then(|| Setting {
                file: "sysctl-vm",
                name: name.to_owned(),
            });
        }
        let file = match path.strip_prefix(HUGE)? {
            "enabled" => "thp/enabled",
            "defrag" => "thp/defrag",
            _ => return None,
        };
        Some(Setting {
            file,
            name: String::new(),
        })
    }

    /// The line of this value; `None` if it is none of such a setting.
    fn line(&self, value: &str) -> Option<Line> {
        let value = value.trim();
        let fits = match self.file {
            "sysctl-vm" => {
                let mut words = value.split_ascii_whitespace().peekable();
                words.peek().is_some() && words.all(|w| is_number(w.trim_start_matches('-')))
            }
            _ => {
                value.contains('[') && value.ends_with(|c: char| c == ']' || c.is_ascii_lowercase())
            }
        };
        let text = match self.file {
            "sysctl-vm" => format!("vm.{} = {value}", self.name),
            _ => value.to_owned(),
        };
        let key = (self.file != "sysctl-vm").then(String::new);
        fits.then_some(Line::As(self.file, key, text))
    }
}

/// A line `PATH:VALUE`, as `grep . PATHS` prints it.
pub(super) fn of_line(text: &str) -> Option<Line> {
    let (path, value) = text.split_once(':')?;
    match Setting::at(path.trim()) {
        Some(setting) => setting.line(value),
        // Other files of sysfs tell nothing that is asked for, and end what came before.
        None => path.starts_with("/sys/").then(|| Line::Heading(vec![])),
    }
}

/// The settings whose values a command prints next, one a line.
pub(super) fn printed_next(text: &str) -> VecDeque<Setting> {
    let text = text.trim();
    if let Some(path) = text
        .strip_prefix("==> ")
        .and_then(|t| t.strip_suffix(" <=="))
    {
        return Setting::at(path).into_iter().collect();
    }
    let command = prompt(text).unwrap_or(text);
    let mut words = command.split_ascii_whitespace();
    if !words.next().is_some_and(|first| PRINTERS.contains(&first)) || command.contains(['|', '>'])
    {
        return VecDeque::new();
    }
    words
        .flat_map(expanded)
        .filter_map(|path| Setting::at(&path))
        .collect()
}

/// The value that a command printed for the first of these settings, which is taken off.
pub(super) fn value(waiting: &mut VecDeque<Setting>, text: &str) -> Option<Line> {
    let line = waiting.front()?.line(text)?;
    waiting.pop_front();
    Some(line)
}

/// The paths that a word with one `{a,b}` means.
fn expanded(word: &str) -> Vec<String> {
    let parts = word
        .split_once('{')
        .and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    match parts {
        Some((before, (inner, after))) => inner
            .split(',')
            .map(|one| format!("{before}{one}{after}"))
            .collect(),
        None => vec![word.to_owned()],
    }
}
