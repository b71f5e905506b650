//! Kernel code that asks for large blocks, by the functions of a call trace, and what its users can set.
//!
//! Invariant: an entry holds for the functions that it names and the releases that it gives, and for no others; none
//! destroys data. The innermost function that one names decides.

use super::answer::{Advice, When};
use super::case::Case;
use super::judges::function;

/// A caller.
struct Caller {
    /// Functions.
    functions: &'static [&'static str],
    /// Modules in brackets, of whose functions any counts.
    modules: &'static [&'static str],
    /// The first release for which it does not hold; then the release must be in the text.
    until: Option<(u32, u32)>,
    /// Whether the functions lead to any other code of the kernel, too: then they count only where they allocate themselves.
    is_door: bool,
    /// What to do.
    action: &'static str,
    command: Option<&'static str>,
    /// When: now only what is done once.
    when: When,
    cost: &'static str,
}

const NONE: Caller = Caller {
    functions: &[],
    modules: &[],
    until: None,
    is_door: false,
    action: "",
    command: None,
    when: When::Later,
    cost: "",
};

const CALLERS: &[Caller] = &[
    Caller {
        modules: &["[vboxdrv]", "[vboxpci]", "[vboxnetflt]"],
        action: "VirtualBox's driver asked: start its machines soon after boot, or give them less memory each",
        cost: "the machines come first, or are smaller",
        ..NONE
    },
    Caller {
        modules: &["[nvidia]", "[nvidia_uvm]", "[amdgpu]", "[i915]"],
        action: "a graphics driver asked: a newer one may ask for smaller blocks",
        cost: "an update",
        ..NONE
    },
    Caller {
        modules: &["[zfs]", "[spl]"],
        action: "ZFS asked for a large linear buffer: a newer one may ask for smaller blocks",
        cost: "an update",
        ..NONE
    },
    Caller {
        functions: &[
            "xfs_iext_realloc_indirect",
            "xfs_iext_realloc_direct",
            "xfs_iext_inline_to_direct",
        ],
        until: Some((4, 15)),
        action: "XFS asked for the list of a file's extents, which kernels to 4.14 keep in one block: the file is in very many pieces, and xfs_fsr puts it together",
        command: Some("xfs_fsr FILE"),
        when: When::Now,
        cost: "the file is copied once; xfs_bmap FILE shows its pieces",
        ..NONE
    },
    Caller {
        functions: &["btrfs_lookup_bio_sums"],
        // Of 32 bytes for each 4 KiB, the longest, those of 512 KiB are a page. Its files are read by a backing device of the
        // file system's own, whose default is 4096; the queues of its disks have no say.
        action: "Btrfs asked for an array of checksums, as long as the read is: a read-ahead of 512 KiB needs one page (N is the file system's: ls /sys/class/bdi)",
        command: Some("echo 512 > /sys/class/bdi/btrfs-N/read_ahead_kb"),
        cost: "slower reading of long files",
        ..NONE
    },
    Caller {
        functions: &[
            "alloc_thread_stack_node",
            "alloc_thread_info_node",
            "alloc_thread_info",
        ],
        action: "a new thread's stack must be contiguous here: a kernel with CONFIG_VMAP_STACK (x86 since 4.9, arm64 since 4.14) takes single pages",
        cost: "another kernel",
        ..NONE
    },
    Caller {
        functions: &[
            "__netdev_alloc_skb",
            "__netdev_alloc_frag",
            "netdev_alloc_frag",
            "__napi_alloc_skb",
            "napi_alloc_skb",
            "e1000_alloc_rx_buffers",
            "e1000_alloc_jumbo_rx_buffers",
            "igb_alloc_rx_buffers",
            "ixgbe_alloc_rx_buffers",
            "mlx4_alloc_pages",
            "mlx4_en_alloc_frags",
            "mlx4_en_prepare_rx_desc",
            "mlx5e_post_rx_wqes",
            "bnx2x_alloc_rx_sge",
            "be_post_rx_frags",
        ],
        action: "a network card's receive ring asked: packets of one page need no larger block, so use an MTU of 1500, or fewer buffers",
        command: Some("ip link set dev DEVICE mtu 1500; ethtool -G DEVICE rx 256"),
        cost: "more packets for the same bytes; bursts are dropped sooner",
        ..NONE
    },
    Caller {
        functions: &[
            "mlx5_buf_alloc",
            "mlx5_buf_alloc_node",
            "mlx5_frag_buf_alloc_node",
            "mlx5e_create_rq",
            "mlx5e_create_sq",
            "mlx5e_create_cq",
            "mlx5e_open_channels",
            "mlx4_buf_alloc",
            "mlx4_en_create_rx_ring",
            "mlx4_en_create_tx_ring",
        ],
        action: "the network card's driver asked for rings and queues: fewer and shorter ones need smaller blocks",
        command: Some("ethtool -L DEVICE combined 4; ethtool -G DEVICE rx 512 tx 512"),
        cost: "less throughput at high rates",
        ..NONE
    },
    Caller {
        functions: &[
            "unix_stream_sendmsg",
            "unix_dgram_sendmsg",
            "netlink_sendmsg",
            "netlink_dump",
        ],
        is_door: true,
        action: "a local socket asked for one linear buffer: the program that sends needs smaller messages, or a smaller buffer of its socket (SO_SNDBUF)",
        cost: "a change of the program",
        ..NONE
    },
    Caller {
        functions: &[
            "iommu_alloc_coherent",
            "dma_alloc_coherent",
            "dma_alloc_attrs",
            "dma_direct_alloc",
            "dma_direct_alloc_pages",
            "__dma_direct_alloc_pages",
            "__dma_alloc_coherent",
            "dma_generic_alloc_coherent",
            "swiotlb_alloc_coherent",
            "dmam_alloc_coherent",
            "dmam_alloc_attrs",
            "pci_alloc_consistent",
        ],
        action: "a driver asked for a coherent DMA buffer: load it at boot, while blocks are free",
        cost: "it holds its buffers from then on",
        ..NONE
    },
    Caller {
        functions: &["xt_alloc_table_info", "translate_table", "do_replace"],
        action: "a packet filter's table asked: sets (ipset, nftables) are smaller than long lists of rules",
        cost: "the rules are written anew",
        ..NONE
    },
    Caller {
        functions: &["seq_read", "seq_buf_alloc", "traverse", "single_open_size"],
        until: Some((3, 17)),
        is_door: true,
        action: "reading a long file of procfs asked for one buffer, as kernels to 3.16 do",
        cost: "a newer kernel, or another source of the same figures",
        ..NONE
    },
    Caller {
        functions: &["proc_sys_call_handler"],
        until: Some((5, 11)),
        is_door: true,
        action: "reading or writing /proc/sys took one buffer as long as the program's own, until 5.11: let the program use a short one (4096 bytes do), or take a newer kernel",
        cost: "a change of the program, or another kernel",
        ..NONE
    },
    Caller {
        functions: &[
            "proc_do_submiturb",
            "usbdev_do_ioctl",
            "usbdev_ioctl",
            "proc_bulk",
            "hcd_buffer_alloc",
        ],
        is_door: true,
        action: "a USB program asked for a large transfer: smaller ones need smaller blocks",
        cost: "a change of the program",
        ..NONE
    },
    Caller {
        functions: &["neigh_hash_alloc"],
        action: "the table of neighbours (ARP, NDP) asked for twice its size in one block, and stays as it is: the entries are there, and take longer to find; fewer of them on one network need no such block",
        cost: "another division of the network",
        ..NONE
    },
    Caller {
        functions: &["ffs_epfile_io", "ffs_alloc_buffer"],
        action: "a program behind a USB gadget asked for one buffer as long as its read or write: shorter ones need smaller blocks",
        cost: "a change of the program",
        ..NONE
    },
    Caller {
        functions: &[
            "alloc_fresh_huge_page",
            "alloc_fresh_hugetlb_folio",
            "alloc_pool_huge_page",
            "alloc_pool_huge_folio",
            "alloc_surplus_huge_page",
            "alloc_surplus_hugetlb_folio",
            "alloc_buddy_huge_page",
        ],
        action: "a huge page of the pool was asked for: reserve the pool at boot, with hugepages=N on the kernel's command line",
        cost: "a restart; the memory serves nothing else",
        ..NONE
    },
];

