//! Replay, accuracy and reports.
#![forbid(unsafe_code)]
pub mod cause;
pub mod era;
pub mod export;
pub mod inspect;
pub mod replay;
pub mod report;
pub mod resolve;
pub mod start;
pub mod accuracy;
pub mod clock;
pub mod observe;
pub mod run;
pub mod sample;
pub mod settings;
