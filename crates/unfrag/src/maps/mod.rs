//! unfrag's own engine: which free frame serves a request, and where a freed one goes, by maps instead of lists.
//!
//! For each 512 frames (a pageblock of 2 MiB, where a page has 4 KiB) there is a map of 512 bits, one cache line, and a
//! record of a quarter of a line: 0.16 bytes a frame, 0.17 with what else a gigabyte's tables hold; and no record of a frame. Free buddies need not be merged: a larger block
//! is free where all its bits are set.
//!
//! - **The fullest block serves.** Blocks of a type are binned by their free frames, and a request takes from the bin with
//!   the fewest. So the emptier blocks become empty by themselves as what is in them is freed. Before them serve those that
//!   cannot become empty for now: of which a frame stayed when they were to be emptied, or that are partly memory.
//! - **A block has one type**: of the first request after it was empty. Frames of another type go into it only when nothing
//!   else is left; and then a block is taken over that is the cheapest to purify, the emptiest one.
//! - **Gigabytes are kept apart too.** What cannot be moved takes whole blocks where it stands already, what can be moved
//!   takes them elsewhere. Whole free blocks are bits of a map in turn, 512 to a line, so blocks up to a gigabyte are found
//!   as runs of bits.
//! - **A free frame is known by its bit**, so that a frame that is freed twice is refused; any aligned part of a block in
//!   use may be freed by itself; and memory may be added at any time. **So is one that is no memory**, where a block is partly
//!   memory: it is neither given back nor added twice.
//!
//! - `sizes`, `map`: 512 bits. `tables`: those of a gigabyte, and the directory of them. `block`: the record of a pageblock; `credit`: how many frames come back without a look at it. `bins`: blocks by type and fullness. `whole`, `gigabyte`: whole free
//!   blocks, and gigabytes by what stands in them. `engine`: taking. `give`: giving back.
//! - `error`: why frames are refused. `absent`: adding and removing memory. `apart`: what is set apart to be emptied; `runs`: the cheapest run of blocks. `place`: taking frames by their place. `report`: whole free blocks that a host may take back. `free_blocks`: what is free, as lists would show it. `validate`: every invariant. [`memory`](crate::memory) has engines for many CPUs.
//!
//! Invariants: each frame of the memory that was added is free or in use, and no other frame is either; a block is in exactly one bin of its type if
//! some of it is free and some is not, a bit of its gigabyte if all of it is free, and in neither otherwise, or while it is
//! set apart.

mod absent;
mod apart;
mod bins;
mod block;
mod credit;
mod engine;
mod error;
mod free_blocks;
mod gigabyte;
mod give;
mod map;
mod place;
mod report;
mod runs;
mod sizes;
mod tables;
mod validate;
mod view;
mod whole;

pub use engine::{Engine, EngineCounts, EngineLayout};
pub use error::GiveError;
pub use free_blocks::FreeBlocks;
pub use report::FreeRun;
pub(crate) use runs::Seek;
pub use sizes::{BLOCK_ORDER, LARGEST_ORDER};
pub(crate) use sizes::{TYPES, type_index};
pub use tables::{Entries, Gigabyte};
pub use validate::Broken;
pub use view::BlockView;
