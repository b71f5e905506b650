//! The decision about one isolated page: before its owner is asked, and after.

use super::scan_control::ScanControl;
use crate::evict::{Ask, Content, Verdict};
use crate::frame::{FrameIx, Order, PageFlags};
use crate::host::Host;
use crate::manager::Manager;

/// The pass over a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    First,
    /// Wait for writeback, ignore use (second pass of a lumpy batch).
    Sync,
}

/// The decision about a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Free,
    /// Its owner freed it while it was isolated.
    OwnerFreed,
    Keep,
    Activate,
    /// It is under writeback, and this pass waits for that.
    Wait,
    /// Its owner decides.
    Ask {
        unmap: bool,
        content: Content,
    },
}

/// Whether a page was accessed since the last scan: through a mapping, by a call. Clears both marks.
pub(super) fn page_referenced<H: Host>(m: &mut Manager<'_, H>, ix: FrameIx) -> (bool, bool) {
    let mut pages = m.pages();
    let f = pages.flags_of(ix);
    let by_map = f.contains(PageFlags::YOUNG);
    let by_call = f.contains(PageFlags::REFERENCED);
    if by_map || by_call {
        pages.put_flags(ix, f - PageFlags::YOUNG - PageFlags::REFERENCED);
    }
    (by_map, by_call)
}

/// Decides about a page as far as that is possible without its owner (first half of `shrink_page_list`).
pub(super) fn decide<H: Host>(
    m: &mut Manager<'_, H>,
    ix: FrameIx,
    sc: &mut ScanControl,
    pass: Pass,
) -> Fate {
    let rules = m.policy.rules.reclaim;
    let flags = m.frames.state(ix).flags();
    let file = !flags.contains(PageFlags::SWAPBACKED);
    if flags.contains(PageFlags::FREED) {
        return Fate::OwnerFreed;
    }
    if flags.contains(PageFlags::LOCKED) {
        return Fate::Keep;
    }
    let waits = PageFlags::DIRTY | PageFlags::WRITEBACK;
    sc.backlog.dirty += u32::from(flags.intersects(waits));
    if flags.contains(PageFlags::WRITEBACK) {
        sc.backlog.writeback += 1;
        sc.backlog.again += u32::from(flags.contains(PageFlags::RECLAIM));
        m.pages().put_flags(ix, flags | PageFlags::RECLAIM);
        return if pass == Pass::Sync && sc.may_write_back(file) {
            Fate::Wait
        } else {
            Fate::Keep
        };
    }
    let mapped = flags.contains(PageFlags::MAPPED);
    let (young, called) = if m.policy.sysctl.lru_gen {
        // How often it was read decided before whether it is here.
        if mapped && flags.contains(PageFlags::YOUNG) {
            m.pages().put_flags(ix, flags - PageFlags::YOUNG);
            return Fate::Activate;
        }
        (false, false)
    } else {
        page_referenced(m, ix)
    };
    let spares = !sc.lumpy(rules.high_order) || sc.order <= Order::COSTLY;
    if rules.used_once_stays {
        if young && (!file || called || flags.contains(PageFlags::EXEC)) {
            return Fate::Activate;
        }
        if young {
            let mut pages = m.pages();
            let flags = pages.flags_of(ix);
            pages.put_flags(ix, flags | PageFlags::REFERENCED);
            return Fate::Keep;
        }
    } else if (young || called) && mapped && spares && pass == Pass::First {
        // A page that is not mapped is not activated here, not even one of tmpfs.
        return Fate::Activate;
    }
    if !file && sc.clean_only {
        return Fate::Activate;
    }
    let dirty = flags.contains(PageFlags::DIRTY);
    if dirty && !sc.may_write_back(file) {
        return Fate::Keep;
    }
    let writes = !sc.clean_only && (sc.kswapd || !file || rules.direct_writes_files);
    let content = match dirty {
        false => Content::Clean,
        true if !writes || called && file && spares => Content::Dirty,
        true => Content::Write,
    };
    let unmap = mapped || !file;
    if !unmap && content == Content::Dirty {
        return Fate::Keep;
    }
    Fate::Ask { unmap, content }
}

/// What an owner is asked about a page.
pub(super) fn ask<H: Host>(m: &Manager<'_, H>, ix: FrameIx, unmap: bool, content: Content) -> Ask {
    let (owner, key) = m.frames.owner(ix);
    Ask {
        page: m.map.pfn(ix),
        owner,
        key,
        unmap,
        content,
        reread: m.policy.sysctl.lru_gen
            && m.frames.state(ix).flags().contains(PageFlags::REFERENCED),
    }
}

/// Decides about a page by its owner's verdict.
pub(super) fn judge<H: Host>(
    m: &mut Manager<'_, H>,
    ix: FrameIx,
    unmap: bool,
    verdict: Verdict,
    (sc, pass): (&mut ScanControl, Pass),
) -> Fate {
    let mut pages = m.pages();
    let flags = pages.flags_of(ix);
    if unmap && verdict.unmapped() {
        pages.put_flags(ix, flags - PageFlags::MAPPED);
    }
    match verdict {
        Verdict::Released => Fate::Free,
        Verdict::Busy | Verdict::Keep | Verdict::Dirty => Fate::Keep,
        Verdict::NoSpace | Verdict::Failed => Fate::Activate,
        Verdict::Writing => {
            let f = pages.flags_of(ix) - PageFlags::DIRTY;
            pages.put_flags(ix, f | PageFlags::WRITEBACK | PageFlags::RECLAIM);
            m.reclaim.nr_vmscan_write += 1;
            if pass == Pass::Sync {
                Fate::Wait
            } else {
                Fate::Keep
            }
        }
        Verdict::Later => {
            m.reclaim.nr_vmscan_write += 1;
            Fate::Keep
        }
        Verdict::Congested => {
            sc.backlog.refused += 1;
            Fate::Keep
        }
    }
}
