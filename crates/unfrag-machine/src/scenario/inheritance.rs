//! `like`: a machine that inherits from another one.
//!
//! Tables are merged key by key. Arrays of tables with names are merged by name. Everything else replaces the
//! inherited value. This works on the text's values, so a mistake in an inherited value is shown where it is
//! written.

use super::source::Source;
use crate::input::ScenarioError;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

type Value<'i> = Spanned<DeValue<'i>>;

/// Resolves `like` in each machine.
///
/// # Errors
/// If there is no such machine before it.
pub(super) fn resolve(file: &mut DeTable, source: &Source) -> Result<(), ScenarioError> {
    let Some(DeValue::Array(machines)) = file.get_mut("machine").map(Spanned::get_mut) else {
        return Ok(());
    };
    for mut machine in std::mem::replace(machines, DeArray::new()) {
        if let DeValue::Table(own) = machine.get_mut()
            && let Some(like) = own.remove("like")
        {
            let other = like.get_ref().as_str();
            let other = machines
                .iter()
                .find(|m| other.is_some() && name(m) == other);
            let Some(DeValue::Table(other)) = other.map(Spanned::get_ref) else {
                return Err(unlike(&like, machines, source));
            };
            let mut all = other.clone();
            // A machine without a name of its own is reported later.
            all.remove("name");
            change(&mut all, std::mem::take(own));
            *own = all;
        }
        machines.push(machine);
    }
    Ok(())
}

fn unlike(like: &Value, before: &DeArray, source: &Source) -> ScenarioError {
    let names: Vec<_> = before.iter().filter_map(name).collect();
    let message = match like.get_ref().as_str() {
        Some(name) => format!("there is no machine `{name}` before this one"),
        None => "`like` is not the name of a machine".to_owned(),
    };
    let help = match names.as_slice() {
        [] => "the first machine says all by itself".to_owned(),
        names => format!("there are: {}", names.join(", ")),
    };
    source.error(like, message).help(help)
}

fn change<'i>(of: &mut DeTable<'i>, by: DeTable<'i>) {
    for (key, value) in by {
        match of.get_mut(&key) {
            Some(old) => change_value(old, value),
            None => {
                of.insert(key, value);
            }
        }
    }
}

fn change_value<'i>(old: &mut Value<'i>, new: Value<'i>) {
    let span = new.span();
    match (old.get_mut(), new.into_inner()) {
        (DeValue::Table(of), DeValue::Table(by)) => change(of, by),
        (DeValue::Array(of), DeValue::Array(by)) if by.iter().all(|v| name(v).is_some()) => {
            change_by_name(of, by);
        }
        (_, new) => *old = Spanned::new(span, new),
    }
}

fn change_by_name<'i>(of: &mut DeArray<'i>, by: DeArray<'i>) {
    for new in by {
        match of.iter_mut().find(|old| name(old) == name(&new)) {
            Some(old) => change_value(old, new),
            None => of.push(new),
        }
    }
}

/// The name of a table that has one.
fn name<'v>(value: &'v Value) -> Option<&'v str> {
    match value.get_ref() {
        DeValue::Table(t) => t.get("name")?.get_ref().as_str(),
        _ => None,
    }
}
