//! Receiving from the network.

mod receive;
#[cfg(test)]
mod tests;
