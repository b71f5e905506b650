//! Words and pieces of what loggers write before a message. `spec: K.3`
//!
//! Invariant: each function looks at the text alone that it is given, and gives a part of it.

/// A text without its last `count` words.
pub fn before_words(text: &str, count: usize) -> &str {
    let mut rest = text.trim_end();
    for _ in 0..count {
        rest = rest[..rest.rfind(' ').unwrap_or(0)].trim_end();
    }
    rest
}

/// The kernel's own time behind other parts of a prefix; empty if it is not there.
pub fn bracketed_time(prefix: &str) -> &str {
    let inner = prefix
        .split('[')
        .skip(1)
        .filter_map(|rest| rest.split_once(']'));
    let times = inner.map(|(inner, _)| inner.trim());
    let is_time = |t: &&str| t.contains('.') && t.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    times.filter(is_time).last().unwrap_or("")
}

/// A task or CPU that printed the line.
pub fn is_caller(text: &str) -> bool {
    let rest = text.strip_prefix(['T', 'C']).unwrap_or("");
    !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit())
}

/// `systemd[1]:`; the kernel's `lowmem_reserve[]:` has no number.
pub fn is_program(word: &str) -> bool {
    let pid = word.strip_suffix("]:").and_then(|w| w.rsplit_once('['));
    pid.is_some_and(|(name, pid)| {
        !name.is_empty()
            && name != "kernel"
            && !pid.is_empty()
            && pid.bytes().all(|b| b.is_ascii_digit())
    })
}

/// `kern  :warn  : ` of `dmesg -x`.
pub fn facility(text: &str) -> Option<&str> {
    let rest = text
        .strip_prefix("kern")
        .or_else(|| text.strip_prefix("user"))?;
    let rest = rest.trim_start_matches(' ').strip_prefix(':')?;
    let level = rest.bytes().take_while(u8::is_ascii_lowercase).count();
    let rest = rest[level..].trim_start_matches(' ').strip_prefix(':')?;
    (level > 0).then(|| rest.strip_prefix(' ').unwrap_or(rest))
}

/// `kern.log:12:` and `kern.log-12-`, as grep names the place of a line.
pub fn file_and_line(text: &str) -> Option<&str> {
    let word = text.bytes().take(80).take_while(|b| *b != b' ').count();
    let word = &text[..text.floor_char_boundary(word)];
    [':', '-'].into_iter().find_map(|sign| {
        word.match_indices(sign).find_map(|(at, _)| {
            let behind = &word[at + 1..];
            let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
            let is_file = word[..at].contains(['.', '/']);
            (digits > 0 && is_file && behind[digits..].starts_with(sign))
                .then(|| &text[at + 1 + digits + 1..])
        })
    })
}
