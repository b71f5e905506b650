//! Several trackers over one walk.
//!
//! Invariant: each of them is told of every event, as it would be alone; of one that says nothing it hears only if it
//! takes events of that kind.

use super::kind::Kind;
use super::page::Page;
use super::unreadable::Unreadable;
use super::walk::{At, Tracker};

/// Several trackers, as one.
pub struct Pass<'t, E>(pub Vec<&'t mut dyn Tracker<Error = E>>);

impl<E: From<Unreadable>> Tracker for Pass<'_, E> {
    type Error = E;

    fn takes(&self, kind: Kind) -> bool {
        self.0.iter().any(|t| t.takes(kind))
    }

    #[inline]
    fn event(&mut self, at: &At, page: Option<Page<'_>>) -> Result<(), E> {
        self.0.iter_mut().try_for_each(|t| t.event(at, page))
    }

    fn unreadable(&mut self, at: &At, kind: Kind, why: Unreadable) -> Result<(), E> {
        self.0.iter_mut().try_for_each(|t| match t.takes(kind) {
            true => t.unreadable(at, kind, why.clone()),
            false => t.event(at, None),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::walk;
    use crate::recording::{EventTable, Events, Field, FieldKind};

    /// Notes what it is told.
    struct Notes {
        takes: Kind,
        bears: bool,
        told: Vec<String>,
    }

    impl Tracker for Notes {
        type Error = Unreadable;

        fn takes(&self, kind: Kind) -> bool {
            kind == self.takes
        }

        fn event(&mut self, at: &At, page: Option<Page<'_>>) -> Result<(), Unreadable> {
            let own = match page {
                Some(Page::Alloc(_)) => self.takes == Kind::Alloc,
                Some(Page::Free(_)) => self.takes == Kind::Free,
                _ => false,
            };
            self.told.push(format!("{} {own}", at.time));
            Ok(())
        }

        fn unreadable(&mut self, at: &At, kind: Kind, why: Unreadable) -> Result<(), Unreadable> {
            self.told.push(format!("{} {kind:?} says nothing", at.time));
            match self.bears {
                true => Ok(()),
                false => Err(why),
            }
        }
    }

    /// Two allocations, the second of an order that no kernel has, and a free.
    fn events() -> Events {
        let field = |name: &str| Field {
            name: name.into(),
            kind: FieldKind::Unsigned,
        };
        let table = |name: &str, columns: Vec<Vec<u64>>| EventTable {
            name: name.into(),
            fields: ["pfn", "order", "gfp_flags"][..columns.len()]
                .iter()
                .map(|f| field(f))
                .collect(),
            columns,
            ..EventTable::default()
        };
        Events {
            time: vec![1, 2, 3],
            kind: vec![0, 0, 1],
            tables: vec![
                table("mm_page_alloc", vec![vec![8, 9], vec![0, 99], vec![0, 0]]),
                table("mm_page_free", vec![vec![8], vec![0]]),
            ],
            ..Events::default()
        }
    }

    #[test]
    fn each_is_told_what_it_is_told_alone_and_an_error_of_one_ends_all() {
        let notes = |takes, bears| Notes {
            takes,
            bears,
            told: vec![],
        };
        let events = events();
        let alone = |takes| {
            let mut n = notes(takes, true);
            walk(&events, &[], &mut n).unwrap();
            n.told
        };
        let (mut a, mut b, mut c) = (
            notes(Kind::Alloc, true),
            notes(Kind::Free, true),
            notes(Kind::Drain, false),
        );
        walk(&events, &[], &mut Pass(vec![&mut a, &mut b, &mut c])).unwrap();
        assert_eq!(a.told, alone(Kind::Alloc));
        assert_eq!(b.told, alone(Kind::Free));
        assert_eq!(c.told, alone(Kind::Drain));
        assert_eq!(a.told[1], "2 Alloc says nothing");
        let (mut a, mut b) = (notes(Kind::Free, true), notes(Kind::Alloc, false));
        assert!(walk(&events, &[], &mut Pass(vec![&mut a, &mut b])).is_err());
        assert_eq!(a.told.len(), 2);
        assert!(!Pass::<Unreadable>(vec![]).takes(Kind::Alloc));
    }
}
