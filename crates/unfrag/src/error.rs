//! Why a request fails.

/// Why an allocation failed. Nothing changed, but that what CPUs keep may have been drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllocError {
    /// The order is above the largest that a block of this memory may have.
    OrderTooLarge,
    /// No memory that there may ever be is where the request names: of its node, below its address.
    Nowhere,
    /// Too little memory is free, in whatever blocks.
    Short,
    /// Enough memory is free for the request, but no block of its order that it may take: moving what is in
    /// use could help.
    Fragmented,
    /// Memory is free, but there are as many blocks that can be moved as can be told apart.
    NoHandle,
    /// The block is for an owner that this memory does not know.
    NoSuchOwner,
}

impl core::fmt::Display for AllocError {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        f.write_str(match self {
            AllocError::OrderTooLarge => {
                "the order is above the largest of this machine; ask for several blocks"
            }
            AllocError::Nowhere => {
                "nothing of this memory is where the request names; see its node and its limit"
            }
            AllocError::Short => "too little memory is free",
            AllocError::Fragmented => {
                "enough memory is free, but no block of this order to be had: it is fragmented"
            }
            AllocError::NoHandle => {
                "there are as many movable blocks as can be told apart: free some, or take larger ones"
            }
            AllocError::NoSuchOwner => {
                "the owner is not registered here; allocate for it where it is, or register it here"
            }
        })
    }
}

impl core::error::Error for AllocError {}
