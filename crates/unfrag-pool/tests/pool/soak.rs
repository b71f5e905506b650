//! All of it at once.
