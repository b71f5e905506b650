//! Support of the tests: recorded data, readers by file name, and damaged inputs.
#![allow(dead_code)]

use std::path::PathBuf;

use unfrag_linux::Error;
use unfrag_linux::freelists::FreeLists;
use unfrag_linux::procfs::*;

/// The directory of recordings that `UNFRAG_DATA` names; without it, says aloud what is skipped.
pub fn recorded_data() -> Option<PathBuf> {
    let data = std::env::var_os("UNFRAG_DATA").map(PathBuf::from);
    if data.is_none() {
        eprintln!("SKIPPED: set UNFRAG_DATA to the directory of recordings to run this test");
    }
    data
}

/// Reads `bytes` as the file called `name` and writes it again; `None` if no reader is named so.
pub fn echo(name: &str, bytes: &[u8]) -> Option<Result<String, Error>> {
    Some(match name {
        "buddyinfo" => BuddyInfo::parse(bytes).map(|x| x.write()),
        "pagetypeinfo" => PageTypeInfo::parse(bytes).map(|x| x.write()),
        "zoneinfo" => ZoneInfo::parse(bytes).map(|x| x.write()),
        "vmstat" => VmStat::parse(bytes).map(|x| x.write()),
        "meminfo" => MemInfo::parse(bytes).map(|x| x.write()),
        "slabinfo" => SlabInfo::parse(bytes).map(|x| x.write()),
        "allocinfo" => AllocInfo::parse(bytes).map(|x| x.write()),
        "extfrag_index" => ExtfragIndex::parse(bytes).map(|x| x.write()),
        "unusable_index" => UnusableIndex::parse(bytes).map(|x| x.write()),
        "freelists" => FreeLists::parse(bytes).map(|x| x.write()),
        _ => return None,
    })
}

/// A small generator of numbers: a run depends on its seed alone.
pub struct Random(pub u64);

impl Random {
    /// A generator with the seed `UNFRAG_SEED`, or else a fixed one; prints the seed.
    pub fn seeded() -> Self {
        let seed = std::env::var("UNFRAG_SEED")
            .ok()
            .and_then(|s| s.parse().ok())
            .unwrap_or(1);
        println!("seed {seed} (set UNFRAG_SEED for another)");
        Self(seed)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit.max(1) as u64) as usize
    }

    /// `bytes` cut off somewhere, with some bits flipped, or with a piece of it gone or repeated,
    /// or with a number in it that is very large.
    pub fn damage(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = bytes.to_vec();
        match self.below(5) {
            0 => out.truncate(self.below(bytes.len())),
            1 => {
                for _ in 0..=self.below(4) {
                    let at = self.below(out.len());
                    if let Some(byte) = out.get_mut(at) {
                        *byte ^= 1 << self.below(8);
                    }
                }
            }
            2 => {
                let from = self.below(out.len());
                let to = (from + self.below(64)).min(out.len());
                out.drain(from..to);
            }
            3 => {
                let from = self.below(out.len());
                let to = (from + self.below(64)).min(out.len());
                let piece = out[from..to].to_vec();
                let at = self.below(out.len());
                out.splice(at..at, piece);
            }
            _ => {
                let digits = (0..out.len()).filter(|&i| out[i].is_ascii_digit()).count();
                let chosen = self.below(digits);
                let at = (0..out.len())
                    .filter(|&i| out[i].is_ascii_digit())
                    .nth(chosen);
                let numbers: [&[u8]; 5] = [
                    b"99999999999999999999",
                    b"18446744073709551615",
                    b"-1",
                    b"9223372036854775808",
                    b"4294967296",
                ];
                if let Some(at) = at {
                    let number = numbers[self.below(numbers.len())];
                    out.splice(at..=at, number.iter().copied());
                }
            }
        }
        out
    }
}
