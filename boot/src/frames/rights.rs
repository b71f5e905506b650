//! Who asks for a frame.

/// What an allocation may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// A task: it leaves the reserve alone, and can wait.
    Task,
    /// An interrupt handler, or the heap: it takes the reserve too.
    Interrupt,
}
