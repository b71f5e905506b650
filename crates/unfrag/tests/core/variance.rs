//! Variance and auto traits of every public type that has a parameter; `checks/types.rs` says why.

use crate::types::{BOTH, check, differences, traits};
use unfrag::inspect::Inspect;
use unfrag::lab::Lab;
use unfrag::maps::Engine;
use unfrag::moves::{Claimed, Evacuator, Place};
use unfrag::need::Step;
use unfrag::restore::{Edit, Restore};
use unfrag::{Builder, Config, Manager, NullHost};
use unfrag::{Local, Memory, Report};

/// The types that are covered here, and at the end those that no other crate can name.
const TYPES: [&str; 17] = [
    "Builder",
    "Claimed",
    "Config",
    "Edit",
    "Engine",
    "Evacuator",
    "Inspect",
    "Lab",
    "Local",
    "Manager",
    "Place",
    "Report",
    "Restore",
    "Memory",
    "Step",
    "PagesMut",
    "View",
];

type Lock = spin::Mutex<()>;

/// Compiles as long as each type is covariant, as its line says. What is behind a lock, the memory of a [`Memory`], is not;
/// an example in its module that must not compile holds that.
#[allow(dead_code, clippy::type_complexity)]
fn covariant<'short, 'long: 'short>() {
    // Lent when they are made, for all their life: the words of their tables.
    let _: fn(Engine<'long>) -> Engine<'short> = |x| x;
    let _: fn(Manager<'long, NullHost>) -> Manager<'short, NullHost> = |x| x;
    let _: fn(Restore<'long, NullHost>) -> Restore<'short, NullHost> = |x| x;
    // Borrow what is above.
    let _: fn(Inspect<'long, 'long, NullHost>) -> Inspect<'short, 'short, NullHost> = |x| x;
    let _: fn(Lab<'long, 'long, NullHost>) -> Lab<'short, 'long, NullHost> = |x| x;
    let _: fn(Edit<'long, 'long, NullHost>) -> Edit<'short, 'long, NullHost> = |x| x;
    let _: fn(Local<'long, 'long, Lock>) -> Local<'short, 'long, Lock> = |x| x;
    let _: fn(Claimed<'long, 'long, Lock>) -> Claimed<'short, 'long, Lock> = |x| x;
    let _: fn(Place<'long, 'long, Lock>) -> Place<'short, 'long, Lock> = |x| x;
    let _: fn(Report<'long, 'long, Lock>) -> Report<'short, 'long, Lock> = |x| x;
    let _: fn(Evacuator<'long, 'long, Lock>) -> Evacuator<'short, 'long, Lock> = |x| x;
    // Values.
    let _: fn(Builder<'long>) -> Builder<'short> = |x| x;
    let _: fn(Config<'long>) -> Config<'short> = |x| x;
    let _: fn(Step<&'long u8>) -> Step<&'short u8> = |x| x;
}

#[test]
fn what_may_go_to_another_thread() {
    let rows = traits![
        Memory<'static, Lock>,
        Engine<'static>,
        Manager<'static, NullHost>,
        Inspect<'static, 'static, NullHost>,
        Lab<'static, 'static, NullHost>,
        Edit<'static, 'static, NullHost>,
        Restore<'static, NullHost>,
        Builder<'static>,
        Config<'static>,
        Step<u8>,
        Claimed<'static, 'static, Lock>,
        Place<'static, 'static, Lock>,
        Report<'static, 'static, Lock>,
        Evacuator<'static, 'static, Lock>,
        Local<'static, 'static, Lock>
    ];
    check(&rows, BOTH);
}

#[test]
fn every_public_type_with_a_parameter_is_covered() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let none: Vec<String> = vec![];
    assert_eq!(differences(source, &TYPES), none);
}
