//! [`Pool`]: the face of all this.

use crate::calls;
use crate::daemons;
use crate::error::PoolError;
use crate::frame::{Extent, Frame};
use crate::inner::Inner;
use crate::movable::Movable;
use crate::owner::{Owned, Owner, OwnerId};
use crate::settings::ALL;
use crate::slot::Slot;
use crate::space::{Backing, FRAME_BYTES};
use crate::threads;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use unfrag::MigrateType::{Movable as MovableType, Unmovable};
use unfrag::{AllocError, Order};

/// Memory that any number of threads allocate from: in frames of 4 KiB, and in blocks of `2^order` of them, up to a
/// gigabyte.
///
/// ```
/// use unfrag_pool::{Order, Pool};
///
/// let pool = Pool::builder().arena(64 << 20).build()?;
/// let mut page = pool.alloc(Order(0))?;
/// page[..5].copy_from_slice(b"hello");
/// let huge = pool.alloc(Order::HUGE)?;
/// assert_eq!((page.len(), huge.len()), (4096, 2 << 20));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Pool {
    pub(crate) inner: Arc<Inner>,
    daemons: Vec<JoinHandle<()>>,
    backing: Backing,
    /// Frames of each node that are arenas.
    used: parking_lot::Mutex<Vec<u32>>,
}

impl Pool {
    pub(crate) fn start(inner: Arc<Inner>, backing: Backing) -> Result<Pool, PoolError> {
        let nodes = inner.base.memory.nodes.len();
        let daemons = daemons::start(&inner).map_err(|source| PoolError::System {
            what: "kswapd and kcompactd cannot be started",
            source,
        })?;
        Ok(Pool {
            inner,
            daemons,
            backing,
            used: parking_lot::Mutex::new(vec![0; nodes]),
        })
    }

