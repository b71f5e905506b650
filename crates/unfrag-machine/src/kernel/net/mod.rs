//! Receiving.

mod receive;
#[cfg(test)]
mod tests;
