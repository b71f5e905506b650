//! What each thread keeps of each pool: a [`Local`] for each node.
//!
//! A thread that ends gives back what it keeps. One that has ended already, or came when all slots were taken, takes and
//! gives under the shards' locks.
#![allow(unsafe_code)]

use crate::counts::Counts;
use crate::memory::{Lock, Memory, Node, nearest};
use crate::topology;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use unfrag::Local;
use unfrag::{AllocError, MigrateType, Order, Pfn};

/// What a thread keeps of a pool.
struct Own {
    pool: u64,
    // Before `memory`, which they refer to.
    locals: Vec<Option<Local<'static, 'static, Lock>>>,
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
    let local = |node: &Node| {
        // SAFETY: `Own` keeps the memory, and drops the locals first.
        let node: &'static Node = unsafe { &*std::ptr::from_ref(node) };
        node.shared.local()
    };
    let here = topology::node_of_this_cpu();
    let home = memory.nodes.iter().position(|n| n.id == here);
    let counts = memory.counts_of_thread();
    all.push(Own {
        pool: memory.id,
        locals: memory.nodes.iter().map(local).collect(),
        home: home.unwrap_or(0),
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
        match &mut own.locals[memory.node_of(frame)] {
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
            for local in own.locals.iter_mut().flatten() {
                if local.flush().is_err() {
                    memory.count_refused();
                }
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
        let got = match &mut self.locals[self.home] {
            Some(local) => match local.alloc(order, mt) {
                Ok(p) => Ok(p.0 as u32),
                Err(why) => self.alloc_elsewhere(order, mt, why),
            },
            None => self.memory.take(order, mt, self.home),
        };
        if got.is_ok() {
            Counts::add(&self.counts.pgalloc, order);
        }
        got
    }

    /// Takes a block from another node than the thread's own, whose error is `why`.
    #[cold]
    fn alloc_elsewhere(
        &mut self,
        order: Order,
        mt: MigrateType,
        why: AllocError,
    ) -> Result<u32, AllocError> {
        let n = self.locals.len();
        let mut why = why;
        for i in (1..n).map(|i| (self.home + i) % n) {
            let got = match &mut self.locals[i] {
                Some(local) => local.alloc(order, mt).map(|p| p.0 as u32),
                None => self.memory.nodes[i].take(order, mt),
            };
            match got {
                Ok(frame) => return Ok(frame),
                Err(of_node) => why = nearest(why, of_node),
            }
        }
        Err(why)
    }
}
