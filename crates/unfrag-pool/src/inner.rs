//! What all users of a pool share, and the path of an allocation that finds a block.

use crate::base::Base;
use crate::bells::Bells;
use crate::events::Events;
use crate::handles::Handles;
use crate::registry::Registry;
use crate::settings::Settings;
use crate::threads;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use unfrag::{AllocError, MigrateType, Order};

/// What all users of a pool share.
pub(crate) struct Inner {
    pub base: Arc<Base>,
    pub handles: Handles,
    pub owners: Registry,
    pub settings: Settings,
    pub events: Events,
    pub bells: Bells,
    /// The pool ends. The locks of the bells order it: it is set before they are rung, and read after they were heard; where
    /// it is read elsewhere, it only ends work sooner.
    pub stops: AtomicBool,
}

impl Inner {
    pub fn new(base: Base, settings: Settings) -> Inner {
        Inner {
            base: Arc::new(base),
            handles: Handles::new(),
            owners: Registry::default(),
            settings,
            events: Events::default(),
            bells: Bells::default(),
            stops: AtomicBool::new(false),
        }
    }

    /// Takes a block, if there is one now.
    #[inline]
    pub fn try_alloc(&self, order: Order, mt: MigrateType) -> Result<u32, AllocError> {
        match threads::alloc(&self.base.memory, order, mt) {
            Ok(frame) => {
                if self.base.memory.shared.is_short() {
                    self.wake(order, None);
                }
                Ok(frame)
            }
            Err(why) => Err(self.fail(order, why)),
        }
    }

    /// Why there is no block, after the daemon that can help was woken.
    #[cold]
    fn fail(&self, order: Order, why: AllocError) -> AllocError {
        if order > self.base.memory.largest() {
            // No daemon can help, and nobody needs to wait.
            return AllocError::OrderTooLarge;
        }
        self.wake(order, Some(why));
        why
    }

    /// Wakes the daemon that can help.
    #[cold]
    fn wake(&self, order: Order, failed: Option<AllocError>) {
        let short = self.base.memory.shared.take_short();
        if short || failed == Some(AllocError::Short) {
            self.bells.kswapd.ring();
        }
        if failed == Some(AllocError::Fragmented) {
            let blocks = order.frames().div_ceil(Order::HUGE.frames());
            self.bells.want_blocks(blocks);
        }
    }
}
