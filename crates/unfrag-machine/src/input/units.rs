//! Quantities with their units, as a scenario writes them: `"512 MiB"`, `"1.5 ms"`, `"80 MB/s"`.
//!
//! A bare number is refused, so that its unit is never in doubt. Integers only: decimals are scaled, and a
//! fraction of the base unit is refused. A share of a whole is a bare number of percent, 0 to 100.

use crate::engine::Nanos;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use std::fmt;
use std::str::FromStr;

const BYTES: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

const RATES: &[(&str, u64)] = &[
    ("B/s", 1),
    ("kB/s", 1_000),
    ("MB/s", 1_000_000),
    ("GB/s", 1_000_000_000),
    ("KiB/s", 1 << 10),
    ("MiB/s", 1 << 20),
    ("GiB/s", 1 << 30),
];

const TIMES: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// A quantity in base units, or what is wrong with it.
fn parse(text: &str, units: &[(&str, u64)], what: &str, example: &str) -> Result<u64, String> {
    let wrong = |why: &str| {
        let names: Vec<_> = units.iter().map(|u| u.0).collect();
        format!(
            "{why} in {text:?}: {what} is a number and one of {}, such as \"{example}\"",
            names.join(", ")
        )
    };
    let text = text.trim();
    if text.starts_with('-') {
        return Err(wrong("less than nothing"));
    }
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .ok_or_else(|| wrong("no unit"))?;
    let (number, unit) = (text[..split].replace('_', ""), text[split..].trim());
    let scale = units
        .iter()
        .find(|u| u.0 == unit)
        .ok_or_else(|| wrong(&format!("unknown unit {unit:?}")))?
        .1;
    let (whole, decimals) = number.split_once('.').unwrap_or((&number, ""));
    let digits = format!("{whole}{decimals}");
    let bad = || wrong("no number");
    if whole.is_empty() || digits.len() > 30 {
        return Err(bad());
    }
    let scaled = digits.parse::<u128>().map_err(|_| bad())? * u128::from(scale);
    let one = 10u128.pow(decimals.len() as u32);
    if !scaled.is_multiple_of(one) {
        return Err(wrong(&format!("a part of a {}", units[0].0)));
    }
    u64::try_from(scaled / one).map_err(|_| wrong("too much"))
}

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident($base:ty), $units:expr, $what:expr, $example:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub $base);

        impl FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                parse(text, $units, $what, $example).map($name)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                        write!(f, "{} with its unit, such as \"{}\"", $what, $example)
                    }
                    fn visit_str<E: Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                d.deserialize_any(Text)
            }
        }
    };
}

quantity!(
    /// An amount of memory or of a disk, in bytes.
    Bytes(u64), BYTES, "a size", "512 MiB"
);
quantity!(
    /// A duration, in nanoseconds.
    Time(Nanos), TIMES, "a time", "1.5 ms"
);
quantity!(
    /// Bytes a second.
    Rate(u64), RATES, "a rate", "80 MB/s"
);

/// A share of a whole, in percent: 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "i64")]
pub struct Percent(u32);

impl Percent {
    /// The whole.
    pub const ALL: Self = Self(100);

    /// `None` above 100.
    pub const fn new(percent: u32) -> Option<Self> {
        if percent <= 100 {
            Some(Self(percent))
        } else {
            None
        }
    }

    /// 0 to 100.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl TryFrom<i64> for Percent {
    type Error = String;
    fn try_from(number: i64) -> Result<Self, String> {
        let share = u32::try_from(number).ok().and_then(Self::new);
        share.ok_or_else(|| format!("{number}: a share is 0 to 100 percent"))
    }
}

impl Bytes {
    /// Whole pages of 4 KiB, rounded up.
    pub const fn pages(self) -> u64 {
        self.0.div_ceil(4096)
    }

    /// Whole pages as a `u32`, at most 2^31 - 1 (just below 8 TiB).
    pub const fn pages32(self) -> u32 {
        const MOST: u64 = (1 << 31) - 1;
        let pages = self.pages();
        if pages < MOST {
            pages as u32
        } else {
            MOST as u32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units() {
        assert_eq!("512 MiB".parse(), Ok(Bytes(512 << 20)));
        assert_eq!("1.5GiB".parse(), Ok(Bytes(3 << 29)));
        assert_eq!(" 80_000 kB ".parse(), Ok(Bytes(80_000_000)));
        assert_eq!("1.5 ms".parse(), Ok(Time(1_500_000)));
        assert_eq!("0.000001 ms".parse(), Ok(Time(1)));
        assert_eq!("20 min".parse(), Ok(Time(1_200_000_000_000)));
        assert_eq!("80 MB/s".parse(), Ok(Rate(80_000_000)));
        assert_eq!(Bytes(4097).pages(), 2);
    }

    #[test]
    fn a_share_is_at_most_the_whole() {
        assert_eq!(Percent::try_from(0).map(Percent::get), Ok(0));
        assert_eq!(Percent::try_from(100), Ok(Percent::ALL));
        for number in [-1, 101, i64::MAX, 1 << 32] {
            let why = format!("{number}: a share is 0 to 100 percent");
            assert_eq!(Percent::try_from(number), Err(why));
        }
    }

    #[test]
    fn errors_show_an_example() {
        let tell = |text: &str| text.parse::<Time>().unwrap_err();
        assert_eq!(
            tell("7"),
            "no unit in \"7\": a time is a number and one of ns, us, ms, s, min, h, such as \"1.5 ms\""
        );
        assert!(tell("3 days").starts_with("unknown unit \"days\""));
        assert!(tell("ms").starts_with("no number"));
        assert!(tell(".5 ms").starts_with("no number"));
        assert!(tell("1.2.3 ms").starts_with("no number"));
        assert!(tell("-1 ms").starts_with("less than nothing in \"-1 ms\""));
        assert!(tell("0.5 ns").starts_with("a part of a ns"));
        assert!(tell("99999999999999999999 h").starts_with("too much"));
        assert!(tell("9999999999999999999999999999999 h").starts_with("no number"));
        assert!("1 MiB/s".parse::<Bytes>().is_err());
    }
}
