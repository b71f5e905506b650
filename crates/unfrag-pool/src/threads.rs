//! What each thread keeps of each pool: a [`Local`] of its node.
//!
//! A thread that ends gives back what it keeps. One that has ended already, or came when all slots were taken, takes and
//! gives under the shards' locks.
#![allow(unsafe_code)]

use crate::counts::Counts;
use crate::memory::{Lock, Memory, node_id};
use crate::topology;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use unfrag::Local;
use unfrag::{AllocError, MigrateType, Order, Pfn};

/// What a thread keeps of a pool.
struct Own {
    pool: u64,
    // Before `memory`, which it refers to.
    local: Option<Local<'static, 'static, Lock>>,
    home: usize,
    counts: Arc<Counts>,
    memory: Arc<Memory>,
}

thread_local! {
    static OWN: RefCell<Vec<Own>> = const { RefCell::new(Vec::new()) };
}

/// Calls `f` with what the thread keeps of a pool; `None`, if the thread has ended.
#[inline]
fn with<T>(memory: &Arc<Memory>, f: impl FnOnce(&mut Own) -> T) -> Option<T> {
    let found = OWN.try_with(|all| {
        let mut all = all.borrow_mut();
        let at = match all.iter().position(|o| o.pool == memory.id) {
            Some(at) => at,
            None => enter(&mut all, memory),
        };
        f(&mut all[at])
    });
    found.ok()
}

#[cold]
fn enter(all: &mut Vec<Own>, memory: &Arc<Memory>) -> usize {
    all.retain(|o| !o.memory.closed.load(Relaxed));
    // SAFETY: `Own` keeps the memory, and drops the local first.
    let shared: &'static unfrag::Memory<Lock> = unsafe { &*std::ptr::from_ref(&memory.shared) };
    let here = topology::node_of_this_cpu();
    let home = memory.nodes.iter().position(|n| n.id == here).unwrap_or(0);
    let counts = memory.counts_of_thread();
    all.push(Own {
        pool: memory.id,
        local: shared.local_on(node_id(home)),
        home,
        counts,
        memory: memory.clone(),
    });
    all.len() - 1
}

/// Takes a block, from the thread's own node first.
#[inline]
pub(crate) fn alloc(
    memory: &Arc<Memory>,
    order: Order,
    mt: MigrateType,
) -> Result<u32, AllocError> {
    match with(memory, |own| own.alloc(order, mt)) {
        Some(got) => got,
        None => alloc_at_end(memory, order, mt),
    }
}

/// The same for a thread that has ended but for its last destructors.
#[cold]
fn alloc_at_end(memory: &Memory, order: Order, mt: MigrateType) -> Result<u32, AllocError> {
    let got = memory.take(order, mt, 0)?;
    memory.count_at_end_of_thread(order.frames(), 0);
    Ok(got)
}

/// Gives a block back.
///
/// # Safety
/// The caller has the block, which came from [`alloc`], and nobody uses it any more.
#[inline]
pub(crate) unsafe fn free(memory: &Arc<Memory>, frame: u32, order: Order, mt: MigrateType) {
    let given = with(memory, |own| {
        Counts::add(&own.counts.pgfree, order);
        match &mut own.local {
            Some(local) => {
                // SAFETY: as the caller says.
                let freed = unsafe { local.free(Pfn(frame.into()), order, mt) };
                if freed.is_err() {
                    memory.count_refused();
                }
            }
            // SAFETY: as the caller says.
            None => unsafe { memory.give(frame, order, mt) },
        }
    });
    if given.is_none() {
        // SAFETY: as the caller says.
        unsafe { memory.give(frame, order, mt) };
        memory.count_at_end_of_thread(0, order.frames());
    }
}

/// Gives back all that the calling thread keeps of a pool.
pub(crate) fn flush(memory: &Arc<Memory>) {
    let flushed = OWN.try_with(|all| {
        let mut all = all.borrow_mut();
        for own in all.iter_mut().filter(|o| o.pool == memory.id) {
            if let Some(local) = &mut own.local
                && local.flush().is_err()
            {
                memory.count_refused();
            }
        }
    });
    // A thread that has ended keeps nothing.
    let _ = flushed;
}

impl Drop for Own {
    fn drop(&mut self) {
        self.memory.end_of_thread(&self.counts);
    }
}

impl Own {
    #[inline]
    fn alloc(&mut self, order: Order, mt: MigrateType) -> Result<u32, AllocError> {
        let got = match &mut self.local {
            Some(local) => local.alloc(order, mt).map(|p| p.0 as u32),
            None => self.memory.take(order, mt, self.home),
        };
        if got.is_ok() {
            Counts::add(&self.counts.pgalloc, order);
        }
        got
    }
}
