//! Processes: what the kernel keeps for each, and the areas of its address space.
//!
//! Invariant: an area maps one object. A page of it that is in a frame is mapped if the object is
//! anonymous, else if `mapped` has it. A page table exists before a page under it is mapped, and is freed
//! with the area. `rss` counts the mapped pages.

use super::bit_set::BitSet;
use super::frames::ObjectId;
use crate::engine::TaskId;
use crate::kmem::Obj;
use std::ops::Range;
use std::rc::Rc;
use unfrag_eras::Pfn;

/// Id of a process. It is used again only when nothing refers to the old process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcId(pub(crate) u32);

/// What an area maps.
#[derive(Clone, Debug)]
pub enum Backing {
    /// Anonymous memory of its own.
    Anon,
    /// A file's page cache, to be read.
    File {
        /// The file.
        node: u32,
        /// Pages that the page tables map.
        mapped: BitSet,
        /// Programs run from it.
        exec: bool,
    },
}

/// The page tables of an area.
#[derive(Clone, Debug)]
pub enum Tables {
    /// The area has a range of addresses of its own; frames of its tables, 0 for none.
    Own(Vec<u32>),
    /// It shares the process's common range with other areas.
    Shared {
        /// First page in the common range.
        base: u32,
    },
}

impl Tables {
    /// Pages of the area that share the page table of page `index`, in tables of `span` pages; none, if there is
    /// no such table. `shared` are the tables of the process's common range.
    #[inline]
    pub(crate) fn covered(&self, shared: &[u32], index: u32, span: u32) -> Range<u32> {
        let (tables, base) = match self {
            Tables::Own(own) => (own.as_slice(), 0),
            Tables::Shared { base } => (shared, *base),
        };
        let at = (base + index) / span;
        match tables.get(at as usize) {
            Some(&table) if table != 0 => {
                (at * span).saturating_sub(base)..((at + 1) * span).saturating_sub(base)
            }
            _ => 0..0,
        }
    }
}

/// A part of an address space.
#[derive(Clone, Debug)]
pub struct Area {
    /// What it maps.
    pub backing: Backing,
    /// The pages.
    pub object: ObjectId,
    /// Length.
    pub pages: u32,
    /// Page tables.
    pub tables: Tables,
    /// Its `vm_area_struct`.
    pub vma: Option<Obj>,
    /// It asked for huge pages.
    pub advised: bool,
}

/// A process.
#[derive(Debug)]
pub struct Process {
    /// Its name.
    pub name: Rc<str>,
    /// Its task, while it runs.
    pub task: Option<TaskId>,
    /// Areas by number.
    pub areas: Vec<Option<Area>>,
    /// Page tables of the common range, 0 for none.
    pub shared_tables: Vec<u32>,
    /// Pages of the common range that areas have.
    pub shared_len: u32,
    /// Page directory.
    pub directory: Option<Pfn>,
    /// Kernel stack.
    pub stack: Vec<Pfn>,
    /// `task_struct` and the other objects that live as long as the process.
    pub objects: Vec<Obj>,
    /// `mm_struct`.
    pub mm: Option<Obj>,
    /// Areas that consist of their `vm_area_struct` alone.
    pub vmas: Vec<Obj>,
    /// Mapped pages.
    pub rss: u32,
    /// Pages in swap.
    pub swapped: u32,
    /// Page tables.
    pub tables: u32,
    /// The OOM killer passes over it.
    pub unkillable: bool,
    /// The OOM killer has chosen it.
    pub victim: bool,
    /// It could not read a page of its own.
    pub bus_error: bool,
}

impl Process {
    /// A process without memory.
    pub fn new(name: Rc<str>) -> Process {
        Process {
            name,
            task: None,
            areas: vec![],
            shared_tables: vec![],
            shared_len: 0,
            directory: None,
            stack: vec![],
            objects: vec![],
            mm: None,
            vmas: vec![],
            rss: 0,
            swapped: 0,
            tables: 0,
            unkillable: false,
            victim: false,
            bus_error: false,
        }
    }

    /// An area.
    #[inline]
    pub fn area(&self, area: u16) -> Option<&Area> {
        self.areas.get(usize::from(area))?.as_ref()
    }

    /// An area.
    #[inline]
    pub fn area_mut(&mut self, area: u16) -> Option<&mut Area> {
        self.areas.get_mut(usize::from(area))?.as_mut()
    }

    /// Adds an area and returns its number.
    pub fn add_area(&mut self, area: Area) -> u16 {
        if let Some(i) = self.areas.iter().position(Option::is_none) {
            self.areas[i] = Some(area);
            return i as u16;
        }
        self.areas.push(Some(area));
        (self.areas.len() - 1) as u16
    }

    /// Reserves room for an area in the common range.
    pub fn place(&mut self, pages: u32) -> Tables {
        let base = self.shared_len;
        self.shared_len += pages;
        Tables::Shared { base }
    }

    /// The entry for the page table of a page of an area.
    pub fn table(&mut self, area: u16, index: u32, span: u32) -> &mut u32 {
        let Some(Some(a)) = self.areas.get_mut(usize::from(area)) else {
            panic!("process {} has no area {area}", self.name)
        };
        let (tables, at) = match &mut a.tables {
            Tables::Own(own) => (own, index / span),
            Tables::Shared { base } => (&mut self.shared_tables, (*base + index) / span),
        };
        let at = at as usize;
        if at >= tables.len() {
            tables.resize(at + 1, 0);
        }
        &mut tables[at]
    }

    /// Its score for the OOM killer: memory, swap and page tables, in pages.
    pub fn badness(&self) -> u64 {
        u64::from(self.rss) + u64::from(self.swapped) + u64::from(self.tables)
    }
}

/// All processes.
#[derive(Default)]
pub struct Processes {
    all: Vec<Option<Process>>,
    vacant: Vec<u32>,
}

impl Processes {
    /// Adds one.
    pub fn insert(&mut self, process: Process) -> ProcId {
        match self.vacant.pop() {
            Some(i) => {
                self.all[i as usize] = Some(process);
                ProcId(i)
            }
            None => {
                self.all.push(Some(process));
                ProcId((self.all.len() - 1) as u32)
            }
        }
    }

    /// Removes one, which must have no memory.
    pub fn remove(&mut self, id: ProcId) {
        let gone = self.all[id.0 as usize].take();
        debug_assert!(gone.is_some_and(|p| p.rss == 0 && p.tables == 0 && p.swapped == 0));
        self.vacant.push(id.0);
    }

    /// A process.
    #[inline]
    pub fn get(&self, id: ProcId) -> &Process {
        match &self.all[id.0 as usize] {
            Some(p) => p,
            None => panic!("{id:?} is gone"),
        }
    }

    /// A process.
    #[inline]
    pub fn get_mut(&mut self, id: ProcId) -> &mut Process {
        match &mut self.all[id.0 as usize] {
            Some(p) => p,
            None => panic!("{id:?} is gone"),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (ProcId, &Process)> {
        let all = self.all.iter().enumerate();
        all.filter_map(|(i, p)| Some((ProcId(i as u32), p.as_ref()?)))
    }
}
