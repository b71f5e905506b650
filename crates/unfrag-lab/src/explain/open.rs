//! What a text leaves open and may decide: the size of a page, the nodes of a cpuset. Each is tried in every way that it
//! may be. `spec: K.4`
//!
//! Invariant: a verdict and a number stand only if they are the same in all of them.

use super::amounts::page_kib;
use super::kernel::Kernel;
use super::verdict::Verdict;
use super::zones::{Given, Judged};
use std::collections::BTreeSet;
use unfrag_eras::Gfp;
use unfrag_linux::kernel_log::{Kind, Memory, Report};

/// KiB of a page, on all machines.
const PAGES_KIB: [u64; 4] = [4, 8, 16, 64];
/// Nodes of which each is tried.
const MOST_NODES: usize = 64;

/// What may hold for a request instead.
pub struct Other {
    /// What the judgement is made with.
    pub given: Given,
    /// What is missing in the text.
    pub why: &'static str,
    /// Whether it only casts doubt on a request that would succeed.
    is_of_raced_only: bool,
}

impl Other {
    /// Whether a verdict is not known if this one gives another.
    pub fn decides(&self, verdict: Verdict) -> bool {
        !self.is_of_raced_only || verdict == Verdict::Raced
    }
}

/// What holds for a request, and what may hold instead.
pub struct Open {
    /// What the judgement is made with.
    pub given: Given,
    /// What may hold instead.
    pub others: Vec<Other>,
}

/// What the text of a request leaves open.
pub fn open(r: &Report, memory: &Memory, kernel: &Kernel, gfp: Gfp) -> Open {
    let page = page_kib(memory);
    let given = Given {
        page_kib: page.unwrap_or(PAGES_KIB[0]),
        mems_allowed: r.mems_allowed.clone(),
    };
    let mut others = vec![];
    if page.is_none() {
        others.extend(PAGES_KIB[1..].iter().map(|&page_kib| Other {
            given: Given {
                page_kib,
                ..given.clone()
            },
            why: "the size of a page is not in the text",
            is_of_raced_only: false,
        }));
    }
    if lacks_cpuset(r, kernel, gfp) {
        others.extend(nodes(memory).into_iter().map(|node| Other {
            given: Given {
                mems_allowed: Some(vec![node]),
                ..given.clone()
            },
            why: "the nodes that the task's cpuset allows are not in the text",
            // Since 5.0 an OOM kill names them in its last lines, which most who paste it leave out.
            is_of_raced_only: r.kind == Kind::Oom && kernel.is_surely(5, 0),
        }));
    }
    Open { given, others }
}

/// The nodes of a memory report, if it has several.
fn nodes(memory: &Memory) -> Vec<u32> {
    let nodes: BTreeSet<u32> = memory.zones.iter().map(|z| z.node).collect();
    match nodes.len() {
        2..=MOST_NODES => nodes.into_iter().collect(),
        _ => vec![],
    }
}

/// Whether the kernel prints the cpuset of such a request, and the text does not have it.
fn lacks_cpuset(r: &Report, kernel: &Kernel, gfp: Gfp) -> bool {
    let prints = match r.kind {
        Kind::Oom => kernel.is_surely(3, 0),
        _ => kernel.is_surely(4, 9),
    };
    prints && r.mems_allowed.is_none() && gfp.contains(Gfp::HARDWALL)
}

/// Takes back the numbers of zones that differ from those of another try.
pub fn keep_equal(zones: &mut [Judged], others: &[Judged]) {
    fn keep<T: PartialEq>(value: &mut Option<T>, other: &Option<T>) {
        if value != other {
            *value = None;
        }
    }
    for (z, o) in zones.iter_mut().zip(others) {
        keep(&mut z.answer.usable_kib, &o.answer.usable_kib);
        keep(&mut z.answer.mark_kib, &o.answer.mark_kib);
        keep(&mut z.answer.protection_kib, &o.answer.protection_kib);
    }
}
