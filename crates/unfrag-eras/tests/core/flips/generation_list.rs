//! Every change of one rule of generations.

use super::list::{Flips, of};
use unfrag_eras::Rules;
use unfrag_eras::kernel::*;

fn generations(r: &mut Rules) -> Option<&mut Option<GenerationRules>> {
    Some(&mut r.reclaim.lru.split_mut()?.generations)
}

fn rules(r: &mut Rules) -> Option<&mut GenerationRules> {
    generations(r)?.as_mut()
}

impl Flips<'_> {
    pub(crate) fn generations(&mut self) {
        let some = of("6.12").reclaim.lru.split().and_then(|s| s.generations);
        self.rule("reclaim.lru.generations", &[None, some], generations);
        self.rule("reclaim.lru.generations.read_enters", &[2, 3], |r| {
            Some(&mut rules(r)?.read_enters)
        });
        self.rule("reclaim.lru.generations.mapped_enters", &[0, 1, 2], |r| {
            Some(&mut rules(r)?.mapped_enters)
        });
        self.rule("reclaim.lru.generations.anon_enters", &[0, 1], |r| {
            Some(&mut rules(r)?.anon_enters)
        });
        let bools = [false, true];
        self.rule("reclaim.lru.generations.starts_by_size", &bools, |r| {
            Some(&mut rules(r)?.starts_by_size)
        });
        self.rule("reclaim.lru.generations.stops_at_marks", &bools, |r| {
            Some(&mut rules(r)?.stops_at_marks)
        });
        self.rule(
            "reclaim.lru.generations.budget",
            &[ScanBudget::EachBatch, ScanBudget::Once],
            |r| Some(&mut rules(r)?.budget),
        );
        self.rule(
            "reclaim.lru.generations.aging",
            &[Aging::TwoLeft, Aging::FewerThanFour],
            |r| Some(&mut rules(r)?.aging),
        );
    }
}
