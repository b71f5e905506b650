//! The names that may be in a paste: those that every kernel of a kind has, and nobody gave.

pub(super) use crate::procfs::ZONES;

/// Migrate types.
pub(super) const TYPES: [&str; 7] = [
    "Unmovable",
    "Reclaimable",
    "Movable",
    "Reserve",
    "HighAtomic",
    "CMA",
    "Isolate",
];

/// Lines of a zone below `pages free`.
pub(super) const OF_ZONE: [&str; 9] = [
    "boost", "min", "low", "high", "promo", "spanned", "present", "managed", "cma",
];

/// Counters of a zone, and of a node, that tell of free memory and of what can be had.
pub(super) const OF_COUNTERS: [&str; 10] = [
    "nr_free_cma",
    "nr_file_pages",
    "nr_active_file",
    "nr_inactive_file",
    "nr_zone_active_file",
    "nr_zone_inactive_file",
    "nr_slab_reclaimable",
    "nr_slab_unreclaimable",
    "nr_mlock",
    "nr_unaccepted",
];

/// The last lines of a zone.
pub(super) const LAST: [&str; 5] = [
    "node_unreclaimable",
    "all_unreclaimable",
    "start_pfn",
    "reserved_highatomic",
    "free_highatomic",
];

/// Amounts of meminfo.
const MEMINFO: [&str; 53] = [
    "MemTotal",
    "MemFree",
    "MemAvailable",
    "Buffers",
    "Cached",
    "SwapCached",
    "Active",
    "Inactive",
    "Active(anon)",
    "Inactive(anon)",
    "Active(file)",
    "Inactive(file)",
    "Unevictable",
    "Mlocked",
    "HighTotal",
    "HighFree",
    "LowTotal",
    "LowFree",
    "SwapTotal",
    "SwapFree",
    "Zswap",
    "Zswapped",
    "Dirty",
    "Writeback",
    "AnonPages",
    "Mapped",
    "Shmem",
    "KReclaimable",
    "Slab",
    "SReclaimable",
    "SUnreclaim",
    "KernelStack",
    "PageTables",
    "SecPageTables",
    "VmallocUsed",
    "Percpu",
    "HardwareCorrupted",
    "AnonHugePages",
    "ShmemHugePages",
    "ShmemPmdMapped",
    "FileHugePages",
    "FilePmdMapped",
    "CmaTotal",
    "CmaFree",
    "Unaccepted",
    "Balloon",
    "HugePages_Total",
    "HugePages_Free",
    "HugePages_Rsvd",
    "HugePages_Surp",
    "Hugepagesize",
    "Hugetlb",
    "DirectMap4k",
];

/// Amounts of a node that tell of its free memory, its page cache and its pools.
pub(super) const OF_NODES: [&str; 12] = [
    "MemTotal",
    "MemFree",
    "FilePages",
    "Active(file)",
    "Inactive(file)",
    "Shmem",
    "KReclaimable",
    "SReclaimable",
    "SUnreclaim",
    "HugePages_Total",
    "HugePages_Free",
    "HugePages_Surp",
];

/// Settings that are a choice, by their names in a snapshot, and what can be chosen.
pub(super) const CHOICES: [(&str, &[&str]); 2] = [
    ("thp/enabled", &["always", "madvise", "never"]),
    (
        "thp/defrag",
        &["always", "defer", "defer+madvise", "madvise", "never"],
    ),
];

/// Slab caches of most kernels; those of `kmalloc` are beside them.
const CACHES: [&str; 52] = [
    "extent_status",
    "lsm_inode_cache",
    "vmap_area_cache",
    "request_sock_TCP",
    "mnt_cache",
    "bdev_cache",
    "dentry",
    "inode_cache",
    "ext2_inode_cache",
    "ext3_inode_cache",
    "ext4_inode_cache",
    "xfs_inode",
    "xfs_ili",
    "xfs_buf",
    "btrfs_inode",
    "btrfs_extent_map",
    "btrfs_extent_buffer",
    "nfs_inode_cache",
    "fuse_inode",
    "ovl_inode",
    "proc_inode_cache",
    "shmem_inode_cache",
    "sock_inode_cache",
    "hugetlbfs_inode_cache",
    "ext4_extent_status",
    "jbd2_journal_head",
    "buffer_head",
    "radix_tree_node",
    "vm_area_struct",
    "maple_node",
    "anon_vma",
    "anon_vma_chain",
    "mm_struct",
    "task_struct",
    "signal_cache",
    "sighand_cache",
    "files_cache",
    "filp",
    "cred_jar",
    "pid",
    "names_cache",
    "kernfs_node_cache",
    "skbuff_head_cache",
    "skbuff_small_head",
    "skbuff_fclone_cache",
    "TCP",
    "UNIX",
    "nf_conntrack",
    "bio",
    "zspage",
    "pool_workqueue",
    "vmap_area",
];

