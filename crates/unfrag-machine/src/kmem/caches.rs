//! The kernel's own caches, and the sizes of their objects.
//!
//! Sizes of source S2's caches are those of `spec: 6.4`; the others are those of common x86 kernels of
//! their time, rounded to 8 bytes.

use super::allocator::Kmem;
use super::records::CacheId;

/// Word size of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Word {
    /// 32 bits, with high memory.
    W32,
    /// 64 bits.
    #[default]
    W64,
}

/// A cache of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are those of slabinfo")]
pub enum CacheKind {
    NamesCache,
    Filp,
    VmAreaStruct,
    BufferHead,
    Bio,
    BioVec16,
    BioVec64,
    CryptIo,
    JournalHandle,
    Dentry,
    Ext2Inode,
    Ext3Inode,
    ShmemInode,
    RadixTreeNode,
    TaskStruct,
    MmStruct,
    SighandCache,
    SignalCache,
    FilesCache,
    AnonVma,
    SkbuffHead,
}

/// Number of caches of the kernel.
pub const KINDS: usize = 21;

/// Name, bytes with 64 and with 32 bits, whether a shrinker gives the objects back.
const TABLE: [(CacheKind, &str, u32, u32, bool); KINDS] = [
    (CacheKind::NamesCache, "names_cache", 4096, 4096, false),
    (CacheKind::Filp, "filp", 192, 160, false),
    (CacheKind::VmAreaStruct, "vm_area_struct", 168, 88, false),
    (CacheKind::BufferHead, "buffer_head", 104, 56, true),
    (CacheKind::Bio, "bio-0", 192, 128, false),
    (CacheKind::BioVec16, "biovec-16", 256, 192, false),
    (CacheKind::BioVec64, "biovec-64", 1024, 768, false),
    (CacheKind::CryptIo, "dm-crypt_io", 152, 96, false),
    (CacheKind::JournalHandle, "journal_handle", 24, 24, false),
    (CacheKind::Dentry, "dentry", 208, 136, true),
    (CacheKind::Ext2Inode, "ext2_inode_cache", 720, 456, true),
    (CacheKind::Ext3Inode, "ext3_inode_cache", 760, 488, true),
    (CacheKind::ShmemInode, "shmem_inode_cache", 760, 456, false),
    (CacheKind::RadixTreeNode, "radix_tree_node", 560, 288, true),
    (CacheKind::TaskStruct, "task_struct", 2352, 1408, false),
    (CacheKind::MmStruct, "mm_struct", 848, 448, false),
    (CacheKind::SighandCache, "sighand_cache", 2112, 1312, false),
    (CacheKind::SignalCache, "signal_cache", 896, 448, false),
    (CacheKind::FilesCache, "files_cache", 704, 384, false),
    (CacheKind::AnonVma, "anon_vma", 24, 16, false),
    (CacheKind::SkbuffHead, "skbuff_head_cache", 256, 192, false),
];

/// Sizes of `kmalloc`.
const SIZES: [u32; 12] = [8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096];

/// The kernel's caches in a [`Kmem`].
#[derive(Clone, Copy, Debug)]
pub struct Caches {
    kinds: [CacheId; KINDS],
    sizes: [CacheId; SIZES.len()],
}

impl Caches {
    /// Creates them. `radix_reclaimable`: nodes of the page cache's index are marked reclaimable (2.6.24 and
    /// later; V19 marks dentries, inodes and buffer heads alone, `spec: 2.1`).
    pub fn create(kmem: &mut Kmem, word: Word, radix_reclaimable: bool) -> Caches {
        // The general sizes come first, so that SLUB merges other caches into them.
        let sizes = SIZES.map(|size| kmem.create(kmalloc_name(size), size, false));
        let kinds = TABLE.map(|(kind, name, w64, w32, reclaimable)| {
            let size = if word == Word::W64 { w64 } else { w32 };
            let reclaimable =
                reclaimable && (kind != CacheKind::RadixTreeNode || radix_reclaimable);
            kmem.create(name, size, reclaimable)
        });
        Caches { kinds, sizes }
    }

    /// The cache of a kind.
    #[inline]
    pub fn of(&self, kind: CacheKind) -> CacheId {
        self.kinds[kind as usize]
    }

    /// The cache that serves `kmalloc` of `bytes` bytes; `None` above a page.
    pub fn kmalloc(&self, bytes: u32) -> Option<CacheId> {
        let i = SIZES.iter().position(|&s| s >= bytes)?;
        Some(self.sizes[i])
    }
}

const fn kmalloc_name(size: u32) -> &'static str {
    match size {
        8 => "kmalloc-8",
        16 => "kmalloc-16",
        32 => "kmalloc-32",
        64 => "kmalloc-64",
        96 => "kmalloc-96",
        128 => "kmalloc-128",
        192 => "kmalloc-192",
        256 => "kmalloc-256",
        512 => "kmalloc-512",
        1024 => "kmalloc-1024",
        2048 => "kmalloc-2048",
        _ => "kmalloc-4096",
    }
}

impl CacheKind {
    /// All kinds.
    pub fn all() -> impl Iterator<Item = CacheKind> {
        TABLE.iter().map(|t| t.0)
    }
    /// Name as slabinfo shows it.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].1
    }
    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<CacheKind> {
        CacheKind::all().find(|k| k.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unfrag_slab::{Design, Rules};

    #[test]
    fn the_table_is_in_the_order_of_the_kinds() {
        for (i, kind) in CacheKind::all().enumerate() {
            assert_eq!(kind as usize, i);
            assert_eq!(CacheKind::from_name(kind.name()), Some(kind));
        }
    }

    #[test]
    // `spec: 6.4`
    fn only_names_cache_has_a_high_order() {
        let mut kmem = Kmem::new(Rules::S2, 8);
        let caches = Caches::create(&mut kmem, Word::W64, true);
        let order = |k| kmem.view(caches.of(k)).map(|v| v.order);
        assert_eq!(order(CacheKind::NamesCache), Some(3));
        for kind in [
            CacheKind::Filp,
            CacheKind::VmAreaStruct,
            CacheKind::BufferHead,
            CacheKind::Bio,
        ] {
            assert_eq!(order(kind), Some(0), "{}", kind.name());
        }
        assert_eq!(order(CacheKind::JournalHandle), Some(0));
    }

    #[test]
    // `spec: 6.3`
    fn names_cache_of_slqb_and_slab_has_order_0() {
        for design in [Design::Slqb, Design::Slab] {
            let rules = Rules::S2.design(design);
            let mut kmem = Kmem::new(rules, 8);
            let caches = Caches::create(&mut kmem, Word::W64, true);
            let view = kmem.view(caches.of(CacheKind::NamesCache));
            assert_eq!(view.map(|v| v.order), Some(0), "{design}");
        }
    }

    #[test]
    fn kmalloc_takes_the_smallest_size_that_holds_it() {
        let mut kmem = Kmem::new(Rules::MODERN, 2);
        let caches = Caches::create(&mut kmem, Word::W64, true);
        let size = |b| {
            let id = caches.kmalloc(b)?;
            kmem.view(id).map(|v| v.size)
        };
        assert_eq!(
            [size(1), size(97), size(4096)],
            [Some(8), Some(128), Some(4096)]
        );
        assert_eq!(size(4097), None);
    }
}
