//! All numbers of a kernel that is asked for, beside those of the recorded one.

use super::change::{BEGIN_DIFFERENTLY, OWN_IS_WORSE, Values, change_of};
use super::class::{Asked, Begins, Class, Pressure};
use super::found::{Change, WhatIf};
use super::measured::{ClassError, Measured};
use super::quantity::{QUANTITIES, Quantity, is_of_free_memory};
use crate::replay::answer::member::Member;
use crate::replay::answer::report::Sample;

/// What is reclaimed or moved of less than one in so many pages of memory is no pressure.
const FEW: u64 = 20;

/// An ensemble of fewer replays says nothing of what its middle would be.
const FEW_MEMBERS: usize = 5;

/// Takes back what is said of free memory and huge pages, where the recorded kernel's model does not follow them.
pub(in crate::replay::answer) fn withhold_free_memory(what_if: &mut WhatIf) {
    if what_if.class.asked == Asked::Own {
        return;
    }
    let free = what_if.changes.iter_mut();
    let apart = |c: &Change| c.reason.as_deref() == Some(BEGIN_DIFFERENTLY);
    for c in free.filter(|c| is_of_free_memory(c.name) && !apart(c)) {
        (c.verdict, c.reason) = (None, Some(OWN_IS_WORSE.into()));
    }
}

/// Replays of two models of one recording, and what its host showed.
pub(in crate::replay::answer) struct Compared<'m> {
    /// Of the kernel that is asked for, at least one.
    pub asked: &'m [Member],
    /// Of the recorded one; empty where it has no answer.
    pub own: &'m [Member],
    /// Whether both are the same.
    pub is_own: bool,
    /// Whether a setting of the recorded host is guessed.
    pub rests_on_a_guess: bool,
    /// Whether another kernel than the recorded one is asked for.
    pub other_kernel: bool,
    /// Whether another size of memory is asked for.
    pub other_memory: bool,
    /// Where the replays begin.
    pub start: Begins,
    /// What the recorded host showed.
    pub recorded: &'m [Sample],
    /// The order of a huge page.
    pub large: u8,
}

impl Compared<'_> {
    /// Each number of `of`, as far as every replay has it.
    fn values(&self, quantity: &Quantity, of: &[Member]) -> Option<Vec<f64>> {
        let value = |m: &Member| quantity.of(&m.totals, &m.samples, self.large);
        of.iter().map(value).collect()
    }

    fn begin(&self, quantity: &Quantity) -> Option<[f64; 2]> {
        let of = |all: &[Member]| quantity.begin(&all.first()?.samples, self.large);
        Some([of(self.own)?, of(self.asked)?])
    }

    /// Managed pages.
    fn managed(&self) -> Option<u64> {
        let zones = &self.recorded.first()?.zones;
        Some(zones.iter().map(|z| z.managed_pages).sum())
    }

    /// As many of a number as this memory can have, where both models have as much.
    fn most(&self, quantity: &Quantity) -> Option<f64> {
        let managed = self.managed().filter(|_| !self.other_memory)?;
        match quantity.name {
            "free_pages_end" | "free_pages_mean" => Some(managed as f64),
            "free_huge_blocks_end" | "free_huge_blocks_mean" => {
                Some((managed >> self.large) as f64)
            }
            _ => None,
        }
    }

    fn class(&self) -> Class {
        let total = |name: &str| {
            let all = self.asked.iter().chain(self.own);
            let all = all.flat_map(|m| {
                [name.to_owned(), format!("{name}_recorded")].map(|n| m.totals.get(&n))
            });
            all.flatten().flatten().copied().max().unwrap_or(0)
        };
        let managed = self.managed().unwrap_or(0);
        let reclaimed = total("pgsteal_kswapd") + total("pgsteal_direct");
        let pressure = match (
            reclaimed > managed / FEW,
            total("pgmigrate_success") > managed / FEW,
        ) {
            (true, _) => Pressure::Reclaim,
            (_, true) => Pressure::Compaction,
            _ => Pressure::None,
        };
        let asked = match (self.is_own, self.other_kernel) {
            (true, _) => Asked::Own,
            (_, true) => Asked::Kernel,
            _ => Asked::Setting,
        };
        Class {
            pressure,
            asked,
            start: self.start,
        }
    }

    /// What would change, by these measured errors.
    pub fn what_if(&self, measured: &Measured) -> WhatIf {
        let class = self.class();
        // Predictions that were measured rest on the recorded kernel's own replay, and on no guess.
        let few = class.pressure == Pressure::Reclaim && self.asked.len() < FEW_MEMBERS;
        let is_like_them = !self.rests_on_a_guess && !self.own.is_empty() && !few;
        let error = |quantity: &Quantity| match is_like_them {
            true => measured.error(quantity, class),
            false => measured.widest(quantity, class),
        };
        let errors = QUANTITIES.map(|q| error(&q));
        let change = |(quantity, error): (&Quantity, &ClassError)| -> Option<Change> {
            let asked = self.values(quantity, self.asked)?;
            let own = self.values(quantity, self.own).unwrap_or_default();
            let totals = &self.asked.first()?.totals;
            let v = Values {
                recorded: quantity.recorded(totals, self.recorded, self.large),
                own: &own,
                asked: &asked,
                begin: self.begin(quantity),
                is_own: self.is_own,
                most: self.most(quantity),
            };
            Some(change_of(quantity, &v, *error))
        };
        let loads = measured.loads(class);
        let comparisons = errors.iter().map(|e| e.comparisons).max();
        WhatIf {
            class,
            comparisons: comparisons.unwrap_or(0),
            loads: loads.into_iter().map(String::from).collect(),
            changes: QUANTITIES.iter().zip(&errors).filter_map(change).collect(),
        }
    }
}
