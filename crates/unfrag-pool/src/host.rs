//! [`HostMemory`]: memory as the host's own kernel gives it, to measure a pool against.

use crate::error::PoolError;
use crate::space::{Backing, FRAME_BYTES, Space};

/// Memory that the host's kernel gives page by page when it is first written to, and takes back page by page.
pub struct HostMemory {
    space: Space,
    pages: u32,
}

impl HostMemory {
    /// Maps memory, aligned to a gigabyte; with huge pages where the kernel has them, or without.
    ///
    /// # Errors
    /// [`PoolError`], if it cannot be mapped.
    pub fn map(bytes: usize, huge_pages: bool) -> Result<HostMemory, PoolError> {
        let frames = bytes.div_ceil(FRAME_BYTES) as u64;
        let pages = u32::try_from(frames).map_err(|_| PoolError::TooLarge { frames })?;
        let space = Space::new(frames)?;
        let how = Backing {
            huge_pages,
            populate: false,
            node: None,
        };
        space.open(0, pages, &how)?;
        Ok(HostMemory { space, pages })
    }

    /// Pages of 4 KiB.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// The bytes of a page.
    ///
    /// # Panics
    /// If there is no such page.
    pub fn page(&mut self, i: u32) -> &mut [u8] {
        assert!(i < self.pages, "page {i} of {}", self.pages);
        let at = i as usize * FRAME_BYTES;
        &mut self.bytes()[at..at + FRAME_BYTES]
    }

    /// All of it.
    pub fn bytes(&mut self) -> &mut [u8] {
        let at = self.space.at(0).as_ptr();
        // SAFETY: memory of ours, which is borrowed alone.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts_mut(at, self.pages as usize * FRAME_BYTES)
        }
    }

    /// Gives pages back to the kernel. They read as zeros afterwards.
    ///
    /// # Errors
    /// [`PoolError::System`].
    ///
    /// # Panics
    /// If there are no such pages.
    pub fn discard(&mut self, first: u32, pages: u32) -> Result<(), PoolError> {
        let end = first.checked_add(pages).filter(|&end| end <= self.pages);
        assert!(
            end.is_some(),
            "pages {first} and {pages} more of {}",
            self.pages
        );
        self.space.release(first, pages)
    }
}
