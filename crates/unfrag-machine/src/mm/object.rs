//! Objects: ranges of pages by index, each page absent, in a frame, or in a slot of swap.
//!
//! An object is the anonymous memory of one area of one process, a file's page cache, a tmpfs file,
//! or a device's cache. After a fork, parent and child have an object each, and the two belong to one
//! *family*: a page that both still share has the same index in both.
//!
//! Invariant: `frames` and `swapped` count the entries; a frame in an entry names the object (or its
//! family) and the index; dirty pages are set in `dirty`, for files.

use super::bit_set::BitSet;
use super::frames::{FamilyId, ObjectId};
use super::process::ProcId;
use super::thp::HUGE_PAGES;
use crate::kmem::Obj;
use unfrag_eras::Pfn;

/// A page of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Entry(u32);

const SWAPPED: u32 = 1 << 31;
const PROTECTED: u32 = 1 << 30;
const HUGE: u32 = 1 << 29;

/// Where a page of an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageLocation {
    /// Never touched.
    Absent,
    /// In memory.
    Frame(Pfn),
    /// In swap.
    Slot(u32),
}

impl Entry {
    /// No page.
    pub const ABSENT: Entry = Entry(0);

    /// A page in a frame. No machine has an owner of frame 0.
    #[inline]
    pub fn frame(pfn: Pfn) -> Entry {
        debug_assert!(pfn.0 > 0 && pfn.0 < u64::from(HUGE));
        Entry(pfn.0 as u32)
    }
    /// A page in a slot of swap.
    #[inline]
    pub fn slot(slot: u32) -> Entry {
        Entry(slot | SWAPPED)
    }
    /// Where it is.
    #[inline]
    pub fn at(self) -> PageLocation {
        if self.0 == 0 {
            PageLocation::Absent
        } else if self.0 & SWAPPED != 0 {
            PageLocation::Slot(self.0 & !SWAPPED)
        } else {
            PageLocation::Frame(Pfn(u64::from(self.0 & !(PROTECTED | HUGE))))
        }
    }
    /// The frame, if it is in one.
    #[inline]
    pub fn pfn(self) -> Option<Pfn> {
        match self.at() {
            PageLocation::Frame(pfn) => Some(pfn),
            _ => None,
        }
    }
    /// The first frame of the huge page that it is part of.
    #[inline]
    pub fn huge(self) -> Option<Pfn> {
        let is_huge = self.0 & (SWAPPED | HUGE) == HUGE;
        is_huge.then(|| Pfn(u64::from(self.0 & !(PROTECTED | HUGE) & !(HUGE_PAGES - 1))))
    }
    /// The first frame of the block that it is in: a huge page, or its frame.
    #[inline]
    pub fn block(self) -> Option<Pfn> {
        self.huge().or_else(|| self.pfn())
    }
    /// Whether a write must fault first.
    #[inline]
    pub fn is_protected(self) -> bool {
        self.0 & (SWAPPED | PROTECTED) == PROTECTED
    }
    /// This entry with write protection: it has to be copied or claimed before it is written.
    #[inline]
    pub fn protected(self) -> Entry {
        if self.pfn().is_some() {
            Entry(self.0 | PROTECTED)
        } else {
            self
        }
    }
}

/// What an object holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// Anonymous memory.
    Anon(FamilyId),
    /// A file on a disk (or on a loop device), by node.
    File(u32),
    /// A file of tmpfs, by node.
    Shmem(u32),
    /// What a file system keeps of its device's own blocks, by file system.
    Device(u32),
}

/// Pages of an object that one node of its index covers.
pub const RADIX: u32 = 64;

/// A node of the page cache's index.
#[derive(Clone, Copy, Debug, Default)]
pub struct RadixNode {
    /// Pages under it.
    pub count: u8,
    /// The slab object.
    pub obj: Option<Obj>,
}

/// An area of a process that maps an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapper {
    /// The process.
    pub proc: ProcId,
    /// Number of the area.
    pub area: u16,
}

