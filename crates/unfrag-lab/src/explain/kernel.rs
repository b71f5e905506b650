//! Which kernel wrote a report: its release, or what the form of the report gives away.
//!
//! Invariant: what was assumed is said, with its reason.

use crate::era::Era;
use unfrag_eras::Gfp;
use unfrag_eras::kernel::{Preset, preset};
use unfrag_linux::gfp_text;
use unfrag_linux::kernel_log::{Kind, Report};

/// The kernel that a report is judged by.
pub struct Kernel {
    /// Its numbers.
    pub era: Era,
    /// The names of its request flags.
    pub gfp: gfp_text::Era,
    /// Its rules.
    pub preset: &'static Preset,
    /// Whose rules they are, and why.
    pub rules: String,
    /// Whether the release stands in the text.
    pub is_said: bool,
    /// The oldest release that prints such a report: its own where it is said.
    oldest: Era,
}

impl Kernel {
    /// The kernel of a report.
    pub fn of(r: &Report) -> Kernel {
        let said = r.kernel.clone().filter(|k| Era::of(k).is_ok());
        let (release, why) = match &said {
            Some(release) => (release.clone(), String::new()),
            None => without_contradiction(assumed(r), r),
        };
        let oldest = said.as_deref().unwrap_or_else(|| oldest(r));
        let oldest = Era::of(oldest).unwrap_or_else(|_| Era::newest());
        let is_said = said.is_some();
        let era = Era::of(&release).unwrap_or_else(|_| Era::newest());
        let name = era.preset();
        let rules = match said {
            Some(_) if release.starts_with(name) => format!("those of {name}"),
            Some(_) => format!("those of {name}, the nearest that is known"),
            None => format!("those of {name}: the text does not say the release, and {why}"),
        };
        Kernel {
            era,
            gfp: gfp_text::Era::of_release(&release).unwrap_or(gfp_text::Era::NEWEST),
            preset: preset(name)
                .or_else(|| preset("6.18"))
                .expect("a preset of the newest era"),
            rules,
            is_said,
            oldest,
        }
    }

    /// Whether the text shows that the kernel is of this release or later. A setting is advised only where it is known to
    /// exist.
    pub fn is_surely(&self, major: u32, minor: u32) -> bool {
        self.oldest.is_at_least(major, minor)
    }

    /// The flags of the request and their names; `None` if the text has none.
    pub fn request(&self, r: &Report) -> Option<(Gfp, Vec<String>)> {
        let raw = match (&r.mask.names, r.mask.raw) {
            (Some(names), raw) => self.gfp.parse(names).ok().or(raw)?,
            (None, raw) => raw?,
        };
        let names = r.mask.names.clone().unwrap_or_else(|| self.gfp.print(raw));
        let names = names.split('|').map(|n| n.trim().to_owned()).collect();
        Some((self.era.gfp(raw), names))
    }

    /// Whether the high-atomic reserve exists, and reports do not print it (4.4 to 4.18).
    pub fn hides_highatomic(&self) -> bool {
        self.era.is_at_least(4, 4) && !self.era.is_at_least(4, 19)
    }

    /// Whether such a kernel compacts memory (2.6.36 and later).
    pub fn compacts(&self) -> bool {
        !matches!(
            self.preset.name,
            "2.6.14" | "v19" | "2.6.24" | "2.6.28" | "2.6.30" | "2.6.31" | "2.6.32-rc6" | "2.6.32"
        )
    }
}

type Mask = (gfp_text::Era, &'static str, &'static str, &'static str);

/// Names of request flags, the first release that prints them, one of their rules, and their span.
const MASKS: [Mask; 6] = [
    (gfp_text::Era::V4_4, "4.6.0", "4.9.0", "4.6 to 4.9"),
    (gfp_text::Era::V4_10, "4.10.0", "4.14.0", "4.10 to 4.17"),
    (gfp_text::Era::V4_18, "4.18.0", "4.19.0", "4.18 to 5.0"),
    (gfp_text::Era::V5_1, "5.1.0", "6.1.0", "5.1 to 6.2"),
    (gfp_text::Era::V6_3, "6.3.0", "6.6.0", "6.3 to 6.8"),
    (gfp_text::Era::V6_18, "6.9.0", "6.18.0", "6.9 and later"),
];

/// Of [`MASKS`] those that print the mask of a report as it stands there.
fn fitting(r: &Report) -> impl Iterator<Item = &'static Mask> {
    let mask = r.mask.names.as_deref().zip(r.mask.raw);
    MASKS.iter().filter(move |(era, ..)| {
        mask.is_some_and(|(names, raw)| era.parse(names) == Ok(raw) && era.print(raw) == *names)
    })
}

/// The oldest release that prints such a report. `spec: K.1`
fn oldest(r: &Report) -> &'static str {
    match (fitting(r).next(), &r.mask.names) {
        (Some((_, first, ..)), _) => first,
        // Masks have had names since then.
        (None, Some(_)) => "4.6.0",
        (None, None) => "2.4.0",
    }
}

