//! Slabs that got less than their cache's usual order.
//!
//! A slab cache that is refused the order that it would like asks at once for the least order that holds an object, with its
//! caller's flags alone: by those it looks like a page for anything else. `spec: 6.2`
//!
//! Invariant: a request is a slab's by its flags, or since it is the next one of a task after such a request was refused.

use super::class::Class;
use crate::era::Era;
use std::collections::HashMap;
use unfrag_eras::Gfp;

/// Who asks: a task, and whether an interrupt on top of it does.
pub type Asker = (u32, bool);

/// The last requests that were refused, by who asked.
#[derive(Default)]
pub struct Refused(HashMap<Asker, (Class, u8)>);

impl Refused {
    /// What a request is for; `found` says whether it was served.
    pub fn class(&mut self, by: Asker, gfp: Gfp, order: u8, found: bool, era: Era) -> Class {
        let class = Class::of_request(gfp, order, era);
        // Nearly no request is refused.
        let before = match self.0.is_empty() {
            true => None,
            false => self.0.remove(&by),
        };
        match (class, before) {
            (Class::SlabReclaimable | Class::SlabUnmovable, _) => {
                if !found && order > 0 {
                    self.0.insert(by, (class, order));
                }
                class
            }
            (_, Some((slab, usual))) if order < usual && may_be_slab(gfp) => slab,
            _ => class,
        }
    }
}

/// Whether a slab cache takes pages with such flags: compound ones, which it neither zeroes nor moves.
fn may_be_slab(gfp: Gfp) -> bool {
    gfp.contains(Gfp::COMP) && !gfp.intersects(Gfp::ZERO | Gfp::MOVABLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the queue of the sample of a fragmented host took them, on 6.12.
    #[test]
    fn the_least_order_after_a_refused_slab_is_the_same_caches() {
        let era = Era::of("6.12.0").unwrap();
        let usual = Gfp::IO | Gfp::FS | Gfp::NOWARN | Gfp::NORETRY | Gfp::COMP | Gfp::NOMEMALLOC;
        let least = Gfp::KERNEL | Gfp::COMP;
        let by = (7, false);
        let mut refused = Refused::default();
        let mut ask = |by, gfp, order, found| refused.class(by, gfp, order, found, era);
        assert_eq!(ask(by, usual, 3, true), Class::SlabUnmovable);
        assert_eq!(
            ask(by, least, 0, true),
            Class::Other,
            "the first was served"
        );
        assert_eq!(ask(by, usual, 3, false), Class::SlabUnmovable);
        assert_eq!(
            ask((8, false), least, 0, true),
            Class::Other,
            "another task"
        );
        assert_eq!(ask((7, true), least, 0, true), Class::Other, "an interrupt");
        assert_eq!(ask(by, least, 0, true), Class::SlabUnmovable);
        assert_eq!(ask(by, least, 0, true), Class::Other, "only the next one");
        assert_eq!(ask(by, usual, 3, false), Class::SlabUnmovable);
        assert_eq!(ask(by, least, 3, true), Class::Other, "no lower order");
        assert_eq!(ask(by, usual, 3, false), Class::SlabUnmovable);
        assert_eq!(ask(by, least | Gfp::ZERO, 0, true), Class::Other, "zeroed");
    }
}
