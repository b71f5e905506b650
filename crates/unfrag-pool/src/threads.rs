//! What each thread keeps of each pool: a [`Local`] for each node.
//!
//! A thread that ends gives back what it keeps. One that has ended already, or came when all slots were taken, takes and
//! gives under the shards' locks.
#![allow(unsafe_code)]

use crate::counts::Counts;
use crate::memory::{Lock, Memory, Node};
use crate::topology;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use unfrag::shared::Local;
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
    let got = with(memory, |own| own.alloc(order, mt));
    got.unwrap_or_else(|| memory.take_one(order, mt, 0).ok_or(AllocError::Short))
}

/// Gives a block back.
#[inline]
pub(crate) fn free(memory: &Arc<Memory>, frame: u32, order: Order, mt: MigrateType) {
    let given = with(memory, |own| match &mut own.locals[memory.node_of(frame)] {
        Some(local) => {
            Counts::add(&own.counts.pgfree, order);
            // SAFETY: whoever calls it has the block, and gives it up: the handle that owned it is being dropped.
            #[allow(unsafe_code)]
            let freed = unsafe { local.free(Pfn(frame.into()), order, mt) };
            if freed.is_err() {
                memory.count_refused();
            }
        }
        None => memory.give_one(frame, order, mt),
    });
    if given.is_none() {
        memory.give_one(frame, order, mt);
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
        match &mut self.locals[self.home] {
            Some(local) => match local.alloc(order, mt) {
                Ok(p) => {
                    Counts::add(&self.counts.pgalloc, order);
                    Ok(p.0 as u32)
                }
                Err(why) => self.alloc_elsewhere(order, mt, why),
            },
            None => self
                .memory
                .take_one(order, mt, self.home)
                .ok_or(AllocError::Short),
        }
    }

    #[cold]
    fn alloc_elsewhere(
        &mut self,
        order: Order,
        mt: MigrateType,
        why: AllocError,
    ) -> Result<u32, AllocError> {
        let n = self.locals.len();
        let others = (1..n).map(|i| (self.home + i) % n);
        for i in others {
            let local = self.locals[i].as_mut();
            if let Some(Ok(p)) = local.map(|l| l.alloc(order, mt)) {
                Counts::add(&self.counts.pgalloc, order);
                return Ok(p.0 as u32);
            }
        }
        Err(why)
    }
}
