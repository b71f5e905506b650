//! Which frame numbers the frame table covers.

use unfrag::frame::{FrameIx, Geometry, Pfn};

/// A stretch of physical memory, in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameRange {
    /// First frame.
    pub start: Pfn,
    /// Number of frames.
    pub frames: u64,
}

/// Most stretches of the frame table (memory on either side of a large hole).
pub const MAX_SEGMENTS: usize = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Segment {
    pfn: u64,
    ix: u32,
    frames: u32,
}

/// Which frame numbers the frame table covers. Stretches that touch or lie within one largest block
/// share a segment; larger holes cost nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameMap {
    segments: [Segment; MAX_SEGMENTS],
    count: usize,
    len: u32,
}

impl FrameMap {
    /// The map for `ranges`, which must ascend; `None` if they do not, if there are more than
    /// [`MAX_SEGMENTS`] stretches, or more than 2^32 - 1 frames.
    pub fn new(ranges: &[FrameRange], geometry: Geometry) -> Option<FrameMap> {
        let mut map = FrameMap {
            segments: [Segment::default(); MAX_SEGMENTS],
            count: 0,
            len: 0,
        };
        let block = u64::from(geometry.max_order.frames());
        let mut last_end = 0;
        for r in ranges.iter().filter(|r| r.frames > 0) {
            let end = r
                .start
                .0
                .checked_add(r.frames)?
                .checked_next_multiple_of(block)?;
            let start = r.start.0 / block * block;
            if map.count > 0 && r.start.0 < last_end {
                return None;
            }
            last_end = r.start.0 + r.frames;
            let open = map.count.checked_sub(1).map(|i| &mut map.segments[i]);
            match open {
                Some(s) if start <= s.pfn + u64::from(s.frames) => {
                    let frames = u32::try_from(end - s.pfn).ok()?;
                    map.len = map.len.checked_add(frames.saturating_sub(s.frames))?;
                    s.frames = frames.max(s.frames);
                }
                _ => {
                    let frames = u32::try_from(end - start).ok()?;
                    *map.segments.get_mut(map.count)? = Segment {
                        pfn: start,
                        ix: map.len,
                        frames,
                    };
                    map.count += 1;
                    map.len = map.len.checked_add(frames)?;
                }
            }
        }
        (map.len < u32::MAX).then_some(map)
    }

    /// Number of entries of the frame table.
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Position of a frame, if the table covers it.
    #[inline]
    pub(crate) fn ix(&self, pfn: Pfn) -> Option<FrameIx> {
        for s in &self.segments[..self.count] {
            let d = pfn.0.wrapping_sub(s.pfn);
            if d < u64::from(s.frames) {
                return Some(FrameIx(s.ix + d as u32));
            }
        }
        None
    }

    /// Number of the frame at a position.
    #[inline]
    pub(crate) fn pfn(&self, ix: FrameIx) -> Pfn {
        for s in &self.segments[..self.count] {
            let d = ix.0.wrapping_sub(s.ix);
            if d < s.frames {
                return Pfn(s.pfn + u64::from(d));
            }
        }
        Pfn(u64::MAX)
    }
}
