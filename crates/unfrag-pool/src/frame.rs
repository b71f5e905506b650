//! [`Frame`] and [`Block`]: a block of memory that gives itself back. [`Extent`]: several of them.

use crate::base::Base;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use unfrag::{MigrateType, Order};

/// A block that somebody has, with the way to its pool: borrowed, or shared.
struct Held<B: AsRef<Base>> {
    base: B,
    frame: u32,
    order: Order,
    mt: MigrateType,
}

impl<B: AsRef<Base>> Held<B> {
    fn node(&self) -> usize {
        let memory = &self.base.as_ref().memory;
        memory.nodes[memory.node_of(self.frame)].id
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the block is this value's.
        #[allow(unsafe_code)]
        unsafe {
            self.base.as_ref().bytes(self.frame, self.order)
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the block is this value's, which is borrowed alone.
        #[allow(unsafe_code)]
        unsafe {
            self.base.as_ref().bytes_mut(self.frame, self.order)
        }
    }

    fn describe(&self, name: &str, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Held { frame, order, .. } = self;
        write!(f, "{name}(frame {frame:#x}, order {})", order.0)
    }
}

impl<B: AsRef<Base>> Drop for Held<B> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the block is this value's, which ends.
        #[allow(unsafe_code)]
        unsafe {
            self.base.as_ref().free(self.frame, self.order, self.mt);
        }
    }
}

/// A block of `2^order` frames of 4 KiB, aligned to its size. It stays where it is, and is given back when it is dropped.
///
/// What it holds at first is what its last user left, or zeros; [`zero`](Self::zero) makes sure.
pub struct Frame<'p>(Held<&'p Arc<Base>>);

impl<'p> Frame<'p> {
    pub(crate) fn new(base: &'p Arc<Base>, frame: u32, order: Order, mt: MigrateType) -> Frame<'p> {
        Frame(Held {
            base,
            frame,
            order,
            mt,
        })
    }

    /// The number of its first frame in the pool.
    pub fn number(&self) -> u32 {
        self.0.frame
    }

    /// Its order.
    pub fn order(&self) -> Order {
        self.0.order
    }

    /// The NUMA node that it is from.
    pub fn node(&self) -> usize {
        self.0.node()
    }

    /// Fills it with zeros.
    #[must_use]
    pub fn zero(mut self) -> Self {
        self.fill(0);
        self
    }

    /// The same block, for a struct that has it beside its pool: it borrows nothing, and outlives the pool if need be, whose
    /// memory is there as long as it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use unfrag_pool::{Block, Extent, MovableBlock, Order, Pool};
    ///
    /// struct Buffers {
    ///     ring: Block,
    ///     table: Extent<Block>,
    ///     cold: MovableBlock,
    ///     pool: Arc<Pool>,
    /// }
    ///
    /// let pool = Arc::new(Pool::builder().arena(16 << 20).build()?);
    /// let ring = pool.alloc(Order(3))?.detach();
    /// let table = pool.alloc_bytes(5 << 20)?.detach();
    /// let cold = pool.alloc_movable(Order(0))?.detach();
    /// let mut buffers = Buffers { ring, table, cold, pool };
    /// buffers.ring.fill(1);
    /// buffers.table.pieces_mut()[0].fill(2);
    /// buffers.pool.compact(1);
    /// buffers.cold.pin_mut().fill(3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn detach(self) -> Block {
        let own = ManuallyDrop::new(self);
        let Held {
            base,
            frame,
            order,
            mt,
        } = own.0;
        Block(Held {
            base: base.clone(),
            frame,
            order,
            mt,
        })
    }
}

impl Deref for Frame<'_> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl DerefMut for Frame<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
}

impl std::fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        self.0.describe("Frame", f)
    }
}

/// A block that borrows nothing: a [`Frame`], [detached](Frame::detach). It is given back when it is dropped, before its pool or
/// after it.
pub struct Block(Held<Arc<Base>>);

impl Block {
    /// The number of its first frame in the pool.
    pub fn number(&self) -> u32 {
        self.0.frame
    }

    /// Its order.
    pub fn order(&self) -> Order {
        self.0.order
    }

    /// The NUMA node that it is from.
    pub fn node(&self) -> usize {
        self.0.node()
    }
}

impl Deref for Block {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl DerefMut for Block {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        self.0.describe("Block", f)
    }
}

/// Memory of any length in as few blocks as there were: huge pages first. Its blocks are [`Frame`]s, or
/// [`Block`]s once it is [detached](Self::detach).
#[derive(Debug)]
pub struct Extent<P> {
    pub(crate) pieces: Vec<P>,
}

impl<P: Deref<Target = [u8]>> Extent<P> {
    /// Its blocks, the larger ones first.
    pub fn pieces(&self) -> &[P] {
        &self.pieces
    }

    /// Its blocks, to write to.
    pub fn pieces_mut(&mut self) -> &mut [P] {
        &mut self.pieces
    }

    /// Bytes in all.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(|p| p.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Bytes in blocks of 2 MiB and more.
    pub fn huge_bytes(&self) -> usize {
        let huge = crate::space::FRAME_BYTES << Order::HUGE.0;
        let lengths = self.pieces.iter().map(|p| p.len());
        lengths.filter(|&bytes| bytes >= huge).sum()
    }

    /// Bytes in smaller blocks: those that no huge page was there for, and a last part of less than 2 MiB.
    pub fn fallback_bytes(&self) -> usize {
        self.len() - self.huge_bytes()
    }
}

impl Extent<Frame<'_>> {
    /// The same memory, for a struct that has it beside its pool, as [`Frame::detach`] does.
    pub fn detach(self) -> Extent<Block> {
        let pieces = self.pieces.into_iter().map(Frame::detach);
        Extent {
            pieces: pieces.collect(),
        }
    }
}
