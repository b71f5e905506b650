//! Which arrows stand between the files of made-up crates, and which circles they form.

mod support;

use std::path::Path;

use support::Crate;

#[test]
fn direct_circle() {
    let c = Crate::new(&[
        ("src/lib.rs", "mod a; mod b;"),
        ("src/a.rs", "use crate::b::B; pub struct A;"),
        ("src/b.rs", "use crate::a::A;\npub struct B;"),
    ]);
    assert_eq!(c.circles(), [["a.rs", "b.rs"]]);
    assert_eq!(c.arrows(), ["a.rs -> b.rs: B", "b.rs -> a.rs: A"]);
}

#[test]
fn arrow_has_the_first_line_of_each_name() {
    let c = Crate::new(&[
        ("src/lib.rs", "mod a; mod b;"),
        (
            "src/a.rs",
            "use crate::b::{\n    B,\n    C,\n};\nfn f(_: B, _: crate::b::D) {}",
        ),
        ("src/b.rs", "pub struct B; pub struct C; pub struct D;"),
    ]);
    let graph = c.graph();
    let names = &graph.imports[Path::new("c/src/a.rs")][Path::new("c/src/b.rs")];
    let names: Vec<(&str, usize)> = names
        .iter()
        .map(|(name, &line)| (name.as_str(), line))
        .collect();
    assert_eq!(names, [("B", 2), ("C", 3), ("D", 5)]);
}

#[test]
fn circle_of_three() {
    let c = Crate::new(&[
        ("src/lib.rs", "mod a; mod b; mod c; mod d;"),
        ("src/a.rs", "use crate::b::B; pub struct A;"),
        ("src/b.rs", "use crate::c::C; pub struct B;"),
        ("src/c.rs", "use crate::a::A; pub struct C;"),
        ("src/d.rs", "use crate::a::A;"),
    ]);
    assert_eq!(c.circles(), [["a.rs", "b.rs", "c.rs"]]);
}

#[test]
fn re_export_is_followed_to_the_definition() {
    let c = Crate::new(&[
        ("src/lib.rs", "mod room; mod a; pub use room::Thing;"),
        (
            "src/room/mod.rs",
            "mod thing; mod other; pub use thing::*; pub(crate) use other::Other as Renamed;",
        ),
        ("src/room/thing.rs", "use crate::a::A; pub struct Thing;"),
        ("src/room/other.rs", "pub struct Other;"),
        (
            "src/a.rs",
            "use crate::Thing; use crate::room::Renamed; pub struct A;",
        ),
    ]);
    assert_eq!(c.circles(), [["a.rs", "room/thing.rs"]]);
    let arrows = [
        "a.rs -> room/other.rs: Other",
        "a.rs -> room/thing.rs: Thing",
        "room/thing.rs -> a.rs: A",
    ];
    assert_eq!(c.arrows(), arrows);
}

#[test]
fn parent_that_re_exports_a_child_is_a_circle_with_it() {
    let c = Crate::new(&[
        ("src/lib.rs", "mod room;"),
        (
            "src/room/mod.rs",
            "mod child; pub use child::Child; pub struct Own;",
        ),
        (
            "src/room/child.rs",
            "use super::Own; pub struct Child(Own);",
        ),
    ]);
    assert_eq!(c.circles(), [["room/child.rs", "room/mod.rs"]]);
}

#[test]
fn public_glob_imports_all_that_it_shows() {
    let c = Crate::new(&[
        ("src/lib.rs", "mod room;"),
        (
            "src/room/mod.rs",
            "mod child; pub use child::*; pub struct Own;",
        ),
        (
            "src/room/child.rs",
            "pub struct Child; pub struct Second; struct Hidden;",
        ),
    ]);
    assert_eq!(c.arrows(), ["room/mod.rs -> room/child.rs: Child, Second"]);
}

#[test]
fn facade_imports_nothing() {
    let c = Crate::new(&[
        (
            "src/lib.rs",
            "//! Head.\n#![allow(missing_docs)]\npub mod a;\npub use a::A;",
        ),
        ("src/a.rs", "pub struct A;"),
    ]);
    assert_eq!(c.arrows(), [""; 0]);
}

#[test]
fn module_declaration_is_no_import() {
    let c = Crate::new(&[
        ("src/lib.rs", "mod a; pub struct Top; fn f() {}"),
        ("src/a.rs", "use crate::Top; pub struct A(Top);"),
    ]);
    assert_eq!(c.arrows(), ["a.rs -> lib.rs: Top"]);
}

