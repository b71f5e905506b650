//! Which items exist in tests only.

use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Token};

/// True if the item with these attributes exists in tests only: `#[test]`, `#[cfg(test)]`, `#[cfg(all(test, …))]`.
pub(crate) fn only_in_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        if attribute.path().is_ident("test") {
            return true;
        }
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<Meta>()
                .is_ok_and(|condition| !without_test(&condition).can_hold)
    })
}

/// What a condition can be in a build without tests, all else being open.
struct Outcomes {
    can_hold: bool,
    can_fail: bool,
}

fn without_test(condition: &Meta) -> Outcomes {
    let open = Outcomes {
        can_hold: true,
        can_fail: true,
    };
    match condition {
        Meta::Path(path) if path.is_ident("test") => Outcomes {
            can_hold: false,
            can_fail: true,
        },
        Meta::List(list) => {
            let Ok(parts) = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            else {
                return open;
            };
            let parts: Vec<Outcomes> = parts.iter().map(without_test).collect();
            if list.path.is_ident("all") {
                Outcomes {
                    can_hold: parts.iter().all(|p| p.can_hold),
                    can_fail: parts.iter().any(|p| p.can_fail),
                }
            } else if list.path.is_ident("any") {
                Outcomes {
                    can_hold: parts.iter().any(|p| p.can_hold),
                    can_fail: parts.iter().all(|p| p.can_fail),
                }
            } else if list.path.is_ident("not") && parts.len() == 1 {
                Outcomes {
                    can_hold: parts[0].can_fail,
                    can_fail: parts[0].can_hold,
                }
            } else {
                open
            }
        }
        _ => open,
    }
}
