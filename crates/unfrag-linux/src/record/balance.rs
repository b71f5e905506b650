//! Whether a recording's allocations and frees add up.
//!
//! A page that was allocated is freed in the recording, or held at its end, or its free was not seen. A free
//! was not seen if the page was allocated once more without one, or if the last snapshot shows it free. Such
//! frees are done by tasks that were not traced, mostly after a grace period.
//!
//! Invariant: `allocated = freed + held + unseen`.

use crate::event::{At, Block, Kind, Page, Tracker, Unreadable, walk};
use crate::procfs::kpageflags::{BUDDY, PageFlags};
use crate::recording::Recording;
use std::ops::Range;

/// Numbers of pages of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// Blocks that were allocated.
    pub allocations: u64,
    /// Pages in them.
    pub allocated: u64,
    /// Of these, seen freed.
    pub freed: u64,
    /// Of these, in use at the end.
    pub held: u64,
    /// Of these, freed with no event.
    pub unseen: u64,
    /// Blocks that were freed.
    pub frees: u64,
    /// Pages freed in the recording, but allocated before it.
    pub from_before: u64,
}

/// Page frames from this number on are not counted: 64 TiB of memory.
const MAX_FRAMES: u64 = 1 << 34;

/// The pages in use, while events are counted.
#[derive(Default)]
struct Count {
    live: Vec<bool>,
    sum: Balance,
}

impl Count {
    /// Says of each page of a block whether it is in use from now on; what it was before goes to `each`.
    fn put(&mut self, block: Block, live: bool, mut each: impl FnMut(&mut Balance, bool)) {
        let Range { start, end } = block.frames();
        let frames = start.min(MAX_FRAMES)..end.min(MAX_FRAMES);
        if self.live.len() < frames.end as usize {
            self.live.resize(frames.end as usize, false);
        }
        for page in frames {
            let was = std::mem::replace(&mut self.live[page as usize], live);
            each(&mut self.sum, was);
        }
    }
}

impl Tracker for Count {
    type Error = Unreadable;

    fn takes(&self, kind: Kind) -> bool {
        matches!(kind, Kind::Alloc | Kind::Free)
    }

    fn event(&mut self, _: &At, page: Option<Page<'_>>) -> Result<(), Unreadable> {
        match page {
            Some(Page::Alloc(alloc)) => {
                if let Some(block) = alloc.block() {
                    self.sum.allocations += 1;
                    self.put(block, true, |sum, was| {
                        sum.allocated += 1;
                        sum.unseen += u64::from(was);
                    });
                }
            }
            Some(Page::Free(block)) => {
                self.sum.frees += 1;
                self.put(block, false, |sum, was| match was {
                    true => sum.freed += 1,
                    false => sum.from_before += 1,
                });
            }
            _ => {}
        }
        Ok(())
    }
}

/// Counts the pages of a recording. Without page flags at its end, every page that is not seen freed counts
/// as held.
///
/// # Errors
/// If an event lacks its frame or its order.
pub fn balance(recording: &Recording) -> Result<Balance, Unreadable> {
    let mut count = Count::default();
    walk(&recording.events, &recording.strings, &mut count)?;
    let Count { live, mut sum } = count;
    let last = recording.snapshots.last();
    let flags = last.and_then(|s| PageFlags::of(s).ok()?);
    let is_free = |page: usize| {
        flags
            .as_ref()
            .is_some_and(|f| f.frame(page as u64) & BUDDY != 0)
    };
    for (page, _) in live.iter().enumerate().filter(|(_, live)| **live) {
        match is_free(page) {
            true => sum.unseen += 1,
            false => sum.held += 1,
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{EventTable, Events, Field, FieldKind, Snapshot, SnapshotFile};

    #[test]
    fn pages_are_freed_held_or_freed_unseen() {
        // Allocated: 8-9 (freed one by one), 3 twice, 4 (free at the end), 5 (held), and one that failed.
        let table = |name: &str, rows: &[(u64, u64)]| EventTable {
            system: "kmem".into(),
            name: name.into(),
            fields: ["pfn", "order"]
                .map(|n| Field {
                    name: n.into(),
                    kind: FieldKind::Unsigned,
                })
                .into(),
            columns: vec![
                rows.iter().map(|r| r.0).collect(),
                rows.iter().map(|r| r.1).collect(),
            ],
        };
        let kind = vec![0, 0, 0, 0, 0, 0, 1, 1, 1, 1];
        let mut flags = PageFlags { words: vec![0; 16] };
        flags.words[4] = BUDDY;
        let recording = Recording {
            events: Events {
                time: vec![0; kind.len()],
                tables: vec![
                    table(
                        "mm_page_alloc",
                        &[(8, 1), (3, 0), (3, 0), (4, 0), (5, 0), (0, 9)],
                    ),
                    table("mm_page_free", &[(8, 0), (9, 0), (3, 0), (12, 0)]),
                ],
                kind,
                ..Events::default()
            },
            snapshots: vec![Snapshot {
                name: "end".into(),
                files: vec![SnapshotFile {
                    name: "kpageflags".into(),
                    time: None,
                    content: flags.write().into(),
                }],
            }],
            ..Recording::default()
        };
        let wanted = Balance {
            allocations: 5,
            allocated: 6,
            freed: 3,
            held: 1,
            unseen: 2,
            frees: 4,
            from_before: 1,
        };
        assert_eq!(balance(&recording), Ok(wanted));
    }
}
