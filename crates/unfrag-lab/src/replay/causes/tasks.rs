//! Kernel threads by their names, and the states of a task while the trace is walked.

use unfrag::NodeId;
use unfrag_linux::recording::Task;

/// The node whose kswapd a task is, by its name (`kswapd1`).
pub(crate) fn kswapd_of(task: &Task) -> Option<NodeId> {
    let number = task.comm.strip_prefix("kswapd")?;
    let digits = number.find(|c: char| !c.is_ascii_digit());
    let number = &number[..digits.unwrap_or(number.len())];
    Some(NodeId(number.parse().unwrap_or(0)))
}

pub(super) const COMPACTING: u8 = 1;
pub(super) const RECLAIMING: u8 = 2;
pub(super) const KSWAPD: u8 = 4;
pub(super) const KCOMPACTD: u8 = 8;
pub(super) const KWORKER: u8 = 16;
/// Between the isolation of sources and the end of their migration.
pub(super) const MIGRATING: u8 = 32;

/// `common_flags` of an event in a hard or soft interrupt.
pub(super) const INTERRUPT: u8 = 0x18;
