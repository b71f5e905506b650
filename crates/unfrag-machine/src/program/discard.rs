//! The step `discard`: a part of an area's pages is given back.

use super::actor::{Actor, Halt};
use super::spec::heap;
use crate::Cx;
use crate::error::Fail;
use crate::input::{Bytes, Percent};
use serde::Deserialize;

/// Gives back the first part of each piece of an area (`MADV_DONTNEED`).
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Discard {
    /// The area.
    #[serde(default = "heap")]
    pub area: String,
    /// Size of a piece.
    pub of: Bytes,
    /// The share of it that goes, from its beginning.
    pub percent: Percent,
}

impl Actor {
    pub(super) fn discard(&mut self, cx: &mut Cx, d: &Discard) -> Result<(), Halt> {
        let Some(&area) = self.areas.get(&d.area) else {
            return Ok(());
        };
        let proc = self.proc;
        let len = cx.with(|sim| sim.area_pages(proc, area));
        let piece = d.of.pages32();
        let share = (u64::from(piece) * u64::from(d.percent.get()) / 100) as u32;
        for from in (0..len).step_by(piece as usize) {
            cx.discard(proc, area, from..(from + share).min(len));
            if cx.killed() {
                return Err(Halt::Failed(Fail::Killed));
            }
        }
        cx.pay();
        Ok(())
    }
}