    /// Takes a block of `2^order` frames that stays where it is. If there is none, it has owners give frames back, compacts,
    /// and waits a while for others.
    ///
    /// # Errors
    /// [`AllocError`], if there is none even so: see [`Builder::patience`](crate::Builder::patience).
    pub fn alloc(&self, order: Order) -> Result<Frame<'_>, AllocError> {
        let frame = self.inner.alloc(order, Unmovable)?;
        Ok(Frame::new(&self.inner.base, frame, order, Unmovable))
    }

    /// The same, if there is one now.
    ///
    /// # Errors
    /// [`AllocError`], if there is none.
    #[inline]
    pub fn try_alloc(&self, order: Order) -> Result<Frame<'_>, AllocError> {
        let frame = self.inner.try_alloc(order, Unmovable)?;
        Ok(Frame::new(&self.inner.base, frame, order, Unmovable))
    }

    /// Takes a block that may be moved while nobody holds it.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc).
    pub fn alloc_movable(&self, order: Order) -> Result<Movable<'_>, AllocError> {
        let frame = self.inner.alloc(order, MovableType)?;
        Movable::new(&self.inner, frame, order)
    }

    /// The same, if there is one now.
    ///
    /// # Errors
    /// As [`try_alloc`](Self::try_alloc).
    pub fn try_alloc_movable(&self, order: Order) -> Result<Movable<'_>, AllocError> {
        let frame = self.inner.try_alloc(order, MovableType)?;
        Movable::new(&self.inner, frame, order)
    }

    /// Takes at least `bytes` bytes, in huge pages first: what no huge page is there for comes in smaller blocks, and
    /// [`Extent::fallback_bytes`] says how much that is.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc), if there is not so much memory; nothing has been taken then. [`AllocError::Short`] at
    /// once, if all arenas together have less.
    pub fn alloc_bytes(&self, bytes: usize) -> Result<Extent<Frame<'_>>, AllocError> {
        let mut left = bytes.div_ceil(FRAME_BYTES);
        if left as u64 > self.inner.base.memory.present() {
            return Err(AllocError::Short);
        }
        let mut pieces = Vec::new();
        let mut largest = Order::HUGE;
        while left > 0 {
            let fits = Order(left.ilog2().min(largest.0.into()) as u8);
            let got = if fits == Order(0) {
                self.alloc(fits)
            } else {
                self.try_alloc(fits)
            };
            match got {
                Ok(piece) => {
                    left -= fits.frames() as usize;
                    if fits == Order::HUGE {
                        self.inner.events.thp_fault_alloc.add(1);
                    }
                    pieces.push(piece);
                }
                Err(why) if fits == Order(0) => return Err(why),
                Err(_) => {
                    if fits == Order::HUGE {
                        let missed = left / Order::HUGE.frames() as usize;
                        self.inner.events.thp_fault_fallback.add(missed as u64);
                    }
                    largest = Order(fits.0 - 1);
                }
            }
        }
        Ok(Extent { pieces })
    }

    /// Makes somebody known who has frames and can move what is in them, or let go of it. The pool keeps it until it ends, or
    /// until it is [removed](Self::remove_owner).
    ///
    /// # Errors
    /// It gives the owner back, if there are 65,535 already, those among them that were removed and have blocks still.
    pub fn register(&self, owner: Arc<dyn Owner>) -> Result<OwnerId, Arc<dyn Owner>> {
        self.inner.owners.add(&self.inner.base, owner)
    }

    /// Removes an owner, and gives it back. It is not called any more, and takes no more blocks. Those that it has are still its
    /// own: nobody moves them, and they are given back when they are dropped. Its number is another owner's only after the
    /// last of them.
    ///
    /// It waits for calls of the owner that run on other threads, so the caller must hold no lock that these take. But in a call of an
    /// [`Owner`] it waits for none.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use unfrag_pool::{AllocError, Order, Owner, Place, Pool, PoolError};
    ///
    /// struct Cache;
    /// impl Owner for Cache {
    ///     fn migrate(&self, _tag: u32, _place: Place<'_>) {}
    /// }
    ///
    /// let pool = Pool::builder().arena(4 << 20).build()?;
    /// let id = pool.register(Arc::new(Cache)).map_err(|_| "too many owners")?;
    /// let block = pool.alloc_for(id, 0, Order(0))?;
    /// pool.remove_owner(id)?;
    /// assert_eq!(pool.alloc_for(id, 1, Order(0)).unwrap_err(), AllocError::NoSuchOwner);
    /// assert!(matches!(pool.remove_owner(id), Err(PoolError::NoSuchOwner)));
    /// drop(block);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`PoolError::NoSuchOwner`], if it has been removed already, or is registered with another pool.
    pub fn remove_owner(&self, id: OwnerId) -> Result<Arc<dyn Owner>, PoolError> {
        let removed = self.inner.owners.remove(id);
        let (owner, slot) = removed.ok_or(PoolError::NoSuchOwner)?;
        if !calls::is_inside() {
            slot.wait_for_calls();
        }
        Ok(owner)
    }

    /// Takes a block for an owner, who calls it `tag`. It may be moved at once.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc); [`AllocError::NoSuchOwner`], if the owner has been removed, or is registered with another
    /// pool.
    pub fn alloc_for(&self, owner: OwnerId, tag: u32, order: Order) -> Result<Owned, AllocError> {
        let slot = self.slot(owner)?;
        let frame = self.inner.alloc(order, MovableType)?;
        Ok(Owned::new(slot, frame, order, tag))
    }

    /// The same, if there is one now.
    ///
    /// # Errors
    /// As [`try_alloc`](Self::try_alloc); [`AllocError::NoSuchOwner`], if the owner has been removed, or is registered with another
    /// pool.
    pub fn try_alloc_for(
        &self,
        owner: OwnerId,
        tag: u32,
        order: Order,
    ) -> Result<Owned, AllocError> {
        let slot = self.slot(owner)?;
        let frame = self.inner.try_alloc(order, MovableType)?;
        Ok(Owned::new(slot, frame, order, tag))
    }

    /// What the blocks of an owner share.
    fn slot(&self, owner: OwnerId) -> Result<Arc<Slot>, AllocError> {
        let slot = self.inner.owners.slot(owner);
        slot.ok_or(AllocError::NoSuchOwner)
    }

    /// Makes up to `blocks` whole free blocks of 2 MiB by moving what is in the way, whatever it costs. Returns how many it
    /// made: none, if an [`Owner`] calls it while it is being called.
    pub fn compact(&self, blocks: u32) -> u32 {
        self.inner.base.memory.drain();
        self.inner.compact(blocks, ALL)
    }

    /// Gives the memory of up to `blocks` whole free blocks of 2 MiB back to the system. They can be allocated still, and
    /// read as zeros then. Returns how many it were.
    ///
    /// # Errors
    /// [`PoolError::System`].
    pub fn release(&self, blocks: u32) -> Result<u32, PoolError> {
        let memory = &self.inner.base.memory;
        memory.drain();
        let whole = std::iter::from_fn(|| memory.take(Order::HUGE, MovableType, 0).ok());
        let taken: Vec<u32> = whole.take(blocks as usize).collect();
        let mut result = Ok(taken.len() as u32);
        for frame in taken {
            if let Err(e) = self.inner.base.space.release(frame, Order::HUGE.frames()) {
                result = Err(e);
            }
            // SAFETY: it is one of those that were taken above.
            #[allow(unsafe_code)]
            unsafe {
                memory.give(frame, Order::HUGE, MovableType);
            }
        }
        result
    }

    /// Gives back what the calling thread keeps for itself, so that the maps have it. Who finds no memory takes it from there
    /// by himself.
    pub fn flush(&self) {
        threads::flush(&self.inner.base.memory);
    }

    /// Adds an arena of so many bytes, on the node of the system with a number, or where there is room.
    ///
    /// # Errors
    /// [`PoolError::TooLarge`], if it would be more than the limit that the builder was told; [`PoolError::Empty`], if it is
    /// less than 2 MiB; [`PoolError::NoSuchNode`]; [`PoolError::System`].
    pub fn add_arena(&self, bytes: usize, node: Option<usize>) -> Result<(), PoolError> {
        let frames = (bytes / FRAME_BYTES) as u64 & !u64::from(Order::HUGE.frames() - 1);
        if frames == 0 {
            return Err(PoolError::Empty);
        }
        let too_large = PoolError::TooLarge { frames };
        let memory = &self.inner.base.memory;
        if let Some(node) = node
            && memory.nodes.iter().all(|n| n.id != node)
        {
            return Err(PoolError::NoSuchNode { node });
        }
        let mut used = self.used.lock();
        let fits = |&i: &usize| {
            let n = &memory.nodes[i];
            u64::from(n.limit - used[i]) >= frames && node.is_none_or(|id| n.id == id)
        };
        let Some(i) = (0..memory.nodes.len()).find(fits) else {
            return Err(too_large);
        };
        let n = &memory.nodes[i];
        let first = n.first + used[i];
        let backing = Backing {
            node: (memory.nodes.len() > 1).then_some(n.id),
            ..self.backing
        };
        self.inner.base.space.open(first, frames as u32, &backing)?;
        if memory.add(first, frames as u32).is_err() {
            return Err(too_large);
        }
        used[i] += frames as u32;
        Ok(())
    }

    /// Checks every invariant of the maps. It is slow.
    ///
    /// # Errors
    /// [`Broken`](unfrag::maps::Broken), for the first that does not hold.
    pub fn validate(&self) -> Result<(), unfrag::maps::Broken> {
        self.inner.base.memory.shared.validate()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        daemons::stop(&self.inner, std::mem::take(&mut self.daemons));
        self.inner.base.memory.closed.store(true, Relaxed);
        self.inner.owners.clear();
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let memory = &self.inner.base.memory;
        write!(
            f,
            "Pool({} of {} frames free)",
            memory.free_frames(),
            memory.present()
        )
    }
}
