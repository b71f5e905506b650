//! The structure of the project: which file imports from which, and whether a citation leads somewhere.
//!
//! A file *imports* from another one if it names, in a `use` or in a path, an item that the other defines. Re-exports
//! are followed to the definition. Declaring a module is no import, and importing a module is none before something is
//! used through it. Tests do not count. Files that import each other, directly or through others, are a circle.
//!
//! What is not seen: macros by textual scope (`#[macro_use]`), methods and fields, names inside format strings.

pub mod cfg;
pub mod circles;
pub mod graph;
pub mod items;
pub mod package;
pub mod read;
pub mod resolve;
pub mod scope;
pub mod tokens;
