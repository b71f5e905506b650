//! Slab traces: which cache an allocation is of, which free ends it, and whole replays.

use unfrag_lab::slab::trace::{Action, SlabTrace};
use unfrag_lab::slab::{Options, replay};
use unfrag_linux::recording::Recording;
use unfrag_slab::Design;

/// A trace as text, read as the kernel's own.
fn read(lines: &[impl AsRef<str>]) -> Recording {
    let mut text = String::new();
    for (i, line) in lines.iter().map(AsRef::as_ref).enumerate() {
        text += &format!("  find-7  [00{}] .....  1.{i:06}: {line}\n", i % 2);
    }
    let options = unfrag_linux::Options {
        kernel_release: Some("6.1.0"),
        ..Default::default()
    };
    unfrag_linux::read(text.as_bytes(), &options).unwrap()
}

fn alloc(site: &str, ptr: u64, size: u32) -> String {
    format!(
        "kmem_cache_alloc: call_site={site} ptr={ptr:#x} bytes_req={size} bytes_alloc={size} \
         gfp_flags=GFP_KERNEL node=-1 accounted=false"
    )
}

fn free(ptr: u64, name: &str) -> String {
    format!("kmem_cache_free: call_site=0xffffffff81000000 ptr={ptr:#x} name={name}")
}

fn trace(lines: &[String]) -> SlabTrace {
    SlabTrace::of(&read(lines)).unwrap()
}

#[test]
fn an_allocation_s_cache_is_inferred() {
    let t = trace(&[
        alloc("0xffffffff81000010", 0x1000, 192),
        alloc("0xffffffff81000010", 0x2000, 192),
        alloc("0xffffffff81000020", 0x3000, 104),
        free(0x1000, "dentry"),
    ]);
    let names: Vec<&str> = t.caches.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(
        names,
        ["dentry", "?-104"],
        "the second is from the same place as the first"
    );
    assert_eq!(t.ops.len(), 4);
    assert_eq!(t.ops[3].action, Action::Free(0));
    assert_eq!(t.cpus, 2);
}

#[test]
fn unmatched_frees_are_counted() {
    let t = trace(&[
        free(0x9000, "filp"),
        alloc("0xffffffff81000010", 0x1000, 192),
        alloc("0xffffffff81000010", 0x1000, 192),
        "kfree: call_site=0xffffffff81000000 ptr=(nil)".to_owned(),
    ]);
    assert_eq!((t.unknown_frees, t.silent_frees, t.null_frees), (1, 1, 1));
    let frees = t.ops.iter().filter(|o| matches!(o.action, Action::Free(_)));
    assert_eq!(frees.count(), 1, "freed when it was handed out again");
}

#[test]
fn a_trace_without_slab_events_is_refused() {
    let rec = read(&["mm_page_free: page=0x1 pfn=0x1 order=0"]);
    let error = SlabTrace::of(&rec).unwrap_err();
    assert!(error.to_string().contains("slab events"), "{error}");
}

#[test]
fn pages_held_follow_the_formulas() {
    // 100 objects of 4096 bytes, none freed: order 3 on 8 CPUs is 13 slabs with SLUB.
    let lines: Vec<String> = (1..=100)
        .map(|i| alloc("0xffffffff81000010", i << 16, 4096))
        .collect();
    let options = Options {
        cpus: Some(8),
        ..Options::default()
    };
    let report = replay(&read(&lines), "made", &options).unwrap();
    let pages = |d: Design| {
        let of = report.allocators.iter().find(|a| a.allocator == d.name());
        of.unwrap().end.pages
    };
    // Two CPUs have a slab each: 50 objects are seven slabs of eight.
    assert_eq!(pages(Design::Slub), 2 * 7 * 8);
    assert_eq!(pages(Design::Slqb), 100);
    assert!((100..=100 + 2 * 24).contains(&pages(Design::Slab)));
}

#[test]
fn the_recorded_find_is_replayed() {
    let Some(dir) = std::env::var_os("UNFRAG_DATA") else {
        eprintln!("SKIPPED: set UNFRAG_DATA to the directory of recordings to replay the find");
        return;
    };
    let path = std::path::Path::new(&dir).join("qemu-6.1-768M-gcc/slab.dat.zst");
    let rec = unfrag_linux::open(&path, &unfrag_linux::Options::default()).unwrap();
    let report = replay(&rec, "find", &Options::default()).unwrap();
    assert_eq!(report.allocations, 1180 + 128);
    for a in &report.allocators {
        assert_eq!(a.failures, 0, "{}", a.allocator);
        assert_eq!(
            a.end.requested_bytes,
            report.allocators[0].end.requested_bytes
        );
    }
}
