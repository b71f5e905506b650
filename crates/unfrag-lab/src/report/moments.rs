//! Fewer moments of a long run, so that a browser can open its page.
//!
//! Invariant: the first and the last moment stay, and a sentence says how many were left out.

/// Moments drawn of each kernel.
pub(crate) const MOMENTS: usize = 1_500;

/// The moments that curves are drawn from, and a sentence if some were left out.
pub(crate) fn moments<T: Clone>(all: &[T]) -> (Vec<T>, Option<String>) {
    let said = fewer_moments(all.len());
    (evenly_spread(all, MOMENTS), said.map(|s| sentence(&[s])))
}

/// The phrase that says how many of so many moments are drawn, if not all.
pub(crate) fn fewer_moments(moments: usize) -> Option<String> {
    (moments > MOMENTS).then(|| format!("{MOMENTS} of {moments} moments in the curves"))
}

/// The sentence that says what is drawn, from its phrases.
pub(crate) fn sentence(said: &[String]) -> String {
    format!("To keep this page small it draws {}.", said.join(", "))
}

/// At most `most` of the items, evenly spread, the first and the last among them.
pub(crate) fn evenly_spread<T: Clone>(items: &[T], most: usize) -> Vec<T> {
    if items.len() <= most {
        return items.to_vec();
    }
    let last = items.len() - 1;
    (0..most)
        .map(|i| items[i * last / (most - 1)].clone())
        .collect()
}
