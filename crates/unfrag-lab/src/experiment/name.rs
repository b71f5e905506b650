//! The published experiments. S0 to S4 are the sources that they come from.

/// An experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// S0: blocks of order 10 while seven kernels are built, and afterwards.
    HighOrder,
    /// S0: eight small programs.
    Aim9,
    /// S2: two builds on tmpfs, with slabs of several orders.
    SlabOrder,
    /// S4: reclaim behind an encrypted disk, with order-2 requests from interrupts.
    Atomic,
}

impl Name {
    /// All of them.
    pub const ALL: [Name; 4] = [Name::HighOrder, Name::Aim9, Name::SlabOrder, Name::Atomic];

    /// The name that users know.
    pub const fn as_str(self) -> &'static str {
        match self {
            Name::HighOrder => "highorder",
            Name::Aim9 => "aim9",
            Name::SlabOrder => "slab-order",
            Name::Atomic => "atomic",
        }
    }
}
