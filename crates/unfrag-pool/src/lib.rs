//! Real memory from unfrag's page allocator.
