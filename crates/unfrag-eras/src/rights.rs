//! The rights of a request in the slow path (`gfp_to_alloc_flags`). `spec: 1.4`

use crate::frame::Order;
use crate::gfp::{AllocFlags, Gfp};
use crate::kernel::{BoostRecheck, LeavesCpuset, Reserve, Rules};

/// How far a request of an order may go once the first attempt has failed.
pub fn alloc_flags(gfp: Gfp, order: Order, rules: &Rules) -> AllocFlags {
    let mut f = AllocFlags::CPUSET;
    if gfp.contains(Gfp::HIGH) {
        f |= AllocFlags::MIN_RESERVE;
    }
    if gfp.contains(Gfp::KSWAPD_RECLAIM) {
        f |= AllocFlags::KSWAPD;
    }
    let unboosted = rules.boost().map(|b| match b.recheck {
        BoostRecheck::AtomicBit => Gfp::ATOMIC,
        BoostRecheck::High => Gfp::HIGH,
    });
    if unboosted.is_some_and(|bit| gfp.contains(bit)) {
        f |= AllocFlags::UNBOOSTED_RECHECK;
    }
    if gfp.contains(Gfp::DIRECT_RECLAIM) {
        return f;
    }
    if !(rules.rights.nomemalloc_forbids && gfp.contains(Gfp::NOMEMALLOC)) {
        f |= AllocFlags::NON_BLOCK;
        let reserve = matches!(rules.reserve(), Reserve::HighAtomic(_));
        if reserve && order > Order::ZERO && gfp.contains(Gfp::HIGH) {
            f |= AllocFlags::HIGHATOMIC;
        }
    }
    let leaves = match rules.rights.leaves_cpuset {
        LeavesCpuset::AllThatCannotWait => true,
        LeavesCpuset::HighThatCannotWait => gfp.contains(Gfp::HIGH),
    };
    if leaves {
        f -= AllocFlags::CPUSET;
    }
    f
}
