//! What a line of pasted text can be, and forms that several readers of lines look for.
//!
//! Invariant: nothing here knows a file by its content.

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line of a file; the key, where there is one, comes only once in a reading of that file.
    Of(&'static str, Option<String>),
    /// As `Of`, in the words of that file.
    As(&'static str, Option<String>, String),
    /// The release of the kernel.
    Release(String),
    /// A heading or a prompt; it may name files.
    Heading(Vec<&'static str>),
    /// A program's complaint that it could not read a file.
    Refused(&'static str),
    /// None of these.
    Other,
}

/// Whether a word has digits only.
pub(super) fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit())
}

/// What follows a shell's prompt.
pub(super) fn prompt(text: &str) -> Option<&str> {
    for mark in ["$ ", "# ", "% "] {
        if let Some(command) = text.strip_prefix(mark) {
            return Some(command.trim());
        }
    }
    let at = text.find('@')?;
    let end = at + text[at..].find(['$', '#', '%'])?;
    (!text[..at].contains(' ')).then(|| text[end + 1..].trim())
}
