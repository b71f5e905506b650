//! The frames of each zone by what they are used for, from one pass over `/proc/kpageflags`.
//!
//! What flags leave open is settled by what zoneinfo counts: holes are what a zone spans and has not (`spanned - present`),
//! reserved is what it has and does not manage (`present - managed`), and as many frames without flags as zoneinfo counts on
//! per-CPU lists are there. All others without flags are the kernel's.
//!
//! Invariant: a frame counts once, in one zone, so that uses and holes of a zone are its frames, whatever the counters say.

use super::uses::{NR_USES, Seen, Use, is_tail, seen};
use std::io::Read;
use std::ops::Range;
use unfrag_linux::kpageflags::{self, COMPOUND_HEAD, MLOCKED, UNEVICTABLE};

/// Orders that blocks of pages are told by.
pub const ORDERS: usize = 20;

/// Frames that can only be missing together: on kernels that give no flag to a hole (6.16 and later, as far as is known) a hole
/// is a whole section without flags, which has 128 MiB at least.
const SECTION: u64 = (128 << 20) / 4096;

/// Frames in blocks of each order.
pub type ByOrder = [u64; ORDERS];

/// The frames of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Frames of each use. Those without flags are in `nothing` until they are settled.
    pub uses: [u64; NR_USES],
    /// Frames that do not exist; all of them once it is settled.
    pub holes: u64,
    /// Frames without any flag.
    nothing: u64,
    /// Those of them in whole sections without flags.
    in_bare_sections: u64,
    /// Frames marked as reserved.
    reserved: u64,
    /// Anonymous frames by the order of their block.
    pub anon: ByOrder,
    /// Shared memory likewise.
    pub shmem: ByOrder,
    /// Page cache likewise.
    pub cache: ByOrder,
    /// Frames that may not be reclaimed.
    pub unevictable: u64,
    /// Frames that a process locked.
    pub mlocked: u64,
}

/// What zoneinfo says of a zone's frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
    /// Frames that there are.
    pub present: u64,
    /// Frames that the allocator manages.
    pub managed: u64,
    /// Frames on per-CPU lists.
    pub pcp: u64,
}

impl Tally {
    /// Frames of a use.
    pub fn of(&self, kind: Use) -> u64 {
        self.uses[kind as usize]
    }

    /// Whether no frame has a flag.
    pub(super) fn is_bare(&self) -> bool {
        self.exist() + self.holes + self.reserved == 0
    }

    /// Frames that exist.
    pub fn exist(&self) -> u64 {
        self.uses.iter().sum()
    }

    /// Adds another zone's.
    pub fn add(&mut self, other: &Tally) {
        let add = |to: &mut [u64], from: &[u64]| {
            let all = to.iter_mut().zip(from);
            all.for_each(|(a, b)| *a = a.saturating_add(*b));
        };
        add(&mut self.uses, &other.uses);
        add(&mut self.anon, &other.anon);
        add(&mut self.shmem, &other.shmem);
        add(&mut self.cache, &other.cache);
        self.holes = self.holes.saturating_add(other.holes);
        self.unevictable += other.unevictable;
        self.mlocked += other.mlocked;
    }

