//! What is not known of the recorded host, and is chosen for each member of an ensemble.
//!
//! Invariant: the first member has the recorded pace, and each choice depends on the number of members alone.

use crate::replay::causes::AS_RECORDED;
use crate::replay::model::reclaim::Unknowns;

/// Half the width of the range of paces, in thousandths of the recorded pace. Nearly all recorded runs
/// differ from the one before by at most this much.
const HALF_WIDTH: u32 = 500;
/// How often page cache in use is spared before it is taken, of one member after the other.
const SPARES: [u8; 3] = [2, 1, 4];
/// Nanoseconds from the call for a daemon to its first step: at once, after a tick, after a few when others have the CPU.
const WAKES: [u64; 3] = [0, 4_000_000, 20_000_000];
/// Most pages in use that are spared in a row.
const MOST_SPARED: [u32; 3] = [1 << 16, 1 << 14, 1 << 12];

/// One choice of what is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chance {
    /// How many nanoseconds a page takes that kswapd looks at, in thousandths of what it took on the recorded host.
    pub pace: u32,
    /// How often page cache in use is spared before it is taken.
    pub spares: u8,
    /// When daemons work against the load, and how much of what counts as in use can be reclaimed.
    pub unknowns: Unknowns,
    /// Whether free blocks of which nobody knows the order are the other way round.
    pub turned: bool,
}

impl Default for Chance {
    fn default() -> Chance {
        Chance {
            pace: AS_RECORDED,
            spares: SPARES[0],
            unknowns: Unknowns::default(),
            turned: false,
        }
    }
}

/// The choices of an ensemble's members, that with the recorded pace first. The others change from member to member in
/// steps of different length, so that each value of one meets each of another, and fast and slow paces all of them.
pub(crate) fn chances(members: u32) -> Vec<Chance> {
    let of = |(i, pace): (usize, u32)| Chance {
        pace,
        spares: SPARES[i % 3],
        unknowns: Unknowns {
            wake_ns: WAKES[i / 3 % 3],
            most_spared: MOST_SPARED[(i + i / 3) % 3],
        },
        turned: i % 2 == 1,
    };
    paces(members).into_iter().enumerate().map(of).collect()
}

fn paces(members: u32) -> Vec<u32> {
    let middle = members / 2;
    let others = (0..members).filter(|&i| i != middle);
    let pace = |i| AS_RECORDED - HALF_WIDTH + 2 * HALF_WIDTH * i / (members - 1);
    std::iter::once(AS_RECORDED)
        .chain(others.map(pace))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_pace_comes_first_and_the_others_go_from_half_to_one_and_a_half() {
        assert_eq!(paces(1), [1000]);
        assert_eq!(paces(3), [1000, 500, 1500]);
        let eleven = [1000, 500, 600, 700, 800, 900, 1100, 1200, 1300, 1400, 1500];
        assert_eq!(paces(11), eleven);
    }

    #[test]
    fn members_differ_in_how_often_they_spare_page_cache() {
        let spares: Vec<u8> = chances(5).iter().map(|c| c.spares).collect();
        assert_eq!(spares, [2, 1, 4, 2, 1]);
    }

    #[test]
    fn the_first_member_takes_everything_as_recorded() {
        for members in [1, 5, 21] {
            assert_eq!(chances(members)[0], Chance::default());
        }
    }

    /// Else a difference of two kinds of members would be one of their paces alone.
    #[test]
    fn slow_and_fast_members_have_each_value_of_all_else() {
        let all = chances(21);
        for is_slow in [false, true] {
            let half = || all.iter().filter(|c| (c.pace > AS_RECORDED) == is_slow);
            for spares in SPARES {
                assert!(half().any(|c| c.spares == spares));
            }
            for wake_ns in WAKES {
                assert!(half().any(|c| c.unknowns.wake_ns == wake_ns));
            }
            for most in MOST_SPARED {
                assert!(half().any(|c| c.unknowns.most_spared == most));
            }
            for turned in [false, true] {
                assert!(half().any(|c| c.turned == turned));
            }
        }
    }
}
