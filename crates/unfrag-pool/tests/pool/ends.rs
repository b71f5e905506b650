//! A pool that ends while one of its owners is being called.

use super::calls::{LONG, ends};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use unfrag_pool::{Order, Owned, Owner, Place, Pool};

const MIB: usize = 1 << 20;

/// An owner that has the last of its pool, and drops it in a call of a daemon.
struct Ends {
    daemon: &'static str,
    pool: Mutex<Option<Arc<Pool>>>,
    block: Mutex<Option<Owned>>,
    done: Mutex<Sender<()>>,
}

impl Ends {
    fn end(&self) {
        if std::thread::current().name() != Some(self.daemon) {
            return;
        }
        let last = self.pool.lock().expect("no panic").take();
        if let Some(pool) = last {
            while Arc::strong_count(&pool) > 1 {
                std::thread::yield_now();
            }
            drop(pool);
            self.done.lock().expect("no panic").send(()).expect("heard");
        }
    }
}

impl Owner for Ends {
    fn migrate(&self, _tag: u32, _place: Place<'_>) {
        self.end();
    }

    fn reclaim(&self, _frames: usize) -> usize {
        self.end();
        0
    }
}

#[test]
fn a_pool_may_end_in_a_call_of_its_daemons() {
    for daemon in ["kswapd", "kcompactd"] {
        let is_kswapd = daemon == "kswapd";
        ends(daemon, move || {
            let pool = Pool::builder().arena(16 * MIB);
            let pool = Arc::new(pool.keep_huge(4).build().expect("a pool"));
            let (done, ended) = channel();
            let owner = Arc::new(Ends {
                daemon,
                pool: Mutex::new(None),
                block: Mutex::new(None),
                done: Mutex::new(done),
            });
            let Ok(id) = pool.register(owner.clone()) else {
                panic!("the first owner");
            };
            *owner.block.lock().expect("no panic") = pool.try_alloc_for(id, 7, Order(0)).ok();
            *owner.pool.lock().expect("no panic") = Some(pool.clone());
            let mut held = vec![];
            if is_kswapd {
                // Low on memory, with huge pages enough before that.
                while pool.try_alloc(Order(0)).map(std::mem::forget).is_ok() {}
            } else {
                // A frame in each block, and some memory free: kcompactd looks twice a second.
                let all = std::iter::from_fn(|| pool.try_alloc_for(id, 8, Order(0)).ok());
                let (kept, gone): (Vec<_>, Vec<_>) =
                    all.partition(|f| f.frame().is_multiple_of(512));
                drop(gone);
                pool.flush();
                held = kept;
            }
            drop(pool);
            ended.recv_timeout(LONG).expect("the pool ended");
            // What its owner has is there still.
            let mut block = owner.block.lock().expect("no panic").take();
            block.as_mut().expect("its block").fill(1);
            drop(held);
        });
    }
}
