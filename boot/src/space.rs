//! Address spaces: page tables of unmovable frames, which map movable ones.
//!
//! A page is moved as a kernel moves one: its entry says that it is being moved, all CPUs forget the old translation, the
//! frame is copied, and the entry leads to the new one. A task that touches the page meanwhile faults, and waits.
//!
//! Invariants: the lock of a space guards its tables, and the owners of its frames. A frame with an owner is mapped, or is
//! being moved: then only whoever moves it changes its entry.

use crate::frames::{self, Rights};
use crate::memory_map::{DIRECT, frame};
use crate::mutex::Mutex;
use crate::owners::{self, Owner};
use crate::tables::{self, MOVES, State, entry};
use crate::{FRAME, task};
use unfrag::{MigrateType, Order, Pfn};
use x86_64::structures::paging::mapper::{CleanUp, MapToError, OffsetPageTable};
use x86_64::structures::paging::page_table::{PageTableEntry, PageTableFlags as Flags};
use x86_64::structures::paging::{
    FrameAllocator, FrameDeallocator, Mapper, Page, PageSize, PageTable, PhysFrame, Size2MiB,
    Size4KiB,
};
use x86_64::{PhysAddr, VirtAddr};

/// Where the pages of a space begin: entry 1 of its first table.
pub const START: u64 = 1 << 39;
const USED: Flags = Flags::PRESENT
    .union(Flags::WRITABLE)
    .union(Flags::NO_EXECUTE);

/// Why a page was not mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTable;

/// An address space.
pub struct Space {
    id: u16,
    root: Pfn,
    tables: Mutex<OffsetPageTable<'static>>,
}

/// The address of a page of 4 KiB.
pub fn address(page: u32) -> VirtAddr {
    VirtAddr::new(START + u64::from(page) * FRAME)
}

fn phys<S: PageSize>(pfn: Pfn) -> PhysFrame<S> {
    PhysFrame::from_start_address(PhysAddr::new(pfn.0 * FRAME)).expect("blocks are aligned")
}

fn pfn(at: PhysAddr) -> Pfn {
    Pfn(at.as_u64() / FRAME)
}

impl Space {
    /// An empty space. `None`, if there is no frame for its first table.
    pub fn new(id: u16) -> Option<Space> {
        let root = frames::alloc(Order(0), MigrateType::Unmovable, Rights::Task)?;
        let table = frame::<PageTable>(root);
        // SAFETY: The frame is ours. The kernel's half is the same in all spaces, and does not change.
        let tables = unsafe {
            table.write(PageTable::new());
            let kernel = frame::<PageTable>(tables::kernel_root());
            for i in [0, 256] {
                (&mut *table)[i] = (&*kernel)[i].clone();
            }
            OffsetPageTable::new(&mut *table, VirtAddr::new(DIRECT))
        };
        Some(Space {
            id,
            root,
            tables: Mutex::new(tables),
        })
    }

    /// Has the calling task use it.
    pub fn enter(&self) {
        task::enter(self.root);
    }

    /// Its number.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Maps a movable frame as a page of 4 KiB.
    ///
    /// # Errors
    /// [`NoTable`], if there is no frame for a page table.
    pub fn map(&self, page: u32, to: Pfn) -> Result<(), NoTable> {
        let mut tables = self.tables.lock();
        map::<Size4KiB>(&mut tables, page, to)?;
        owners::set(to, Owner::Space(self.id, page));
        frames::adopt(to, false);
        Ok(())
    }

    /// Maps a block of 512 frames as a page of 2 MiB, at a page that is a multiple of 512.
    ///
    /// # Errors
    /// [`NoTable`], if there is no frame for a page table.
    pub fn map_huge(&self, page: u32, to: Pfn) -> Result<(), NoTable> {
        map::<Size2MiB>(&mut self.tables.lock(), page, to)
    }