/// What users of the code that asked can set; `None` if it is not known.
pub fn advice(case: &Case) -> Option<Advice> {
    let holds = |c: &Caller| {
        c.until.is_none_or(|(major, minor)| {
            case.kernel.is_said && !case.kernel.era.is_at_least(major, minor)
        })
    };
    let caller = of_trace(&case.report.calls).filter(|c| holds(c))?;
    Some(Advice {
        action: caller.action.to_owned(),
        command: caller.command.map(str::to_owned),
        setting: None,
        value: None,
        when: caller.when,
        look_first: None,
        cost: caller.cost.to_owned(),
        sure: "likely",
    })
}

/// Functions that allocate for whoever calls them, by how their names begin after underscores.
const ALLOCATE: [&str; 20] = [
    "alloc_page",
    "alloc_pages",
    "alloc_skb",
    "folio_alloc",
    "get_free_page",
    "kmalloc",
    "kzalloc",
    "kcalloc",
    "kvmalloc",
    "kmem_cache_alloc",
    "slab_alloc",
    "cache_alloc",
    "new_slab",
    "netlink_alloc",
    "nlmsg_new",
    "sock_alloc_send",
    "sock_wmalloc",
    "seq_buf_alloc",
    "memdup_user",
    "warn_alloc",
];

/// The innermost caller of a trace, whose first call is the innermost.
fn of_trace(calls: &[String]) -> Option<&'static Caller> {
    calls.iter().enumerate().find_map(|(i, call)| {
        let found = CALLERS.iter().find(|c| hits(c, call))?;
        let inner = i.checked_sub(1).map(|i| function(&calls[i]));
        let allocates = inner.is_none_or(|name| {
            let name = name.trim_start_matches('_');
            ALLOCATE.iter().any(|a| name.starts_with(a))
        });
        (allocates || !found.is_door).then_some(found)
    })
}

