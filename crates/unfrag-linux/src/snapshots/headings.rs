//! Headings of pasted text, and the commands that printed it.
//!
//! Invariant: a line is a heading where it names a file, stands behind a prompt, or has a form that no file has.

use super::file_names::KNOWN;
use super::line::Line;
use super::settings;

/// Commands that print files.
const COMMANDS: [&str; 22] = [
    "awk", "cat", "cd", "column", "dmesg", "echo", "egrep", "fgrep", "for", "free", "grep", "head",
    "less", "more", "numastat", "sed", "slabtop", "sudo", "sysctl", "tail", "uname", "watch",
];

/// A heading or prompt, with the files and settings that it names.
pub(super) fn heading(line: &str) -> Option<Line> {
    let text = line.trim();
    if text.starts_with("```") || text.starts_with("~~~") {
        return Some(Line::HEADING);
    }
    let separators = |c: char| c.is_whitespace() || "()<>\"'`;,|&[]*{}".contains(c);
    let mut files: Vec<&'static str> = text.split(separators).filter_map(file_of_path).collect();
    let mut settings = settings::named(text);
    let refused = [
        "ermission denied",
        "o such file",
        "not permitted",
        "s a directory",
    ];
    if refused.iter().any(|r| text.contains(r)) {
        match (&files[..], &settings[..]) {
            ([file], _) => return Some(Line::Refused(file)),
            (_, [setting]) => return Some(Line::NoSetting(setting.clone())),
            _ if text.contains(": /") => return Some(Line::HEADING),
            _ => {}
        }
    }
    let node = text.split(separators).find_map(node_of_path);
    // A heading of nothing but the name, such as `## buddyinfo` or `zoneinfo:`.
    let bare = text.trim_matches(|c: char| c.is_whitespace() || "#*=-:_`".contains(c));
    let bare = bare.strip_suffix(".txt").unwrap_or(bare);
    files.extend(KNOWN.iter().copied().filter(|k| *k == bare));
    let command = prompt(text).unwrap_or(text);
    if command.starts_with("uname") || bare == "uname" {
        files.push("version");
    }
    if command.starts_with("sysctl ") {
        files.push("sysctl-vm");
    }
    let verb = command.split_ascii_whitespace().find(|w| *w != "sudo");
    if verb.is_some_and(|v| ["echo", "printf", "tee"].contains(&v)) {
        settings.clear();
    }
    // Below a directory that an earlier command went to, a command names files without their paths.
    let is_command = prompt(text).is_some() && verb.is_some_and(|v| COMMANDS.contains(&v));
    if is_command && files.is_empty() {
        let words = command.split(separators).skip(1);
        files.extend(words.filter_map(|w| KNOWN.iter().copied().find(|k| *k == w)));
    }
    let is_heading = !files.is_empty()
        || !settings.is_empty()
        || node.is_some()
        || prompt(text).is_some()
        || is_label(text)
        || text.starts_with("Every ")
        || text.starts_with("------")
        || (text.starts_with("==> ") && text.ends_with(" <=="));
    is_heading.then_some(Line::Heading {
        files,
        settings,
        node,
    })
}

/// Whether a line is one word and a colon.
fn is_label(text: &str) -> bool {
    let is_word =
        |word: &str| word.starts_with(|c: char| c.is_ascii_alphabetic()) && !word.contains(' ');
    text.strip_suffix(':').is_some_and(is_word)
}

/// The file of a snapshot that a path names.
pub(super) fn file_of_path(word: &str) -> Option<&'static str> {
    let word = word.trim_end_matches([':', '.']);
    let (directory, name) = word.rsplit_once('/').unwrap_or(("", word));
    let inside = ["/proc", "proc", "/extfrag", "extfrag"]
        .iter()
        .any(|d| directory.ends_with(d));
    KNOWN.iter().copied().find(|k| *k == name && inside)
}

/// The node of a path such as `/sys/devices/system/node/node0/meminfo`.
pub(super) fn node_of_path(word: &str) -> Option<u32> {
    let word = word.trim_end_matches([':', '.']);
    let (directory, name) = word.rsplit_once('/')?;
    let node = directory.rsplit('/').next()?.strip_prefix("node")?;
    ["meminfo", "vmstat", "numastat"]
        .contains(&name)
        .then(|| node.parse().ok())?
}

/// The path before each line that `grep . FILES` prints, and the line: of files of a snapshot and of nodes.
pub(super) fn with_path(line: &str) -> Option<(&str, &str)> {
    let (path, rest) = line.split_once(':')?;
    let is_path =
        path.starts_with('/') && !path.contains(char::is_whitespace) && !rest.trim().is_empty();
    let known = is_path && (file_of_path(path).is_some() || node_of_path(path).is_some());
    known.then_some((path, rest))
}

/// What follows a shell's prompt.
fn prompt(text: &str) -> Option<&str> {
    for mark in ["$ ", "# ", "% ", "❯ ", "➜ "] {
        if let Some(command) = text.strip_prefix(mark) {
            return Some(command.trim());
        }
    }
    if let Some(at) = text.find('@')
        && let Some(end) = text[at..].find(['$', '#', '%'])
        && !text[..at].contains(' ')
    {
        return Some(text[at + end + 1..].trim());
    }
    // `bash-5.1$ ls`, `crash> kmem -f`, `web3:~ # ls`.
    let (first, rest) = text.split_once(' ')?;
    let is_mark = |word: &str| ["$", "#", "%", ">", "❯", "➜"].contains(&word);
    let name = first.trim_end_matches(['$', '#', '%', '>', '❯', '➜']);
    if name.len() < first.len()
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || "/~[(".contains(c))
    {
        return Some(rest.trim());
    }
    let (mark, command) = rest.trim_start().split_once(' ')?;
    (first.contains([':', '~', '/']) && is_mark(mark)).then(|| command.trim())
}
