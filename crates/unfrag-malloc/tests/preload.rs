//! The shared object under `LD_PRELOAD`: what a program may rely on, and Debian's programs with the same answers as on
//! glibc.

#[allow(dead_code)]
#[path = "../benches/programs/loads.rs"]
mod loads;

use loads::{Amount, EmptyDir, Work, command};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::LazyLock;

/// The shared object, which cargo puts beside the tests.
fn library() -> PathBuf {
    let exe = std::env::current_exe().expect("a path");
    let mut dirs = exe.ancestors().map(|d| d.join("libunfrag_malloc.so"));
    dirs.find(|p| p.exists())
        .expect("libunfrag_malloc.so beside the tests")
}

/// The program of `contract.c`.
static CONTRACT: LazyLock<(EmptyDir, PathBuf)> = LazyLock::new(|| {
    let dir = EmptyDir::new().expect("a directory");
    let program = dir.0.join("contract");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/contract.c");
    let mut cc = Command::new("cc");
    // Without what a compiler knows of malloc.
    cc.args(["-O1", "-fno-builtin", "-pthread", "-w", "-o"])
        .arg(&program)
        .arg(source);
    assert!(cc.status().expect("a C compiler").success());
    (dir, program)
});

fn part(name: &str) -> Output {
    let (dir, program) = &*CONTRACT;
    let program = program.to_str().expect("a name");
    command(program, Some(&library()), &dir.0)
        .arg(name)
        .output()
        .expect("it runs")
}

fn holds(name: &str) {
    let out = part(name);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(
        out.status.success() && out.stdout == b"holds\n",
        "{name}: {} {said}",
        out.status
    );
}

#[test]
fn memory_of_each_size_is_aligned_whole_and_zero_if_asked_for() {
    holds("sizes");
    holds("large");
}

#[test]
fn realloc_keeps_the_content() {
    holds("resizes");
}

#[test]
fn alignments_up_to_64_mib_are_kept() {
    holds("aligned");
}

#[test]
fn what_cannot_be_had_is_refused_with_errno() {
    holds("refusals");
}

#[test]
fn forty_threads_exchange_memory() {
    holds("threads");
}

#[test]
fn threads_that_ended_leave_nothing() {
    holds("many_threads");
}

#[test]
fn a_child_of_a_program_with_threads_has_a_heap_that_works() {
    holds("forks");
}

#[test]
fn malloc_trim_gives_memory_back_to_the_system() {
    holds("trim");
}

#[test]
fn a_misuse_ends_the_program_with_its_name() {
    for (name, message) in [
        ("free_twice", "free of memory that is not in use"),
        ("free_inside", "free of memory that is not in use"),
        ("free_foreign", "memory that is not of the heap"),
    ] {
        let out = part(name);
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(
            !out.status.success() && said.contains(message),
            "{name}: {said}"
        );
    }
}

/// Runs a program on glibc and on the heap.
fn answers_are_the_same(work: Work) {
    if let Some(why) = work.missing() {
        eprintln!("SKIPPED: {why}");
        return;
    }
    let run = |library: Option<PathBuf>| {
        let dir = EmptyDir::new().expect("a directory");
        let outcome = work.run(library.as_deref(), &dir.0, Amount::Little);
        outcome.unwrap_or_else(|e| panic!("{} on {library:?}: {e}", work.name()))
    };
    let (on_glibc, on_ours) = (run(None), run(Some(library())));
    assert_eq!(
        String::from_utf8_lossy(&on_ours.answer),
        String::from_utf8_lossy(&on_glibc.answer)
    );
}

#[test]
fn gcc_compiles_to_the_same_object() {
    answers_are_the_same(Work::Gcc);
}

#[test]
fn redis_serves_sixteen_clients_and_saves_from_a_fork() {
    answers_are_the_same(Work::Redis);
}

#[test]
fn python_passes_its_own_tests() {
    answers_are_the_same(Work::Python);
}

#[test]
fn sqlite_builds_the_same_indexes() {
    answers_are_the_same(Work::Sqlite);
}
