//! How fragmented zones and nodes are, for compaction ahead of demand. `spec: 5.5`

use crate::frame::{NodeId, ZoneId};
use crate::host::Host;
use crate::kernel::ProactiveRules;
use crate::manager::Manager;
use crate::stat::extfrag_for_order;

/// Default of `vm.compaction_proactiveness`.
pub const DEFAULT_PROACTIVENESS: u8 = 20;

/// The scores between which a node is compacted ahead of demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScoreMarks {
    /// A run ends at this score.
    pub low: u64,
    /// A run begins above this score.
    pub high: u64,
}

impl ScoreMarks {
    /// The marks of a proactiveness from 0 to 100. `spec: 5.5`
    ///
    /// ```
    /// use unfrag_eras::{compact::score::ScoreMarks, preset};
    /// let rules = preset("6.1").unwrap().rules.compact.unwrap().proactive.unwrap();
    /// assert_eq!(ScoreMarks::new(20, &rules), ScoreMarks { low: 80, high: 90 });
    /// ```
    pub const fn new(proactiveness: u8, rules: &ProactiveRules) -> ScoreMarks {
        let low = 100
            - if proactiveness > 100 {
                100
            } else {
                proactiveness as u64
            };
        let (low, gap) = match rules.floor {
            true if low < 5 => (5, 10),
            true => (low, 10),
            false if low / 2 < 10 => (low, low / 2),
            false => (low, 10),
        };
        let high = if low + gap > 100 { 100 } else { low + gap };
        ScoreMarks { low, high }
    }
}

impl<H: Host> Manager<'_, H> {
    /// The share of a zone's free memory that is outside huge pages, in percent.
    pub(crate) fn zone_score(&self, zone: ZoneId) -> u64 {
        let order = self.frames.geometry.block_order;
        let counts = self.zone(zone).free_area.nr_free().map(u64::from);
        extfrag_for_order(&counts, order)
    }

    /// A zone's score, weighted by its share of the node.
    pub(crate) fn weighted_score(&self, zone: ZoneId) -> u64 {
        let z = self.zone(zone);
        let node = self.node(z.node).into_iter().flat_map(|n| n.zones());
        let present: u64 = node.map(|z| self.zone(z).config().present).sum();
        z.config().present * self.zone_score(zone) / (present + 1)
    }

    /// How fragmented a node is: the sum of its zones' weighted scores. 0 to 100.
    pub fn fragmentation_score(&self, node: NodeId) -> u64 {
        let zones = self.node(node).into_iter().flat_map(|n| n.zones());
        zones.map(|z| self.weighted_score(z)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::preset;

    fn marks(era: &str, proactiveness: u8) -> (u64, u64) {
        let rules = preset(era)
            .and_then(|p| p.rules.compact?.proactive)
            .unwrap();
        let m = ScoreMarks::new(proactiveness, &rules);
        (m.low, m.high)
    }

    /// `spec: 5.5`
    #[test]
    fn marks_by_proactiveness() {
        for era in ["5.9", "6.1", "6.12", "6.18", "7.2"] {
            assert_eq!(marks(era, 20), (80, 90), "{era}");
            assert_eq!(marks(era, 40), (60, 70), "{era}");
            assert_eq!(marks(era, 0), (100, 100), "{era}");
        }
        assert_eq!(marks("6.1", 100), (5, 15));
        assert_eq!(marks("6.12", 100), (5, 15));
        for era in ["6.18", "7.2"] {
            assert_eq!(marks(era, 100), (0, 0), "{era}");
            // A score of 4 is above the high mark, one of 9 is not.
            assert_eq!(marks(era, 94), (6, 9), "{era}");
        }
        assert_eq!(marks("6.18", 90), (10, 15));
        assert_eq!(marks("6.1", 90), (10, 20));
        assert_eq!(marks("6.12", 90), (10, 20));
    }
}
