//! Replay, accuracy and reports.
#![forbid(unsafe_code)]
pub mod accuracy;
pub mod cause;
pub mod clock;
pub mod era;
pub mod export;
pub mod inspect;
pub mod observe;
pub mod replay;
pub mod report;
pub mod resolve;
pub mod run;
pub mod sample;
pub mod settings;
pub mod slab;
pub mod start;
