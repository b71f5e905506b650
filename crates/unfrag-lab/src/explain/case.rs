//! A report with what was found out about it, from which its sentences and its advice are made.
//!
//! Invariant: nothing here is text for people.

use super::kernel::Kernel;
use super::verdict::Verdict;
use super::zones::Judged;
use unfrag_linux::kernel_log::Report;

/// A report with its verdict.
pub struct Case<'a> {
    /// The report.
    pub report: &'a Report,
    /// Whose rules hold.
    pub kernel: Kernel,
    /// The zones, judged for the request.
    pub zones: Vec<Judged>,
    /// KiB of a page; `None` if the text does not tell.
    pub page_kib: Option<u64>,
    /// Whether the request could wait for memory.
    pub may_wait: Option<bool>,
    /// The verdict; `None` where no allocation failed.
    pub verdict: Option<Verdict>,
    /// Why numbers are missing that decide.
    pub lacking: Option<&'static str>,
}
