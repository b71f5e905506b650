//! [`Builder`]: what a pool is made of.

use crate::base::Base;
use crate::error::PoolError;
use crate::inner::Inner;
use crate::memory::Memory;
use crate::pool::Pool;
use crate::settings::Settings;
use crate::space::{Backing, FRAME_BYTES, Space};
use crate::topology;
use std::sync::Arc;
use std::time::Duration;
use unfrag::Marks;

/// Threads that may keep frames for themselves.
const MOST_THREADS: usize = 1 << 16;

/// Frames that all nodes may have together: a frame's number has 32 bits, and some room.
const MOST_FRAMES: u64 = 1 << 31;

/// Makes a [`Pool`].
///
/// ```
/// use unfrag_pool::Pool;
///
/// // Two arenas, with room for more; eight huge pages are kept ready.
/// let pool = Pool::builder()
///     .arena(32 << 20)
///     .arena(32 << 20)
///     .limit(1 << 30)
///     .keep_huge(8)
///     .build()?;
/// pool.add_arena(64 << 20, None)?;
/// assert_eq!(pool.stats().present, 128 << 8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    arenas: Vec<(usize, Option<usize>)>,
    limit: usize,
    backing: Backing,
    settings: Settings,
    threads: usize,
    watermarks: Option<(u64, u64, u64)>,
}

impl Pool {
    /// A builder: give it an arena at least.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl Default for Builder {
    fn default() -> Self {
        Builder::new()
    }
}

impl Builder {
    /// No arena as yet; huge pages of the system where it has them; a second of patience.
    pub fn new() -> Builder {
        Builder {
            arenas: Vec::new(),
            limit: 0,
            backing: Backing {
                huge_pages: true,
                populate: false,
                node: None,
            },
            settings: Settings {
                patience: Duration::from_secs(1),
                keep_huge: 0,
            },
            threads: 256,
            watermarks: None,
        }
    }

    /// An arena of so many bytes, rounded down to 2 MiB. Where the system has several NUMA nodes, it is a part on each.
    #[must_use]
    pub fn arena(mut self, bytes: usize) -> Self {
        self.arenas.push((bytes, None));
        self
    }

    /// An arena on one NUMA node.
    #[must_use]
    pub fn arena_on(mut self, node: usize, bytes: usize) -> Self {
        self.arenas.push((bytes, Some(node)));
        self
    }

    /// Bytes that all arenas may have together, those that are added later among them. Without it, there is room for
    /// those of the builder.
    #[must_use]
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Whether memory is backed by huge pages of the system, where it has them (`MADV_HUGEPAGE`).
    #[must_use]
    pub fn huge_pages(mut self, huge_pages: bool) -> Self {
        self.backing.huge_pages = huge_pages;
        self
    }

    /// Whether all memory is had from the system at once, instead of when it is first written to.
    #[must_use]
    pub fn populate(mut self, populate: bool) -> Self {
        self.backing.populate = populate;
        self
    }

    /// How long an allocation waits for others to give frames back, before it fails.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.settings.patience = patience;
        self
    }

    /// Whole free blocks of 2 MiB that kcompactd keeps ready, as long as that is cheap.
    #[must_use]
    pub fn keep_huge(mut self, blocks: u32) -> Self {
        self.settings.keep_huge = blocks;
        self
    }

    /// Threads that keep free frames for themselves at a time, at most 65,536. Further ones take each block under a lock.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.min(MOST_THREADS);
        self
    }

    /// Watermarks of each node, in frames: below `low` kswapd is woken, and has owners give frames back up to `high`; none
    /// is handed out below `min`. Without them: no `min`, and `low` and `high` as Linux computes them.
    #[must_use]
    pub fn watermarks(mut self, min: u64, low: u64, high: u64) -> Self {
        self.watermarks = Some((min, low, high));
        self
    }

    /// Makes the pool, and starts its daemons.
    ///
    /// # Errors
    /// [`PoolError`].
    pub fn build(self) -> Result<Pool, PoolError> {
        let nodes = topology::nodes();
        let mut arenas: Vec<(usize, usize)> = Vec::new();
        for &(bytes, node) in &self.arenas {
            match node {
                Some(node) if !nodes.contains(&node) => return Err(PoolError::NoSuchNode { node }),
                Some(node) => arenas.push((bytes, node)),
                None => arenas.extend(nodes.iter().map(|&n| (bytes / nodes.len(), n))),
            }
        }
        if arenas.is_empty() {
            return Err(PoolError::Empty);
        }
        let mut limits: Vec<(usize, u32)> = Vec::new();
        let mut frames = 0_u64;
        for &node in nodes {
            let own = arenas.iter().filter(|(_, n)| *n == node);
            let own = own.fold(0_usize, |sum, (bytes, _)| sum.saturating_add(*bytes));
            let limit = own.max(self.limit / nodes.len()).div_ceil(FRAME_BYTES) as u64;
            frames = frames.saturating_add(limit);
            if frames >= MOST_FRAMES {
                return Err(PoolError::TooLarge { frames });
            }
            if limit > 0 {
                limits.push((node, limit as u32));
            }
        }
        let marks = |limit: u32| self.marks(limit);
        let rise =
            |m: Marks, limit: u32| m.min <= m.low && m.low <= m.high && m.high < limit.into();
        if !limits.iter().all(|&(_, limit)| rise(marks(limit), limit)) {
            return Err(PoolError::Watermarks);
        }
        let memory = Memory::new(&limits, self.threads, marks)?;
        let space = Space::new(memory.addresses())?;
        let inner = Inner::new(Base::new(memory, space), self.settings);
        let pool = Pool::start(Arc::new(inner), self.backing)?;
        for (bytes, node) in arenas {
            pool.add_arena(bytes, Some(node))?;
        }
        Ok(pool)
    }

    fn marks(&self, limit: u32) -> Marks {
        let (min, low, high) = self.watermarks.unwrap_or_else(|| {
            let linux = unfrag::formulas::min_free_kbytes(u64::from(limit) * 4, u64::MAX) / 4;
            let linux = linux.min(u64::from(limit) / 8);
            (0, linux * 5 / 4, linux * 3 / 2)
        });
        Marks { min, low, high }
    }
}