/// Words that distributors put into the release of their kernels.
const OF_RELEASES: [&str; 30] = [
    "amd64",
    "arm64",
    "x86",
    "64",
    "aarch64",
    "ppc64le",
    "s390x",
    "riscv64",
    "armmp",
    "686",
    "generic",
    "cloud",
    "aws",
    "azure",
    "gcp",
    "oracle",
    "kvm",
    "virt",
    "lts",
    "hwe",
    "default",
    "pve",
    "microsoft",
    "standard",
    "server",
    "lowlatency",
    "rt",
    "debug",
    "uek",
    "bpo",
];

/// Whether a line of meminfo may be told.
pub(super) fn of_meminfo(name: &str) -> bool {
    MEMINFO.contains(&name)
}

/// Sizes of `kmalloc`'s caches, as kernels have written them.
const SIZES: [&str; 41] = [
    "8", "16", "32", "64", "96", "128", "192", "256", "512", "1k", "2k", "4k", "8k", "16k", "32k",
    "64k", "128k", "256k", "512k", "1M", "2M", "4M", "8M", "16M", "32M", "1024", "2048", "4096",
    "8192", "16384", "32768", "65536", "131072", "262144", "524288", "1048576", "2097152",
    "4194304", "8388608", "16777216", "33554432",
];

/// Whether the name of a slab cache may be told.
pub(super) fn of_caches(name: &str) -> bool {
    CACHES.contains(&name) || is_of_kmalloc(name)
}

/// Whether a cache is one of `kmalloc`: `kmalloc-64`, `kmalloc-cg-1k`, `dma-kmalloc-8`, `kmalloc-rnd-07-256`,
/// `size-1024(DMA)`.
fn is_of_kmalloc(name: &str) -> bool {
    let is_size = |s: &str| SIZES.contains(&s);
    if let Some(size) = name.strip_prefix("size-") {
        return is_size(size.strip_suffix("(DMA)").unwrap_or(size));
    }
    let rest = name.strip_prefix("dma-").unwrap_or(name);
    let Some(rest) = rest.strip_prefix("kmalloc-") else {
        return false;
    };
    let Some((kind, size)) = rest.rsplit_once('-') else {
        return is_size(rest);
    };
    let is_random = |kind: &str| {
        let is_two_digits = |n: &&str| n.len() == 2 && n.bytes().all(|b| b.is_ascii_digit());
        let number = kind.strip_prefix("rnd-").filter(is_two_digits);
        number
            .and_then(|n| n.parse().ok())
            .is_some_and(|n: u8| (1..=15).contains(&n))
    };
    let is_kind = ["cg", "rcl", "dma"].contains(&kind) || is_random(kind);
    is_kind && name.starts_with("kmalloc-") && is_size(size)
}

/// The name of a cache of which a word is the key: a word has no hyphen, and no known name a dot.
pub(super) fn cache_of(key: &str) -> String {
    let name = key.replace('.', "-");
    match of_caches(&name) {
        true => name,
        false => key.to_owned(),
    }
}

