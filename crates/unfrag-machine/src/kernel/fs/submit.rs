//! Where the pages of files lie, and how their transfers reach a device.

use crate::block::{Bio, PAGE_SECTORS};
use crate::fs::transfer::BlockRun;
use crate::fs::{NodeId, Store};
use crate::kernel::World;
use crate::mm::frames::ObjectId;
use crate::mm::object::ObjectKind;

impl World {
    /// See [`Sim::place`].
    pub(crate) fn place(&self, object: ObjectId, index: u32) -> Option<(u8, u32, u32)> {
        let kernel = &self.kernel;
        match kernel.objects.get(object).kind {
            ObjectKind::File(n) => {
                let node = kernel.vfs.node(NodeId(n));
                let (block, together) = node.block(index)?;
                Some((node.fs, block, together))
            }
            ObjectKind::Device(fs) => Some((fs as u8, index, 1)),
            ObjectKind::Shmem(_) | ObjectKind::Anon(_) => None,
        }
    }

    /// Submits a run of blocks of a file system to its device: a disk or a loop device.
    pub(crate) fn submit_blocks(&mut self, blocks: BlockRun, pages: &[u32]) {
        match self.kernel.vfs.system(blocks.fs).store {
            Store::Disk { device, sector } => {
                let sector = sector + u64::from(blocks.block) * PAGE_SECTORS;
                let mut bio = Bio::new(device, sector, blocks.dir, blocks.sync, blocks.done);
                bio.room = blocks.room;
                for &p in pages {
                    bio.push(p);
                }
                self.submit(bio);
            }
            Store::Loop(l) => self.submit_to_loop(l, blocks, pages),
            Store::Memory => unreachable!("tmpfs has no blocks"),
        }
    }
}