    /// Settles what flags leave open. `frames`: all that the zone spans. Gives what contradicts the counters, a clause each.
    pub(super) fn settle(&mut self, frames: u64, told: Told) -> Vec<String> {
        let mut notes = vec![];
        // Flags end with the last frame that exists.
        let read = self.exist() + self.holes + self.nothing + self.reserved;
        self.holes += frames.saturating_sub(read);
        let holes = frames.saturating_sub(told.present).max(self.holes);
        if frames.saturating_sub(told.present) < self.holes {
            notes.push(format!(
                "zoneinfo counts {} frames that exist, and page flags show {} at most",
                told.present,
                frames - self.holes
            ));
        }
        let hidden = holes - self.holes;
        let unmanaged = told.present.saturating_sub(told.managed);
        // Neither holes nor reserved memory have to be marked. What a balloon took is taken out of the managed frames by some
        // drivers and not by others: of the two, what lies nearer to the sections without flags.
        let bare = |unmanaged: u64| {
            let all = (hidden + unmanaged).saturating_sub(self.reserved);
            all.min(self.nothing)
        };
        let (with, without) = (
            bare(unmanaged),
            bare(unmanaged.saturating_sub(self.of(Use::Offline))),
        );
        let far = |n: u64| n.abs_diff(self.in_bare_sections);
        let bare = match far(without) < far(with) {
            true => without,
            false => with,
        };
        let absent = self.reserved + bare;
        if absent < hidden {
            notes.push(format!(
                "zoneinfo counts {hidden} more frames that do not exist, and page flags show {absent} at most"
            ));
        }
        let hidden = hidden.min(absent);
        self.holes += hidden;
        self.uses[Use::Reserved as usize] += absent - hidden;
        let free = told.pcp.min(self.nothing - bare);
        self.uses[Use::PerCpu as usize] += free;
        self.uses[Use::Kernel as usize] += self.nothing - bare - free;
        (self.nothing, self.reserved) = (0, 0);
        notes
    }
}

/// Counts frames of zones.
pub(super) struct Counting {
    /// Frames that no two zones have, with the zone's number, in order.
    parts: Vec<(Range<u64>, usize)>,
    zones: Vec<Tally>,
    huge_order: u8,
    /// The block of pages that is being read: its zone, what it is and its frames.
    block: Option<(usize, Seen, u64)>,
    /// The section that is being read and its frames without flags, by zone.
    section: (u64, usize, u64),
    /// Frames outside of all zones that are in use.
    outside: u64,
}

impl Counting {
    /// A count of the zones with these frames. Where two overlap, the smaller one has the frames of both.
    pub fn new(spans: &[Range<u64>], huge_order: u8) -> Counting {
        let mut ends: Vec<u64> = spans.iter().flat_map(|s| [s.start, s.end]).collect();
        ends.sort_unstable();
        ends.dedup();
        let parts = ends.windows(2).filter_map(|w| {
            let has = |i: &usize| spans[*i].start <= w[0] && w[1] <= spans[*i].end;
            let all = (0..spans.len()).filter(has);
            let zone = all.min_by_key(|&i| spans[i].end - spans[i].start)?;
            Some((w[0]..w[1], zone))
        });
        Counting {
            parts: parts.collect(),
            zones: vec![Tally::default(); spans.len()],
            huge_order,
            block: None,
            section: (u64::MAX, 0, 0),
            outside: 0,
        }
    }

    /// Frames that each zone has to itself.
    pub fn frames(&self, zone: usize) -> u64 {
        let of = self.parts.iter().filter(|(_, z)| *z == zone);
        of.map(|(part, _)| part.end - part.start).sum()
    }

    /// Counts a file of flags; calls `between` when the first of them are read, and from time to time.
    ///
    /// # Errors
    /// As [`kpageflags::each`].
    pub fn read(
        mut self,
        flags: &mut dyn Read,
        between: &mut dyn FnMut(),
    ) -> unfrag_linux::Result<Counted> {
        /// Frames, 2 GiB of 4 KiB.
        const FROM_TIME_TO_TIME: u64 = 1 << 19;
        let mut next = 0;
        let mut end = 0;
        kpageflags::each(flags, |first, words| {
            if first >= next {
                between();
                next = first + FROM_TIME_TO_TIME;
            }
            end = first + words.len() as u64;
            self.piece(first, words);
        })?;
        self.end_block();
        self.end_section();
        Ok(Counted {
            frames: (0..self.zones.len()).map(|i| self.frames(i)).collect(),
            zones: self.zones,
            outside: self.outside,
            end,
        })
    }

