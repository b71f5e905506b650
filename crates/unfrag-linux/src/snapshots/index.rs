//! `index.tsv`: when each file of each snapshot was read, to the nanosecond.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::procfs::scan::Scan;

/// The file's name.
pub(super) const NAME: &str = "index.tsv";

/// Times before and after reading, by record (`directory/file`).
pub(super) type Times = BTreeMap<String, (u64, u64)>;

/// The record of `file` in the directory with these components.
pub(super) fn key(directory: &[String], file: &str) -> String {
    let mut key = directory.join("/");
    key.push('/');
    key.push_str(file);
    key
}

/// Reads lines of record, nanoseconds before and after reading it, and anything further, below
/// one line of headings.
pub(super) fn parse(text: &[u8]) -> Result<Times, Error> {
    let mut scan = Scan::new("index.tsv", text);
    let mut times = Times::new();
    scan.line()?;
    while !scan.is_at_end() {
        let record = scan.word(b"")?;
        let key = record.strip_prefix("./").unwrap_or(record);
        let begin: u64 = scan.number()?;
        let at = scan.offset();
        let end: u64 = scan.number()?;
        if end < begin {
            return Err(scan.error_at(at, format!("{record} ends before it begins")));
        }
        times.insert(key.to_owned(), (begin, end));
        scan.line()?;
    }
    Ok(times)
}
