//! Events that say nothing, and why.

/// Why an event says nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It lacks a field, or has no number there.
    #[error("the events `{event}` have no field `{field}`; record them with their raw data")]
    Lacks {
        /// Name of the event.
        event: String,
        /// Name of the field.
        field: &'static str,
    },
    /// It names a block that no kernel has.
    #[error("an event names frame {pfn:#x} of order {order}, which no kernel has")]
    Order {
        /// First frame.
        pfn: u64,
        /// Order.
        order: u64,
    },
    /// It names a frame that no computer has.
    #[error("an event names frame {0:#x}, which is beyond all addresses")]
    Frame(u64),
}
