//! `--kernel` where no other kernel can be asked for.
//!
//! Invariant: in every command `--kernel` is a kernel that is asked for, and `--release` the one that was recorded.

use crate::failure::{Failure, Result};

/// The flag, which says what to give instead.
#[derive(Clone, Debug, clap::Args)]
pub struct NoKernel {
    #[arg(long, value_name = "NAME", hide = true)]
    kernel: Option<String>,
}

impl NoKernel {
    /// Refuses it.
    ///
    /// # Errors
    /// If it was given.
    pub fn check(&self) -> Result<()> {
        match &self.kernel {
            None => Ok(()),
            Some(name) => Err(Failure::usage(
                "--kernel asks for another kernel, which is a question for `unfrag replay`",
                format!("to say which kernel this is of, give --release {name}"),
            )),
        }
    }
}
