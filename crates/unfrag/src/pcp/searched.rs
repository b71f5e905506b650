//! Per-CPU lists that hold pages of all types together, and are searched for one of the type that is
//! asked for: 2.6.24 to 2.6.31. `spec: linux-mm 2.5, 3.1`
//!
//! Invariant: of a list and a type, no page precedes the first one that is remembered, and none is on
//! the list if that is `NIL`. So a search from the head begins where it can succeed.

use super::CpuLists;
use crate::frame::{FrameMeta, Frames, Ix, MigrateType, NIL};
use crate::kernel::Pcp;
use crate::place::End;
use bytemuck::{Pod, Zeroable};

/// Types that requests may have.
const TYPES: usize = 3;

/// Whether lists of this shape hold pages of all types.
#[inline]
pub(crate) const fn is_searched(shape: Pcp) -> bool {
    matches!(shape, Pcp::Searched | Pcp::HotCold { searched: true })
}

/// Where searches of the hot and the cold list begin, by type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct First([[Ix; TYPES]; 2]);

impl First {
    pub const EMPTY: First = First([[NIL; TYPES]; 2]);

    #[inline]
    fn at(&mut self, i: usize, mt: MigrateType) -> Option<&mut Ix> {
        self.0.get_mut(i)?.get_mut(mt as usize)
    }

    /// A page joined list `i` at an end.
    #[inline]
    pub(crate) fn joined(&mut self, i: usize, ix: Ix, mt: MigrateType, end: End) {
        if let Some(first) = self.at(i, mt)
            && (end == End::Head || *first == NIL)
        {
            *first = ix;
        }
    }

    /// A page left list `i`, where `next` came behind it.
    #[inline]
    pub(super) fn left(&mut self, i: usize, ix: Ix, next: Ix) {
        for first in &mut self.0[i] {
            if *first == ix {
                *first = next;
            }
        }
    }
}

impl CpuLists {
    /// Whether the first page of each type is where searches look for it, or behind.
    pub(crate) fn firsts_hold(&self, meta: &[FrameMeta]) -> bool {
        self.first.0.iter().zip(&self.lists).all(|(firsts, list)| {
            firsts.iter().enumerate().all(|(mt, first)| {
                let mut before = list.iter(meta).take_while(|ix| ix != first);
                before.all(|ix| meta[ix as usize].state().mt() as usize != mt)
            })
        })
    }

    /// The first page of a type from an end of a list.
    #[inline(always)]
    pub(super) fn find(
        &mut self,
        frames: &Frames,
        mt: MigrateType,
        (i, end): (usize, End),
    ) -> Option<Ix> {
        let first = self.first.at(i, mt)?;
        if *first == NIL {
            return None;
        }
        let list = &self.lists[i];
        let fits = |ix: &Ix| frames.state(*ix).mt() == mt;
        let found = match end {
            End::Head => list.iter_from(frames.meta, *first).find(fits),
            End::Tail => list.iter_back(frames.meta).find(fits),
        };
        if end == End::Head || found.is_none() {
            *first = found.unwrap_or(NIL);
        }
        found
    }
}
