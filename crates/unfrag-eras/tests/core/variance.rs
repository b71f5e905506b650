//! Variance and auto traits of every public type that has a parameter; `checks/types.rs` says why.

use crate::types::{BOTH, check, differences, traits};
use unfrag_eras::inspect::Inspect;
use unfrag_eras::lab::Lab;
use unfrag_eras::need::Step;
use unfrag_eras::restore::{Edit, Restore};
use unfrag_eras::{Builder, Config, Manager, NullHost};

/// The types that are covered here, and at the end those that no other crate can name.
const TYPES: [&str; 10] = [
    "Builder", "Config", "Edit", "Inspect", "Lab", "Manager", "Restore", "Step", "PagesMut", "View",
];

/// Compiles as long as each type is covariant, as its line says.
#[allow(dead_code, clippy::type_complexity)]
fn covariant<'short, 'long: 'short>() {
    // Lent when they are made, for all their life: the words of their tables.
    let _: fn(Manager<'long, NullHost>) -> Manager<'short, NullHost> = |x| x;
    let _: fn(Restore<'long, NullHost>) -> Restore<'short, NullHost> = |x| x;
    // Borrow what is above.
    let _: fn(Inspect<'long, 'long, NullHost>) -> Inspect<'short, 'short, NullHost> = |x| x;
    let _: fn(Lab<'long, 'long, NullHost>) -> Lab<'short, 'long, NullHost> = |x| x;
    let _: fn(Edit<'long, 'long, NullHost>) -> Edit<'short, 'long, NullHost> = |x| x;
    // Values.
    let _: fn(Builder<'long>) -> Builder<'short> = |x| x;
    let _: fn(Config<'long>) -> Config<'short> = |x| x;
    let _: fn(Step<&'long u8>) -> Step<&'short u8> = |x| x;
}

#[test]
fn what_may_go_to_another_thread() {
    let rows = traits![
        Manager<'static, NullHost>,
        Inspect<'static, 'static, NullHost>,
        Lab<'static, 'static, NullHost>,
        Edit<'static, 'static, NullHost>,
        Restore<'static, NullHost>,
        Builder<'static>,
        Config<'static>,
        Step<u8>,
    ];
    check(&rows, BOTH);
}

#[test]
fn every_public_type_with_a_parameter_is_covered() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let none: Vec<String> = vec![];
    assert_eq!(differences(source, &TYPES), none);
}