/// A range of pages.
#[derive(Clone, Debug)]
pub struct Object {
    /// What it holds.
    pub kind: ObjectKind,
    entries: Vec<Entry>,
    /// Pages in frames.
    pub frames: u32,
    /// Pages in swap.
    pub swapped: u32,
    /// Dirty pages of a file.
    pub dirty: BitSet,
    /// Number of them.
    pub nr_dirty: u32,
    /// Nodes of its index, each for 64 pages.
    pub radix: Vec<RadixNode>,
    /// Areas that map it, for files.
    pub mappers: Vec<Mapper>,
}

impl Object {
    /// An object without pages.
    pub fn new(kind: ObjectKind) -> Object {
        Object {
            kind,
            entries: vec![],
            frames: 0,
            swapped: 0,
            dirty: BitSet::default(),
            nr_dirty: 0,
            radix: vec![],
            mappers: vec![],
        }
    }

    /// Pages that it has room for.
    pub fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Whether it has room for none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Makes room for `pages` pages, if it has less.
    pub fn lengthen(&mut self, pages: u32) {
        let more = (pages as usize).saturating_sub(self.entries.len());
        self.entries.reserve_exact(more);
        self.entries
            .extend(std::iter::repeat_n(Entry::ABSENT, more));
    }

    /// A page; absent beyond the end.
    #[inline]
    pub fn get(&self, index: u32) -> Entry {
        let e = self.entries.get(index as usize);
        e.copied().unwrap_or(Entry::ABSENT)
    }

    /// Copies pages from `from` on; those beyond the end stay as they are in `into`.
    pub fn copy(&self, from: u32, into: &mut [Entry]) {
        let rest = self.entries.get(from as usize..).unwrap_or_default();
        for (to, e) in into.iter_mut().zip(rest) {
            *to = *e;
        }
    }

    /// Sets a page and keeps the counts.
    #[inline]
    pub fn set(&mut self, index: u32, to: Entry) {
        let i = index as usize;
        if i >= self.entries.len() {
            self.entries.resize(i + 1, Entry::ABSENT);
        }
        let from = std::mem::replace(&mut self.entries[i], to);
        match from.at() {
            PageLocation::Frame(_) => self.frames -= 1,
            PageLocation::Slot(_) => self.swapped -= 1,
            PageLocation::Absent => {}
        }
        match to.at() {
            PageLocation::Frame(_) => self.frames += 1,
            PageLocation::Slot(_) => self.swapped += 1,
            PageLocation::Absent => {}
        }
    }

    /// Changes the frame of a page from one to another, if it is in that one.
    pub fn repoint(&mut self, index: u32, from: Pfn, to: Pfn) {
        if let Some(e) = self.entries.get_mut(index as usize)
            && e.pfn() == Some(from)
        {
            *e = Entry(e.0 - from.0 as u32 + to.0 as u32);
        }
    }

    /// Sets pages from `index` on that are absent.
    pub fn fill(&mut self, index: u32, pages: &[Pfn]) {
        let (from, to) = (index as usize, index as usize + pages.len());
        if to > self.entries.len() {
            self.entries.resize(to, Entry::ABSENT);
        }
        for (e, &pfn) in self.entries[from..to].iter_mut().zip(pages) {
            debug_assert_eq!(*e, Entry::ABSENT);
            *e = Entry::frame(pfn);
        }
        self.frames += pages.len() as u32;
    }

    /// Sets the pages from `index` on, which are absent, to those of a huge page.
    pub fn fill_huge(&mut self, index: u32, head: Pfn) {
        debug_assert!(head.0.is_multiple_of(HUGE_PAGES.into()));
        let pages: [Pfn; HUGE_PAGES as usize] = std::array::from_fn(|i| Pfn(head.0 + i as u64));
        self.fill(index, &pages);
        let i = index as usize;
        for e in &mut self.entries[i..i + HUGE_PAGES as usize] {
            e.0 |= HUGE;
        }
    }

    /// The pages from `index` on are single ones, if they were those of this huge page.
    pub fn unmark_huge(&mut self, index: u32, head: Pfn) {
        let i = index as usize;
        let pages = self.entries.iter_mut().skip(i).take(HUGE_PAGES as usize);
        for e in pages.filter(|e| e.huge() == Some(head)) {
            e.0 &= !HUGE;
        }
    }

