//! Every change of one rule of compaction.

use super::list::{Flips, of};
use unfrag_eras::Rules;
use unfrag_eras::kernel::*;

fn compact(r: &mut Rules) -> Option<&mut CompactRules> {
    r.compact.as_mut()
}

fn proactive(r: &mut Rules) -> Option<&mut ProactiveRules> {
    compact(r)?.proactive.as_mut()
}

impl Flips<'_> {
    fn switch(&mut self, path: &'static str, of: fn(&mut CompactRules) -> &mut bool) {
        self.rule(path, &[false, true], |r| compact(r).map(of));
    }

    pub(crate) fn compaction(&mut self) {
        let some = of("6.1").compact;
        self.rule("compact", &[None, some], |r| Some(&mut r.compact));
        self.rule(
            "compact.requests",
            &[CompactRequests::CostlyWithIo, CompactRequests::All],
            |r| Some(&mut compact(r)?.requests),
        );
        self.rule(
            "compact.room",
            &[
                CompactRoom::Low,
                CompactRoom::LowIfCostly,
                CompactRoom::Callers,
            ],
            |r| Some(&mut compact(r)?.room),
        );
        self.switch("compact.modes", |c| &mut c.modes);
        self.switch("compact.order_failed", |c| &mut c.order_failed);
        self.switch("compact.skips", |c| &mut c.skips);
        self.switch("compact.marks_at_once", |c| &mut c.marks_at_once);
        self.switch("compact.passes_over_next", |c| &mut c.passes_over_next);
        self.rule(
            "compact.compound",
            &[CompoundSources::No, CompoundSources::BelowWanted],
            |r| Some(&mut compact(r)?.compound),
        );
        self.switch("compact.targets_by_order", |c| &mut c.targets_by_order);
        self.switch("compact.spares_wanted_order", |c| {
            &mut c.spares_wanted_order
        });
        self.switch("compact.fast_search", |c| &mut c.fast_search);
        self.switch("compact.finishes_found_block", |c| {
            &mut c.finishes_found_block
        });
        self.rule(
            "compact.capture",
            &[
                Capture::No,
                Capture::NotFromMovable,
                Capture::MovableForMovable,
            ],
            |r| Some(&mut compact(r)?.capture),
        );
        self.switch("compact.notices_capture_late", |c| {
            &mut c.notices_capture_late
        });
        self.switch("compact.counts_deferred", |c| &mut c.counts_deferred);
        self.switch("compact.async_leaves_block", |c| &mut c.async_leaves_block);
        self.rule(
            "compact.gives_up",
            &[GivesUp::PutOff, GivesUp::PutOffOrOneNode, GivesUp::OneNode],
            |r| Some(&mut compact(r)?.gives_up),
        );
        self.switch("compact.kcompactd", |c| &mut c.kcompactd);
        let ahead = some.and_then(|c| c.proactive);
        self.rule("compact.proactive", &[None, ahead], |r| {
            Some(&mut compact(r)?.proactive)
        });
        self.rule("compact.proactive.floor", &[false, true], |r| {
            Some(&mut proactive(r)?.floor)
        });
        self.rule("compact.proactive.weighted_stop", &[false, true], |r| {
            Some(&mut proactive(r)?.weighted_stop)
        });
        self.rule("compact.proactive.counts_as_daemon", &[false, true], |r| {
            Some(&mut proactive(r)?.counts_as_daemon)
        });
    }
}
