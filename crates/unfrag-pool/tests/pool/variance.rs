//! Variance and auto traits of every public type that has a parameter; `checks/types.rs` says why.

use crate::types::{BOTH, check, differences, traits};
use unfrag_pool::{Block, Extent, Frame, Movable, MovableBlock, Pinned, PinnedMut, Place};

/// The types that are covered here.
const TYPES: [&str; 6] = ["Extent", "Frame", "Movable", "Pinned", "PinnedMut", "Place"];

/// Compiles as long as each type is covariant, as its line says.
#[allow(dead_code)]
fn covariant<'short, 'long: 'short>() {
    // Each borrows its pool, which stores nothing that is lent to it: owners are `'static`.
    let _: fn(Frame<'long>) -> Frame<'short> = |x| x;
    let _: fn(Extent<Frame<'long>>) -> Extent<Frame<'short>> = |x| x;
    let _: fn(Movable<'long>) -> Movable<'short> = |x| x;
    let _: fn(Pinned<'long>) -> Pinned<'short> = |x| x;
    let _: fn(PinnedMut<'long>) -> PinnedMut<'short> = |x| x;
    // It cannot leave the call that it belongs to, since that chooses the lifetime.
    let _: fn(Place<'long>) -> Place<'short> = |x| x;
}

#[test]
fn what_may_go_to_another_thread() {
    let rows = traits![
        unfrag_pool::Pool,
        Frame<'static>,
        Extent<Frame<'static>>,
        Extent<Block>,
        Block,
        MovableBlock,
        unfrag_pool::Owned,
        Movable<'static>,
        Pinned<'static>,
        PinnedMut<'static>,
        Place<'static>,
    ];
    check(&rows, BOTH);
}

#[test]
fn every_public_type_with_a_parameter_is_covered() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let none: Vec<String> = vec![];
    assert_eq!(differences(source, &TYPES), none);
}
