//! The choice of what runs of an experiment: kernels and machines by name.
//!
//! Invariant: with nothing named, what the source ran is run. What was added to it (a sweep, a patch that
//! the source only mentions) runs only if its own name is given.

use super::name::Name;
use crate::error::{Asked, Error, Result};

/// A kernel or a machine, as users name it.
pub(super) trait Choice {
    /// The word for it in messages.
    const OPTION: Asked;
    /// Its own name.
    fn own_name(&self) -> &str;
    /// The name that it shares with others, such as that of its base.
    fn family(&self) -> &str;
    /// Whether it was added to what the source ran.
    fn added(&self) -> bool;

    /// Whether this name chooses it.
    fn is_chosen_by(&self, asked: &str) -> bool {
        self.own_name() == asked || (!self.added() && self.family() == asked)
    }
}

/// Those that are named in `asked`, in the experiment's order.
///
/// # Errors
/// If a name chooses none; it lists those that would.
pub(super) fn chosen<T: Choice>(name: Name, all: Vec<T>, asked: &[String]) -> Result<Vec<T>> {
    if let Some(unknown) = asked
        .iter()
        .find(|a| !all.iter().any(|c| c.is_chosen_by(a)))
    {
        let mut known: Vec<&str> = vec![];
        let families = all.iter().map(T::family);
        for n in families.chain(all.iter().map(T::own_name)) {
            if !known.contains(&n) {
                known.push(n);
            }
        }
        let what = format!(
            "`{}` has no {} `{unknown}`",
            name.as_str(),
            T::OPTION.name()
        );
        return Err(Error::option(T::OPTION, what).help(format!("it has {}", known.join(", "))));
    }
    let runs = |c: &T| match asked {
        [] => !c.added(),
        _ => asked.iter().any(|a| c.is_chosen_by(a)),
    };
    Ok(all.into_iter().filter(runs).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::variant::Kernel;

    fn labels(asked: &[&str]) -> Vec<(&'static str, &'static str)> {
        let asked: Vec<String> = asked.iter().map(|a| (*a).into()).collect();
        let all = Name::Atomic.kernels();
        let chosen = chosen(Name::Atomic, all, &asked).expect("they exist");
        chosen
            .iter()
            .map(|k: &Kernel| (k.name, k.variant))
            .collect()
    }

    #[test]
    fn added_kernels_run_only_if_named() {
        let added = [
            "congestion-both-everywhere",
            "kswapd-quickly-notice-high-order",
        ];
        assert_eq!(labels(&[]).len(), 13);
        let of_base = labels(&["2.6.31"]);
        assert_eq!(of_base.len(), 6);
        assert!(of_base.iter().all(|(_, v)| !added.contains(v)));
        for a in added {
            assert_eq!(labels(&[a]), [("2.6.31", a), ("2.6.32-rc6", a)]);
        }
        assert_eq!(labels(&["2.6.30", added[0]]).len(), 3);
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let e = chosen(Name::Atomic, Name::Atomic.kernels(), &["2.4".into()]).unwrap_err();
        let help = format!("{e:?}");
        for known in ["2.6.30", "adjust-priority", "congestion-both-everywhere"] {
            assert!(help.contains(known), "{help}");
        }
    }
}
