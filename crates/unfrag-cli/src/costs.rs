//! A file of costs, as `--costs` names it.

use crate::failure::Result;
use std::path::Path;
use unfrag_linux::Error;
use unfrag_machine::Calibration;

/// The costs in a file.
///
/// # Errors
/// If it cannot be read, or is no calibration.
pub fn read(path: &Path) -> Result<Calibration> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| {
        let help = "name a calibration; `unfrag calibrate -o FILE` writes one";
        Error::from(e).help(help).in_file(path)
    })?;
    Ok(Calibration::parse(&name, &text)?)
}
