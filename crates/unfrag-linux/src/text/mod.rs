//! Text.
use crate::error::{Error, Result};
use crate::recording::Recording;
/// Reads text.
pub fn read(_text: &[u8], _release: Option<&str>) -> Result<Recording> {
    Err(Error::unsupported("text"))
}
