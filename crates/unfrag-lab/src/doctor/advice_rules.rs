//! The rules by which a command is advised, and which of them stand.
//!
//! Invariant: advice follows from numbers of the [`Diagnosis`] that its reason names, and names the number that it changes;
//! without such numbers it is a candidate. Nothing is advised that the host's kernel does not have.

use super::advice::{Advice, Lasts, NotGiven};
use super::diagnosis::Diagnosis;
use super::evidence::Evidence;
use super::room_advice::{make_room, shrink_slab};
use super::setting_advice as settings;
use super::standing::Standing;
use super::thp_advice as thp;
use super::watch::Watch;
use crate::era::Era;
use crate::report::number::{bytes, duration, thousands};

/// What is advised, what is not yet, and what was withdrawn; each the most useful first.
#[derive(Clone, Debug, Default)]
pub(super) struct Ruling {
    /// To do.
    pub advice: Vec<Advice>,
    /// What needs more evidence.
    pub candidates: Vec<NotGiven>,
    /// What evidence speaks against.
    pub withdrawn: Vec<NotGiven>,
}

/// Judges every rule.
pub(super) fn rule(d: &Diagnosis, e: &Evidence, era: Era, watch: &Watch) -> Ruling {
    let now = watch.recent();
    let all = [
        ended(&now),
        slab_in_low_memory(d),
        settings::atomic_reserve(d, e, era),
        settings::watermark_boost(e, watch),
        settings::unevictable(d, e, watch),
        settings::proactive(d, e, era, watch),
        settings::early_kswapd(d, e, era, watch),
        settings::defrag_mode(d, e, era, watch),
        thp::huge_page_faults(e, watch),
        thp::stalling_faults(d, e, watch),
        shrink_slab(d, e, &now),
        make_room(d, e, &now),
    ];
    let mut ruling = Ruling::default();
    for (advice, standing) in all.into_iter().flatten() {
        let not_given = |advice, why_not| NotGiven { advice, why_not };
        match standing {
            Standing::Given => ruling.advice.push(advice),
            Standing::Needs(what) => ruling.candidates.push(not_given(advice, what)),
            Standing::Against(what) => ruling.withdrawn.push(not_given(advice, what)),
        }
    }
    ruling
}

fn look(command: &str, reason: String, cost: &str) -> (Advice, Standing) {
    let advice = Advice {
        command: command.into(),
        lasts: Lasts::Look,
        setting: None,
        current: None,
        value: None,
        reason,
        change: None,
        cost: cost.into(),
        prediction: None,
        predicted: None,
        huge_pages: None,
    };
    (advice, Standing::Given)
}

/// Where to look while processes are being ended.
fn ended(watch: &Watch) -> Option<(Advice, Standing)> {
    let n = watch.rose("oom_kill").filter(|&n| n > 0)?;
    let time = watch.watched().seconds.map(duration)?;
    Some(look(
        "unfrag explain --journal",
        format!(
            "{} processes were ended for lack of memory in the last {time}: the kernel's reports say who had it, and whether a setting would have helped",
            thousands(n)
        ),
        "none to look",
    ))
}

/// What to do where slab that cannot be reclaimed fills a zone. Larger watermarks would not help there.
fn slab_in_low_memory(d: &Diagnosis) -> Option<(Advice, Standing)> {
    let zone = d.zones.iter().find(|z| z.filled_by_slab_pages.is_some())?;
    let size = |pages: u64| bytes(pages.saturating_mul(d.page_size));
    Some(look(
        "slabtop -o -s c",
        format!(
            "{} of unreclaimable slab are the cause: zone {} of node {} has {} and is below its {} watermark, and a larger min_free_kbytes cannot free them; find the cache that grows, and what fills it",
            size(zone.filled_by_slab_pages?),
            zone.zone,
            zone.node,
            size(zone.managed_pages?),
            zone.below?
        ),
        "none to look; the cache shrinks only when the driver or the program that fills it lets go, or at a reboot",
    ))
}
