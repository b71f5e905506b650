//! The command `unfrag`.
fn main() {}
