//! unfrag behind the traits that kernels and hypervisors in Rust already have, each behind a feature.
//!
//! - `x86_64`: frames for page tables and pages, as the crate `x86_64` asks for them.
//!
//! Invariant: an adaptor keeps nothing of its own but what its trait cannot say, such as the type of its requests. All else
//! is in unfrag.
#![no_std]

#[cfg(feature = "x86_64")]
pub mod x86_64;

/// Tests the example of the crate's README.
#[cfg(all(doctest, feature = "x86_64"))]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
