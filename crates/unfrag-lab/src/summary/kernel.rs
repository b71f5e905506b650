//! Names of what a kernel writes as numbers.
//!
//! Invariant: a number without a known name is shown as a number.

use crate::era::Era;
use unfrag_linux::gfp_text;

/// The kernel whose names are used.
pub(super) struct Kernel {
    era: Era,
    gfp: gfp_text::Era,
}

/// Results of compaction by number, as the event formats of 6.1 and 6.18 list them. `spec: 5.3`
const RESULTS: [&str; 9] = [
    "not_suitable_zone",
    "skipped",
    "deferred",
    "no_suitable_page",
    "continue",
    "complete",
    "partial_skipped",
    "contended",
    "success",
];

impl Kernel {
    /// The kernel of a release, or the newest one where that tells nothing: then also what was assumed.
    pub fn of(release: &str) -> (Kernel, Option<String>) {
        let gfp = gfp_text::Era::of_release(release).unwrap_or(gfp_text::Era::NEWEST);
        match Era::of(release) {
            Ok(era) => (Kernel { era, gfp }, None),
            Err(_) => {
                let era = Era::newest();
                let why = match release {
                    "" => "the trace does not say its kernel".to_owned(),
                    release => format!("the release `{release}` tells no version"),
                };
                let newest = era.preset();
                let assumed = format!(
                    "{why}: types, flags and results are named as in {newest}; before 4.4 types 1 and 2 \
                     had each other's number"
                );
                (Kernel { era, gfp }, Some(assumed))
            }
        }
    }

    /// A migrate type.
    pub fn migratetype(&self, number: u64) -> String {
        let named = self.era.migratetype(number);
        named.map_or_else(
            || format!("type {}", number as i64),
            |t| t.name().to_owned(),
        )
    }

    /// Flags of a request.
    pub fn flags(&self, mask: u64) -> String {
        self.gfp.print(mask)
    }

    /// A result of compaction that was written as a number.
    pub fn result(&self, number: u64) -> String {
        let name = RESULTS.get(usize::try_from(number).unwrap_or(usize::MAX));
        match name.filter(|_| self.era.is_at_least(6, 1)) {
            Some(name) => (*name).to_owned(),
            None => format!("result {}", number as i64),
        }
    }

    /// What is assumed of `change_ownership`, if it is not known to speak of the block. `spec: 7.6`
    pub fn ownership(&self) -> Option<String> {
        let known = self.era.is_at_least(6, 1);
        (!known).then(|| {
            "change_ownership is shown as recorded: in 2.6.32 it says that free pages were moved, in 6.1 \
             that the pageblock has the type asked for"
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `spec: 2.5`
    #[test]
    fn types_are_named_as_their_kernel_numbers_them() {
        let name = |release: &str| Kernel::of(release).0.migratetype(1);
        assert_eq!(name("2.6.32"), "Reclaimable");
        assert_eq!(name("6.1.0"), "Movable");
        assert_eq!(Kernel::of("6.1").0.migratetype(u64::MAX), "type -1");
    }

    #[test]
    fn results_that_are_numbers_are_named_where_the_kernel_is_known_to_number_them_so() {
        let result = |release: &str| Kernel::of(release).0.result(8);
        assert_eq!(result("6.18.1"), "success");
        assert_eq!(result("4.4.0"), "result 8");
    }

    #[test]
    fn a_release_that_is_not_known_is_an_assumption() {
        assert!(Kernel::of("6.1.0").1.is_none());
        assert!(Kernel::of("").1.unwrap().contains("does not say"));
        assert!(Kernel::of("mainline").1.unwrap().contains("mainline"));
    }
}
