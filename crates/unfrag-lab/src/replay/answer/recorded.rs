//! What the recorded kernel itself showed: its states, and what the trace takes from each zone.

use super::report::Sample;
use super::sample;
use crate::error::Result;
use crate::replay::model::Prepared;
use crate::replay::start::holds;
use unfrag_eras::Pfn;
use unfrag_linux::recording::Snapshot;

impl Prepared<'_> {
    pub(crate) fn recorded_samples(&self) -> Result<Vec<Sample>> {
        let geometry = self.start.geometry;
        let of = |(t, s): &(u64, &Snapshot)| {
            sample::of_snapshot(s, self.seconds(*t), geometry).transpose()
        };
        self.snapshots.iter().filter_map(of).collect()
    }

    /// For each snapshot after the anchor and each zone: pages taken since the anchor.
    ///
    /// # Errors
    /// If the operations cannot be read.
    pub(crate) fn taken(&self, anchor: &Sample) -> Result<Vec<Vec<i64>>> {
        let Some(&(from, _)) = self.snapshots.first() else {
            return Ok(vec![]);
        };
        let zones: Vec<_> = anchor
            .zones
            .iter()
            .map(|z| {
                let of = |c: &unfrag_eras::ZoneConfig| {
                    u32::from(c.node.0) == z.node && c.kind.name() == z.zone
                };
                self.start.zones.iter().map(|f| f.config).find(of)
            })
            .collect();
        let mut sum = vec![0i64; zones.len()];
        let mut all = vec![];
        let mut next = self.snapshots.iter().skip(1).peekable();
        let ops = &self.causes.ops;
        ops.each(0..ops.len(), |_, op| {
            if op.time < from {
                return;
            }
            while next.next_if(|(t, _)| op.time > *t).is_some() {
                all.push(sum.clone());
            }
            let Some(frame) = op.frame(&self.causes.stacks) else {
                return;
            };
            let inside = |c: &unfrag_eras::ZoneConfig| holds(c, Pfn(frame.into()));
            if let Some(i) = zones.iter().position(|z| z.as_ref().is_some_and(inside)) {
                sum[i] += op.pages_taken();
            }
        })?;
        all.resize(self.snapshots.len().saturating_sub(1), sum);
        Ok(all)
    }
}
