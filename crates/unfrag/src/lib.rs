//! A page allocator that does not fragment.
#![no_std]
#![forbid(unsafe_code)]