fn hits(c: &Caller, call: &str) -> bool {
    c.functions.contains(&function(call)) || c.modules.iter().any(|m| call.ends_with(m))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(call: &str) -> Option<&'static Caller> {
        CALLERS.iter().find(|c| hits(c, call))
    }

    #[test]
    fn callers_are_known_by_whole_names() {
        for (call, begins) in [
            ("rtR0MemAllocEx [vboxdrv]", "VirtualBox"),
            ("btrfs_lookup_bio_sums [btrfs]", "Btrfs"),
            ("ffs_epfile_io.isra.0", "a program behind a USB gadget"),
        ] {
            assert!(found(call).unwrap().action.starts_with(begins), "{call}");
        }
        for call in [
            "dump_stack",
            "btrfs_compress_pages",
            "alloc_extent_state [btrfs]",
            "e1000_setup_rx_resources",
            "tcp_sendmsg",
            "nf_conntrack_in",
        ] {
            assert!(found(call).is_none(), "{call}");
        }
    }

    #[test]
    fn a_door_to_other_code_is_no_caller_where_that_code_asked() {
        let first = |calls: &[&str]| {
            let calls: Vec<String> = calls.iter().map(|&c| c.into()).collect();
            of_trace(&calls).map(|c| {
                c.action
                    .split_whitespace()
                    .take(3)
                    .collect::<Vec<_>>()
                    .join(" ")
            })
        };
        for (calls, begins) in [
            (
                &[
                    "__alloc_pages",
                    "__alloc_skb",
                    "netlink_sendmsg",
                    "sock_sendmsg",
                ][..],
                Some("a local socket"),
            ),
            (
                &[
                    "kmalloc_large_node",
                    "sock_alloc_send_pskb",
                    "unix_dgram_sendmsg",
                ],
                Some("a local socket"),
            ),
            (
                &[
                    "__kmalloc",
                    "inet_rtm_newaddr",
                    "rtnetlink_rcv_msg",
                    "netlink_rcv_skb",
                    "netlink_unicast",
                    "netlink_sendmsg",
                ],
                None,
            ),
            (
                &[
                    "get_free_pages_noprof",
                    "neigh_hash_alloc",
                    "___neigh_create",
                    "neigh_add",
                    "netlink_rcv_skb",
                    "netlink_sendmsg",
                ],
                Some("the table of"),
            ),
            (
                &["__kmalloc", "proc_sys_call_handler"],
                Some("reading or writing"),
            ),
            (
                &[
                    "__kmalloc",
                    "alloc_fdtable",
                    "hugetlb_sysctl_handler",
                    "proc_sys_call_handler",
                ],
                None,
            ),
            (&["__kmalloc", "some_show", "seq_read"], None),
            (
                &["__kmalloc", "seq_buf_alloc", "traverse", "seq_read"],
                Some("reading a long"),
            ),
            (
                &[
                    "alloc_pages",
                    "some_driver",
                    "usbdev_do_ioctl",
                    "usbdev_ioctl",
                ],
                None,
            ),
            (
                &["__kmalloc", "proc_do_submiturb", "usbdev_do_ioctl"],
                Some("a USB program"),
            ),
            (
                &["dma_direct_alloc", "hcd_buffer_alloc", "usbdev_ioctl"],
                Some("a driver asked"),
            ),
        ] {
            assert_eq!(first(calls).as_deref(), begins, "{calls:?}");
        }
    }

    #[test]
    fn no_command_makes_a_file_system_or_erases() {
        for c in CALLERS {
            let command = c.command.unwrap_or("");
            for word in ["mkfs", "wipe", "rm ", "dd ", "drop_caches", "format"] {
                assert!(
                    !command.contains(word) && !c.action.contains(word),
                    "{command}"
                );
            }
            assert!(!c.action.is_empty() && !c.cost.is_empty());
        }
    }
}
