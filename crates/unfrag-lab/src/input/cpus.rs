//! The CPUs of a recording, and the number that each has in a model.
//!
//! Linux numbers CPUs with gaps: siblings are switched off, and CPUs come later. A model numbers its CPUs from 0 on
//! without gaps, so that what it keeps grows with how many CPUs there are, and not with the highest number.
//!
//! Invariant: each CPU that an event or a snapshot's zoneinfo names has one index, and indexes ascend with numbers. So
//! a host without gaps keeps its numbers.

use super::source::EventSource;
use crate::error::{Error, Result};
use std::collections::BTreeSet;
use unfrag_linux::file::{Common, Wanted};
use unfrag_linux::recording::Meta;

/// CPUs that a kernel can be built for, at most.
pub const MAX_CPUS: usize = 8192;

/// The CPUs of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus {
    /// Numbers that Linux gives them, ascending.
    numbers: Vec<u32>,
    /// By number of a CPU that an event names: its index.
    of_event: Vec<u16>,
}

impl Cpus {
    /// The CPUs that the events and the snapshots (`listed`) of a recording name; one, if they name none.
    ///
    /// # Errors
    /// If they are more than a kernel can have, or the events cannot be read.
    pub fn of(listed: &BTreeSet<u32>, events: &dyn EventSource) -> Result<Cpus> {
        let wanted = Wanted {
            common: &[Common::Cpu],
            field: &|_, _| false,
        };
        let mut in_events = vec![false; usize::from(u16::MAX) + 1];
        events.each(0..=u64::MAX, wanted, &mut |batch| {
            for &cpu in &batch.cpu {
                in_events[usize::from(cpu)] = true;
            }
            Ok(())
        })?;
        let named = (0..).zip(&in_events).filter(|(_, is_named)| **is_named);
        let mut numbers: BTreeSet<u32> = named.map(|(cpu, _)| cpu).collect();
        numbers.extend(listed);
        check(numbers.len(), "events and snapshots")?;
        Ok(Cpus::from_numbers(numbers))
    }

    /// How many CPUs the host has: those that are named, or as many as its recorder counted. The latter may count gaps.
    ///
    /// # Errors
    /// If they are more than a kernel can have.
    pub(crate) fn with_silent(&self, meta: &Meta) -> Result<usize> {
        check(meta.cpus as usize, "manifest")?;
        Ok(self.len().max(meta.cpus as usize))
    }

    /// CPUs with these numbers, [`MAX_CPUS`] at most.
    fn from_numbers(mut numbers: BTreeSet<u32>) -> Cpus {
        if numbers.is_empty() {
            numbers.insert(0);
        }
        let mut of_event = vec![];
        for (index, &number) in (0..).zip(&numbers) {
            if let Ok(number) = u16::try_from(number) {
                of_event.resize(usize::from(number), 0);
                of_event.push(index);
            }
        }
        Cpus {
            numbers: numbers.into_iter().collect(),
            of_event,
        }
    }

    /// How many there are.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The numbers that Linux gives them, by index.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// The index of the CPU with this number, if there is one.
    pub fn index(&self, number: u32) -> Option<usize> {
        self.numbers.binary_search(&number).ok()
    }

    /// The index of the CPU that an event names.
    #[inline]
    pub(crate) fn of_event(&self, number: u16) -> u16 {
        // All that events name are there, unless their file is written to while it is read.
        self.of_event.get(usize::from(number)).copied().unwrap_or(0)
    }
}

/// Whether there can be so many CPUs.
fn check(cpus: usize, place: &str) -> Result<()> {
    if cpus > MAX_CPUS {
        return Err(Error::contradiction(format!(
            "by its {place} the recording is of {cpus} CPUs, and Linux has {MAX_CPUS} at most"
        ))
        .help("it is damaged: record the host again"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use unfrag_linux::recording::Events;

    fn cpus(in_events: &[u16], listed: &[u32]) -> Result<Cpus> {
        let events = Events {
            cpu: in_events.to_vec(),
            ..Events::default()
        };
        Cpus::of(&listed.iter().copied().collect(), &events)
    }

    #[test]
    fn a_host_without_gaps_keeps_its_numbers() {
        let all = cpus(&[1, 0, 1], &[0, 1, 2, 3]).unwrap();
        assert_eq!(all.numbers(), [0, 1, 2, 3]);
        assert!((0..4).all(|cpu| all.of_event(cpu) == cpu));
    }

    #[test]
    fn gaps_take_no_index() {
        let all = cpus(&[512, 65_535, 512], &[0, 2, 4_000_000_000]).unwrap();
        assert_eq!(all.numbers(), [0, 2, 512, 65_535, 4_000_000_000]);
        assert_eq!((all.of_event(512), all.of_event(65_535)), (2, 3));
        assert_eq!(all.index(4_000_000_000), Some(4));
        assert_eq!(all.index(1), None);
        assert_eq!(cpus(&[], &[]).unwrap().numbers(), [0]);
    }

    #[test]
    fn more_cpus_than_any_kernel_has_are_refused() {
        let many: Vec<u16> = (0..9000).collect();
        let e = cpus(&many, &[]).unwrap_err().to_string();
        assert!(e.contains("9000 CPUs"), "{e}");
        let meta = Meta {
            cpus: u32::MAX,
            ..Meta::default()
        };
        let e = Cpus::default().with_silent(&meta).unwrap_err().to_string();
        assert!(e.contains("manifest"), "{e}");
    }
}
