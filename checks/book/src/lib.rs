//! The Rust programs of the book's part *Embed it* and of the README, compiled and run as doctests.
//!
//! Nothing but the tests is in here. A page that is missing here is found by
//! `crates/unfrag-cli/tests/cli/book.rs`.
#![no_std]

/// One item for each page, so that a failure names it.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/embed/getting-started.md")]
    struct GettingStarted;
    #[doc = include_str!("../../../docs/embed/nodes-and-limits.md")]
    struct NodesAndLimits;
    #[doc = include_str!("../../../docs/embed/memory-comes-and-goes.md")]
    struct MemoryComesAndGoes;
    #[doc = include_str!("../../../docs/embed/what-cpus-keep.md")]
    struct WhatCpusKeep;
    #[doc = include_str!("../../../docs/embed/ranges-and-gigabytes.md")]
    struct RangesAndGigabytes;
    #[doc = include_str!("../../../docs/embed/page-sizes.md")]
    struct PageSizes;
    #[doc = include_str!("../../../docs/embed/eras.md")]
    struct Eras;
    #[doc = include_str!("../../../docs/embed/requests-and-marks.md")]
    struct RequestsAndMarks;
    #[doc = include_str!("../../../docs/embed/many-frames.md")]
    struct ManyFrames;
    #[doc = include_str!("../../../docs/embed/reclaim-and-moves.md")]
    struct ReclaimAndMoves;
    #[doc = include_str!("../../../docs/embed/claim-a-range.md")]
    struct ClaimARange;
    #[doc = include_str!("../../../docs/embed/pool.md")]
    struct Pool;
    #[doc = include_str!("../../../docs/embed/slab-on-top.md")]
    struct SlabOnTop;
    #[doc = include_str!("../../../docs/embed/heap.md")]
    struct Heap;
    #[doc = include_str!("../../../docs/embed/under-your-kernel.md")]
    struct UnderYourKernel;
    #[doc = include_str!("../../../docs/embed/which-preset.md")]
    struct WhichPreset;
}
