//! What a request may use of a zone: one answer for the doctor, the exporter and the explanation of a kernel's log.
//!
//! Plain data in ([`ZoneView`], [`Request`]), plain numbers out. The watermark test is the eras' own
//! ([`unfrag_eras::zone::watermark`]) in the form of the kernel's era; the zone by flags is
//! [`unfrag_eras::highest_zone`]'s.
//!
//! - [`may_use`]: whether a zone is among those that a request's flags allow.
//! - [`blocks`], [`pages`], [`largest_order`]: what of a zone's free memory counts for it.
//! - [`passes`]: the watermark test; [`serves`]: whether the zone gives it a block.
//! - [`withheld`], [`lowered_mark`], [`has_room`]: what does not count, the mark, and whether memory is enough.
//! - [`in_a_row`], [`room`]: how many such requests succeed one after the other.
//! - [`kept`]: which number of `protection` holds for it.
//!
//! Invariant: a block counts only if the kernel would give it to the request. Isolated blocks never count, blocks of
//! contiguous memory areas only for requests with `AllocFlags::CMA`, those of the high-order atomic reserve
//! only with `AllocFlags::HIGHATOMIC`.

mod count;
mod room;
mod rules;
#[cfg(test)]
mod tests;
mod view;

pub use count::{has_room, lowered_mark, withheld};
pub use room::{Room, in_a_row, room};
pub use rules::{blocks, kept, largest_order, may_use, pages, passes, serves};
pub use view::{Request, ZoneView};
