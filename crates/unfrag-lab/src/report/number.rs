//! Numbers as text, with their units.

/// Bytes in a page of the simulated machine.
pub const PAGE_BYTES: u64 = 4096;

/// `1234567` as `1,234,567`.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Where in `n` sorted numbers the percentile is: the least that so many percent are no larger than (nearest rank). It is
/// 0 of none.
pub(crate) fn rank(n: usize, percent: usize) -> usize {
    (n * percent).div_ceil(100).saturating_sub(1)
}

/// Pages of 4 KiB as MiB with one decimal, without the unit.
pub fn mib(pages: u64) -> String {
    mib_of(pages, PAGE_BYTES)
}

/// Pages of so many bytes as MiB with one decimal, without the unit.
pub(crate) fn mib_of(pages: u64, page_bytes: u64) -> String {
    let tenths = (u128::from(pages) * u128::from(page_bytes) * 10 + (1 << 19)) >> 20;
    let whole = u64::try_from(tenths / 10).unwrap_or(u64::MAX);
    format!("{}.{}", thousands(whole), tenths % 10)
}

/// A number with its noun, in singular or plural: `1 snapshot`, `153 snapshots`.
pub fn counted(n: u64, one: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{} {one}{s}", thousands(n))
}

/// Bytes in the decimal unit that fits: `3.5 MB`.
pub fn decimal_bytes(n: u64) -> String {
    match n {
        0..10_000 => counted(n, "byte"),
        10_000..1_000_000 => format!("{:.0} kB", n as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", n as f64 / 1e6),
        _ => format!("{:.1} GB", n as f64 / 1e9),
    }
}

/// Bytes in the unit that reads best: `640 MiB`, `31.3 GiB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let text = format!("{value:.1}");
    format!("{} {}", text.trim_end_matches(".0"), UNITS[unit])
}

/// Size of a block of `order` where a page has 4 KiB: `4 KiB`, `2 MiB`.
pub fn order_size(order: usize) -> String {
    bytes(PAGE_BYTES << order)
}

/// A share as a percentage with as many decimals as it needs: `0.04 %`, `3.1 %`, `91 %`.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    let text = match value.abs() {
        // A share below 100 % is never rounded up to it.
        v if (99.0..100.0).contains(&v) => format!("{:.2}", (value * 100.0).trunc() / 100.0),
        v if v >= 9.95 => format!("{value:.0}"),
        v if v >= 0.995 => format!("{value:.1}"),
        v if v >= 0.005 => format!("{value:.2}"),
        v if v > 0.0 => return "< 0.01 %".into(),
        _ => "0".into(),
    };
    format!("{text} %")
}

/// Seconds as `42.5 s` or `12 min 5 s`.
pub fn duration(seconds: f64) -> String {
    if seconds < 120.0 {
        format!("{seconds:.1} s")
    } else {
        let whole = seconds.round() as u64;
        format!("{} min {} s", whole / 60, whole % 60)
    }
}

/// What is free of a whole, in bytes, as a clause; a part that is told to be more than its whole is not said to be of it.
pub fn free_of(free: u64, whole: u64) -> String {
    match free <= whole {
        true => format!("{} free of {}", bytes(free), bytes(whole)),
        false => format!(
            "{} free by one number, and {} in all by another",
            bytes(free),
            bytes(whole)
        ),
    }
}
