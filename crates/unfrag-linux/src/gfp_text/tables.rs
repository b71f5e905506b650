//! Names and bits of gfp flags, one table for each era.

/// Names and masks, in the order of printing.
pub(super) type Table = [(&'static str, u64)];

/// 2.6.23 to 2.6.29. `spec: 7.7`
pub(super) const V2_6_23: [(&str, u64); 24] = [
    ("GFP_HIGHUSER_MOVABLE", 0x1200d2),
    ("GFP_HIGHUSER", 0x200d2),
    ("GFP_USER", 0x200d0),
    ("GFP_TEMPORARY", 0x800d0),
    ("GFP_KERNEL", 0xd0),
    ("GFP_NOFS", 0x50),
    ("GFP_ATOMIC", 0x20),
    ("GFP_NOIO", 0x10),
    ("GFP_HIGH", 0x20),
    ("GFP_WAIT", 0x10),
    ("GFP_IO", 0x40),
    ("GFP_FS", 0x80),
    ("GFP_COLD", 0x100),
    ("GFP_NOWARN", 0x200),
    ("GFP_REPEAT", 0x400),
    ("GFP_NOFAIL", 0x800),
    ("GFP_NORETRY", 0x1000),
    ("GFP_COMP", 0x4000),
    ("GFP_ZERO", 0x8000),
    ("GFP_NOMEMALLOC", 0x10000),
    ("GFP_HARDWALL", 0x20000),
    ("GFP_THISNODE", 0x40000),
    ("GFP_RECLAIMABLE", 0x80000),
    ("GFP_MOVABLE", 0x100000),
];

/// 2.6.32, and what 3.x added from bit 0x200000 on. `spec: 7.7`
pub(super) const V2_6_32: [(&str, u64); 29] = [
    ("GFP_HIGHUSER_MOVABLE", 0x200da),
    ("GFP_HIGHUSER", 0x200d2),
    ("GFP_USER", 0x200d0),
    ("GFP_TEMPORARY", 0x800d0),
    ("GFP_KERNEL", 0xd0),
    ("GFP_NOFS", 0x50),
    ("GFP_ATOMIC", 0x20),
    ("GFP_NOIO", 0x10),
    ("GFP_HIGH", 0x20),
    ("GFP_WAIT", 0x10),
    ("GFP_IO", 0x40),
    ("GFP_FS", 0x80),
    ("GFP_COLD", 0x100),
    ("GFP_NOWARN", 0x200),
    ("GFP_REPEAT", 0x400),
    ("GFP_NOFAIL", 0x800),
    ("GFP_NORETRY", 0x1000),
    ("GFP_MEMALLOC", 0x2000),
    ("GFP_COMP", 0x4000),
    ("GFP_ZERO", 0x8000),
    ("GFP_NOMEMALLOC", 0x10000),
    ("GFP_HARDWALL", 0x20000),
    ("GFP_THISNODE", 0x40000),
    ("GFP_RECLAIMABLE", 0x80000),
    ("GFP_MOVABLE", 0x8),
    ("GFP_NOTRACK", 0x200000),
    ("GFP_NO_KSWAPD", 0x400000),
    ("GFP_OTHER_NODE", 0x800000),
    ("GFP_WRITE", 0x1000000),
];

pub(super) const RECLAIM_4_10: u64 = 0x1400000;

/// The list of 4.4 to 5.0; the arguments are what differs between its eras.
const fn table_of_4_4_to_5_0(
    direct: u64,
    kswapd: u64,
    write: (&'static str, u64),
    retry: &'static str,
    extra: (&'static str, u64),
) -> [(&'static str, u64); 33] {
    let reclaim = direct | kswapd;
    let kernel = reclaim | 0xc0;
    let user = kernel | 0x20000;
    let movable = user | 0xa;
    let light = (movable | 0x4000 | 0x10000 | 0x200) & !reclaim;
    [
        ("GFP_TRANSHUGE", light | direct),
        ("GFP_TRANSHUGE_LIGHT", light),
        ("GFP_HIGHUSER_MOVABLE", movable),
        ("GFP_HIGHUSER", user | 0x2),
        ("GFP_USER", user),
        ("GFP_KERNEL_ACCOUNT", kernel | 0x100000),
        ("GFP_KERNEL", kernel),
        ("GFP_NOFS", reclaim | 0x40),
        ("GFP_ATOMIC", 0x80020 | kswapd),
        ("GFP_NOIO", reclaim),
        ("GFP_NOWAIT", kswapd),
        ("GFP_DMA", 0x1),
        ("__GFP_HIGHMEM", 0x2),
        ("GFP_DMA32", 0x4),
        ("__GFP_HIGH", 0x20),
        ("__GFP_ATOMIC", 0x80000),
        ("__GFP_IO", 0x40),
        ("__GFP_FS", 0x80),
        extra,
        ("__GFP_NOWARN", 0x200),
        (retry, 0x400),
        ("__GFP_NOFAIL", 0x800),
        ("__GFP_NORETRY", 0x1000),
        ("__GFP_COMP", 0x4000),
        ("__GFP_ZERO", 0x8000),
        ("__GFP_NOMEMALLOC", 0x10000),
        ("__GFP_MEMALLOC", 0x2000),
        ("__GFP_HARDWALL", 0x20000),
        ("__GFP_THISNODE", 0x40000),
        ("__GFP_RECLAIMABLE", 0x10),
        ("__GFP_MOVABLE", 0x8),
        ("__GFP_ACCOUNT", 0x100000),
        write,
    ]
}

/// `list` with `more` behind it.
const fn join<const A: usize, const B: usize, const C: usize>(
    list: [(&'static str, u64); A],
    more: [(&'static str, u64); B],
) -> [(&'static str, u64); C] {
    let mut all = [("", 0); C];
    let mut i = 0;
    while i < C {
        all[i] = if i < A { list[i] } else { more[i - A] };
        i += 1;
    }
    all
}

pub(super) const V4_4: [(&str, u64); 38] = join(
    table_of_4_4_to_5_0(
        0x400000,
        0x2000000,
        ("__GFP_WRITE", 0x1000000),
        "__GFP_REPEAT",
        ("__GFP_COLD", 0x100),
    ),
    [
        ("__GFP_NOTRACK", 0x200000),
        ("__GFP_RECLAIM", 0x2400000),
        ("__GFP_DIRECT_RECLAIM", 0x400000),
        ("__GFP_KSWAPD_RECLAIM", 0x2000000),
        ("__GFP_OTHER_NODE", 0x800000),
    ],
);

pub(super) const V4_10: [(&str, u64); 38] = join(
    table_of_4_4_to_5_0(
        0x400000,
        0x1000000,
        ("__GFP_WRITE", 0x800000),
        "__GFP_REPEAT",
        ("__GFP_COLD", 0x100),
    ),
    [
        ("__GFP_NOTRACK", 0x200000),
        ("__GFP_RECLAIM", RECLAIM_4_10),
        ("__GFP_DIRECT_RECLAIM", 0x400000),
        ("__GFP_KSWAPD_RECLAIM", 0x1000000),
        // The name of __GFP_REPEAT from 4.13 on.
        ("__GFP_RETRY_MAYFAIL", 0x400),
    ],
);

pub(super) const V4_18: [(&str, u64); 36] = join(
    table_of_4_4_to_5_0(
        0x200000,
        0x400000,
        ("__GFP_WRITE", 0x100),
        "__GFP_RETRY_MAYFAIL",
        ("__GFP_NOLOCKDEP", 0x800000),
    ),
    [
        ("__GFP_RECLAIM", 0x600000),
        ("__GFP_DIRECT_RECLAIM", 0x200000),
        ("__GFP_KSWAPD_RECLAIM", 0x400000),
    ],
);

/// 6.1, from its event format.
pub(super) const V5_1: [(&str, u64); 36] = [
    ("GFP_TRANSHUGE", 0x1c24ca),
    ("GFP_TRANSHUGE_LIGHT", 0x1c20ca),
    ("GFP_HIGHUSER_MOVABLE", 0x100cca),
    ("GFP_HIGHUSER", 0x100cc2),
    ("GFP_USER", 0x100cc0),
    ("GFP_KERNEL_ACCOUNT", 0x400cc0),
    ("GFP_KERNEL", 0xcc0),
    ("GFP_NOFS", 0xc40),
    ("GFP_ATOMIC", 0xa20),
    ("GFP_NOIO", 0xc00),
    ("GFP_NOWAIT", 0x800),
    ("GFP_DMA", 0x1),
    ("__GFP_HIGHMEM", 0x2),
    ("GFP_DMA32", 0x4),
    ("__GFP_HIGH", 0x20),
    ("__GFP_ATOMIC", 0x200),
    ("__GFP_IO", 0x40),
    ("__GFP_FS", 0x80),
    ("__GFP_NOWARN", 0x2000),
    ("__GFP_RETRY_MAYFAIL", 0x4000),
    ("__GFP_NOFAIL", 0x8000),
    ("__GFP_NORETRY", 0x10000),
    ("__GFP_COMP", 0x40000),
    ("__GFP_ZERO", 0x100),
    ("__GFP_NOMEMALLOC", 0x80000),
    ("__GFP_MEMALLOC", 0x20000),
    ("__GFP_HARDWALL", 0x100000),
    ("__GFP_THISNODE", 0x200000),
    ("__GFP_RECLAIMABLE", 0x10),
    ("__GFP_MOVABLE", 0x8),
    ("__GFP_ACCOUNT", 0x400000),
    ("__GFP_WRITE", 0x1000),
    ("__GFP_RECLAIM", 0xc00),
    ("__GFP_DIRECT_RECLAIM", 0x400),
    ("__GFP_KSWAPD_RECLAIM", 0x800),
    ("__GFP_ZEROTAGS", 0x800000),
];

/// 6.1 without `__GFP_ATOMIC`.
pub(super) const V6_3: [(&str, u64); 35] = [
    ("GFP_TRANSHUGE", 0x1c24ca),
    ("GFP_TRANSHUGE_LIGHT", 0x1c20ca),
    ("GFP_HIGHUSER_MOVABLE", 0x100cca),
    ("GFP_HIGHUSER", 0x100cc2),
    ("GFP_USER", 0x100cc0),
    ("GFP_KERNEL_ACCOUNT", 0x400cc0),
    ("GFP_KERNEL", 0xcc0),
    ("GFP_NOFS", 0xc40),
    ("GFP_ATOMIC", 0x820),
    ("GFP_NOIO", 0xc00),
    ("GFP_NOWAIT", 0x800),
    ("GFP_DMA", 0x1),
    ("__GFP_HIGHMEM", 0x2),
    ("GFP_DMA32", 0x4),
    ("__GFP_HIGH", 0x20),
    ("__GFP_IO", 0x40),
    ("__GFP_FS", 0x80),
    ("__GFP_NOWARN", 0x2000),
    ("__GFP_RETRY_MAYFAIL", 0x4000),
    ("__GFP_NOFAIL", 0x8000),
    ("__GFP_NORETRY", 0x10000),
    ("__GFP_COMP", 0x40000),
    ("__GFP_ZERO", 0x100),
    ("__GFP_NOMEMALLOC", 0x80000),
    ("__GFP_MEMALLOC", 0x20000),
    ("__GFP_HARDWALL", 0x100000),
    ("__GFP_THISNODE", 0x200000),
    ("__GFP_RECLAIMABLE", 0x10),
    ("__GFP_MOVABLE", 0x8),
    ("__GFP_ACCOUNT", 0x400000),
    ("__GFP_WRITE", 0x1000),
    ("__GFP_RECLAIM", 0xc00),
    ("__GFP_DIRECT_RECLAIM", 0x400),
    ("__GFP_KSWAPD_RECLAIM", 0x800),
    ("__GFP_ZEROTAGS", 0x800000),
];

/// 6.18, from its event format.
pub(super) const V6_18: [(&str, u64); 38] = [
    ("GFP_TRANSHUGE", 0x1c24ca),
    ("GFP_TRANSHUGE_LIGHT", 0x1c20ca),
    ("GFP_HIGHUSER_MOVABLE", 0x100cca),
    ("GFP_HIGHUSER", 0x100cc2),
    ("GFP_USER", 0x100cc0),
    ("GFP_KERNEL_ACCOUNT", 0x400cc0),
    ("GFP_KERNEL", 0xcc0),
    ("GFP_NOFS", 0xc40),
    ("GFP_ATOMIC", 0x820),
    ("GFP_NOIO", 0xc00),
    ("GFP_NOWAIT", 0x2800),
    ("GFP_DMA", 0x1),
    ("GFP_DMA32", 0x4),
    ("__GFP_RECLAIM", 0xc00),
    ("__GFP_DMA", 0x1),
    ("__GFP_HIGHMEM", 0x2),
    ("__GFP_DMA32", 0x4),
    ("__GFP_MOVABLE", 0x8),
    ("__GFP_RECLAIMABLE", 0x10),
    ("__GFP_HIGH", 0x20),
    ("__GFP_IO", 0x40),
    ("__GFP_FS", 0x80),
    ("__GFP_ZERO", 0x100),
    ("__GFP_DIRECT_RECLAIM", 0x400),
    ("__GFP_KSWAPD_RECLAIM", 0x800),
    ("__GFP_WRITE", 0x1000),
    ("__GFP_NOWARN", 0x2000),
    ("__GFP_RETRY_MAYFAIL", 0x4000),
    ("__GFP_NOFAIL", 0x8000),
    ("__GFP_NORETRY", 0x10000),
    ("__GFP_MEMALLOC", 0x20000),
    ("__GFP_COMP", 0x40000),
    ("__GFP_NOMEMALLOC", 0x80000),
    ("__GFP_HARDWALL", 0x100000),
    ("__GFP_THISNODE", 0x200000),
    ("__GFP_ACCOUNT", 0x400000),
    ("__GFP_ZEROTAGS", 0x800000),
    ("__GFP_NO_OBJ_EXT", 0x1000000),
];
