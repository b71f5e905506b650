//! A need: so many pieces of memory of one size, on any node or on one.
//!
//! Invariant: a size is a power of two of bytes from 4 KiB to 16 GiB, and a count is at least 1; text and need are each
//! other's inverse.

use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// Sizes that can be asked for, as powers of two of bytes.
const SIZES: std::ops::RangeInclusive<u32> = 12..=34;
/// More pieces than any host has pages.
pub const MOST: u64 = 1 << 40;
/// Units of a size, the largest first.
const UNITS: [(char, u32); 3] = [('G', 30), ('M', 20), ('K', 10)];

/// Pieces of memory of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Need {
    /// How many.
    pub count: u64,
    /// Bytes in each; a power of two.
    pub bytes: u64,
    /// The node that they have to be on; any if `null`.
    pub node: Option<u32>,
}

impl Need {
    /// So many pieces of a size, on any node.
    pub fn new(count: u64, bytes: u64) -> Need {
        Need {
            count,
            bytes,
            node: None,
        }
    }

    /// Size and node alone: `32M`, `2M@node1`.
    pub(super) fn what(&self) -> String {
        let size = UNITS.iter().find(|(_, shift)| self.bytes >> shift > 0);
        let size = size.map_or_else(
            || self.bytes.to_string(),
            |(unit, shift)| format!("{}{unit}", self.bytes >> shift),
        );
        match self.node {
            Some(n) => format!("{size}@node{n}"),
            None => size,
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.count, self.what())
    }
}

impl FromStr for Need {
    type Err = String;

    fn from_str(text: &str) -> Result<Need, String> {
        let bad = |what: &str| {
            format!(
                "{what}; give a count, a size and perhaps a node, such as 200x32M or 512x2M@node1"
            )
        };
        let (pieces, node) = match text.split_once('@') {
            None => (text, None),
            Some((pieces, node)) => {
                let number = node_of(node).ok_or_else(|| bad(&format!("`{node}` is no node")))?;
                (pieces, Some(number))
            }
        };
        let (count, size) = pieces
            .split_once(['x', 'X'])
            .ok_or_else(|| bad(&format!("`{pieces}` is no count and size")))?;
        let count = number(count)
            .filter(|n| (1..=MOST).contains(n))
            .ok_or_else(|| bad(&format!("`{count}` is no count")))?;
        let bytes = size_of(size).ok_or_else(|| bad(&format!("`{size}` is no size")))?;
        if !bytes.is_power_of_two() || !SIZES.contains(&bytes.ilog2()) {
            return Err(bad(&format!(
                "`{size}` is no power of two from 4K to 16G, as blocks of memory are"
            )));
        }
        Ok(Need { count, bytes, node })
    }
}

/// A number of digits alone.
pub fn number(text: &str) -> Option<u64> {
    let is_one = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_one)
}

/// Bytes of a size with its unit: `32M`, `32MiB`.
fn size_of(text: &str) -> Option<u64> {
    let at = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, unit) = text.split_at(at);
    let mut letters = unit.chars();
    let letter = letters.next()?.to_ascii_uppercase();
    let rest = letters.as_str().to_ascii_lowercase();
    let (_, shift) = UNITS.iter().find(|(u, _)| *u == letter)?;
    let is_unit = matches!(rest.as_str(), "" | "b" | "ib");
    number(digits).filter(|_| is_unit)?.checked_mul(1 << shift)
}

/// The node of a text such as `node1`.
pub fn node_of(text: &str) -> Option<u32> {
    let number = text.strip_prefix("node").and_then(number)?;
    u32::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_need_are_each_others_inverse() {
        for (text, count, bytes, node) in [
            ("200x32M", 200, 32 << 20, None),
            ("512x2M@node1", 512, 2 << 20, Some(1)),
            ("1x4K", 1, 4 << 10, None),
            ("4x16G@node0", 4, 16 << 30, Some(0)),
        ] {
            let need: Need = text.parse().unwrap();
            assert_eq!(need, Need { count, bytes, node });
            assert_eq!(need.to_string(), text);
        }
        assert_eq!("3X2MiB".parse(), "3x2048K".parse::<Need>());
    }

    #[test]
    fn what_is_no_need_is_answered_with_one() {
        for text in [
            "",
            "200",
            "32M",
            "x32M",
            "200x",
            "200x32",
            "0x32M",
            "-1x32M",
            "+1x2M",
            "200x3M",
            "200x2K",
            "200x32G",
            "200x32T",
            "200x32Mx",
            "200x32M@",
            "200x32M@1",
            "200x32M@node",
            "200x32M@node-1",
            "200x32M@node99999999999",
            "99999999999999999999x2M",
            "1x99999999999999999999G",
            "1xé2M",
        ] {
            let said = text.parse::<Need>().unwrap_err();
            assert!(said.contains("512x2M@node1"), "{text}: {said}");
        }
    }
}
