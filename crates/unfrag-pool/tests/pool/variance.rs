//! Variance and auto traits of every public type that has a parameter; `checks/types.rs` says why.

use crate::types::{BOTH, check, differences, traits};
use unfrag_pool::{Extent, Frame, Movable, Pinned, PinnedMut};

/// The types that are covered here.
const TYPES: [&str; 5] = ["Extent", "Frame", "Movable", "Pinned", "PinnedMut"];

/// Compiles as long as each type is covariant, as its line says.
#[allow(dead_code)]
fn covariant<'short, 'long: 'short>() {
    // Each borrows its pool, which stores nothing that is lent to it: owners are `'static`.
    let _: fn(Frame<'long>) -> Frame<'short> = |x| x;
    let _: fn(Extent<'long>) -> Extent<'short> = |x| x;
    let _: fn(Movable<'long>) -> Movable<'short> = |x| x;
    let _: fn(Pinned<'long>) -> Pinned<'short> = |x| x;
    let _: fn(PinnedMut<'long>) -> PinnedMut<'short> = |x| x;
}

#[test]
fn what_may_go_to_another_thread() {
    let rows = traits![
        unfrag_pool::Pool,
        Frame<'static>,
        Extent<'static>,
        Movable<'static>,
        Pinned<'static>,
        PinnedMut<'static>,
    ];
    check(&rows, BOTH);
}

#[test]
fn every_public_type_with_a_parameter_is_covered() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let none: Vec<String> = vec![];
    assert_eq!(differences(source, &TYPES), none);
}
