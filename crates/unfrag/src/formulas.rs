//! Formulas that more than one allocator of the project computes with.

/// `vm.min_free_kbytes` as the kernel derives it from the size of low memory, both in KiB, and at most
/// `cap_kbytes`. `spec: 1.3`
pub const fn min_free_kbytes(lowmem_kbytes: u64, cap_kbytes: u64) -> u64 {
    let kb = (lowmem_kbytes * 16).isqrt();
    if kb < 128 {
        128
    } else if kb > cap_kbytes {
        cap_kbytes
    } else {
        kb
    }
}
