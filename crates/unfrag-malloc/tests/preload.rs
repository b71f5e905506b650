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
fn a_free_leaves_errno_as_it_is() {
    holds("frees_with_errno");
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
fn a_library_that_allocates_in_functions_of_a_fork_from_before_the_first_allocation_does_not_hang()
{
    let dir = EmptyDir::new().expect("a directory");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/early_fork.c");
    let cc = |name: &str, options: &[&str]| {
        let to = dir.0.join(name);
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-fno-builtin", "-pthread", "-o"]).arg(&to);
        cc.arg(source).args(options).current_dir(&dir.0);
        assert!(cc.status().expect("a C compiler").success());
        to
    };
    cc("libearly.so", &["-DLIBRARY", "-shared", "-fPIC"]);
    let rpath = format!("-Wl,--no-as-needed,-rpath,{}", dir.0.display());
    let program = cc("early", &[&rpath, "-L.", "-learly"]);
    let program = program.to_str().expect("a name");
    let out = command(program, Some(&library()), &dir.0)
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(
        out.status.success() && out.stdout == b"holds\n",
        "{} {said}",
        out.status
    );
}

#[test]
fn a_child_of_a_program_that_trims_can_trim_and_have_threads() {
    holds("forks_and_trims");
}

#[test]
fn malloc_trim_gives_memory_back_to_the_system() {
    holds("trim");
}

#[test]
fn an_odd_alignment_is_raised_as_glibc_does() {
    holds("odd_alignments");
}

#[test]
fn mallinfo_follows_what_the_program_does() {
    holds("info");
}

#[test]
fn memory_of_zeros_is_zero_whoever_had_it_before() {
    holds("zeros");
}

/// Runs a part that ends the program for a misuse.
fn ends(part: &str, message: &str) {
    let contract = CONTRACT.1.to_str().expect("a name");
    let mut words = part.split(' ');
    let out = command(contract, Some(&library()), &CONTRACT.0.0)
        .args(&mut words)
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(
        !out.status.success() && said.contains(message),
        "{part}: {} {said}",
        out.status
    );
}

#[test]
fn a_second_free_is_found_wherever_the_memory_is() {
    for size in [1_u64, 16, 17, 100, 1000, 4096, 30_000, 40_000, 1_000_000] {
        // In the magazine, in the depot, in the slab or the frames.
        for others in [0, 10, 40, 100, 4999] {
            // Pages that went back to the system have no mark any more; they are no memory of the heap then.
            if size * others > 100 << 20 {
                continue;
            }
            ends(
                &format!("free_again {size} {others}"),
                "free of memory that is not in use",
            );
        }
    }
    ends("free_again_here", "free of memory that is not in use");
}

#[test]
fn a_free_of_memory_that_nobody_has_is_found_though_the_system_had_it_back_or_nobody_ever_had_it() {
    let message = "free of memory that is not in use";
    for size in [16, 64, 200, 1024, 1792, 4096, 8192] {
        ends(&format!("free_again_reopened {size} 1"), message);
    }
    for size in [16, 64, 200] {
        ends(&format!("free_again_reopened {size} 0"), message);
    }
    for size in [16, 32, 200, 1024, 1792, 8192, 65_536, 1 << 20] {
        ends(&format!("free_neighbour {size}"), message);
    }
}

#[test]
fn a_free_behind_the_last_object_of_a_slab_is_found() {
    for size in [48, 112, 320, 448, 1792, 5120, 14_336, 28_672] {
        ends(
            &format!("free_tail {size}"),
            "free of memory that is not in use",
        );
    }
}

#[test]
fn a_byte_that_is_written_behind_an_object_over_a_free_one_in_its_slab_is_found() {
    for size in [16, 64, 200, 1024, 8192] {
        ends(
            &format!("write_behind {size}"),
            "write to memory that is not in use",
        );
    }
}

#[test]
fn a_free_inside_an_object_is_found() {
    for (size, inside) in [
        (17, 16),
        (32, 8),
        (33, 16),
        (100, 1),
        (100, 48),
        (1000, 512),
        (30_000, 4096),
        (30_000, 16),
        (100_000, 64),
        (100_000, 8192),
        (3_000_000, 4096),
        (3_000_000, 16),
    ] {
        ends(
            &format!("free_in_object {size} {inside}"),
            "free of memory that is not in use",
        );
    }
}

#[test]
fn a_misuse_ends_the_program_with_its_name() {
    for (name, message) in [
        ("free_twice", "free of memory that is not in use"),
        ("free_inside", "free of memory that is not in use"),
        ("free_foreign", "memory that is not of the heap"),
        ("free_odd", "memory that is not of the heap"),
        ("free_mapping_twice", "memory that is not of the heap"),
        ("free_in_mapping", "memory that is not of the heap"),
        ("free_moved_mapping", "memory that is not of the heap"),
        ("free_behind_gap", "memory that is not of the heap"),
        ("free_nowhere", "memory that is not of the heap"),
        ("resize_nowhere", "memory that is not of the heap"),
        ("free_resized", "free of memory that is not in use"),
        ("resize_freed", "size of memory that is not in use"),
        ("free_unused", "free of memory that is not in use"),
        ("size_unused", "size of memory that is not in use"),
        ("size_foreign", "memory that is not of the heap"),
    ] {
        let out = part(name);
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(
            !out.status.success() && said.contains(message),
            "{name}: {said}"
        );
    }
}

/// Runs a command of a shell under a limit of addresses, in KiB, on glibc or on the heap.
fn limited(limit: u32, on_heap: bool, what: &str) -> Output {
    let library = library();
    let preload = if on_heap { "LD_PRELOAD=$0" } else { "" };
    let mut shell = Command::new("sh");
    // The shell itself runs on glibc.
    shell.args(["-c", &format!("ulimit -v {limit} && {preload} exec {what}")]);
    shell.arg(library).output().expect("a shell")
}

/// Limits of `ulimit -v`, in KiB.
const LIMITS: [u32; 5] = [100_000, 500_000, 1_000_000, 2_000_000, 4_000_000];

#[test]
fn what_glibc_can_start_under_a_limit_of_addresses_starts() {
    let mut compared = 0;
    for what in [
        "true",
        "python3 -c 'print(sum(range(1000)))'",
        "sqlite3 :memory: 'select sqlite_version()'",
    ] {
        for limit in LIMITS {
            let (glibc, ours) = (limited(limit, false, what), limited(limit, true, what));
            if !glibc.status.success() {
                eprintln!("SKIPPED: {what} does not run on glibc under {limit} KiB");
                continue;
            }
            let said = String::from_utf8_lossy(&ours.stderr);
            assert!(ours.status.success(), "{what} under {limit} KiB: {said}");
            assert_eq!(ours.stdout, glibc.stdout, "{what} under {limit} KiB");
            compared += 1;
        }
    }
    assert!(compared >= LIMITS.len(), "the first runs everywhere");
}

#[test]
fn a_program_under_a_limit_has_nearly_what_it_has_on_glibc() {
    let contract = CONTRACT.1.to_str().expect("a name");
    for limit in LIMITS {
        // Small objects, runs, and runs that leave much of a power of two.
        for size in [1000, 1 << 20, 20 << 20] {
            // Small objects are written to, each of them.
            if size == 1000 && limit > 1_000_000 {
                continue;
            }
            let mib = |on_heap| {
                let out = limited(limit, on_heap, &format!("{contract} room {size}"));
                let said = String::from_utf8_lossy(&out.stderr).into_owned();
                let number = String::from_utf8_lossy(&out.stdout).trim().parse::<u32>();
                number.unwrap_or_else(|_| panic!("{size} bytes under {limit} KiB: {said}"))
            };
            let (glibc, ours) = (mib(false), mib(true));
            println!("{limit} KiB, {size} bytes: {ours} MiB, on glibc {glibc}");
            // Of little, what libraries and tables take is more.
            let least = if limit < 500_000 { 8 } else { 9 };
            assert!(
                ours * 10 >= glibc * least,
                "{size} bytes under {limit} KiB: {ours} MiB, on glibc {glibc}"
            );
        }
    }
}

/// Runs a part of the contract under a limit of addresses, in KiB.
fn holds_within(limit: u32, part: &str) {
    let contract = CONTRACT.1.to_str().expect("a name");
    let out = limited(limit, true, &format!("{contract} {part}"));
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(
        out.status.success() && out.stdout == b"holds\n",
        "{part} under {limit} KiB: {} {said}",
        out.status
    );
}

#[test]
fn a_program_that_reached_its_limit_and_freed_all_has_room_for_threads_and_mappings() {
    for limit in [300_000, 1_000_000] {
        for size in [1000, 100_000, 1 << 20, 3 << 20, 4 << 20, 20 << 20] {
            // Small objects are written to, each of them.
            if size == 1000 && limit > 300_000 {
                continue;
            }
            for trims in [0, 1] {
                holds_within(limit, &format!("gives_addresses_back {size} {trims}"));
            }
        }
    }
}

#[test]
fn what_others_map_where_the_heap_gave_addresses_back_is_left_alone() {
    holds_within(600_000, "others_in_gaps");
}

#[test]
fn the_calls_keep_to_their_contract_under_a_limit() {
    for part in [
        "sizes",
        "large",
        "resizes",
        "aligned",
        "refusals",
        "threads",
        "many_threads",
        "forks_and_trims",
        "trim",
    ] {
        holds_within(4_000_000, part);
    }
}

#[test]
fn a_program_may_limit_itself() {
    holds("limits_itself");
    holds("limits_itself_late");
}

#[test]
fn what_others_map_where_the_heap_grows_is_left_alone() {
    holds("others_mappings");
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
