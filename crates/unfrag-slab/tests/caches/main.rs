//! The tests of the slab caches, as one program: most of them over each source of pages. Two more stand beside it:
//! `global_allocator`, whose global allocator they are, and `slab_shuttle`, which is built with `--cfg shuttle`.

mod memory_pages;
mod over_engine;
mod over_eras;
mod pages;
mod support;
#[path = "../../../../checks/types.rs"]
mod types;
mod variance;