#[test]
fn imported_module_counts_by_what_is_used_through_it() {
    let c = Crate::new(&[
        ("src/lib.rs", "mod fs; mod a; mod b;"),
        ("src/fs/mod.rs", "mod io; pub use io::read; pub fn own() {}"),
        ("src/fs/io.rs", "pub fn read() {}"),
        ("src/a.rs", "use crate::fs; fn f() { fs::read() }"),
        (
            "src/b.rs",
            "use crate::fs::{self as files}; fn f() { let g = files::own; g() }",
        ),
    ]);
    let arrows = [
        "a.rs -> fs/io.rs: read",
        "b.rs -> fs/mod.rs: own",
        "fs/mod.rs -> fs/io.rs: read",
    ];
    assert_eq!(c.arrows(), arrows);
}

#[test]
fn super_and_self() {
    let c = Crate::new(&[
        ("src/lib.rs", "mod room; pub struct Top;"),
        ("src/room/mod.rs", "mod a; mod b; pub struct Room;"),
        (
            "src/room/a.rs",
            "use super::Room; use super::super::Top; use super::b::B; struct A;",
        ),
        (
            "src/room/b.rs",
            "pub struct B; mod inner { use super::B; use super::super::Room; fn f(_: self::super::B) {} }",
        ),
    ]);
    let arrows = [
        "room/a.rs -> lib.rs: Top",
        "room/a.rs -> room/b.rs: B",
        "room/a.rs -> room/mod.rs: Room",
        "room/b.rs -> room/mod.rs: Room",
    ];
    assert_eq!(c.arrows(), arrows);
}

#[test]
fn glob_counts_by_the_names_that_are_used() {
    let c = Crate::new(&[
        ("src/lib.rs", "mod room;"),
        (
            "src/room/mod.rs",
            "mod a; mod b; use b::B; pub struct Room; pub const LIMIT: u8 = 1;",
        ),
        (
            "src/room/a.rs",
            "use super::*; fn f(limit: B) -> u8 { match 1 { LIMIT => 1, _ => 2 } }",
        ),
        ("src/room/b.rs", "pub struct B;"),
    ]);
    let arrows = [
        "room/a.rs -> room/b.rs: B",
        "room/a.rs -> room/mod.rs: LIMIT",
        "room/mod.rs -> room/b.rs: B",
    ];
    assert_eq!(c.arrows(), arrows);
}

#[test]
fn variable_is_no_item_of_a_glob() {
    let c = Crate::new(&[
        ("src/lib.rs", "mod a; mod b;"),
        (
            "src/a.rs",
            "use crate::b::*; fn f(size: u8) -> u8 { assert!(size > 1); let T = 1; g::<u8>(size) } fn g<T>(t: T) -> T { t }",
        ),
        ("src/b.rs", "pub fn size() {} pub struct U;"),
    ]);
    assert_eq!(c.arrows(), [""; 0]);
}

#[test]
fn inline_paths() {
    let code = "
        fn f(x: crate::b::Param) -> Vec<super::b::Inner> {
            let crate::b::Pattern { .. } = crate::b::make();
            <u8 as crate::b::Trait>::go();
            crate::b::Kind::First.go()
        }
        impl crate::b::Marker for u8 {}";
    let c = Crate::new(&[
        ("src/lib.rs", "mod a; mod b;"),
        ("src/a.rs", code),
        (
            "src/b.rs",
            "pub struct Param; pub struct Inner; pub struct Pattern {} pub fn make() {} pub trait Trait {} \
             pub enum Kind { First } pub trait Marker {}",
        ),
    ]);
    assert_eq!(
        c.arrows(),
        ["a.rs -> b.rs: Inner, Kind, Marker, Param, Pattern, Trait, make"]
    );
}

