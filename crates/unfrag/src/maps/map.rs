//! A map of 512 frames, a bit each: free or not. One cache line.

use super::sizes::FRAMES;
use crate::frame::Order;
use crate::hint::prefetch;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute_mut, transmute_ref};

/// Runs of this order are broken up for single frames only where nothing smaller is near.
const SMALL: u8 = 3;

/// Bits of a word.
const WORD: u32 = u64::BITS;
/// The order of a word's worth of frames.
const WORD_ORDER: u8 = WORD.trailing_zeros() as u8;

/// Which of 512 frames, or pageblocks, are free. `1` is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub(super) struct Map([u64; (FRAMES / WORD) as usize]);

/// Bit `i` is set for each `i` at which an aligned run of `2^order` bits begins, for the orders within a word.
const STARTS: [u64; WORD_ORDER as usize] = {
    let mut starts = [!0; WORD_ORDER as usize];
    let mut order = 0;
    while order < starts.len() {
        starts[order] = u64::MAX / ((1u128 << (1u32 << order)) - 1) as u64;
        order += 1;
    }
    starts
};

/// The maps of a gigabyte as one array of words, which takes fewer steps to find one in.
type MapWords = [u64; MAP_WORDS];
const MAP_WORDS: usize = (FRAMES * FRAMES / WORD) as usize;

/// The place of a frame's word in these, by the last bits of its number.
#[inline(always)]
fn word_at(frame: u64) -> usize {
    (frame / u64::from(WORD)) as usize % MAP_WORDS
}

/// Sets the bit with a number, modulo those of a word; false if it was set.
#[inline(always)]
pub(super) fn set(word: &mut u64, i: u64) -> bool {
    let bit = 1 << (i % u64::from(WORD));
    let was_clear = *word & bit == 0;
    *word |= bit;
    was_clear
}

impl Map {
    pub const EMPTY: Map = Map([0; 8]);
    pub const FULL: Map = Map([!0; 8]);

