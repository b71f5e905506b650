//! Whether the statements of two reports that were printed into one another came in pairs, one of each: then the first of
//! a pair is of the first report, and the second of the second.
//!
//! Invariant: no statement is remembered but the last.

use super::statement::Kind;

/// The statements of two reports.
#[derive(Default)]
pub struct Pairs {
    first: Option<Kind>,
    is_broken: bool,
}

impl Pairs {
    /// Takes the next statement.
    pub fn take(&mut self, kind: Kind) {
        match self.first.take() {
            None => self.first = Some(kind),
            Some(first) => self.is_broken |= first != kind,
        }
    }

    /// Whether all came in pairs.
    pub fn are_whole(&self) -> bool {
        !self.is_broken && self.first.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_two_of_each() {
        let whole = |kinds: &[Kind]| {
            let mut pairs = Pairs::default();
            kinds.iter().for_each(|k| pairs.take(*k));
            pairs.are_whole()
        };
        assert!(whole(&[
            Kind::Failure,
            Kind::Failure,
            Kind::Zone,
            Kind::Zone
        ]));
        assert!(!whole(&[Kind::Failure, Kind::Failure, Kind::Zone]));
        assert!(!whole(&[
            Kind::Failure,
            Kind::Zone,
            Kind::Failure,
            Kind::Zone
        ]));
    }
}
