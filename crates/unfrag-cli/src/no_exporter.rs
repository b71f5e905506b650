//! `unfrag exporter` of a command that was built without it, as a small host may want.
//!
//! Invariant: whatever flags it gets, it says what was left out and how to have it; nothing is served.

use crate::failure::{Failure, Result};
use std::ffi::OsString;

/// Serve the doctor's figures to Prometheus: left out of this build
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _flags: Vec<OsString>,
}

/// Refuses.
///
/// # Errors
/// Always.
pub fn run(_: &Args) -> Result<()> {
    Err(Failure::usage(
        "this unfrag was built without its exporter: the feature `exporter` of unfrag-cli was off",
        "build it with its default features: cargo install --path crates/unfrag-cli; without the exporter, \
         `unfrag doctor --json` prints the same figures once",
    ))
}
