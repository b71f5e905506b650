//! The settings of transparent huge pages, by their names below `/sys/kernel/mm`.
//!
//! `spec: 5.6`

use unfrag_eras::Gfp;

/// Which memory may have huge pages.
pub const ENABLED: &str = "transparent_hugepage/enabled";
/// What a fault does for a huge page that is not there.
pub const DEFRAG: &str = "transparent_hugepage/defrag";

/// A setting of huge pages and its value, as a user writes it, if it is one of these settings.
///
/// # Errors
/// If it cannot have the value: a sentence that says what is possible.
pub fn parse(name: &str, value: &str) -> Result<Option<(String, String)>, String> {
    let short = name.strip_prefix("/sys/kernel/mm/").unwrap_or(name);
    let values: &[&str] = match short {
        ENABLED => &["always", "madvise", "never"],
        DEFRAG => &["always", "defer", "defer+madvise", "madvise", "never"],
        _ => return Ok(None),
    };
    match values.contains(&value.trim()) {
        true => Ok(Some((short.to_owned(), value.trim().to_owned()))),
        false => Err(format!(
            "{short}={value}: the value must be one of {}",
            values.join(", ")
        )),
    }
}

/// What a value of [`DEFRAG`] lets a fault do beyond taking what is free; `advised` is whether its memory was advised to
/// have huge pages. A first try has `NORETRY` in any case.
pub fn effort(defrag: &str, advised: bool) -> Gfp {
    match (defrag, advised) {
        ("always", true) | ("madvise" | "defer+madvise", true) => Gfp::DIRECT_RECLAIM,
        ("always", false) => Gfp::DIRECT_RECLAIM | Gfp::NORETRY,
        ("defer", _) | ("defer+madvise", false) => Gfp::KSWAPD_RECLAIM,
        _ => Gfp::empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `spec: 5.6`
    #[test]
    fn a_fault_may_do_what_the_setting_says() {
        let (direct, kswapd) = (Gfp::DIRECT_RECLAIM, Gfp::KSWAPD_RECLAIM);
        for (defrag, plain, advised) in [
            ("always", direct | Gfp::NORETRY, direct),
            ("defer", kswapd, kswapd),
            ("defer+madvise", kswapd, direct),
            ("madvise", Gfp::empty(), direct),
            ("never", Gfp::empty(), Gfp::empty()),
        ] {
            assert_eq!(effort(defrag, false), plain, "{defrag}");
            assert_eq!(effort(defrag, true), advised, "{defrag}");
        }
    }

    #[test]
    fn other_values_are_answered_with_those_that_are_possible() {
        let e = parse(ENABLED, "defer").unwrap_err();
        assert!(e.contains("always, madvise, never"), "{e}");
        assert!(parse(DEFRAG, "").unwrap_err().contains("defer+madvise"));
        assert_eq!(parse("vm.swappiness", "1"), Ok(None));
        let long = parse("/sys/kernel/mm/transparent_hugepage/defrag", " never ");
        assert_eq!(long, Ok(Some((DEFRAG.into(), "never".into()))));
    }
}
