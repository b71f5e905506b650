//! The structure of the project: which file imports from which, whether a citation leads somewhere, and who writes
//! files by itself.
//!
//! A file *imports* from another one if it names, in a `use` or in a path, an item that the other defines. Re-exports
//! are followed to the definition. Declaring a module is no import, and importing a module is none before something is
//! used through it. Tests do not count. Files that import each other, directly or through others, are a circle.
//!
//! What is not seen: macros by textual scope (`#[macro_use]`), methods and fields, names inside format strings.

mod cfg;
pub mod circles;
pub mod citations;
pub mod graph;
mod items;
mod module_file;
mod package;
mod read;
mod resolve;
pub mod rules;
mod scope;
mod text;
mod tokens;
mod walk;
pub mod writes;