    fn piece(&mut self, first: u64, words: &[u64]) {
        let mut pfn = first;
        let end = first + words.len() as u64;
        while pfn < end {
            let part = self.parts.iter().find(|(part, _)| part.end > pfn);
            let (next, zone) = match part {
                Some((part, zone)) if part.start <= pfn => (part.end.min(end), Some(*zone)),
                Some((part, _)) => (part.start.min(end), None),
                None => (end, None),
            };
            let words = &words[(pfn - first) as usize..(next - first) as usize];
            match zone {
                Some(zone) => {
                    for (pfn, &w) in (pfn..).zip(words) {
                        self.frame(zone, pfn, w);
                    }
                }
                None => {
                    self.end_block();
                    let is_there = |w: &&u64| matches!(seen(**w), Seen::Is(_));
                    self.outside += words.iter().filter(is_there).count() as u64;
                }
            }
            pfn = next;
        }
    }

    fn frame(&mut self, zone: usize, pfn: u64, w: u64) {
        if w == 0 {
            self.end_block();
            self.zones[zone].nothing += 1;
            let section = pfn / SECTION;
            if (self.section.0, self.section.1) != (section, zone) {
                self.end_section();
                self.section = (section, zone, 0);
            }
            self.section.2 += 1;
            return;
        }
        let has = |bits| w & bits != 0;
        match &mut self.block {
            // A further page has few flags of its own: it is used as the first is.
            Some((of, _, frames)) if is_tail(w) && *of == zone => *frames += 1,
            _ => {
                self.end_block();
                let what = seen(w);
                self.block = Some((zone, what, 1));
                if !has(COMPOUND_HEAD) {
                    self.end_block();
                }
            }
        }
        if !matches!(seen(w), Seen::Is(Use::Slab | Use::Free)) {
            let tally = &mut self.zones[zone];
            tally.unevictable += u64::from(has(UNEVICTABLE));
            tally.mlocked += u64::from(has(MLOCKED));
        }
    }

    fn end_section(&mut self) {
        let (_, zone, frames) = self.section;
        if frames == SECTION {
            self.zones[zone].in_bare_sections += frames;
        }
        self.section = (u64::MAX, 0, 0);
    }

    fn end_block(&mut self) {
        let Some((zone, what, frames)) = self.block.take() else {
            return;
        };
        let tally = &mut self.zones[zone];
        let order = frames.ilog2() as usize;
        let of = order.min(ORDERS - 1);
        match what {
            Seen::Nothing => tally.nothing += frames,
            Seen::NoPage => tally.holes += frames,
            Seen::Reserved => tally.reserved += frames,
            Seen::Is(kind) => {
                let kind = match kind {
                    Use::Anon if order >= usize::from(self.huge_order) => Use::AnonHuge,
                    Use::Anon if order > 0 => Use::AnonLarge,
                    other => other,
                };
                tally.uses[kind as usize] += frames;
                match kind {
                    Use::Anon | Use::AnonLarge | Use::AnonHuge => tally.anon[of] += frames,
                    Use::Shmem => tally.shmem[of] += frames,
                    Use::CleanCache | Use::DirtyCache | Use::Writeback => tally.cache[of] += frames,
                    _ => {}
                }
            }
        }
    }
}

