//! Free page reporting for monitors of virtual machines: free ranges of at least an order, and whoever takes them back.
//!
//! Invariant: nobody gets a frame of a range while it is with the [`Sink`]; a range is not reported again as long as it
//! stays free.

use lock_api::RawMutex;
use unfrag::Memory;
use unfrag::maps::GiveError;
use unfrag::{Order, Pfn};

/// Takes free memory back: a balloon device, or the monitor itself with `madvise` or a hole in a file.
pub trait Sink {
    /// Why it could not.
    type Error;

    /// Releases what lies behind these frames. Whoever uses one next finds it there again, with any content.
    ///
    /// # Errors
    /// If the memory stays as it is: the range is reported again later.
    fn release(&mut self, first: Pfn, frames: u64) -> Result<(), Self::Error>;
}

/// What was reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// Ranges that the sink took back.
    pub ranges: u64,
    /// Their frames.
    pub frames: u64,
}

/// Why reporting ended early. What was reported before stays so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportError<E> {
    /// The sink could not release a range.
    Sink(E),
    /// Somebody freed a range while it was being reported, which was not his.
    Freed(GiveError),
}

impl<E: core::fmt::Display> core::fmt::Display for ReportError<E> {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        match self {
            ReportError::Sink(e) => write!(f, "a free range was not released: {e}"),
            ReportError::Freed(e) => write!(f, "a range was freed while it was reported: {e}"),
        }
    }
}

impl<E: core::error::Error> core::error::Error for ReportError<E> {}

/// Reports free ranges of `2^order` frames and above, from order 9 on, until the sink has all of them, or at least `most`
/// frames.
///
/// # Errors
/// [`ReportError`].
pub fn report<R: RawMutex, S: Sink>(
    shared: &Memory<'_, R>,
    order: Order,
    most: u64,
    sink: &mut S,
) -> Result<Reported, ReportError<S::Error>> {
    let mut reported = Reported::default();
    while reported.frames < most {
        let Some(report) = shared.report(order) else {
            break;
        };
        let mut result = Ok(());
        for (first, frames) in report.stretches() {
            result = sink.release(first, frames);
            if result.is_err() {
                break;
            }
            reported.ranges += 1;
            reported.frames += frames;
        }
        let done = report.acknowledge(result.is_ok());
        result.map_err(ReportError::Sink)?;
        done.map_err(ReportError::Freed)?;
    }
    Ok(reported)
}
