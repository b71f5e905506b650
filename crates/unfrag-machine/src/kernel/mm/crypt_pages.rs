//! Pages that encrypting layers encrypt into: from free memory, and when there is none, from a pool.
//! `spec: 4.4`
//!
//! Invariant: a token stands for its pages from taking to giving; a page goes back to the pool while that is
//! not full.

use crate::channels::CRYPT_POOL;
use crate::engine::Channel;
use crate::kernel::mm::Who;
use crate::kernel::{Cx, Sim};
use crate::mm::crypt_pool::KEPT;
use crate::mm::frames::Use;
use unfrag_eras::{Gfp, Pfn};

impl Sim {
    /// A page from free memory, or from the pool; it never waits.
    fn crypt_page(&mut self) -> Option<Pfn> {
        let gfp = (Gfp::KERNEL - Gfp::FS - Gfp::IO - Gfp::DIRECT_RECLAIM)
            | Gfp::HIGHMEM
            | Gfp::NOWARN
            | Gfp::NORETRY
            | Gfp::NOMEMALLOC;
        match self.alloc_in_thread(gfp) {
            Some(pfn) => {
                self.take_kernel(pfn, 0, Use::Crypt);
                Some(pfn)
            }
            None => self.kernel().crypt.kept.pop(),
        }
    }

    /// Fills the pool, when an encrypting layer is set up.
    pub(crate) fn fill_crypt_pool(&mut self) {
        while self.kernel_ref().crypt.kept.len() < KEPT {
            let Some(pfn) = self.alloc_in_thread(Gfp::KERNEL | Gfp::HIGHMEM) else {
                return;
            };
            self.take_kernel(pfn, 0, Use::Crypt);
            self.kernel().crypt.kept.push(pfn);
        }
    }

    fn alloc_in_thread(&mut self, gfp: Gfp) -> Option<Pfn> {
        self.alloc_now(Who::KERNEL, 0, gfp)
    }

    /// Gives pages back.
    pub(crate) fn give_crypt_pages(&mut self, token: u32) {
        let pool = &mut self.kernel().crypt;
        let pages = std::mem::take(&mut pool.taken[token as usize]);
        pool.vacant.push(token);
        for pfn in pages {
            let pool = &mut self.kernel().crypt;
            if pool.kept.len() < KEPT {
                pool.kept.push(pfn);
            } else {
                self.free_kernel(pfn);
            }
        }
        self.wake(Channel::new(CRYPT_POOL, 0));
    }
}

impl Cx<'_> {
    /// Takes `pages` pages; waits until pages come back if there are too few.
    pub(crate) fn take_crypt_pages(&mut self, pages: u32) -> u32 {
        let token = self.with(|sim| sim.kernel().crypt.token());
        let mut got = 0;
        while got < pages {
            let page = self.with(|sim| {
                let pfn = sim.crypt_page()?;
                sim.kernel().crypt.taken[token as usize].push(pfn);
                Some(pfn)
            });
            if page.is_some() {
                got += 1;
            } else {
                let tick = self.with(|sim| sim.tick());
                self.wait(Channel::new(CRYPT_POOL, 0), Some(tick));
            }
        }
        token
    }
}
