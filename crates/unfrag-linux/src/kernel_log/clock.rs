//! Times as loggers and kernels write them.
//!
//! Invariant: what is no time is `None` or false; nothing panics.

/// Seconds of a time since boot.
pub fn seconds_since_boot(text: &str) -> Option<f64> {
    let text = text.trim();
    if text.starts_with(['+', '-']) || text.contains(':') {
        return None;
    }
    text.parse().ok().filter(|s: &f64| s.is_finite())
}

/// Seconds since midnight of a text that holds `15:08:07`.
pub fn seconds_of_day(text: &str) -> Option<f64> {
    let colon = text.find(':')?;
    let from = colon.checked_sub(2)?;
    let mut parts = text.get(from..)?.splitn(3, ':');
    let hours: f64 = parts.next()?.parse().ok()?;
    let minutes: f64 = parts.next()?.parse().ok()?;
    let rest = parts.next()?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    let seconds: f64 = rest[..end].parse().ok()?;
    Some(hours * 3600.0 + minutes * 60.0 + seconds)
}

/// `Jan  2 03:04`, as `dmesg --human` writes it when a minute begins.
pub fn is_short_date(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_time = |t: &str| {
        t.split_once(':').is_some_and(|(h, m)| {
            [h, m]
                .iter()
                .all(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_digit()))
        })
    };
    matches!(words[..], [month, day, time] if MONTHS_AND_DAYS.contains(&month) && day.parse::<u8>().is_ok() && is_time(time))
}

/// `<    0.000020>`, the time since the line before.
pub fn is_delta(text: &str) -> bool {
    let inner = text.strip_prefix('<').and_then(|t| t.strip_suffix('>'));
    inner.is_some_and(|t| t.contains('.') && t.trim().parse::<f64>().is_ok())
}

/// Months and days as logs write them.
const MONTHS_AND_DAYS: [&str; 19] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Mon",
    "Tue", "Wed", "Thu", "Fri", "Sat", "Sun",
];

/// Bytes of `Feb  9 08:09:39`, with a year or a weekday in it or not.
pub fn syslog_date(text: &str) -> Option<usize> {
    const NAMES: [&str; 19] = MONTHS_AND_DAYS;
    if !NAMES.contains(&text.get(..3)?) {
        return None;
    }
    let mut at = 3;
    for _ in 0..4 {
        let blanks = text[at..].bytes().take_while(|b| *b == b' ').count();
        let word = at + blanks;
        let end = text[word..].find(' ').map_or(text.len(), |n| word + n);
        let token = &text[word..end];
        if blanks == 0 || token.is_empty() {
            return None;
        }
        if seconds_of_day(token).is_some() {
            return Some(end);
        }
        let is_part = token.bytes().all(|b| b.is_ascii_digit()) || NAMES.contains(&token);
        if !is_part || token.len() > 4 {
            return None;
        }
        at = end;
    }
    None
}

/// Whether a word may be `UTC` or `CEST`.
pub fn is_zone_of_time(word: &str) -> bool {
    (2..=5).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_uppercase())
}
