//! Test suites that other crates publish with their sources, run on the adaptors of unfrag.
//!
//! The suites are not copied here: `build.rs` finds them where cargo keeps the sources of the crate, and puts our allocator
//! where theirs was. Nothing but the tests is in here.
#![no_std]
