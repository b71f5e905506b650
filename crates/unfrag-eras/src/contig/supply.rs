//! Where the pages of a range go: to any zone that may hold what their own zone holds, best first, as an allocation would.

use crate::compact::{Supply, Targets, has_room};
use crate::frame::{CpuId, Order};
use crate::gfp::Gfp;
use crate::host::Host;
use crate::manager::Manager;
use crate::placement::{BlockRequest, End, RmqueueMode};
use crate::zone::ZoneList;

/// Free blocks outside of what is set apart. Those serve no request, so that every block that is found is outside.
pub(super) struct Elsewhere<'a> {
    pub targets: &'a mut Targets,
    pub zones: &'a ZoneList,
}

impl Supply for Elsewhere<'_> {
    fn targets(&mut self) -> &mut Targets {
        self.targets
    }

    fn fill<H: Host>(&mut self, m: &mut Manager<'_, H>, cpu: CpuId, (order, wanted): (Order, u32)) {
        let Some(mt) = m.request_type(Gfp::HIGHUSER_MOVABLE) else {
            return;
        };
        let block = BlockRequest {
            order,
            mt,
            nofragment: false,
            wake: true,
        };
        let mut mode = RmqueueMode::Normal;
        for zone in self.zones.zones() {
            while self.targets.pages < wanted && has_room(m, zone, order) {
                let (_, mut z) = m.parts(zone, cpu);
                let Some((ix, _)) = z.take(block, &mut mode) else {
                    break;
                };
                z.count(-i64::from(order.frames()));
                self.targets.push(&m.frames, ix, order, End::Tail);
            }
        }
    }
}
