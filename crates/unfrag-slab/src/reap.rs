//! A CPU's periodic work: SLAB's reaper, SLQB's trim. `spec: 6.1, 6.3`

use crate::cpu::Cpu;
use crate::due::Due;
use crate::slow;
use lock_api::RawMutex;

impl<R: RawMutex> Cpu<'_, R> {
    /// Does what is due on this CPU for every cache, and empties the lists that another CPU asked it to empty.
    pub fn reap(&self, due: Due) {
        let id = self.id();
        let set = self.set();
        set.each_kept(|cache| {
            let node = due.reap_node.then(|| self.node());
            slow::reap_cpu(set, cache, cache.cpu(id), due, node);
        });
    }
}