/// What was counted; not settled yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    /// A tally for each zone.
    pub zones: Vec<Tally>,
    /// Frames that each zone has to itself.
    pub frames: Vec<u64>,
    /// Frames in use outside of all zones.
    pub outside: u64,
    /// The frame that flags end before.
    pub end: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use unfrag_linux::kpageflags::{
        ANON, BUDDY, COMPOUND_TAIL, LRU, NOPAGE, OFFLINE, RESERVED, SLAB,
    };

    fn count(spans: &[Range<u64>], words: &[u64]) -> Counted {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        Counting::new(spans, 9)
            .read(&mut &bytes[..], &mut || ())
            .unwrap()
    }

    #[test]
    fn blocks_of_anonymous_memory_are_told_by_their_size() {
        let mut words = vec![BUDDY; 2048];
        words[3] = LRU | ANON;
        words[16] = LRU | ANON | COMPOUND_HEAD;
        words[17..32].fill(COMPOUND_TAIL);
        words[512] = LRU | ANON | COMPOUND_HEAD;
        words[513..1024].fill(LRU | ANON | COMPOUND_TAIL);
        // Two blocks side by side are two.
        words[1024] = LRU | ANON | COMPOUND_HEAD;
        words[1025] = COMPOUND_TAIL;
        words[1026] = LRU | ANON | COMPOUND_HEAD;
        words[1027] = COMPOUND_TAIL;
        let mut tally = count(std::slice::from_ref(&(0..2048)), &words)
            .zones
            .remove(0);
        let told = Told {
            present: 2048,
            managed: 2048,
            pcp: 0,
        };
        assert!(tally.settle(2048, told).is_empty());
        assert_eq!(tally.of(Use::Anon), 1);
        assert_eq!(tally.of(Use::AnonLarge), 16 + 4);
        assert_eq!(tally.of(Use::AnonHuge), 512);
        assert_eq!((tally.anon[1], tally.anon[4], tally.anon[9]), (4, 16, 512));
        assert_eq!(tally.exist(), 2048);
    }

    /// Holes without flags, holes marked as reserved, and holes that are told: `spec: 7.10`
    #[test]
    fn holes_are_what_a_zone_spans_and_has_not() {
        let (free, kernel, pcp) = (600, 30, 20);
        let section = SECTION as usize;
        for (told_as, name) in [(0, "none"), (RESERVED, "reserved"), (NOPAGE, "no page")] {
            let mut words = vec![told_as; section];
            words.extend(vec![BUDDY; free]);
            words.extend(vec![RESERVED; 50]);
            words.extend(vec![0; kernel + pcp]);
            words.extend(vec![SLAB; 8]);
            let frames = words.len() as u64;
            let mut tally = count(std::slice::from_ref(&(0..frames)), &words)
                .zones
                .remove(0);
            let told = Told {
                present: frames - SECTION,
                managed: frames - SECTION - 50,
                pcp: pcp as u64,
            };
            assert!(tally.settle(frames, told).is_empty(), "{name}");
            assert_eq!(tally.holes, SECTION, "{name}");
            assert_eq!(tally.of(Use::Reserved), 50, "{name}");
            assert_eq!(tally.of(Use::PerCpu), pcp as u64, "{name}");
            assert_eq!(tally.of(Use::Kernel), kernel as u64, "{name}");
            assert_eq!(tally.exist() + tally.holes, frames, "{name}");
        }
    }

    #[test]
    fn a_balloon_may_be_managed_or_not() {
        for is_managed in [true, false] {
            let mut words = vec![BUDDY; 700];
            words.extend([OFFLINE; 200]);
            words.extend([0; 100]);
            let mut tally = count(std::slice::from_ref(&(0..1000)), &words)
                .zones
                .remove(0);
            let told = Told {
                present: 1000,
                managed: if is_managed { 1000 } else { 800 },
                pcp: 0,
            };
            assert!(tally.settle(1000, told).is_empty());
            let uses = [Use::Offline, Use::Kernel, Use::Reserved].map(|u| tally.of(u));
            assert_eq!(uses, [200, 100, 0], "managed: {is_managed}");
        }
    }

    #[test]
    fn counters_that_contradict_flags_are_named_and_the_sum_stays() {
        let words = vec![BUDDY; 100];
        let mut tally = count(std::slice::from_ref(&(0..100)), &words)
            .zones
            .remove(0);
        let told = Told {
            present: 60,
            managed: 60,
            pcp: 9,
        };
        assert_eq!(tally.settle(100, told).len(), 1);
        assert_eq!(tally.exist() + tally.holes, 100);
        let mut short = count(std::slice::from_ref(&(0..100)), &words[..40])
            .zones
            .remove(0);
        let told = Told {
            present: 100,
            managed: 100,
            pcp: 0,
        };
        assert_eq!(short.settle(100, told).len(), 1, "flags end before");
        assert_eq!((short.holes, short.exist()), (60, 40));
    }

    #[test]
    fn zones_that_overlap_have_each_frame_once() {
        let counted = count(&[0..100, 40..60, 80..120], &[BUDDY; 130]);
        let free: Vec<u64> = counted.zones.iter().map(|t| t.of(Use::Free)).collect();
        assert_eq!(free, [60, 20, 40]);
        assert_eq!(counted.frames, [60, 20, 40]);
        assert_eq!(counted.outside, 10);
    }
}
