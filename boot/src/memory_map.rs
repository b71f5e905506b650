//! The machine's memory as the loader describes it, and the direct map, through which all of it is reached.
//!
//! Invariant: regions are in order, whole frames, and do not overlap; what is carved out is in none of them any more.

use core::ops::Range;
use unfrag::Pfn;

/// Bytes of a frame.
pub const FRAME: u64 = 4096;
/// Where the direct map begins: entry 256 of the first page table.
pub const DIRECT: u64 = 0xffff_8000_0000_0000;

/// The address of physical memory in the direct map.
#[inline]
pub fn direct<T>(physical: u64) -> *mut T {
    (DIRECT + physical) as *mut T
}

/// The address of a frame in the direct map.
#[inline]
pub fn frame<T>(pfn: Pfn) -> *mut T {
    direct(pfn.0 * FRAME)
}

/// The start info of the PVH protocol.
#[repr(C)]
struct StartInfo {
    magic: u32,
    version: u32,
    flags: u32,
    modules: u32,
    module_list: u64,
    command_line: u64,
    rsdp: u64,
    map: u64,
    map_entries: u32,
    reserved: u32,
}

/// A line of its memory map.
#[repr(C)]
#[derive(Clone, Copy)]
struct MapEntry {
    start: u64,
    bytes: u64,
    kind: u32,
    reserved: u32,
}

const MAGIC: u32 = 0x336e_c578;
const USABLE: u32 = 1;

/// Most regions.
const MOST: usize = 64;

/// Frames that may be used, by region.
#[derive(Clone, Copy)]
pub struct MemoryMap {
    regions: [(u64, u64); MOST],
    count: usize,
}

/// What the loader left: the memory map, and the command line.
pub struct Loaded {
    /// Usable memory.
    pub map: MemoryMap,
    /// The command line of the kernel.
    pub command_line: &'static str,
}

/// Reads what the loader left. The command line is copied, as the memory that it lies in is used later.
///
/// # Safety
/// `start_info` is what the loader gave, and its memory has not been used since. Called once.
pub unsafe fn read(start_info: u64) -> Loaded {
    static mut LINE: [u8; 512] = [0; 512];
    let mut map = MemoryMap {
        regions: [(0, 0); MOST],
        count: 0,
    };
    // SAFETY: As the caller says.
    unsafe {
        let info = &*direct::<StartInfo>(start_info);
        assert!(
            info.magic == MAGIC && info.version >= 1,
            "not started by the PVH protocol"
        );
        let entries =
            core::slice::from_raw_parts(direct::<MapEntry>(info.map), info.map_entries as usize);
        for e in entries.iter().filter(|e| e.kind == USABLE) {
            map.insert(e.start.div_ceil(FRAME)..(e.start + e.bytes) / FRAME);
        }
        let line = &raw mut LINE;
        let line = &mut *line;
        let mut len = 0;
        let from = direct::<u8>(info.command_line);
        while info.command_line != 0 && len < line.len() && *from.add(len) != 0 {
            line[len] = *from.add(len);
            len += 1;
        }
        let line = core::str::from_utf8(&line[..len]).expect("a command line in ASCII");
        Loaded {
            map,
            command_line: line,
        }
    }
}

impl MemoryMap {
    /// Adds a region that overlaps no other one.
    fn insert(&mut self, frames: Range<u64>) {
        if frames.is_empty() {
            return;
        }
        assert!(self.count < MOST, "more than {MOST} regions of memory");
        let at = self.regions[..self.count].partition_point(|r| r.0 < frames.start);
        self.regions.copy_within(at..self.count, at + 1);
        self.regions[at] = (frames.start, frames.end);
        self.count += 1;
    }

    /// The regions, in frames.
    pub fn regions(&self) -> impl Iterator<Item = Range<u64>> + Clone + '_ {
        self.regions[..self.count].iter().map(|r| r.0..r.1)
    }

    /// Frames of all regions.
    pub fn frames(&self) -> u64 {
        self.regions().map(|r| r.end - r.start).sum()
    }

    /// The frame after the last one.
    pub fn end(&self) -> u64 {
        self.regions().last().map_or(0, |r| r.end)
    }

    /// Takes frames away: a hole from now on.
    pub fn remove(&mut self, hole: Range<u64>) {
        let old = *self;
        self.count = 0;
        for r in old.regions() {
            self.insert(r.start..r.end.min(hole.start.max(r.start)));
            self.insert(r.start.max(hole.end.min(r.end))..r.end);
        }
    }

    /// Takes memory for so many values away for good, at the start of the first region from `from` on that has it, and
    /// clears it.
    ///
    /// # Safety
    /// Zeros are a value.
    pub unsafe fn carve<T>(&mut self, from: u64, count: usize) -> &'static mut [T] {
        let frames = ((count * size_of::<T>()) as u64).div_ceil(FRAME);
        let fits = |r: &Range<u64>| r.start >= from && r.end - r.start >= frames;
        let found = self.regions().find(fits);
        let start = found.expect("memory for the tables of all frames").start;
        self.remove(start..start + frames);
        let at = direct::<T>(start * FRAME);
        // SAFETY: Usable memory that nobody has, whole frames of it; as the caller says.
        unsafe {
            at.cast::<u8>().write_bytes(0, (frames * FRAME) as usize);
            core::slice::from_raw_parts_mut(at, count)
        }
    }
}
