//! What a crate's test of its public types needs: their auto traits as values, and the list of those that have a parameter.
//!
//! A type that is covariant in a lifetime serves where a shorter one is asked for. A method with `&self` that stores what
//! lives for that lifetime then stores what lives too short, and safe code uses it after its end. So each such type has a
//! line in its crate's test, which compiles as long as it is covariant, and says why that is sound; one that must not be has
//! an example that must not compile.

/// `Send`, and `Sync`.
pub type Is = (bool, bool);

pub const BOTH: Is = (true, true);
#[allow(dead_code)]
pub const SEND: Is = (true, false);
#[allow(dead_code)]
pub const NEITHER: Is = (false, false);

/// For each type its name, and whether it is `Send` and `Sync`: an inherent constant, there for those that are, goes before
/// that of a trait.
macro_rules! traits {
    ($($t:ty),* $(,)?) => {
        [$((stringify!($t), {
            struct Send<T>(core::marker::PhantomData<T>);
            #[allow(dead_code)]
            impl<T: core::marker::Send> Send<T> { const IS: bool = true; }
            #[allow(dead_code)]
            trait NotSend { const IS: bool = false; }
            impl<T> NotSend for Send<T> {}
            struct Sync<T>(core::marker::PhantomData<T>);
            #[allow(dead_code)]
            impl<T: core::marker::Sync> Sync<T> { const IS: bool = true; }
            #[allow(dead_code)]
            trait NotSync { const IS: bool = false; }
            impl<T> NotSync for Sync<T> {}
            (Send::<$t>::IS, Sync::<$t>::IS)
        })),*]
    };
}
pub(crate) use traits;

/// Checks that all of these types are what they should be.
pub fn check(rows: &[(&str, Is)], right: Is) {
    for (name, is) in rows {
        assert_eq!(*is, right, "{name}: Send, Sync");
    }
}

/// The public types with a parameter, in the source below a directory, that a list lacks; and those of the list that are
/// nowhere.
pub fn differences(source: &str, list: &[&str]) -> Vec<String> {
    let mut found = vec![];
    let mut left = vec![std::path::PathBuf::from(source)];
    while let Some(at) = left.pop() {
        if at.is_dir() {
            let inner = std::fs::read_dir(at).expect("a directory of the source");
            left.extend(inner.map(|entry| entry.expect("an entry").path()));
            continue;
        }
        let text = std::fs::read_to_string(at).expect("text");
        for line in text.lines() {
            let kinds = ["pub struct ", "pub enum ", "pub union "];
            let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind));
            if let Some((name, _)) = rest.and_then(|rest| rest.split_once('<'))
                && name.chars().all(char::is_alphanumeric)
            {
                found.push(name.to_owned());
            }
        }
    }
    let lacks = found.iter().filter(|name| !list.contains(&name.as_str()));
    let gone = list.iter().filter(|name| !found.iter().any(|f| f == *name));
    let lacks = lacks.map(|name| format!("{name} has no line"));
    lacks
        .chain(gone.map(|name| format!("{name} is no type")))
        .collect()
}
