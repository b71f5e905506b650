//! What is not known of the recorded host, and is chosen for each member of an ensemble.
//!
//! Invariant: the first member has the recorded pace, and each choice depends on the number of members alone.

use crate::replay::causes::AS_RECORDED;

/// Half the width of the range of paces, in thousandths of the recorded pace. Nearly all recorded runs
/// differ from the one before by at most this much.
const HALF_WIDTH: u32 = 500;
/// How often page cache in use is spared before it is taken, of one member after the other.
const SPARES: [u8; 3] = [2, 1, 4];

/// One choice of what is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chance {
    /// How many nanoseconds a page takes that kswapd looks at, in thousandths of what it took on the recorded host.
    pub pace: u32,
    /// How often page cache in use is spared before it is taken.
    pub spares: u8,
}

/// The choices of an ensemble's members, that with the recorded pace first.
pub(crate) fn chances(members: u32) -> Vec<Chance> {
    let spares = SPARES.iter().copied().cycle();
    let paces = paces(members).into_iter();
    let of = |(pace, spares)| Chance { pace, spares };
    paces.zip(spares).map(of).collect()
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
}
