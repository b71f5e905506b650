//! Per-CPU lists that hold pages of all types together, and are searched for one of the type that is
//! asked for: 2.6.24 to 2.6.31. `spec: 2.5, 3.1`
//!
//! Invariant: for each list and type, no page of that type precedes the page at which searches start, and none
//! is on the list if that is `NIL`.

use crate::frame::{FrameIx, MigrateType};
use crate::kernel::Pcp;
use crate::placement::End;
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// Types that requests may have.
const TYPES: usize = 3;

/// Whether lists of this shape hold pages of all types.
#[inline]
pub(crate) const fn is_searched(shape: Pcp) -> bool {
    matches!(shape, Pcp::Searched | Pcp::HotCold { searched: true })
}

/// Where searches of the hot and the cold list begin, by type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct SearchStart(pub(super) [[FrameIx; TYPES]; 2]);

impl SearchStart {
    pub const EMPTY: SearchStart = SearchStart([[FrameIx::NIL; TYPES]; 2]);

    #[inline]
    pub(super) fn at(&mut self, i: usize, mt: MigrateType) -> Option<&mut FrameIx> {
        self.0.get_mut(i)?.get_mut(mt as usize)
    }

    /// A page joined list `i` at an end.
    #[inline]
    pub(super) fn joined(&mut self, i: usize, ix: FrameIx, mt: MigrateType, end: End) {
        if let Some(first) = self.at(i, mt)
            && (end == End::Head || *first == FrameIx::NIL)
        {
            *first = ix;
        }
    }

    /// A page left list `i`, where `next` came behind it.
    #[inline]
    pub(super) fn left(&mut self, i: usize, ix: FrameIx, next: FrameIx) {
        for first in &mut self.0[i] {
            if *first == ix {
                *first = next;
            }
        }
    }
}
