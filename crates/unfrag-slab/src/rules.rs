//! Rules of an era, and settings of the administrator: design, orders, first attempt.
//!
//! Invariant: a rule is a value; each is looked at in one place. `spec: 6.1-6.5`

/// The three designs. The enum is exhaustive, so that each match covers all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Design {
    /// Arrays of free objects, per CPU, shared, and for each remote node. `spec: 6.1`
    Slab,
    /// Each CPU owns a slab; slabs keep their own free chain. `spec: 6.2`
    Slub,
    /// Each CPU owns lists of objects and slabs; remote frees queue up. `spec: 6.3`
    Slqb,
}

impl Design {
    /// All of them.
    pub const ALL: [Design; 3] = [Design::Slab, Design::Slub, Design::Slqb];

    /// The name that users know.
    pub const fn name(self) -> &'static str {
        match self {
            Design::Slab => "slab",
            Design::Slub => "slub",
            Design::Slqb => "slqb",
        }
    }
}

impl core::fmt::Display for Design {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        f.pad(self.name())
    }
}

/// How SLUB looks for the order of a cache's slabs. `spec: 6.2`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderSearch {
    /// The number of objects asked for is halved until an order fits (2.6.28).
    Halve,
    /// It is capped by what the largest order holds, then decremented (2.6.29 and later).
    Decrement,
    /// It is capped, and waste may reach a half before a single object is settled for (6.x).
    Ceil,
}

/// How SLUB tries for more than the least order. `spec: 6.2, 6.5`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstAttempt {
    /// As the caller asked, without warning or retry: it may reclaim, and wakes kswapd (2.6.28).
    Historic,
    /// (a) Not at all unless more than an eighth of memory (huge pages apart) is free.
    IfPlentyFree,
    /// (b) Without direct reclaim; kswapd is woken at that order.
    NoWait,
    /// (c) Without direct reclaim, and without waking kswapd. What 6.x does, with `NOMEMALLOC`.
    NoWake,
    /// (d) As (c), and it gives up after the first pass over the free lists.
    FirstPassOnly,
}

impl FirstAttempt {
    /// All of them, in the order of the table in `spec: 6.5`.
    pub const ALL: [FirstAttempt; 5] = [
        FirstAttempt::Historic,
        FirstAttempt::IfPlentyFree,
        FirstAttempt::NoWait,
        FirstAttempt::NoWake,
        FirstAttempt::FirstPassOnly,
    ];
}

/// Rules of SLUB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlubRules {
    /// `slub_min_objects`: objects a slab should hold; 0 derives it from the number of CPUs.
    pub min_objects: u32,
    /// `slub_min_order`.
    pub min_order: u8,
    /// `slub_max_order`.
    pub max_order: u8,
    /// How an order is looked for.
    pub search: OrderSearch,
    /// How an order above the least is tried.
    pub first_attempt: FirstAttempt,
    /// Slabs that empty on a node's list stay there while it has fewer than `min_partial` (modern);
    /// otherwise each goes at once (2.6.28).
    pub keep_empty: bool,
    /// `min_partial` is half of the logarithm of the size (modern), not all of it (2.6.28).
    pub min_partial_of_half: bool,
    /// CPUs keep partial slabs of their own (modern).
    pub cpu_partial: bool,
}

impl SlubRules {
    /// SLUB of 2.6.28, the kernel of source S2.
    pub const V2_6_28: SlubRules = SlubRules {
        min_objects: 0,
        min_order: 0,
        max_order: 3,
        search: OrderSearch::Halve,
        first_attempt: FirstAttempt::Historic,
        keep_empty: false,
        min_partial_of_half: false,
        cpu_partial: false,
    };
    /// SLUB of 6.x.
    pub const V6: SlubRules = SlubRules {
        search: OrderSearch::Ceil,
        first_attempt: FirstAttempt::NoWake,
        keep_empty: true,
        min_partial_of_half: true,
        cpu_partial: true,
        ..SlubRules::V2_6_28
    };

    /// With so many objects wanted in a slab; 0 derives them from the number of CPUs.
    #[must_use]
    pub const fn min_objects(mut self, min_objects: u32) -> SlubRules {
        self.min_objects = min_objects;
        self
    }
    /// With no slab below this order.
    #[must_use]
    pub const fn min_order(mut self, min_order: u8) -> SlubRules {
        self.min_order = min_order;
        self
    }
    /// With no slab above this order, unless an object needs it.
    #[must_use]
    pub const fn max_order(mut self, max_order: u8) -> SlubRules {
        self.max_order = max_order;
        self
    }
    /// With another way to look for an order.
    #[must_use]
    pub const fn search(mut self, search: OrderSearch) -> SlubRules {
        self.search = search;
        self
    }
    /// With another way to try for more than the least order.
    #[must_use]
    pub const fn first_attempt(mut self, first_attempt: FirstAttempt) -> SlubRules {
        self.first_attempt = first_attempt;
        self
    }
}

/// Rules of SLQB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlqbRules {
    /// `slqb_min_objects`: least objects of a slab.
    pub min_objects: u32,
    /// Largest order that waste alone may choose.
    pub max_order: u8,
}

impl SlqbRules {
    /// As posted.
    pub const POSTED: SlqbRules = SlqbRules {
        min_objects: 1,
        max_order: 1,
    };

    /// With so many objects in a slab at least.
    #[must_use]
    pub const fn min_objects(mut self, min_objects: u32) -> SlqbRules {
        self.min_objects = min_objects;
        self
    }
    /// With this as the largest order that waste alone may choose.
    #[must_use]
    pub const fn max_order(mut self, max_order: u8) -> SlqbRules {
        self.max_order = max_order;
        self
    }
}

/// Rules of a whole set of caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rules {
    /// Design of caches that choose none.
    pub design: Design,
    /// SLUB's.
    pub slub: SlubRules,
    /// SLQB's.
    pub slqb: SlqbRules,
    /// Caches that differ in name only share their slabs (SLUB).
    pub merge: bool,
}

impl Rules {
    /// Those of 6.x.
    pub const MODERN: Rules = Rules {
        design: Design::Slub,
        slub: SlubRules::V6,
        slqb: SlqbRules::POSTED,
        merge: true,
    };
    /// Those of kernels before 2.6.22, which had SLAB alone.
    pub const SLAB: Rules = Rules {
        design: Design::Slab,
        ..Rules::S2
    };
    /// Those of source S2: 2.6.28 and 2.6.29-rc2.
    pub const S2: Rules = Rules {
        design: Design::Slub,
        slub: SlubRules::V2_6_28,
        slqb: SlqbRules::POSTED,
        merge: true,
    };

    /// With another design for caches that choose none.
    #[must_use]
    pub const fn design(mut self, design: Design) -> Rules {
        self.design = design;
        self
    }
    /// With other rules of SLUB.
    #[must_use]
    pub const fn slub(mut self, slub: SlubRules) -> Rules {
        self.slub = slub;
        self
    }
    /// With other rules of SLQB.
    #[must_use]
    pub const fn slqb(mut self, slqb: SlqbRules) -> Rules {
        self.slqb = slqb;
        self
    }
    /// With or without caches that share their slabs.
    #[must_use]
    pub const fn merge(mut self, merge: bool) -> Rules {
        self.merge = merge;
        self
    }
}

impl Default for Rules {
    fn default() -> Rules {
        Rules::MODERN
    }
}
