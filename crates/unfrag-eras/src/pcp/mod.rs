//! Per-CPU page lists (pcp): free pages of each zone that a CPU keeps, so that most requests do not touch the
//! zone.
//!
//! Four shapes, by era: hot and cold lists, V19's two kinds, one list that is searched or one per
//! type (order 0 alone), and lists for orders 0 to 3 and huge pages. All of them live in the same fourteen
//! list heads; [`Pcp`](crate::kernel::Pcp) says how they are used. Which block
//! leaves first, and how many at a time, decides where memory fragments, so these rules follow the kernels
//! exactly.
//!
//! - `cpu_lists`: the set of lists: take, refill, put, give back.
//! - `orders`: 5.13 and later. `single`: earlier ones; `searched`: those that hold all types together.
//! - [`size`]: batch and high.

mod cpu_lists;
mod orders;
mod searched;
mod single;
pub mod size;
#[cfg(test)]
mod tests;

pub(crate) use cpu_lists::{CpuLists, CpuZone, Freed, ZonePressure};
pub use cpu_lists::{NR_LISTS, list_index};
