//! Commits of the ext3 journal, every five seconds: first the data of files that got blocks, then the changed
//! metadata, in one run of blocks. The flushers write the metadata to its own place later.

use crate::block::{BIO_PAGES, Bio, Dir, Done, PAGE_SECTORS};
use crate::channels::JOURNAL;
use crate::engine::{Channel, Nanos, SEC, Spec};
use crate::fs::journal::Journal;
use crate::fs::{NodeId, Store};
use crate::kernel::mm::Who;
use crate::kernel::{Cx, Sim};
use crate::mm::bit_set::BitSet;

/// Time between two commits.
pub const COMMIT: Nanos = 5 * SEC;
/// Most blocks of a journal: 128 MiB.
const MAX_BLOCKS: u32 = 32_768;

impl Sim {
    pub(super) fn start_journal(&mut self, fs: u8, pages: u32) {
        let len = (pages / 32).clamp(256, MAX_BLOCKS);
        let system = self.kernel().vfs.system_mut(fs);
        let place = system.blocks.alloc(len, pages / 2);
        // The device is too small for the journal.
        let Some(first) = place.and_then(|p| p.first().copied()) else {
            panic!("{} pages are too few for ext3", pages)
        };
        system.journal = Some(Journal {
            start: first.start,
            len: first.len,
            at: 0,
            changed: BitSet::default(),
            nr_changed: 0,
            ordered: vec![],
            commits: 0,
            blocks: 0,
        });
        let spec = Spec::kthread("kjournald");
        self.spawn(spec, move |cx| kjournald(cx, fs));
    }

    /// Takes the files and the number of blocks of the next commit.
    fn take_transaction(&mut self, fs: u8) -> (Vec<NodeId>, u32) {
        let vfs = &mut self.kernel().vfs;
        let Some(j) = &mut vfs.system_mut(fs).journal else {
            return (vec![], 0);
        };
        let ordered = std::mem::take(&mut j.ordered);
        let n = std::mem::take(&mut j.nr_changed);
        j.changed = BitSet::default();
        for &node in &ordered {
            vfs.node_mut(node).in_transaction = false;
        }
        for &node in &ordered {
            self.pin(node);
        }
        (ordered, n)
    }
}

fn kjournald(cx: &mut Cx, fs: u8) {
    loop {
        cx.wait(Channel::new(JOURNAL, fs.into()), Some(COMMIT));
        let (ordered, changed) = cx.with(|sim| sim.take_transaction(fs));
        for &node in &ordered {
            cx.write_all(node);
        }
        for &node in &ordered {
            cx.wait_for_writes(node);
            cx.with(|sim| sim.unpin(node));
        }
        if changed > 0 {
            // Changed blocks, one that describes them, one that commits.
            cx.write_journal(fs, changed + 2);
        }
        cx.pay();
    }
}

impl Cx<'_> {
    /// Begins to write all dirty pages of a node.
    fn write_all(&mut self, node: NodeId) {
        let mut at = 0;
        loop {
            let (n, end) = self.with(|sim| {
                let Some(object) = sim.kernel_ref().vfs.node(node).object else {
                    return (0, true);
                };
                sim.write_object(object, &mut at, 128, false)
            });
            self.settle();
            self.pay_if_much();
            if end || n == 0 {
                return;
            }
        }
    }

    /// Waits until no page of a node is being written.
    pub(crate) fn wait_for_writes(&mut self, node: NodeId) {
        let mut at = 0;
        loop {
            let page = self.with(|sim| {
                let object = sim.kernel_ref().vfs.node(node).object?;
                let i = sim.kernel_ref().objects.get(object).next_present(at)?;
                Some((i, sim.kernel_ref().objects.get(object).get(i).pfn()))
            });
            let Some((i, pfn)) = page else { return };
            at = i + 1;
            if let Some(pfn) = pfn {
                self.wait_on_writeback(pfn);
            }
        }
    }

    /// Writes a node's dirty pages and waits for them (`fsync`).
    pub fn fsync(&mut self, _who: Who, node: NodeId) {
        self.write_all(node);
        self.wait_for_writes(node);
    }

    /// Writes a run of blocks into the journal and waits for them. A failed write ends this commit; the blocks
    /// stay dirty.
    fn write_journal(&mut self, fs: u8, blocks: u32) {
        let mut left = blocks;
        while left > 0 {
            let next = self.with(|sim| sim.next_journal_blocks(fs, left));
            let Some((bio, n)) = next else { return };
            if self.transfer(bio).is_err() {
                return;
            }
            left -= n;
        }
        self.with(|sim| {
            if let Some(j) = &mut sim.kernel().vfs.system_mut(fs).journal {
                j.commits += 1;
            }
        });
    }
}

impl Sim {
    fn next_journal_blocks(&mut self, fs: u8, left: u32) -> Option<(Bio, u32)> {
        let system = self.kernel().vfs.system_mut(fs);
        let Store::Disk { device, sector } = system.store else {
            return None;
        };
        let j = system.journal.as_mut()?;
        let n = left.min(j.len - j.at).min(BIO_PAGES as u32);
        let block = j.start + j.at;
        j.at = (j.at + n) % j.len;
        j.blocks += u64::from(n);
        let sector = sector + u64::from(block) * PAGE_SECTORS;
        let mut bio = Bio::new(device, sector, Dir::Write, true, Done::User(0));
        for _ in 0..n {
            bio.push(0);
        }
        Some((bio, n))
    }
}
