//! The tests of the engine, as one program.
//!
//! - `maps`: the maps of one caller. `memory`: many CPUs on them. `nodes`: nodes, low addresses, and memory that goes. `drains`: what CPUs keep, had back by
//!   others. `evacuate`: making whole free blocks there.
//! - `variance`: what the types with a parameter may stand for, and where they may go.

#[path = "../../../../checks/chance.rs"]
mod chance;
mod drains;
mod evacuate;
mod leaving;
mod maps;
mod memory;
mod nodes;
#[path = "../support/mod.rs"]
mod support;
#[path = "../../../../checks/types.rs"]
mod types;
mod variance;
