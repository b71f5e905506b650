//! Which files and items of a made-up crate are read, and what is said when one cannot be.

mod support;

use std::path::PathBuf;

use structure::graph::Graph;
use support::Crate;

#[test]
fn tests_do_not_count() {
    let c = Crate::new(&[
        ("src/lib.rs", "mod a; mod b;"),
        (
            "src/a.rs",
            "pub struct A; #[cfg(test)] use crate::b::B; #[cfg(test)] mod tests { use crate::b::B; } #[test] fn t() { crate::b::f() }",
        ),
        (
            "src/b.rs",
            "use crate::a::A; pub struct B; pub fn f() {} #[cfg(all(test, unix))] mod more; \
             impl B { #[cfg(test)] fn t() { crate::a::g() } }",
        ),
        ("tests/it.rs", "use nothing::at::all;"),
    ]);
    assert_eq!(c.arrows(), ["b.rs -> a.rs: A"]);
}

#[test]
fn condition_that_can_hold_without_tests_counts() {
    let c = Crate::new(&[
        ("src/lib.rs", "mod a; mod b;"),
        (
            "src/a.rs",
            "#[cfg(not(test))] use crate::b::One; #[cfg(any(test, loom))] use crate::b::Two; struct A;",
        ),
        ("src/b.rs", "pub struct One; pub struct Two;"),
    ]);
    assert_eq!(c.arrows(), ["a.rs -> b.rs: One, Two"]);
}

#[test]
fn definitions_under_different_conditions_all_count() {
    let c = Crate::new(&[
        ("src/lib.rs", "mod a; mod b; mod c; mod sync;"),
        (
            "src/sync.rs",
            "#[cfg(x)] pub use crate::b::Cell; #[cfg(not(x))] pub use crate::c::Cell;",
        ),
        ("src/a.rs", "use crate::sync::Cell;"),
        ("src/b.rs", "pub struct Cell;"),
        ("src/c.rs", "pub struct Cell;"),
    ]);
    // A file that imports only is a facade, and can be in no circle.
    assert_eq!(c.arrows(), [""; 0]);
    let c = Crate::new(&[
        (
            "src/lib.rs",
            "#[cfg(x)] mod b; #[cfg(not(x))] mod b { pub struct Cell; } mod a;",
        ),
        ("src/a.rs", "use crate::b::Cell; struct A;"),
        ("src/b.rs", "pub struct Cell;"),
    ]);
    assert_eq!(c.arrows(), ["a.rs -> b.rs: Cell", "a.rs -> lib.rs: Cell"]);
}

#[test]
fn files_of_modules() {
    let c = Crate::new(&[
        (
            "src/lib.rs",
            "mod a; mod inline { pub mod deep; } #[path = \"odd/place.rs\"] mod odd; mod r#type;",
        ),
        (
            "src/a.rs",
            "mod below; use below::B; use crate::inline::deep::D; use crate::odd::O; use crate::r#type::T; struct A;",
        ),
        ("src/a/below.rs", "pub struct B;"),
        ("src/inline/deep.rs", "pub struct D;"),
        (
            "src/odd/place.rs",
            "mod next; pub use next::N; pub struct O;",
        ),
        ("src/odd/next.rs", "pub struct N;"),
        ("src/type.rs", "pub struct T;"),
    ]);
    let arrows = [
        "a.rs -> a/below.rs: B",
        "a.rs -> inline/deep.rs: D",
        "a.rs -> odd/place.rs: O",
        "a.rs -> type.rs: T",
        "odd/place.rs -> odd/next.rs: N",
    ];
    assert_eq!(c.arrows(), arrows);
}

#[test]
fn programs_and_benches_have_roots_of_their_own() {
    let c = Crate::new(&[
        ("src/lib.rs", "pub struct L;"),
        ("src/main.rs", "mod words; fn main() { words::say() }"),
        ("src/words.rs", "pub fn say() { crate::main() }"),
        ("src/bin/other.rs", "use c::L; fn main() {}"),
        ("benches/b.rs", "mod support; fn main() { support::go() }"),
        ("benches/support/mod.rs", "pub fn go() {}"),
    ]);
    assert_eq!(c.circles(), [["main.rs", "words.rs"]]);
    assert!(
        c.arrows()
            .contains(&"benches/b.rs -> benches/support/mod.rs: go".to_owned())
    );
}

#[test]
fn path_that_leads_nowhere_is_told() {
    let c = Crate::new(&[
        ("src/lib.rs", "mod a;"),
        ("src/a.rs", "use crate::b::B; struct A;"),
    ]);
    let graph = Graph::read(c.folder.path(), &[PathBuf::from("c")]).unwrap();
    assert_eq!(
        graph.lost,
        [(PathBuf::from("c/src/a.rs"), 1, "crate::b::B".to_owned())]
    );
}

#[test]
fn missing_file_and_bad_syntax_are_errors() {
    let read = |files: &[(&str, &str)]| {
        let c = Crate::new(files);
        Graph::read(c.folder.path(), &[PathBuf::from("c")]).unwrap_err()
    };
    assert_eq!(
        read(&[("src/lib.rs", "mod gone;")]),
        "c/src/lib.rs: no file for mod gone"
    );
    let error = read(&[("src/lib.rs", "mod a;"), ("src/a.rs", "\nfn {")]);
    assert!(error.starts_with("c/src/a.rs: line 2: "), "{error}");
}
