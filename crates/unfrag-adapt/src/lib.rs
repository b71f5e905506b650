//! unfrag behind the traits that kernels and hypervisors in Rust already have, each behind a feature.
//!
//! - `x86_64`: frames for page tables and pages, as the crate `x86_64` asks for them.
//! - `global-frames`: a frame allocator for a `static`, to which memory is added at any time.
//! - `ax-allocator`: the traits of that crate, and the operations of `ax-alloc`.
//! - `frame-alloc`: the traits of that crate.
//! - `heap`: a heap on any memory, as `GlobalAlloc`; with `allocator-api2` as that crate's `Allocator`.
//! - `report`: free page reporting for monitors of virtual machines.
//!
//! Invariant: an adaptor keeps nothing of its own but what its trait cannot say: the type of its requests, and whose a frame
//! is that is given back by its number. All else is in unfrag.
//!
//! What is given back wrongly is refused and counted, as far as it can be judged. What cannot be judged is `unsafe`: the
//! call, or, where another crate's trait has a safe method that takes a bare address, the making of the adaptor.
#![no_std]

#[cfg(feature = "ax-allocator")]
pub mod ax;
#[cfg(feature = "frame-alloc")]
pub mod frame_alloc;
#[cfg(feature = "gigabytes")]
mod gigabytes;
#[cfg(feature = "global-frames")]
pub mod global_frames;
#[cfg(feature = "heap")]
pub mod heap;
#[cfg(feature = "heap")]
mod holders;
#[cfg(feature = "report")]
pub mod report;
#[cfg(feature = "x86_64")]
pub mod x86_64;

#[cfg(feature = "gigabytes")]
pub use gigabytes::AddError;

/// Tests the example of the crate's README.
#[cfg(all(doctest, feature = "x86_64"))]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
