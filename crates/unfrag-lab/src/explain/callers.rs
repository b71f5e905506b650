//! Kernel code that asks for large blocks, by the functions of a call trace, and what its users can set.
//!
//! Invariant: an entry names a setting that its driver or file system documents; the innermost function that one names
//! decides.

use super::answer::Advice;

/// A caller.
struct Caller {
    /// Beginnings of functions, or modules in brackets.
    signs: &'static [&'static str],
    /// What to do.
    action: &'static str,
    command: Option<&'static str>,
    cost: &'static str,
}

const CALLERS: &[Caller] = &[
    Caller {
        signs: &["[vboxdrv]", "[vboxpci]", "[vboxnetflt]"],
        action: "VirtualBox's driver asked: start its machines soon after boot, or give them less memory each",
        command: None,
        cost: "the machines come first, or are smaller",
    },
    Caller {
        signs: &[
            "[nvidia]",
            "[nvidia_uvm]",
            "[amdgpu]",
            "[i915]",
            "ttm_pool_alloc",
            "ttm_",
        ],
        action: "a graphics driver asked: newer ones fall back to smaller blocks; update it",
        command: None,
        cost: "an update",
    },
    Caller {
        signs: &["[zfs]", "[spl]", "spl_kmem"],
        action: "ZFS asked for a large linear buffer: a smaller recordsize keeps its buffers smaller",
        command: Some("zfs set recordsize=128K POOL/DATASET"),
        cost: "more blocks for large files; only files written from then on",
    },
    Caller {
        signs: &["xfs_dir", "xfs_da_", "xfs_buf_alloc", "kmem_alloc"],
        action: "XFS asked for a buffer: a file system made with a smaller directory block size asks for smaller ones",
        command: Some("mkfs.xfs -n size=4096 DEVICE"),
        cost: "the file system is made anew; larger directories are slower",
    },
    Caller {
        signs: &["btrfs_"],
        action: "Btrfs asked for a metadata node: one made with a smaller node size asks for smaller blocks",
        command: Some("mkfs.btrfs -n 4096 DEVICE"),
        cost: "the file system is made anew; its trees are deeper",
    },
    Caller {
        signs: &[
            "alloc_thread_stack",
            "alloc_thread_info",
            "dup_task_struct",
            "copy_process",
        ],
        action: "a new thread's stack must be contiguous here: a kernel with CONFIG_VMAP_STACK (4.9 and later) takes single pages",
        command: None,
        cost: "another kernel",
    },
    Caller {
        signs: &[
            "__netdev_alloc",
            "netdev_alloc",
            "napi_alloc",
            "__napi_alloc",
            "skb_page_frag",
            "e1000_",
            "igb_",
            "ixgbe_",
            "mlx4_en",
            "mlx5e_",
            "bnx2x_",
            "be_post_rx",
        ],
        action: "a network card's receive ring asked: packets of one page need no larger block, so use an MTU of 1500, or fewer buffers",
        command: Some("ip link set dev DEVICE mtu 1500; ethtool -G DEVICE rx 256"),
        cost: "more packets for the same bytes; bursts are dropped sooner",
    },
    Caller {
        signs: &["[mlx5_core]", "[mlx4_core]", "mlx5_", "mlx4_"],
        action: "the network card's driver asked for rings and queues: fewer and shorter ones need smaller blocks",
        command: Some("ethtool -L DEVICE combined 4; ethtool -G DEVICE rx 512 tx 512"),
        cost: "less throughput at high rates",
    },
    Caller {
        signs: &[
            "sock_alloc_send_pskb",
            "unix_stream",
            "unix_dgram",
            "netlink_",
            "__alloc_skb",
            "alloc_skb",
            "tcp_",
            "sk_stream_alloc",
        ],
        action: "a socket asked for a linear buffer: smaller socket buffers and segments need smaller blocks",
        command: Some("sysctl -w net.core.wmem_max=212992"),
        cost: "less throughput of connections with long round trips",
    },
    Caller {
        signs: &[
            "iommu_alloc_coherent",
            "dma_alloc",
            "__dma_",
            "dma_direct_alloc",
            "swiotlb",
            "dmam_alloc",
            "pci_alloc_consistent",
        ],
        action: "a driver asked for a coherent DMA buffer: load it at boot, while blocks are free, or reserve an area for it",
        command: Some("cma=64M (boot parameter)"),
        cost: "the area holds only movable memory besides",
    },
    Caller {
        signs: &["xt_", "ipt_", "ip6t_", "nf_", "do_replace"],
        action: "a packet filter's table asked: sets (ipset, nftables) are smaller than long lists of rules",
        command: None,
        cost: "the rules are written anew",
    },
    Caller {
        signs: &[
            "blk_mq_alloc_rq",
            "blk_alloc_queue",
            "scsi_",
            "nvme_",
            "blk_mq_init",
        ],
        action: "a block device's queue asked: a shorter one needs smaller blocks",
        command: Some("echo 64 > /sys/block/DEVICE/queue/nr_requests"),
        cost: "less throughput of a busy device",
    },
    Caller {
        signs: &[
            "seq_read",
            "seq_buf_alloc",
            "traverse",
            "single_open_size",
            "proc_",
        ],
        action: "reading a long file of procfs or sysfs asked for one buffer: kernels from 3.17 on fall back to vmalloc",
        command: None,
        cost: "another kernel",
    },
    Caller {
        signs: &[
            "usbdev_",
            "usb_alloc",
            "proc_do_submiturb",
            "hcd_buffer_alloc",
        ],
        action: "a USB program asked for a large transfer: smaller ones need smaller blocks",
        command: None,
        cost: "a change of the program",
    },
    Caller {
        signs: &["do_huge_pmd", "alloc_hugepage", "khugepaged", "hugetlb"],
        action: "a huge page was asked for: reserve the pool at boot",
        command: Some("hugepages=N (boot parameter)"),
        cost: "the memory serves nothing else",
    },
];

/// What users of the code that asked can set; `None` if it is not known.
pub fn advice(calls: &[String]) -> Option<Advice> {
    // The innermost of the callers decides.
    let caller = calls
        .iter()
        .find_map(|call| CALLERS.iter().find(|c| hits(c, call)))?;
    Some(Advice {
        action: caller.action.to_owned(),
        command: caller.command.map(str::to_owned),
        setting: None,
        value: None,
        cost: caller.cost.to_owned(),
        sure: "likely",
    })
}

fn hits(c: &Caller, call: &str) -> bool {
    c.signs.iter().any(|sign| match sign.starts_with('[') {
        true => call.ends_with(sign),
        false => call.starts_with(sign),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_known_caller_decides() {
        let calls = [
            "dump_stack",
            "__alloc_pages",
            "rtR0MemAllocEx [vboxdrv]",
            "tcp_sendmsg",
        ]
        .map(str::to_owned);
        assert!(advice(&calls).unwrap().action.starts_with("VirtualBox"));
        assert_eq!(advice(&["dump_stack".to_owned()]), None);
    }
}
