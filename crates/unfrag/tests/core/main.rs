//! The tests of the engine, as one program.
//!
//! - `maps`: the maps of one caller. `memory`: many CPUs on them. `evacuate`: making whole free blocks there.
//! - `variance`: what the types with a parameter may stand for, and where they may go. `support`: chance, and settings.

mod evacuate;
mod maps;
mod memory;
mod support;
#[path = "../../../../checks/types.rs"]
mod types;
mod variance;
