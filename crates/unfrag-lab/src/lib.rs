//! Replay, accuracy and reports.
#![forbid(unsafe_code)]
pub mod report;
