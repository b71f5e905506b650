//! The `key=value` pairs of an event's text.
//!
//! Invariant: a value reaches to the next ` key=`, so it may hold spaces.

use super::value::{trim, trim_end};

/// The `key=value` pairs of a text.
pub(super) struct Pairs<'a> {
    pub rest: &'a [u8],
}

impl<'a> Pairs<'a> {
    /// What stands before the first pair.
    pub fn before_first(&mut self) -> &'a [u8] {
        if is_key(self.rest) {
            return b"";
        }
        let end = next_key(self.rest);
        let before = clean(&self.rest[..end]);
        self.rest = trim(&self.rest[end..]);
        before
    }
    /// What [`next`](Self::next) gives, found sooner: if it has this key, and one with the key `behind` follows it, or none.
    /// Where `is_next`, it was found to have this key already.
    #[inline]
    pub fn next_of(
        &mut self,
        key: &[u8],
        is_next: bool,
        behind: Option<&[u8]>,
    ) -> Option<(&'a [u8], &'a [u8])> {
        let is_it = is_next || self.rest.strip_prefix(key)?.starts_with(b"=");
        let (key, rest) = self.rest.split_at_checked(key.len()).filter(|_| is_it)?;
        let rest = rest.get(1..)?;
        let Some(blank) = memchr::memchr2(b' ', b'\t', rest) else {
            self.rest = &[];
            return Some((key, clean(rest)));
        };
        let after = trim(&rest[blank..]);
        after.strip_prefix(behind?)?.strip_prefix(b"=")?;
        self.rest = after;
        Some((key, clean(&rest[..blank])))
    }
    /// The next pair.
    pub fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let equals = memchr::memchr(b'=', self.rest)?;
        let (key, rest) = (&self.rest[..equals], &self.rest[equals + 1..]);
        let end = next_key(rest);
        self.rest = trim(&rest[end..]);
        Some((key, clean(&rest[..end])))
    }
}

/// Without spaces and commas behind it.
fn clean(value: &[u8]) -> &[u8] {
    let value = trim_end(value);
    value.strip_suffix(b",").unwrap_or(value)
}

/// Where the next ` key=` is in `text`, or its end.
fn next_key(text: &[u8]) -> usize {
    memchr::memchr2_iter(b' ', b'\t', text)
        .find(|&i| is_key(&text[i + 1..]))
        .unwrap_or(text.len())
}

/// Whether `text` begins with a name and an equals sign.
pub(super) fn is_key(text: &[u8]) -> bool {
    let name = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b'-');
    let n = text.iter().take_while(|c| name(c)).count();
    n > 0 && text.get(n) == Some(&b'=') && !text[0].is_ascii_digit()
}