    /// A huge page of it.
    pub fn any_huge(&self) -> Option<Pfn> {
        self.entries.iter().find_map(|e| e.huge())
    }

    /// Removes the pages of the huge page at `*at`, if one begins there, and moves on.
    pub fn take_huge(&mut self, at: &mut u32, end: u32) -> Option<Pfn> {
        let head = self.get(*at).huge()?;
        let i = *at as usize;
        debug_assert!(*at + HUGE_PAGES <= end && self.entries[i].pfn() == Some(head));
        self.entries[i..i + HUGE_PAGES as usize].fill(Entry::ABSENT);
        self.frames -= HUGE_PAGES;
        *at += HUGE_PAGES;
        Some(head)
    }

    /// Write-protects a page in a frame.
    #[inline]
    pub fn protect(&mut self, index: u32) {
        let e = &mut self.entries[index as usize];
        *e = e.protected();
    }

    /// Allows writes to a page.
    #[inline]
    pub fn unprotect(&mut self, index: u32) {
        let e = &mut self.entries[index as usize];
        e.0 &= !PROTECTED;
    }

    /// Cuts off the pages from `len` on, which must be absent.
    pub fn truncate(&mut self, len: u32) {
        debug_assert!(
            (len..self.len()).all(|i| self.get(i) == Entry::ABSENT),
            "pages are cut off"
        );
        self.entries.truncate(len as usize);
    }

    /// Its pages.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Removes pages from `*at` on, as many as `into` has room for, or fewer before a huge page and at `end`.
    /// Returns how many, and sets `*at` to where it stopped.
    pub fn take_out(&mut self, at: &mut u32, end: u32, into: &mut [Entry]) -> usize {
        let to = self.entries.len().min(end as usize);
        let rest = self.entries.get_mut(*at as usize..to).unwrap_or_default();
        let mut n = 0;
        for e in rest {
            if n == into.len() || e.huge().is_some() {
                break;
            }
            *at += 1;
            into[n] = std::mem::take(e);
            match into[n].at() {
                PageLocation::Absent => continue,
                PageLocation::Frame(_) => self.frames -= 1,
                PageLocation::Slot(_) => self.swapped -= 1,
            }
            n += 1;
        }
        n
    }

    /// First page at or after `from` that is in a frame or in swap.
    pub fn next_present(&self, from: u32) -> Option<u32> {
        let rest = self.entries.get(from as usize..)?;
        let i = rest.iter().position(|e| *e != Entry::ABSENT)?;
        Some(from + i as u32)
    }
}

/// All objects and families.
#[derive(Default)]
pub struct Objects {
    all: Vec<Option<Object>>,
    vacant: Vec<u32>,
    families: Vec<Vec<ObjectId>>,
    vacant_families: Vec<u32>,
}

impl Objects {
    fn insert(&mut self, object: Object) -> ObjectId {
        match self.vacant.pop() {
            Some(i) => {
                self.all[i as usize] = Some(object);
                ObjectId(i)
            }
            None => {
                self.all.push(Some(object));
                ObjectId((self.all.len() - 1) as u32)
            }
        }
    }

    /// A new object that is not anonymous.
    pub fn create(&mut self, kind: ObjectKind) -> ObjectId {
        debug_assert!(!matches!(kind, ObjectKind::Anon(_)));
        self.insert(Object::new(kind))
    }

    /// A new anonymous object, in a family of its own or with others.
    pub fn create_anon(&mut self, family: Option<FamilyId>) -> ObjectId {
        let family = family.unwrap_or_else(|| match self.vacant_families.pop() {
            Some(f) => FamilyId(f),
            None => {
                self.families.push(vec![]);
                FamilyId((self.families.len() - 1) as u32)
            }
        });
        let id = self.insert(Object::new(ObjectKind::Anon(family)));
        self.families[family.0 as usize].push(id);
        id
    }

    /// Removes an object, which must have no pages.
    pub fn remove(&mut self, id: ObjectId) {
        let Some(object) = self.all[id.0 as usize].take() else {
            panic!("{id:?} is gone")
        };
        debug_assert!(object.frames == 0 && object.swapped == 0 && object.nr_dirty == 0);
        self.vacant.push(id.0);
        if let ObjectKind::Anon(f) = object.kind {
            let members = &mut self.families[f.0 as usize];
            members.retain(|&m| m != id);
            if members.is_empty() {
                self.vacant_families.push(f.0);
            }
        }
    }

