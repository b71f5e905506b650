//! The list of where each value of an exported tree comes from.
//!
//! Invariant: a row stands once, in the order in which it was first added.

use std::fmt::Write as _;

/// Name of the file with the list.
pub const FILE: &str = "PROVENANCE";

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The model computed it.
    Model,
    /// It was copied from the recorded snapshot: the model does not compute it.
    Recorded,
    /// It is not there: the model does not compute it, and the recording lacks it.
    Absent,
}

/// The list: file, field (`*` for all of the file) and source, in the order of the files.
#[derive(Clone, Debug, Default)]
pub struct Provenance {
    rows: Vec<(&'static str, String, Source)>,
}

impl Provenance {
    /// Adds a field, unless it is there already.
    pub fn add(&mut self, file: &'static str, field: &str, source: Source) {
        let row = (file, field.to_owned(), source);
        if !self.rows.contains(&row) {
            self.rows.push(row);
        }
    }

    /// The text: comments, then rows of file, field and source with tabs between them.
    pub fn write(&self, kernel: &str, snapshot: &str) -> String {
        let mut out = format!(
            "# Where each value in this directory comes from.\n\
             # model: computed by the model of kernel {kernel}.\n\
             # recorded: copied from the recorded snapshot {snapshot:?}; the model does not compute it.\n\
             # absent: neither computed nor recorded, so not written.\n\
             # A field that stands under both names differs by zone: where the model has the zone,\n\
             # the value is the model's.\n"
        );
        for (file, field, source) in &self.rows {
            let source = match source {
                Source::Model => "model",
                Source::Recorded => "recorded",
                Source::Absent => "absent",
            };
            let _ = writeln!(out, "{file}\t{field}\t{source}");
        }
        out
    }
}