#[test]
fn paths_in_macros_and_attributes() {
    let code = r#"
        use crate::b;
        #[derive(Clone)]
        #[serde(with = "crate::b::format")]
        struct S { #[arg(value_parser = b::parse)] x: u8 }
        macro_rules! m { () => { $crate::b::Hidden } }
        fn f() { assert_eq!(x.free, b::first(crate::b::SECOND), "{}", b::Third { free: 1 }); }"#;
    let c = Crate::new(&[
        ("src/lib.rs", "mod a; mod b;"),
        ("src/a.rs", code),
        (
            "src/b.rs",
            "pub mod format {} pub fn parse() {} pub struct Hidden; pub fn first() {} pub const SECOND: u8 = 1; \
             pub struct Third {} pub fn free() {}",
        ),
    ]);
    assert_eq!(
        c.arrows(),
        ["a.rs -> b.rs: Hidden, SECOND, Third, first, parse"]
    );
}

#[test]
fn item_that_a_macro_makes_is_defined_where_the_macro_is_called() {
    let c = Crate::new(&[
        ("src/lib.rs", "mod a; mod b;"),
        (
            "src/a.rs",
            "use crate::b::{Bits, Made}; fn f() { crate::b::SLOT; }",
        ),
        (
            "src/b.rs",
            "bitflags::bitflags! { pub struct Bits: u8 {} } quantity!(Made, u64); \
             thread_local! { pub static SLOT: u8 = 1 }",
        ),
    ]);
    assert_eq!(c.arrows(), ["a.rs -> b.rs: Bits, Made, SLOT"]);
}

#[test]
fn nested_use_with_renames() {
    let c = Crate::new(&[
        ("src/lib.rs", "mod a; mod room;"),
        ("src/room/mod.rs", "pub mod b; pub mod c;"),
        ("src/room/b.rs", "pub struct B; pub trait T {}"),
        ("src/room/c.rs", "pub struct C; pub fn f() {}"),
        (
            "src/a.rs",
            "use crate::room::{self, b::{B as Renamed, T as _}, c::{self as other, C}};
             fn g(_: Renamed) { other::f(); room::c::f() }",
        ),
    ]);
    assert_eq!(
        c.arrows(),
        ["a.rs -> room/b.rs: B, T", "a.rs -> room/c.rs: C, f"]
    );
}

#[test]
fn module_and_function_of_one_name() {
    let c = Crate::new(&[
        (
            "src/lib.rs",
            "mod tree; mod open; mod a; pub use open::open; pub use tree::{Tree, tree};",
        ),
        ("src/tree.rs", "pub struct Tree; pub fn tree() {}"),
        (
            "src/open.rs",
            "use crate::tree; pub fn open(_: tree::Tree) { tree() }",
        ),
        (
            "src/a.rs",
            "use crate::{open, tree::Tree}; fn f(t: Tree) { open(t) }",
        ),
    ]);
    let arrows = [
        "a.rs -> open.rs: open",
        "a.rs -> tree.rs: Tree",
        "open.rs -> tree.rs: Tree, tree",
    ];
    assert_eq!(c.arrows(), arrows);
}

#[test]
fn imports_of_each_other_come_to_an_end() {
    let c = Crate::new(&[
        ("src/lib.rs", "mod a; mod b; mod d;"),
        ("src/a.rs", "pub use crate::b::*; pub struct A;"),
        ("src/b.rs", "pub use crate::a::*; pub struct B;"),
        ("src/d.rs", "use crate::a::B; use crate::b::A; struct D;"),
    ]);
    let arrows = [
        "a.rs -> b.rs: B",
        "b.rs -> a.rs: A",
        "d.rs -> a.rs: A",
        "d.rs -> b.rs: B",
    ];
    assert_eq!(c.arrows(), arrows);
}

#[test]
fn use_in_a_block() {
    let c = Crate::new(&[
        ("src/lib.rs", "mod a; mod b;"),
        (
            "src/a.rs",
            "fn f() { use crate::b::Kind::*; use crate::b as other; if true { let B = other::g(); First; } } fn g() {}",
        ),
        (
            "src/b.rs",
            "pub enum Kind { First } pub fn g() {} pub struct B;",
        ),
    ]);
    assert_eq!(c.arrows(), ["a.rs -> b.rs: g"]);
}

#[test]
fn glob_of_an_enum_of_another_file() {
    let c = Crate::new(&[
        ("src/lib.rs", "mod a; mod b;"),
        (
            "src/a.rs",
            "use crate::b::Kind::{self, Second}; fn f(k: Kind) { Second; }",
        ),
        ("src/b.rs", "pub enum Kind { First, Second }"),
    ]);
    assert_eq!(c.arrows(), ["a.rs -> b.rs: Kind"]);
}

#[test]
fn other_crates_are_elsewhere() {
    let c = Crate::new(&[
        ("src/lib.rs", "mod fmt; mod a;"),
        ("src/fmt.rs", "pub struct Debug;"),
        (
            "src/a.rs",
            "use std::fmt::Debug; use ::fmt::Other; fn f() { std::fs::read(\"x\"); Vec::<u8>::new(); }",
        ),
    ]);
    assert_eq!(c.arrows(), [""; 0]);
}
