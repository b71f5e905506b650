//! What grew between two looks at one host.
//!
//! Invariant: only what both tell is compared, and two hosts, or two boots with other memory, are refused.

use super::answer::{Account, Basis, account};
use super::look::Look;
use super::sites::{SiteGrowth, grown};
use super::uses::Use;
use crate::error::{Error, Result};
use crate::report::number::duration;
use serde::Serialize;
use unfrag_linux::segments::FIRST_DATE;

/// Frames of a use more than before; negative if there are fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct UseGrowth {
    /// The use.
    #[serde(rename = "use")]
    pub kind: Use,
    /// Frames.
    pub frames: i64,
}

/// What grew in a zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ZoneGrowth {
    /// Its node.
    pub node: u32,
    /// Its name.
    pub zone: String,
    /// By use; only those that changed.
    pub uses: Vec<UseGrowth>,
}

/// What grew.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growth {
    /// The earlier look.
    pub since: String,
    /// Seconds between the two; `null` where their clocks do not tell.
    pub seconds: Option<f64>,
    /// Frames of each use.
    pub uses: Vec<UseGrowth>,
    /// Frames that no counter has: the difference of what is likely.
    pub in_no_counter: i64,
    /// Frames by which that may be off: what per-CPU lists may have had more or fewer while flags were read, and what flags and
    /// counters of a copy tell differently; `null` where it is not known.
    pub give_or_take: Option<u64>,
    /// By zone; empty without page flags.
    pub zones: Vec<ZoneGrowth>,
    /// Places of the kernel's source; `null` without allocinfo.
    pub call_sites: Option<Vec<SiteGrowth>>,
}

/// An account with what grew since an earlier one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Where the memory is.
    #[serde(flatten)]
    pub account: Account,
    /// What grew; `null` of one look.
    pub growth: Option<Growth>,
}

/// The answer of one look, or of two of one host.
///
/// # Errors
/// If the two are not of one host, or one of them tells its frames and the other one only counters.
pub fn answer(before: Option<&Look>, after: &Look) -> Result<Answer> {
    let mut now = account(after);
    if let Some(before) = before.filter(|b| b.sites.is_some() != after.sites.is_some()) {
        let lacking = match before.sites {
            None => before,
            Some(_) => after,
        };
        now.notes.push(format!(
            "allocinfo of {} is not there or not understood: what grew by place is not known",
            lacking.source
        ));
    }
    let growth = before
        .map(|before| growth(before, after, &now))
        .transpose()?;
    if let Some(before) = before
        && let Some(seconds) = between(before, after).filter(|s| *s < 0.0)
    {
        now.notes.push(format!(
            "{} is {} older than {}: give the older one first, unless its host was started between the two",
            after.source,
            duration(-seconds),
            before.source
        ));
    }
    Ok(Answer {
        account: now,
        growth,
    })
}

/// Seconds from one look to the other, where both tell it by clocks of one kind: dates, or the time since the host was started.
fn between(before: &Look, after: &Look) -> Option<f64> {
    let (was, is) = before.time.zip(after.time)?;
    let are_alike = (was >= FIRST_DATE) == (is >= FIRST_DATE);
    are_alike.then(|| (i128::from(is) - i128::from(was)) as f64 / 1e9)
}

fn growth(before: &Look, after: &Look, now: &Account) -> Result<Growth> {
    let was = account(before);
    if was.basis != now.basis {
        let (with, without) = match was.basis {
            Basis::PageFlags => (&was.source, &now.source),
            Basis::Counters => (&now.source, &was.source),
        };
        return Err(Error::question(format!(
            "{with} has page flags and {without} has none, so their uses cannot be compared"
        ))
        .help("compare two with page flags (root; `unfrag snapshot`), or two without"));
    }
    if was.page_size != now.page_size || was.exist != now.exist || was.spanned != now.spanned {
        let of = |a: &Account| {
            let spanned = match a.spanned {
                Some(n) => format!(" of {n} that its zones span"),
                None => String::new(),
            };
            format!("{} frames{spanned}, of {} bytes each", a.exist, a.page_size)
        };
        return Err(Error::question(format!(
            "{} has {} and {} has {}: they are not of one host, or memory came or went between them",
            was.source,
            of(&was),
            now.source,
            of(now)
        ))
        .help("give two looks at one host, or ask of each by itself"));
    }
    let difference = |a: u64, b: u64| i64::try_from(i128::from(a) - i128::from(b)).unwrap_or(0);
    let tells = |a: &Account, kind| a.uses.iter().any(|u| u.kind == kind);
    let told = Use::ALL
        .iter()
        .filter(|&&k| tells(now, k) && tells(&was, k));
    let uses = told.map(|&kind| UseGrowth {
        kind,
        frames: difference(now.frames(kind), was.frames(kind)),
    });
    let zones = now.zones.iter().zip(&was.zones).map(|(now, was)| {
        let of = |z: &super::answer::ZoneFrames, kind| {
            let of = z.uses.iter().find(|u| u.kind == kind);
            of.map_or(0, |u| u.frames)
        };
        let uses = Use::ALL.iter().map(|&kind| UseGrowth {
            kind,
            frames: difference(of(now, kind), of(was, kind)),
        });
        ZoneGrowth {
            node: now.node,
            zone: now.zone.clone(),
            uses: uses.filter(|u| u.frames != 0).collect(),
        }
    });
    Ok(Growth {
        since: was.source.clone(),
        seconds: between(before, after).filter(|s| *s >= 0.0),
        uses: uses.collect(),
        in_no_counter: difference(now.in_no_counter.likely, was.in_no_counter.likely),
        give_or_take: was.off_by.zip(now.off_by).map(|(a, b)| a.saturating_add(b)),
        zones: zones.collect(),
        call_sites: before
            .sites
            .as_ref()
            .zip(after.sites.as_ref())
            .map(|(a, b)| grown(a, b)),
    })
}
