//! The calibration file: the costs of the kernel's work.
//!
//! A run's times are these numbers added up, so its output names the calibration's hash.
//!
//! Invariant: a calibration gives every cost, once.

use crate::config::Costs;
use crate::engine::Nanos;
use crate::input::{ScenarioError, Time};
use crate::mm::MemCosts;
use std::collections::BTreeMap;
use toml::Spanned;

/// The default calibration.
const STANDARD: &str = include_str!("../calibration.toml");

/// All costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// Costs of the engine and the devices.
    pub costs: Costs,
    /// Costs of memory and files.
    pub mem: MemCosts,
    /// Hash of the text that it was read from.
    pub hash: u64,
}

macro_rules! names {
    ($($part:ident { $($field:ident)* })*) => {
        /// Names of all costs, as a file has them.
        fn names() -> Vec<String> {
            let names = [$($(stringify!($field),)*)*];
            names.iter().map(|n| n.replace('_', "-")).collect()
        }

        impl Calibration {
            /// The cost with this name.
            pub fn cost(&mut self, name: &str) -> Option<&mut Nanos> {
                if name.contains('_') {
                    return None;
                }
                match name.replace('-', "_").as_str() {
                    $($(stringify!($field) => Some(&mut self.$part.$field),)*)*
                    _ => None,
                }
            }
        }

        impl Calibration {
            /// Scales the costs of memory and files, in percent.
            pub(crate) fn scale_mem(&mut self, percent: u64) {
                $(names!(@scale $part self percent { $($field)* });)*
            }
        }

        // Does not compile if a cost is missing above.
        #[allow(dead_code)]
        fn all_are_named(c: Calibration) {
            $(names!(@whole $part c { $($field)* });)*
        }
    };
    (@scale costs $c:ident $percent:ident { $($field:ident)* }) => {};
    (@scale mem $c:ident $percent:ident { $($field:ident)* }) => {
        $($c.mem.$field = $c.mem.$field * $percent / 100;)*
    };
    (@whole costs $c:ident { $($field:ident)* }) => {
        let Costs { $($field: _),* } = $c.costs;
    };
    (@whole mem $c:ident { $($field:ident)* }) => {
        let MemCosts { $($field: _),* } = $c.mem;
    };
}

names! {
    costs { context_switch interrupt crypt_page end_io_page }
    mem {
        alloc alloc_slow free fault minor_fault zero_page copy_page scan_page reclaim_page unmap_page
        compact_frame move_page remap_page prep_page flush_tlb split_page
        slab_fast slab_slow syscall path_component page_lookup read_page write_page submit
        fork fork_page exec exit exit_page shrink_object receive
    }
}

/// The message and the help for an unknown cost.
pub(crate) fn unknown_cost(name: &str) -> (String, String) {
    let message = format!("there is no cost `{name}`");
    (message, format!("there are: {}", names().join(", ")))
}

impl Calibration {
    /// The calibration of today, as a file.
    pub const MODERN: &str = include_str!("../calibration-modern.toml");

    /// Reads a calibration: a TOML file that gives each cost a time.
    pub fn parse(file: &str, text: &str) -> Result<Calibration, ScenarioError> {
        let costs: BTreeMap<Spanned<String>, Time> = toml::from_str(text)
            .map_err(|e| ScenarioError::at(file, text, e.span(), e.message()))?;
        let mut c = Calibration {
            costs: Costs::ZERO,
            mem: MemCosts::default(),
            hash: hash(text),
        };
        let mut missing = names();
        for (name, time) in &costs {
            let Some(cost) = c.cost(name.get_ref()) else {
                let (message, help) = unknown_cost(name.get_ref());
                return Err(ScenarioError::at(file, text, Some(name.span()), message).help(help));
            };
            *cost = time.0;
            missing.retain(|m| m != name.get_ref());
        }
        if missing.is_empty() {
            return Ok(c);
        }
        let message = format!("no time for {}", missing.join(", "));
        Err(ScenarioError::at(file, text, None, message).help("a calibration gives every cost"))
    }

    /// A calibration measured on a server of today.
    pub fn modern() -> Calibration {
        match Calibration::parse("calibration-modern.toml", Calibration::MODERN) {
            Ok(c) => c,
            Err(e) => unreachable!("{e}"),
        }
    }

    /// The default calibration.
    pub fn standard() -> Calibration {
        match Calibration::parse("calibration.toml", STANDARD) {
            Ok(c) => c,
            Err(e) => unreachable!("{e}"),
        }
    }
}

impl Default for Calibration {
    fn default() -> Self {
        Calibration::standard()
    }
}

/// FNV-1a.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_calibration_equals_the_defaults() {
        let c = Calibration::standard();
        assert_eq!(c.costs, Costs::default());
        assert_eq!(c.mem, MemCosts::default());
    }

    #[test]
    fn every_cost_is_given_exactly_once() {
        let without = STANDARD.replace("\nfork = ", "\n# fork = ");
        let e = Calibration::parse("c.toml", &without).unwrap_err();
        assert_eq!(e.message, "no time for fork");
        assert_eq!(e.place, None);

        let with = format!("{STANDARD}forks = \"1 us\"\n");
        let e = Calibration::parse("c.toml", &with).unwrap_err();
        assert_eq!(e.message, "there is no cost `forks`");
        let place = e.place.map(|p| (p.line, p.column));
        assert_eq!(place, Some((STANDARD.lines().count() + 1, 1)));
        assert!(
            e.help
                .is_some_and(|h| h.contains("context-switch, interrupt"))
        );
        assert!(STANDARD.contains("\nslab-fast"));
        assert!(Calibration::standard().cost("slab_fast").is_none());

        let twice = format!("{STANDARD}fork = \"1 us\"\n");
        assert!(Calibration::parse("c.toml", &twice).is_err());
        let e = Calibration::parse("c.toml", "fork = 7\n").unwrap_err();
        assert!(e.to_string().contains("a time with its unit"), "{e}");
    }

    #[test]
    fn hash_depends_on_the_text() {
        let other = STANDARD.replace("\"1 us\"", "\"2 us\"");
        let other = Calibration::parse("c.toml", &other).unwrap();
        assert_ne!(other.hash, Calibration::standard().hash);
        assert_eq!(other.costs.interrupt, 2_000);
    }
}
