//! Attributes: what perf was asked to record of an event, and so what its samples hold.
//!
//! Invariant: [`Identity::of`] names a rule by which each sample finds its own attribute, or says that
//! there is none.

use linux_perf_event_reader::SampleFormat;

/// What the attributes of an event say of its records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attribute {
    pub tracepoint: bool,
    pub sample_format: SampleFormat,
    pub read_format: u64,
    /// Whether records that are no samples end with their time and CPU.
    pub sample_id_all: bool,
}

/// The fields that samples begin with, in their order; each takes 8 bytes.
pub(super) const SAMPLE_ORDER: [SampleFormat; 8] = [
    SampleFormat::IDENTIFIER,
    SampleFormat::IP,
    SampleFormat::TID,
    SampleFormat::TIME,
    SampleFormat::ADDR,
    SampleFormat::ID,
    SampleFormat::STREAM_ID,
    SampleFormat::CPU,
];

/// Where `field` is in a sample, if it is there.
pub(super) fn offset_in_sample(format: SampleFormat, field: SampleFormat) -> Option<usize> {
    if !format.contains(field) {
        return None;
    }
    let before = SAMPLE_ORDER.iter().take_while(|&&f| f != field);
    Some(before.filter(|&&f| format.contains(f)).count() * 8)
}

/// How a sample tells which attribute describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// All attributes agree: the first one will do.
    First,
    /// By the id at this position, the same in the samples of all attributes.
    IdAt(usize),
    /// Samples do not tell.
    Unknown,
}

impl Identity {
    /// For samples of these attributes, of which there is one at least.
    pub fn of(all: &[Attribute]) -> Identity {
        let first = &all[0];
        let position = |a: &Attribute| {
            let format = a.sample_format;
            let identifier = offset_in_sample(format, SampleFormat::IDENTIFIER);
            identifier.or_else(|| offset_in_sample(format, SampleFormat::ID))
        };
        let alike = |a: &Attribute| {
            a.sample_format == first.sample_format
                && a.read_format == first.read_format
                && a.tracepoint == first.tracepoint
        };
        if all.iter().all(alike) {
            return Identity::First;
        }
        match position(first) {
            Some(at) if all.iter().all(|a| position(a) == Some(at)) => Identity::IdAt(at),
            _ => Identity::Unknown,
        }
    }
}