/// A release that prints reports of this form, and what gives it away. `spec: K.1, K.2, 7.7`
fn assumed(r: &Report) -> (String, String) {
    let of = |release: &str, why: &str| (release.to_owned(), why.to_owned());
    if r.names_cpu {
        return of("6.12.0", "slab caches have named the CPU since 6.12");
    }
    if r.cache.as_ref().is_some_and(|c| c.is_of_cgroup()) && r.mask.names.is_none() {
        return of(
            "3.10.0",
            "control groups had caches of their own from 3.8 on, and masks names from 4.6 on",
        );
    }
    if let (Some(names), Some(raw)) = (&r.mask.names, r.mask.raw) {
        // Kernels of several eras may print the same: of those the one whose rules lie between.
        let fitting: Vec<_> = fitting(r).collect();
        if let Some((_, _, release, span)) = fitting.get(fitting.len() / 2) {
            return of(release, &format!("mask and names are those of {span}"));
        }
        if let Some((_, _, release, span)) =
            MASKS.iter().find(|(era, ..)| era.parse(names) == Ok(raw))
        {
            return of(
                release,
                &format!("names mean the mask by the rules of {span}"),
            );
        }
        let knows = |(era, ..): &&Mask| era.parse(names).is_ok();
        if let Some((_, _, release, span)) = MASKS.iter().rfind(knows) {
            return of(release, &format!("names of the mask are known from {span}"));
        }
        return of("6.1.0", "masks have had names since 4.6");
    }
    let memory = r.memory.as_ref();
    let has_letters = memory.is_some_and(|m| {
        let blocks = m.zones.iter().filter_map(|z| z.blocks.as_ref());
        blocks
            .flat_map(|b| &b.orders)
            .any(|(_, letters)| !letters.is_empty())
    });
    if has_letters {
        return of(
            "3.10.0",
            "free lists have had letters since 3.9, and masks names since 4.6",
        );
    }
    if r.is_old_form && r.mask.raw.is_some() && r.task.is_none() && memory.is_none() {
        return of("2.4.0", "the form is that of 2.4");
    }
    if memory.is_some_and(|m| m.is_old_form) {
        return of("2.6.22", "counts of pages had this form to 2.6.27");
    }
    if r.kind == Kind::AllocationFailure && !r.is_old_form {
        return of("3.2.0", "the form is that of 2.6.39 to 3.8");
    }
    // A bit of request masks that no kernel from 2.6.30 to 2.6.38 has.
    const MOVABLE_TO_2_6_29: u64 = 0x10_0000;
    if has_blocks_without_letters(r) && r.mask.raw.is_some_and(|m| m & MOVABLE_TO_2_6_29 != 0) {
        return of(
            "2.6.28",
            "the form is that of 2.6.28 to 2.6.38, and bit 0x100000 is __GFP_MOVABLE to 2.6.29 and none after",
        );
    }
    of("2.6.32", "the form is that of 2.6.28 to 2.6.38")
}

/// Whether free lists of a report are in the text, none with letters: no kernel after 3.8 wrote it. `spec: K.2`
fn has_blocks_without_letters(r: &Report) -> bool {
    let zones = r.memory.iter().flat_map(|m| &m.zones);
    let mut orders = zones
        .filter_map(|z| z.blocks.as_ref())
        .flat_map(|b| &b.orders)
        .peekable();
    orders.peek().is_some() && orders.all(|(_, letters)| letters.is_empty())
}

/// The release that was assumed, or the first later one whose masks have all bits of the request's. Where the form itself
/// is of no later one, the bit is not known, and stays a number.
fn without_contradiction((release, why): (String, String), r: &Report) -> (String, String) {
    const LATER: [&str; 6] = ["3.10.0", "4.4.0", "4.14.0", "4.19.0", "6.1.0", "6.18.0"];
    let Some(raw) = r.mask.raw else {
        return (release, why);
    };
    let number = |release: &str| {
        let mut parts = release.split('.').map(|p| p.parse::<u32>().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
    };
    let knows = |release: &str| {
        let era = gfp_text::Era::of_release(release).unwrap_or(gfp_text::Era::NEWEST);
        let known = |name: &str| !name.starts_with("0x");
        // Old kernels print no names for the bits that choose a zone, which never moved.
        const ZONE_BITS: u64 = 0xf;
        era.print(raw & !ZONE_BITS).split('|').all(known)
    };
    if knows(&release) || has_blocks_without_letters(r) {
        return (release, why);
    }
    let mut later = LATER.iter().filter(|l| number(l) > number(&release));
    match later.find(|l| knows(l)) {
        Some(found) => {
            let why =
                format!("{why}, and {raw:#x} has a bit that kernels before {found} do not know");
            ((*found).to_owned(), why)
        }
        None => (release, why),
    }
}
