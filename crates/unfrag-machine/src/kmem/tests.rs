use super::records::CacheId;
use super::*;
use unfrag_slab::{Design, Rules};

use crate::engine::Rng;
use unfrag_slab::Due;

/// Random work on four CPUs in every design: objects and pages are conserved.
fn churn(design: Design, rules: Rules, seed: u64) {
    println!("{design}, seed {seed}");
    let mut rng = Rng::named(seed, "kmem");
    let mut kmem = Kmem::new(rules.design(design), 4);
    let sizes = [24, 104, 192, 760, 2112, 4096];
    let caches = sizes.map(|s| kmem.create("cache", s, s == 104));
    let mut live: Vec<Obj> = vec![];
    let mut pages = std::collections::BTreeMap::new();
    let mut next = 1;
    for step in 0..40_000u32 {
        let cpu = rng.below(4) as usize;
        let grows = (step / 8_000) % 2 == 0;
        if rng.below(100) < if grows { 65 } else { 35 } {
            let cache = caches[rng.below(6) as usize];
            let obj = kmem.take(cpu, cache).unwrap_or_else(|| {
                let order = kmem.plan(cache).order;
                pages.insert(next, order);
                kmem.add_slab(cpu, cache, next, order);
                next += 1 << order;
                kmem.take(cpu, cache).expect("a new slab has an object")
            });
            live.push(obj);
        } else if !live.is_empty() {
            let obj = live.swap_remove(rng.below(live.len() as u64) as usize);
            kmem.give(cpu, obj);
        }
        if step % 500 == 0 {
            kmem.reap(cpu, Due::ALL);
            kmem.validate().unwrap();
        }
        while let Some((pfn, order)) = kmem.freed() {
            assert_eq!(pages.remove(&pfn), Some(order), "freed once");
        }
    }
    let held: u64 = pages.values().map(|o| 1u64 << o).sum();
    assert_eq!(held, kmem.pages());
    for obj in live.drain(..) {
        kmem.give(0, obj);
    }
    kmem.validate().unwrap();
    let left: u64 = kmem.views().map(|v| v.in_use).sum();
    assert_eq!(left, 0);
}

#[test]
fn objects_and_pages_are_conserved() {
    for seed in 0..4 {
        for design in Design::ALL {
            churn(design, Rules::S2, seed);
            churn(design, Rules::MODERN, seed);
        }
    }
}

fn one(design: Design, rules: Rules, size: u32) -> (Kmem, CacheId) {
    let mut kmem = Kmem::new(rules.design(design), 2);
    let cache = kmem.create("cache", size, false);
    (kmem, cache)
}

fn fill(kmem: &mut Kmem, cache: CacheId, n: usize) -> Vec<Obj> {
    let mut pfn = 1;
    let mut take = || {
        kmem.take(0, cache).unwrap_or_else(|| {
            let order = kmem.plan(cache).order;
            kmem.add_slab(0, cache, pfn, order);
            pfn += 1 << order;
            kmem.take(0, cache).expect("a new slab has an object")
        })
    };
    (0..n).map(|_| take()).collect()
}

#[test]
// `spec: 6.2`
fn slub_of_2_6_28_frees_empty_slabs_at_once() {
    let (mut kmem, cache) = one(Design::Slub, Rules::S2, 256);
    let objs = fill(&mut kmem, cache, 64);
    assert_eq!(kmem.pages(), 4);
    for o in objs {
        kmem.give(0, o);
    }
    // The CPU's own slab stays.
    assert_eq!(kmem.pages(), 1);
}

#[test]
// `spec: 6.2`
fn modern_slub_keeps_min_partial_empty_slabs() {
    let (mut kmem, cache) = one(Design::Slub, Rules::MODERN, 256);
    let order = kmem.plan(cache).order;
    let per_slab = (4096 << order) / 256;
    let objs = fill(&mut kmem, cache, per_slab * 40);
    for o in objs {
        kmem.give(1, o);
    }
    // The CPU's own slab, five of the node, and those that CPU 1 keeps.
    let on_cpu = unfrag_slab::formulas::slub_cpu_partial_slabs(256, per_slab as u32);
    let kept = kmem.pages() >> order;
    assert!(kept >= 6 && kept <= 6 + u64::from(on_cpu), "{kept} slabs");
}

#[test]
// `spec: 6.1`
fn slab_keeps_free_slabs_up_to_its_limit_and_reaps_them() {
    let (mut kmem, cache) = one(Design::Slab, Rules::S2, 256);
    let objs = fill(&mut kmem, cache, 64 * 30);
    for o in objs {
        kmem.give(0, o);
    }
    let kept = kmem.pages();
    assert!(kept > 1, "nothing was kept");
    for _ in 0..60 {
        kmem.reap(0, Due::ALL);
    }
    assert_eq!(kmem.pages(), 0, "of {kept}");
}

#[test]
// `spec: 6.3`
fn slqb_claims_remote_frees_before_growing() {
    let (mut kmem, cache) = one(Design::Slqb, Rules::S2, 1024);
    let objs = fill(&mut kmem, cache, 256);
    let pages = kmem.pages();
    for o in objs {
        kmem.give(1, o);
    }
    // freebatch is 256 objects: all came home in one batch.
    for _ in 0..256 {
        assert!(kmem.take(0, cache).is_some());
    }
    assert_eq!(kmem.pages(), pages);
}

#[test]
// `spec: 6.2`
fn slub_merges_similar_caches() {
    let mut kmem = Kmem::new(Rules::S2, 2);
    let a = kmem.create("kmalloc-4096", 4096, false);
    assert_eq!(kmem.create("names_cache", 4096, false), a);
    assert_ne!(kmem.create("reclaimable", 4096, true), a);
    let mut slqb = Kmem::new(Rules::S2.design(Design::Slqb), 2);
    let a = slqb.create("kmalloc-4096", 4096, false);
    assert_ne!(slqb.create("names_cache", 4096, false), a);
}
