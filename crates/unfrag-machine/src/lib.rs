//! A deterministic simulated machine.
#![forbid(unsafe_code)]
