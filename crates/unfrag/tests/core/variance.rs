//! Variance and auto traits of every public type that has a parameter; `checks/types.rs` says why.

use crate::types::{BOTH, check, differences, traits};
use unfrag::arena::Arena;
use unfrag::maps::{Engine, Gigabyte};
use unfrag::moves::{Claimed, Evacuator, Place};
use unfrag::owners::{Owners, Reclaim, Roster};
use unfrag::{Local, Memory, Report};

/// The types that are covered here.
const TYPES: [&str; 12] = [
    "Arena",
    "Claimed",
    "Engine",
    "Evacuator",
    "Gigabyte",
    "Local",
    "Memory",
    "Owners",
    "Place",
    "Reclaim",
    "Report",
    "Roster",
];

type Lock = spin::Mutex<()>;
type Words<'m> = &'m [std::sync::atomic::AtomicU64];
type Asks<'s> = Reclaim<'s, 'static, Lock, Words<'static>>;

/// Compiles as long as each type is covariant, as its line says. What leads to tables, an [`Engine`], or is behind a lock, a [`Memory`], is not;
/// an example in its module that must not compile holds that.
#[allow(dead_code)]
fn covariant<'short, 'long: 'short>() {
    // Lent when they are made, for all their life: the words of their tables.
    let _: fn(Arena<'long>) -> Arena<'short> = |x| x;
    let _: fn(Owners<Words<'long>>) -> Owners<Words<'short>> = |x| x;
    let _: fn(Roster<Words<'long>>) -> Roster<Words<'short>> = |x| x;
    // Borrow what is above.
    let _: fn(Asks<'long>) -> Asks<'short> = |x| x;
    let _: fn(Local<'long, 'long, Lock>) -> Local<'short, 'long, Lock> = |x| x;
    let _: fn(Claimed<'long, 'long, Lock>) -> Claimed<'short, 'long, Lock> = |x| x;
    let _: fn(Place<'long, 'long, Lock>) -> Place<'short, 'long, Lock> = |x| x;
    let _: fn(Report<'long, 'long, Lock>) -> Report<'short, 'long, Lock> = |x| x;
    let _: fn(Evacuator<'long, 'long, Lock>) -> Evacuator<'short, 'long, Lock> = |x| x;
}

#[test]
fn what_may_go_to_another_thread() {
    let rows = traits![
        Arena<'static>,
        Memory<'static, Lock>,
        Engine<'static>,
        Gigabyte<'static>,
        Claimed<'static, 'static, Lock>,
        Place<'static, 'static, Lock>,
        Report<'static, 'static, Lock>,
        Evacuator<'static, 'static, Lock>,
        Owners<Words<'static>>,
        Roster<Words<'static>>,
        Asks<'static>,
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