/// A release without what somebody called a kernel that he built: `6.1.0-56-cloud-amd64`, but `6.1.0` of
/// `6.1.0-alice`.
pub(super) fn release(text: &str) -> String {
    let is_sign = |c: char| "-._+~".contains(c);
    let numbered = |part: &str, start: &str| {
        let rest = part.strip_prefix(start).filter(|r| !r.is_empty());
        rest.is_some_and(|r| r.bytes().all(|b| b.is_ascii_digit()))
    };
    let is_known = |part: &str| {
        let of_vendor = ["", "el", "fc", "amzn", "rc", "deb", "v", "lp", "cm"];
        let is_long = part.len() > 6;
        part.is_empty()
            || (!is_long && of_vendor.iter().any(|start| numbered(part, start)))
            || OF_RELEASES.contains(&part)
    };
    let text = &text[..first_address(text).unwrap_or(text.len())];
    let mut kept = 0;
    for (at, sign) in text
        .match_indices(is_sign)
        .map(|(at, s)| (at, s.len()))
        .chain([(text.len(), 0)])
    {
        let begin = kept;
        let part = text.get(begin..at).unwrap_or_default();
        if !is_known(part) {
            return text[..begin].trim_end_matches(is_sign).to_owned();
        }
        kept = at + sign;
    }
    text.trim_end_matches(is_sign).to_owned()
}

/// Where four numbers of a byte begin that may be an address. A release may have as many (`5.15.167.4-microsoft`), but
/// begins with one digit.
fn first_address(text: &str) -> Option<usize> {
    let is_of_number = |c: char| c.is_ascii_digit() || c == '.';
    let mut begin = 0;
    for run in text.split_inclusive(|c| !is_of_number(c)) {
        let numbers = run.trim_end_matches(|c| !is_of_number(c));
        let bytes = numbers.split('.').map(|n| n.parse::<u8>().is_ok());
        let most = bytes.fold((0, 0), |(most, n), is| {
            let n = if is { n + 1 } else { 0 };
            (n.max(most), n)
        });
        let is_release = begin == 0 && numbers.find('.') == Some(1);
        if most.0 >= 4 && !is_release {
            return Some(begin);
        }
        begin += run.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_named_only_as_kernels_name_theirs() {
        for name in [
            "dentry",
            "kmalloc-8",
            "kmalloc-1k",
            "kmalloc-4M",
            "kmalloc-1024",
            "kmalloc-cg-192",
            "kmalloc-rcl-64",
            "dma-kmalloc-512",
            "kmalloc-dma-32",
            "kmalloc-rnd-07-256",
            "size-131072(DMA)",
        ] {
            assert!(of_caches(name), "{name}");
            assert_eq!(cache_of(&name.replace('-', ".")), name);
        }
        for name in [
            "kmalloc-31337k",
            "kmalloc-",
            "kmalloc-7",
            "kmalloc-0064",
            "kmalloc-64kM",
            "kmalloc-cg-cg-64",
            "kmalloc-rnd-4711-64",
            "kmalloc-rnd-+7-64",
            "kmalloc-rnd-16-64",
            "kmalloc-alice-64",
            "dma-kmalloc-cg-64",
            "dma-dentry",
            "size-31337",
            "size-64(alice)",
            "dentry(12:alice.service)",
            "alice",
        ] {
            assert!(!of_caches(name), "{name}");
        }
        assert_eq!(cache_of("other.3"), "other.3");
    }

    #[test]
    fn a_release_keeps_what_distributors_say() {
        for (text, kept) in [
            ("6.1.0-56-cloud-amd64", "6.1.0-56-cloud-amd64"),
            (
                "4.18.0-553.16.1.el8_10.x86_64",
                "4.18.0-553.16.1.el8_10.x86_64",
            ),
            ("6.8.0-45-generic", "6.8.0-45-generic"),
            ("6.12.0-rc3", "6.12.0-rc3"),
            ("6.1.0-alice-laptop", "6.1.0"),
            ("6.1.0-web3+", "6.1.0"),
            ("alice", ""),
            ("6.6.1-20261128", "6.6.1"),
            ("6.8.5-301.fc40.x86_64", "6.8.5-301.fc40.x86_64"),
            ("6.18.44-fc-v857", "6.18.44"),
            (
                "5.15.167.4-microsoft-standard",
                "5.15.167.4-microsoft-standard",
            ),
            ("6.1.0-10.11.12.13", "6.1.0"),
            ("6.1.0-generic-10.0.0.5.7", "6.1.0-generic"),
            ("6.1-192.168.7.9-cloud", "6.1"),
            ("192.168.7.9", ""),
            ("10.1.2.3-generic", ""),
        ] {
            assert_eq!(release(text), kept, "{text}");
        }
    }
}
