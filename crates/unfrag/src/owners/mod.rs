//! Who has a frame, and who is asked to give some back. All of it is optional: the memory works without.
//!
//! - `owned`: [`Owned`], whose a block is. `words`: [`Owners`], a word for each frame, which says whose the block is that begins there.
//! - `roster`: [`Roster`], the owners that can be asked, each by its number. `reclaim`: [`Reclaim`], what a kswapd does, or a
//!   request that finds nothing: it names an owner and a number of frames, and is told what came of it.
//! - `error`: why a call is refused.
//!
//! What an owner is, and how it moves a block or lets go of it, is the embedder's to know: nothing here calls an owner.
//!
//! Both tables lie in words that the caller hands in: a slice that lives long enough, a box, or an array in a `static`.
//!
//! ```
//! use std::sync::atomic::AtomicU64;
//! use unfrag::owners::{Owned, Owners, Roster};
//! use unfrag::{Order, Pfn};
//!
//! static ROSTER: Roster<[AtomicU64; 8]> = Roster::new([const { AtomicU64::new(0) }; 8]);
//! static OWNERS: Owners<[AtomicU64; 512]> = Owners::new(Pfn(0), [const { AtomicU64::new(0) }; 512]);
//!
//! let cache = ROSTER.add()?;
//! let page = Owned { owner: cache, order: Order(2), tag: 77 };
//! OWNERS.set(Pfn(4), page)?;
//! assert_eq!(OWNERS.get(Pfn(4)), Some(page));
//! // The block moves: its word goes with it, unless somebody freed it meanwhile.
//! OWNERS.moved(Pfn(4), Pfn(64), page)?;
//!
//! // Nobody asks the cache any more; its number is another owner's once no block has it.
//! ROSTER.remove(cache)?;
//! OWNERS.clear(Pfn(64));
//! assert_eq!(OWNERS.blocks_of(cache).count(), 0);
//! ROSTER.release(cache)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod owned;
mod reclaim;
mod roster;
mod words;

pub use error::OwnersError;
pub use owned::{Owned, OwnerId};
pub use reclaim::{Reclaim, Reclaimed, Turn, Want};
pub use roster::{MAX_OWNERS, Roster};
pub use words::Owners;