    /// The objects of a family.
    #[inline]
    pub fn family(&self, family: FamilyId) -> &[ObjectId] {
        &self.families[family.0 as usize]
    }

    /// An object.
    #[inline]
    pub fn get(&self, id: ObjectId) -> &Object {
        match &self.all[id.0 as usize] {
            Some(o) => o,
            None => panic!("{id:?} is gone"),
        }
    }

    /// An object.
    #[inline]
    pub fn get_mut(&mut self, id: ObjectId) -> &mut Object {
        match &mut self.all[id.0 as usize] {
            Some(o) => o,
            None => panic!("{id:?} is gone"),
        }
    }

    /// All objects.
    pub fn iter(&self) -> impl Iterator<Item = (ObjectId, &Object)> {
        let all = self.all.iter().enumerate();
        all.filter_map(|(i, o)| Some((ObjectId(i as u32), o.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_encode_location_and_protection() {
        let e = Entry::frame(Pfn(77));
        assert_eq!(
            (e.at(), e.is_protected()),
            (PageLocation::Frame(Pfn(77)), false)
        );
        let p = e.protected();
        assert_eq!(
            (p.at(), p.is_protected()),
            (PageLocation::Frame(Pfn(77)), true)
        );
        let s = Entry::slot(0);
        assert_eq!((s.at(), s.is_protected()), (PageLocation::Slot(0), false));
        assert_eq!(s.protected(), s);
        assert_eq!(Entry::ABSENT.protected(), Entry::ABSENT);
    }

    #[test]
    fn an_object_counts_its_pages() {
        let mut o = Object::new(ObjectKind::File(0));
        o.set(5, Entry::frame(Pfn(1)));
        o.set(2, Entry::slot(9));
        assert_eq!((o.frames, o.swapped, o.len()), (1, 1, 6));
        o.set(5, Entry::slot(3));
        assert_eq!((o.frames, o.swapped), (0, 2));
        assert_eq!(o.next_present(3), Some(5));
        o.set(5, Entry::ABSENT);
        o.truncate(3);
        assert_eq!((o.len(), o.get(5)), (3, Entry::ABSENT));
    }

    #[test]
    fn take_out_works_in_pieces() {
        let mut o = Object::new(ObjectKind::File(0));
        for i in [1, 2, 5, 9] {
            o.set(i, Entry::frame(Pfn(100 + u64::from(i))));
        }
        o.set(3, Entry::slot(7));
        let mut copy = [Entry::slot(1); 3];
        o.copy(8, &mut copy);
        // What is beyond the end stays as it was.
        assert_eq!(
            copy,
            [Entry::ABSENT, Entry::frame(Pfn(109)), Entry::slot(1)]
        );
        let (mut at, mut taken) = (0, [Entry::ABSENT; 3]);
        assert_eq!((o.take_out(&mut at, 10, &mut taken), at), (3, 4));
        let [one, two] = [101, 102].map(|p| Entry::frame(Pfn(p)));
        assert_eq!(taken, [one, two, Entry::slot(7)]);
        assert_eq!((o.frames, o.swapped), (2, 0));
        assert_eq!((o.take_out(&mut at, 10, &mut taken), at), (2, 10));
        assert_eq!((o.take_out(&mut at, 10, &mut taken), o.frames), (0, 0));
        assert_eq!(o.next_present(0), None);
    }

    #[test]
    fn a_family_lasts_as_long_as_one_of_its_objects() {
        let mut all = Objects::default();
        let a = all.create_anon(None);
        let ObjectKind::Anon(f) = all.get(a).kind else {
            panic!("not anonymous")
        };
        let b = all.create_anon(Some(f));
        assert_eq!(all.family(f), [a, b]);
        all.remove(a);
        assert_eq!(all.family(f), [b]);
        all.remove(b);
        let c = all.create_anon(None);
        assert_eq!(all.get(c).kind, ObjectKind::Anon(f), "used again");
        assert_eq!(all.iter().count(), 1);
    }
}
