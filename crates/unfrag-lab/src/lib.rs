//! Replay, accuracy and reports.
#![forbid(unsafe_code)]
pub mod cause;
pub mod era;
pub mod replay;
pub mod report;
pub mod resolve;
pub mod start;
