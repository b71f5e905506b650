//! kswapd and kcompactd: threads that sleep until they are needed.

use crate::calls;
use crate::inner::Inner;
use crate::settings::AHEAD;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;
use unfrag::Order;
use unfrag::moves::Goal;
use unfrag::owners::Want;

/// How often kcompactd looks whether enough blocks are ready, if it keeps some.
const LOOK: Duration = Duration::from_millis(500);

/// Starts both.
pub(crate) fn start(inner: &Arc<Inner>) -> std::io::Result<Vec<JoinHandle<()>>> {
    let thread = |name: &str, run: fn(&Inner)| {
        let inner = inner.clone();
        let builder = std::thread::Builder::new().name(name.to_owned());
        builder.spawn(move || run(&inner))
    };
    let kswapd = thread("kswapd", kswapd)?;
    match thread("kcompactd", kcompactd) {
        Ok(kcompactd) => Ok(vec![kswapd, kcompactd]),
        Err(e) => {
            stop(inner, vec![kswapd]);
            Err(e)
        }
    }
}

/// Stops them, and waits until they have ended; but not for an owner that is being called: it may be one of them that calls,
/// and one that waits for what the owner has locked. They end by themselves then, and use nothing but what they share.
pub(crate) fn stop(inner: &Inner, daemons: Vec<JoinHandle<()>>) {
    inner.stops.store(true, Relaxed);
    inner.bells.kswapd.ring();
    inner.bells.kcompactd.ring();
    if calls::is_inside() {
        return;
    }
    for daemon in daemons {
        // A panic in there is one of this crate, and was reported.
        let _ = daemon.join();
    }
}

/// Has owners give frames back until the high watermarks are reached, or none gives any.
fn kswapd(inner: &Inner) {
    loop {
        inner.bells.kswapd.wait(None);
        if inner.stops.load(Relaxed) {
            return;
        }
        inner.events.kswapd_wake.add(1);
        inner.reclaim(Want::High, &inner.events.pgsteal_kswapd);
    }
}

/// Makes whole free blocks for those who did not get one, and so that some are ready.
fn kcompactd(inner: &Inner) {
    let keep = inner.settings.keep_huge;
    let time = (keep > 0).then_some(LOOK);
    loop {
        inner.bells.kcompactd.wait(time);
        if inner.stops.load(Relaxed) {
            return;
        }
        let wanted = inner.bells.take_wanted();
        let whole = inner.base.memory.whole_blocks();
        // It starts when some are missing, and then makes a few more.
        let ahead = if whole < keep {
            keep.saturating_add(keep / 4) - whole
        } else {
            0
        };
        make_ahead(inner, wanted.max(ahead));
    }
}

/// Makes up to so many whole free blocks, unless it has been tried in vain a short while ago.
fn make_ahead(inner: &Inner, wanted: u32) {
    let memory = &inner.base.memory;
    let blocks = memory.whole_blocks().saturating_add(wanted);
    if wanted == 0 || !memory.shared.wants_blocks(blocks, Order::HUGE) {
        return;
    }
    inner.events.compact_daemon_wake.add(1);
    let made = inner.evacuate(Goal::Ahead { blocks }, AHEAD).gained();
    inner.events.compact_daemon_success.add(made.into());
}
