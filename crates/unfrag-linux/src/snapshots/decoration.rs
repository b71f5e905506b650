//! What stands before each line of a pasted text and is none of it: marks of quotes, times of a kernel or of a log.
//!
//! Invariant: the indentation of what follows is kept, as zoneinfo tells its parts by it. A mark counts only before a
//! blank: `>100000` is a number of pagetypeinfo.

use super::dates;

/// Marks that may stand one after the other.
const MOST: usize = 8;

/// `line` without marks and times at its start.
pub(super) fn bare(mut line: &str) -> &str {
    for _ in 0..MOST {
        match without_quote(line).or_else(|| without_time(line)) {
            Some(rest) => line = rest,
            None => break,
        }
    }
    line
}

/// What follows `> `, `>>>> ` and the like.
fn without_quote(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches('>');
    if rest.len() == line.len() {
        return None;
    }
    match rest.strip_prefix(' ') {
        Some(rest) => Some(rest),
        None => rest.is_empty().then_some(rest),
    }
}

/// What follows `[  178.490000] `, `<6>`, `Jan  2 03:04:05 host kernel: ` or a date of ISO 8601.
fn without_time(line: &str) -> Option<&str> {
    let after =
        |rest: &'_ str| -> usize { line.len() - rest.strip_prefix(' ').unwrap_or(rest).len() };
    if let Some(rest) = line.strip_prefix('[') {
        let (time, rest) = rest.split_once(']')?;
        let fits = |b: u8| b.is_ascii_alphanumeric() || b" :.,+-".contains(&b);
        let is_time = time.contains(['.', ':'])
            && time.bytes().any(|b| b.is_ascii_digit())
            && time.bytes().all(fits);
        return is_time.then(|| &line[after(rest)..]);
    }
    if let Some(rest) = line.strip_prefix('<') {
        let (level, rest) = rest.split_once('>')?;
        let is_level =
            !level.is_empty() && level.len() < 4 && level.bytes().all(|b| b.is_ascii_digit());
        return is_level.then_some(rest);
    }
    if let Some((before, rest)) = line.split_once(" kernel: ") {
        let has_clock = before.contains(':') && before.bytes().any(|b| b.is_ascii_digit());
        if has_clock && before.len() < 100 {
            return Some(rest);
        }
    }
    let (word, rest) = line.split_once(' ')?;
    let is_date = word.len() >= 19 && word.contains(':') && dates::parse(word).is_some();
    is_date.then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::bare;

    #[test]
    fn marks_and_times_are_taken_off_and_indentation_stays() {
        for (line, rest) in [
            (">>>> vmstat:", "vmstat:"),
            ("> >  pages free 5", " pages free 5"),
            ("[  178.490000]   pages free 5", "  pages free 5"),
            ("[Sat Nov 28 10:00:00 2026] fib6_nodes 84", "fib6_nodes 84"),
            ("<6>[    1.0] x 1", "x 1"),
            ("Jan  2 03:04:05 host kernel: x 1", "x 1"),
            ("Jan  2 03:04:05 host kernel: [ 12.5] x 1", "x 1"),
            ("2026-11-28T10:00:00.123456+00:00 x 1", "x 1"),
            (">", ""),
            // None of these is a mark.
            (">100000 5", ">100000 5"),
            ("[always] madvise never", "[always] madvise never"),
            ("[root@web3 ~]# cat x", "[root@web3 ~]# cat x"),
            ("  pages free 5", "  pages free 5"),
        ] {
            assert_eq!(bare(line), rest, "{line}");
        }
    }
}
