//! What is said of an input before it is read: its name for a shell, what it seems to be, and why it cannot be read.
//!
//! Invariant: knows no other module of the command, so that all of them can use it.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use unfrag_lab::explain;
use unfrag_linux::input_text::escaped_path;

/// A path as a word of a shell's command, such as in a command that is worth trying next.
pub fn shell_word(path: &Path) -> String {
    let text = escaped_path(path);
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_./-+=,:@%".contains(&b);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// Whether a file holds what `unfrag explain` explains, as far as its beginning tells.
pub fn is_kernel_log(path: &Path) -> bool {
    const BEGINNING: u64 = 4 << 20;
    // Reading from anything else could wait, or take away what another one is to read.
    if !path.metadata().is_ok_and(|m| m.is_file()) {
        return false;
    }
    let mut beginning = vec![];
    let read = File::open(path).and_then(|f| f.take(BEGINNING).read_to_end(&mut beginning));
    // A program may hold lines that look like those of a kernel; text of two bytes a letter has its mark.
    let is_wide = beginning.starts_with(b"\xff\xfe") || beginning.starts_with(b"\xfe\xff");
    let is_text = is_wide || !beginning.iter().take(4096).any(|b| *b == 0);
    let log = (read.is_ok() && is_text).then(|| explain::explain(&beginning[..]));
    matches!(log, Some(Ok(found)) if !found.reports.is_empty())
}

/// An error of the operating system without its number.
pub fn without_number(e: &io::Error) -> String {
    let text = e.to_string();
    match text.rfind(" (os error ") {
        Some(at) if text.ends_with(')') => text[..at].to_owned(),
        _ => text,
    }
}