    /// Unmaps a page of 4 KiB, whose translation the caller then flushes before it frees the frame.
    pub fn unmap(&self, page: u32) -> Option<Pfn> {
        let mut tables = self.tables.lock();
        while self.state(page) == State::Moves {
            drop(tables);
            task::yield_now();
            tables = self.tables.lock();
        }
        let (frame, flush) = tables
            .unmap(Page::<Size4KiB>::containing_address(address(page)))
            .ok()?;
        flush.ignore();
        let old = pfn(frame.start_address());
        owners::clear(old);
        Some(old)
    }

    /// Unmaps a page of 2 MiB, as [`unmap`](Self::unmap) does.
    pub fn unmap_huge(&self, page: u32) -> Option<Pfn> {
        let mut tables = self.tables.lock();
        let (frame, flush) = tables
            .unmap(Page::<Size2MiB>::containing_address(address(page)))
            .ok()?;
        flush.ignore();
        Some(pfn(frame.start_address()))
    }

    /// What a page leads to.
    pub fn state(&self, page: u32) -> State {
        tables::state(self.root, address(page))
    }

    /// Begins to move a page away from a frame: whoever touches it from now on waits. The caller flushes its translation, and
    /// copies it. False, if the page is not there.
    pub fn begin_move(&self, page: u32, from: Pfn) -> bool {
        let _tables = self.tables.lock();
        let is_there = owners::of(from) == Some(Owner::Space(self.id, page));
        if is_there {
            self.set(page, from, MOVES);
        }
        is_there
    }

    /// Ends what [`begin_move`](Self::begin_move) began: the page is at its new place.
    pub fn end_move(&self, page: u32, from: Pfn, to: Pfn) {
        let _tables = self.tables.lock();
        self.set(page, to, USED);
        owners::moved(from, to, Owner::Space(self.id, page));
    }

    /// Sets the entry of a page that has one. The caller has the lock.
    fn set(&self, page: u32, to: Pfn, flags: Flags) {
        // SAFETY: The tables are ours.
        let entry = unsafe { entry(self.root, address(page)) };
        let entry = entry.expect("a frame with an owner is mapped");
        let mut new = PageTableEntry::new();
        new.set_addr(PhysAddr::new(to.0 * FRAME), flags);
        // SAFETY: As above; the CPU and `state` read an entry as a whole.
        unsafe { entry.write_volatile(new) };
    }

    /// Gives back the frames of the tables. No page is mapped any more, and no CPU uses the space.
    pub fn destroy(self) {
        let mut tables = self.tables.lock();
        // SAFETY: No table is in use, and each came from there.
        unsafe {
            tables.clean_up_addr_range(
                Page::range_inclusive(
                    Page::containing_address(VirtAddr::new(START)),
                    Page::containing_address(address(u32::MAX)),
                ),
                &mut TableFrames,
            );
            TableFrames.deallocate_frame(phys::<Size4KiB>(self.root));
        }
    }
}

/// Frames for page tables, which take the reserve too.
struct TableFrames;

// SAFETY: A frame is handed out until it is given back.
unsafe impl FrameAllocator<Size4KiB> for TableFrames {
    fn allocate_frame(&mut self) -> Option<PhysFrame> {
        frames::alloc(Order(0), MigrateType::Unmovable, Rights::Interrupt).map(phys)
    }
}

impl FrameDeallocator<Size4KiB> for TableFrames {
    unsafe fn deallocate_frame(&mut self, frame: PhysFrame) {
        frames::free(pfn(frame.start_address()), Order(0), MigrateType::Unmovable);
    }
}

/// Maps a frame of any size.
fn map<S: PageSize + core::fmt::Debug>(
    tables: &mut OffsetPageTable<'static>,
    page: u32,
    to: Pfn,
) -> Result<(), NoTable>
where
    OffsetPageTable<'static>: Mapper<S>,
{
    let page =
        Page::<S>::from_start_address(address(page)).expect("a page of its size begins there");
    // SAFETY: The frame is the caller's, and mapped nowhere else.
    let mapped = unsafe { tables.map_to(page, phys(to), USED, &mut TableFrames) };
    match mapped {
        Ok(new) => {
            new.ignore(); // Nobody has a translation of what was not there.
            Ok(())
        }
        Err(MapToError::FrameAllocationFailed) => Err(NoTable),
        Err(e) => panic!("page {page:?}: {e:?}"),
    }
}
