//! A memory report that is being read, and what two of them printed into one another can be told apart by.

use super::report::{Memory, Zone};

/// A memory report whose end was not seen yet.
#[derive(Default)]
pub struct Draft {
    /// What was read of it.
    pub memory: Memory,
    /// Whether its last lines were seen.
    pub has_tail: bool,
    /// Of zones whose `lowmem_reserve` was wrapped: their place, and the numbers if a number was cut in two.
    pub reserves: Vec<(usize, Vec<u64>)>,
}

impl Draft {
    /// The memory report. All zones have as many numbers in `lowmem_reserve`: by that a number that was cut in two is
    /// told from two numbers.
    pub fn finish(mut self) -> Memory {
        for (at, tight) in std::mem::take(&mut self.reserves) {
            let lengths =
                |(i, z): (usize, &Zone)| z.reserve.as_ref().filter(|_| i != at).map(Vec::len);
            let least = self
                .memory
                .zones
                .iter()
                .enumerate()
                .filter_map(lengths)
                .min();
            let zone = &mut self.memory.zones[at];
            if least.is_some_and(|n| {
                n == tight.len() && zone.reserve.as_ref().is_none_or(|r| r.len() > n)
            }) {
                zone.reserve = Some(tight);
            }
        }
        self.memory
    }
}

/// Zones that two memory reports have in common and that are tried in both.
const MOST_SETTLED: usize = 10;

/// Gives each of two memory reports that were printed into one another the zones whose free memory is the sum that it
/// states. False if nothing shows that these are its own.
pub fn settle(a: &mut Memory, b: &mut Memory) -> bool {
    let stated = |m: &Memory| m.pages.get("free").copied();
    let (Some(of_a), Some(of_b), Some(page)) =
        (stated(a), stated(b), a.page_kib().or(b.page_kib()))
    else {
        return false;
    };
    let twin = |z: &Zone| {
        b.zones
            .iter()
            .position(|o| o.node == z.node && o.name == z.name)
    };
    let pairs: Vec<(usize, usize)> = a
        .zones
        .iter()
        .enumerate()
        .filter_map(|(i, z)| Some((i, twin(z)?)))
        .collect();
    if pairs.len() > MOST_SETTLED || of_a == of_b {
        return false;
    }
    let sum = |m: &Memory| {
        m.zones
            .iter()
            .filter_map(|z| z.kib("free"))
            .fold(0i128, |sum, k| sum + i128::from(k))
    };
    let (sum_a, wanted) = (sum(a), i128::from(of_a) * i128::from(page));
    let gain = |&(i, j): &(usize, usize)| {
        let free = |z: &Zone| i128::from(z.kib("free").unwrap_or(0));
        free(&b.zones[j]) - free(&a.zones[i])
    };
    let gains: Vec<i128> = pairs.iter().map(gain).collect();
    let with = |set: usize| {
        (0..pairs.len())
            .filter(|p| set >> p & 1 == 1)
            .map(|p| gains[p])
            .sum::<i128>()
            + sum_a
    };
    // The counters of zones are read one after the other, so that the sum may be off by some pages.
    let Some(best) = (0..1usize << pairs.len())
        .min_by_key(|&set| ((with(set) - wanted).abs(), set.count_ones()))
    else {
        return false;
    };
    for (p, &(i, j)) in pairs.iter().enumerate() {
        if best >> p & 1 == 1 {
            std::mem::swap(&mut a.zones[i], &mut b.zones[j]);
        }
    }
    (with(best) - wanted).abs() <= wanted / 16
}