    /// How many are free.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|w| w.count_ones()).sum()
    }

    #[inline]
    pub fn is_free(&self, i: u32) -> bool {
        self.0[(i / WORD) as usize] >> (i % WORD) & 1 == 1
    }

    /// Whether a bit is set both here and in another map.
    pub fn meets(&self, other: &Map) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    /// The first clear bit from `i` on.
    pub fn next_in_use(&self, i: u32) -> Option<u32> {
        (i / WORD..FRAMES / WORD).find_map(|w| {
            let from = i.saturating_sub(w * WORD);
            let clear = !self.0[w as usize] & (!0 << from);
            (clear != 0).then(|| w * WORD + clear.trailing_zeros())
        })
    }

    /// Sets a bit; false if it was set.
    #[inline]
    pub fn set(&mut self, i: u32) -> bool {
        set(&mut self.0[(i / WORD) as usize], i.into())
    }

    /// Sets the bit of a frame in the maps of a gigabyte, by the last bits of its number; false if it was set.
    #[inline(always)]
    pub fn set_of(maps: &mut [Map; FRAMES as usize], frame: u64) -> bool {
        set(Map::word_of(maps, frame), frame)
    }

    /// Whether two frames are of the same word of a map.
    #[inline(always)]
    pub fn is_same_word(a: u64, b: u64) -> bool {
        a ^ b < u64::from(WORD)
    }

    /// The word of a frame in the maps of a gigabyte, by the last bits of its number.
    #[inline(always)]
    pub fn word_of(maps: &mut [Map; FRAMES as usize], frame: u64) -> &mut u64 {
        let words: &mut MapWords = transmute_mut!(maps);
        &mut words[word_at(frame)]
    }

    /// Has the word of a frame in the maps of a gigabyte in the cache soon, by the last bits of its number.
    #[inline(always)]
    pub fn fetch_of(maps: &[Map; FRAMES as usize], frame: u64) {
        let words: &MapWords = transmute_ref!(maps);
        prefetch(&words[word_at(frame)]);
    }

    /// Whether the bit of a frame is set in the maps of a gigabyte, by the last bits of its number.
    #[inline(always)]
    pub fn has(maps: &[Map; FRAMES as usize], frame: u64) -> bool {
        let words: &MapWords = transmute_ref!(maps);
        words[word_at(frame)] >> (frame % u64::from(WORD)) & 1 == 1
    }

    /// Clears set bits, as many as there is room in `out`, and writes `base` plus their numbers there: those that are in no
    /// larger run, the lowest first, or, if there are none, the lowest. Returns how many.
    #[inline]
    pub fn take(&mut self, base: u64, out: &mut [u64]) -> usize {
        match out {
            [one] => {
                let i = self.find_single();
                i.map_or(0, |i| {
                    self.clear_run(i, Order::ZERO);
                    *one = base + u64::from(i);
                    1
                })
            }
            _ if self.has_small() => self.take_bits(base, out, Map::small),
            _ => self.take_lowest(base, out),
        }
    }

    /// Clears the lowest set bits, as many as there is room in `out`, and writes `base` plus their numbers there. Returns
    /// how many.
    #[inline]
    pub fn take_lowest(&mut self, base: u64, out: &mut [u64]) -> usize {
        self.take_bits(base, out, |word| word)
    }

    /// Clears set bits, the lowest first, as long as `f` takes their numbers; those of `marks` as well.
    #[inline(always)]
    pub fn take_each(&mut self, marks: &mut Map, mut f: impl FnMut(u32) -> bool) {
        let words = self.0.iter_mut().zip(&mut marks.0);
        for (first, (word, mark)) in (0..).step_by(WORD as usize).zip(words) {
            let mut left = *word;
            while left != 0 && f(first + left.trailing_zeros()) {
                left &= left - 1;
            }
            let all_taken = left == 0;
            if left != *word {
                (*word, *mark) = (left, *mark & left);
            }
            if !all_taken {
                break;
            }
        }
    }

    /// Clears the lowest of those set bits of each word that `of` says.
    #[inline(always)]
    fn take_bits(&mut self, base: u64, out: &mut [u64], of: impl Fn(u64) -> u64) -> usize {
        let mut got = 0;
        for (w, word) in self.0.iter_mut().enumerate() {
            let all = of(*word);
            let mut rest = all;
            let first = base + u64::from(w as u32 * WORD);
            if rest == !0
                && let Some(all) = out.get_mut(got..got + WORD as usize)
            {
                // All of a word: without a look at each bit.
                (first..).zip(all).for_each(|(n, to)| *to = n);
                (rest, got) = (0, got + WORD as usize);
            }
            while rest != 0 && got < out.len() {
                out[got] = first + u64::from(rest.trailing_zeros());
                rest &= rest - 1;
                got += 1;
            }
            *word ^= all ^ rest;
            if got == out.len() {
                break;
            }
        }
        got
    }

    /// A free frame, so that runs stay whole: one whose buddy is in use, or that is in no larger run, or any.
    fn find_single(&self) -> Option<u32> {
        let first = |of: fn(u64) -> u64| {
            let words = (0..).step_by(WORD as usize).zip(&self.0);
            let mut of_each = words.map(|(at, &word)| (at, of(word)));
            let (at, bits) = of_each.find(|&(_, bits)| bits != 0)?;
            Some(at + bits.trailing_zeros())
        };
        let alone = |w: u64| w & !(Map::runs(w, 1) * 3);
        first(alone)
            .or_else(|| first(Map::small))
            .or_else(|| first(|w| w))
    }

    /// The free frames of a word that are in no free aligned run of `2^SMALL`.
    #[inline]
    fn small(word: u64) -> u64 {
        word & !(Map::runs(word, SMALL) * ((1 << (1 << SMALL)) - 1))
    }

    /// Whether some frame is free that is in no free aligned run of `2^SMALL`.
    #[inline]
    pub fn has_small(&self) -> bool {
        self.0.iter().any(|&w| Map::small(w) != 0)
    }

    /// Words and bits of the aligned run of `2^order` at `i`, up to the whole map.
    fn run(i: u32, order: Order) -> (core::ops::Range<usize>, u64) {
        let first = (i / WORD) as usize;
        if order.0 >= WORD_ORDER {
            (first..first + (order.frames() / WORD) as usize, !0)
        } else {
            (first..first + 1, ((1 << order.frames()) - 1) << (i % WORD))
        }
    }

    /// Whether all of an aligned run is free.
    pub fn is_free_run(&self, i: u32, order: Order) -> bool {
        let (words, bits) = Map::run(i, order);
        self.0[words].iter().all(|w| w & bits == bits)
    }

    /// How many of an aligned run are free.
    pub fn count_run(&self, i: u32, order: Order) -> u32 {
        let (words, bits) = Map::run(i, order);
        self.0[words].iter().map(|w| (w & bits).count_ones()).sum()
    }

    /// Whether none of an aligned run is free.
    pub fn is_clear_run(&self, i: u32, order: Order) -> bool {
        let (words, bits) = Map::run(i, order);
        self.0[words].iter().all(|w| w & bits == 0)
    }

    /// Frees an aligned run; false, and nothing changes, if some of it is free.
    pub fn set_run(&mut self, i: u32, order: Order) -> bool {
        let (words, bits) = Map::run(i, order);
        let run = &mut self.0[words];
        if run.iter().any(|w| w & bits != 0) {
            return false;
        }
        run.iter_mut().for_each(|w| *w |= bits);
        true
    }

    /// Takes an aligned run, all of which is free.
    pub fn clear_run(&mut self, i: u32, order: Order) {
        let (words, bits) = Map::run(i, order);
        self.0[words].iter_mut().for_each(|w| *w &= !bits);
    }

    /// The order of the largest free aligned run that holds the free one of `2^order` at `i`.
    pub fn largest_at(&self, i: u32, mut order: Order) -> Order {
        while order.0 < 9 {
            let next = Order(order.0 + 1);
            if !self.is_free_run(i & !(next.frames() - 1), next) {
                break;
            }
            order = next;
        }
        order
    }

    /// The aligned runs of `2^order` within a word that are free: bit `i` for the run that begins there.
    #[inline]
    fn runs(word: u64, order: u8) -> u64 {
        let mut starts = word;
        for o in 0..order {
            starts &= starts >> (1u32 << o);
        }
        starts & STARTS[usize::from(order)]
    }

    /// The first free aligned run of `2^order`; rather one whose buddy is in use, so that larger ones stay whole.
    pub fn find_run(&self, order: Order) -> Option<u32> {
        let mut second = None;
        if order.0 < WORD_ORDER {
            for (w, &word) in (0..).step_by(WORD as usize).zip(&self.0) {
                let starts = Map::runs(word, order.0);
                if starts == 0 {
                    continue;
                }
                let pairs = match order.0 + 1 {
                    WORD_ORDER => u64::from(word == !0),
                    next => Map::runs(word, next),
                };
                let alone = starts & !(pairs | pairs << order.frames());
                if alone != 0 {
                    return Some(w + alone.trailing_zeros());
                }
                second = second.or(Some(w + starts.trailing_zeros()));
            }
            return second;
        }
        let mut i = 0;
        while i < FRAMES {
            if self.is_free_run(i, order) {
                let buddy = i ^ order.frames();
                if buddy >= FRAMES || !self.is_free_run(buddy, order) {
                    return Some(i);
                }
                second = second.or(Some(i));
            }
            i += order.frames();
        }
        second
    }

    /// Counts the largest free aligned runs by order.
    pub fn add_blocks(&self, of: &mut [u64]) {
        let mut i = 0;
        while i < FRAMES {
            let fits =
                |o: &u8| i.is_multiple_of(Order(*o).frames()) && self.is_free_run(i, Order(*o));
            match (0..=9).rev().find(fits) {
                Some(order) => {
                    of[usize::from(order)] += 1;
                    i += Order(order).frames();
                }
                None => i += 1,
            }
        }
    }

    /// The lowest free aligned run of `2^order`.
    pub fn first_run(&self, order: Order) -> Option<u32> {
        let mut runs = (0..FRAMES).step_by(order.frames() as usize);
        runs.find(|&i| self.is_free_run(i, order))
    }

    /// The highest free aligned run of `2^order`.
    pub fn find_last_run(&self, order: Order) -> Option<u32> {
        if order.0 < WORD_ORDER {
            let words = (0..).step_by(WORD as usize).zip(&self.0);
            let starts = words.map(|(at, &word)| (at, Map::runs(word, order.0)));
            let (at, last) = starts.filter(|&(_, s)| s != 0).last()?;
            return Some(at + last.ilog2());
        }
        let runs = (0..FRAMES).step_by(order.frames() as usize);
        runs.rev().find(|&i| self.is_free_run(i, order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Some maps, from nearly full to nearly empty, with and without large runs.
    fn maps() -> impl Iterator<Item = Map> {
        let mut x = 7u64;
        let mut word = move || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(9);
            x ^ x >> 29
        };
        (0..if cfg!(miri) { 5 } else { 400 }).map(move |i| {
            Map(core::array::from_fn(|_| match i % 5 {
                0 => word() & word() & word(),
                1 => word(),
                2 => word() | word() | word(),
                3 => [0, !0][(word() >> 60 & 1) as usize],
                _ => u64::MAX << (word() >> 58),
            }))
        })
    }

    /// The free aligned runs, by the definition.
    fn runs(map: &Map, order: u8) -> Vec<u32> {
        let n = 1 << order;
        let all = |s: &u32| (*s..s + n).all(|i| map.is_free(i));
        (0..FRAMES).step_by(n as usize).filter(all).collect()
    }

    #[test]
    fn a_run_is_found_exactly_if_there_is_one() {
        for map in maps() {
            for order in 0..=9 {
                let all = runs(&map, order);
                let first = map.find_run(Order(order));
                assert_eq!(first.is_some(), !all.is_empty(), "{map:?} {order}");
                assert_eq!(map.find_last_run(Order(order)), all.last().copied());
                let Some(first) = first else { continue };
                assert!(all.contains(&first));
                // One whose buddy is in use goes first.
                let is_alone = |s: &u32| !all.contains(&(s ^ (1 << order)));
                let alone = all.iter().copied().find(is_alone);
                assert_eq!(
                    Some(first),
                    alone.or(all.first().copied()),
                    "{map:?} {order}"
                );
            }
        }
    }

    #[test]
    fn the_largest_runs_are_counted_once() {
        for map in maps() {
            let mut of = [0; 10];
            map.add_blocks(&mut of);
            let frames: u64 = (0..).zip(of).map(|(o, n)| n << o).sum();
            assert_eq!(frames, map.count().into());
            // No two buddies are left that would be a larger one.
            for order in 0..9 {
                let whole = runs(&map, order + 1).len() as u64 * 2;
                assert_eq!(
                    of[usize::from(order)],
                    runs(&map, order).len() as u64 - whole
                );
            }
        }
    }

    #[test]
    fn a_run_is_taken_and_given_back_once() {
        for map in maps() {
            for order in 0..=9 {
                let Some(i) = map.find_run(Order(order)) else {
                    continue;
                };
                let mut m = map;
                assert!(!m.set_run(i, Order(order)), "it is free");
                m.clear_run(i, Order(order));
                assert_eq!(map.count() - m.count(), 1 << order);
                assert!(m.set_run(i, Order(order)));
                assert_eq!(m, map);
            }
        }
    }

    #[test]
    fn a_frame_of_a_gigabyte_is_set_in_the_map_of_its_block() {
        let mut maps = [Map::EMPTY; FRAMES as usize];
        for frame in (0..1u64 << 18).step_by(if cfg!(miri) { 9973 } else { 97 }) {
            // What is above the numbers of a gigabyte tells nothing.
            assert!(Map::set_of(&mut maps, frame | 5 << 18));
            assert!(!Map::set_of(&mut maps, frame), "once");
            let (block, place) = (frame / 512, (frame % 512) as u32);
            assert!(!maps[block as usize].set(place));
            maps[block as usize].clear_run(place, Order(0));
            assert!(maps.iter().all(|map| *map == Map::EMPTY));
        }
    }

    #[test]
    fn single_frames_are_taken_beside_larger_runs() {
        for (map, most) in maps().flat_map(|map| [1, 2, 64, 150].map(|most| (map, most))) {
            let (mut m, mut out) = (map, [0; 150]);
            let got = m.take(0, &mut out[..most]);
            let large = runs(&map, SMALL);
            let is_small = |i: &u32| !large.contains(&(i & !((1 << SMALL) - 1)));
            let free: Vec<u32> = (0..FRAMES).filter(|&i| map.is_free(i)).collect();
            let small: Vec<u32> = free.iter().copied().filter(is_small).collect();
            let pairs = runs(&map, 1);
            let alone = free.iter().find(|&i| !pairs.contains(&(i & !1)));
            let wanted = match (small.len(), most) {
                (0, _) => &free[..most.min(free.len())],
                // The only one is rather one whose buddy is in use.
                (_, 1) => alone.map_or(&small[..1], core::slice::from_ref),
                (n, most) => &small[..most.min(n)],
            };
            assert!(
                out[..got]
                    .iter()
                    .copied()
                    .eq(wanted.iter().map(|&i| u64::from(i)))
            );
            assert!(out[..got].iter().all(|&i| m.set(i as u32)), "once");
            assert_eq!(m, map);
        }
    }

    #[test]
    fn single_frames_are_taken_from_the_lowest_on() {
        // Less than a word, a word, and more.
        for (map, most) in maps().flat_map(|map| [40, 64, 150].map(|most| (map, most))) {
            let (mut m, mut out) = (map, [0; 150]);
            let got = m.take_lowest(1000, &mut out[..most]);
            let free: Vec<u32> = (0..FRAMES).filter(|&i| map.is_free(i)).collect();
            assert_eq!(got, free.len().min(most));
            let lowest: Vec<u64> = free[..got].iter().map(|&i| u64::from(i) + 1000).collect();
            assert_eq!(out[..got], lowest);
            assert!(out[..got].iter().all(|&i| m.set(i as u32 - 1000)));
            assert_eq!(m, map);
        }
    }
}
