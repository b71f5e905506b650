//! The tests of the slab caches, as one program. Two more stand beside it: `global_allocator`, whose global allocator
//! they are, and `slab_shuttle`, which is built with `--cfg shuttle`.

mod checks;
mod designs;
mod interrupts;
mod kmalloc;
mod misuse;
mod model;
mod pages;
mod support;
mod threads;
#[path = "../../../../checks/types.rs"]
mod types;
mod variance;
