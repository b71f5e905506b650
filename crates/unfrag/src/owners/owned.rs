//! [`Owned`]: whose a block is, as a word.
//!
//! Invariant: what is read of a word is what was written; a word that was not written here says nobody.

use crate::frame::Order;
use crate::maps::LARGEST_ORDER;

/// Number of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerId(pub u16);

/// Whose a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owned {
    /// Who has it.
    pub owner: OwnerId,
    /// It has `2^order` frames.
    pub order: Order,
    /// What its owner calls it.
    pub tag: u32,
}

/// The word of a block that nobody has.
pub(super) const NOBODY: u64 = 0;
const OWNER: u32 = 32;
/// The order plus one, so that no block's word is zero.
const ORDER: u32 = 48;

impl Owned {
    pub(super) fn word(self) -> u64 {
        let order = u64::from(self.order.0) + 1;
        order << ORDER | u64::from(self.owner.0) << OWNER | u64::from(self.tag)
    }

    /// What a word says; `None`, for nobody's word and for one that nobody wrote here.
    pub(super) fn of(word: u64) -> Option<Owned> {
        let order = (word >> ORDER).checked_sub(1)?;
        let order = Order(u8::try_from(order).ok()?);
        (order <= LARGEST_ORDER).then_some(Owned {
            owner: OwnerId((word >> OWNER) as u16),
            order,
            tag: word as u32,
        })
    }
}
