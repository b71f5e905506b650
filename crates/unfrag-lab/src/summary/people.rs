//! Who did something: processes by name, and interrupts apart from them.
//!
//! Invariant: processes of one name are one, so that a build's thousand compilers are a line. Those without a name stand
//! last in each list: together they are no process.

use super::report::{Asked, Who};
use std::cmp::Reverse;
use std::collections::HashMap;
use unfrag_linux::event::{Role, Roles};
use unfrag_linux::recording::{IN_INTERRUPT, Recording};

/// Who did something, as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct WhoId(u64);

/// What the recorder and its threads are called.
const RECORDER: &str = "(the recorder)";

/// Names of a recording's tasks.
pub(super) struct People<'a> {
    of_task: Vec<u32>,
    names: Vec<Option<&'a str>>,
}

impl<'a> People<'a> {
    /// Of this recording.
    pub fn of(rec: &'a Recording) -> People<'a> {
        let mut known: HashMap<Option<&str>, u32> = HashMap::new();
        let mut names = vec![];
        let roles = Roles::of(rec);
        let of_task = rec.tasks.iter().zip(roles.all()).map(|(task, role)| {
            let name = match role {
                Role::Unnamed => None,
                Role::Recorder => Some(RECORDER),
                _ => Some(task.comm.as_str()),
            };
            *known.entry(name).or_insert_with(|| {
                names.push(name);
                names.len() as u32 - 1
            })
        });
        let of_task = of_task.collect();
        People { of_task, names }
    }

    /// Who did an event of this task with these flags.
    #[inline]
    pub fn who(&self, task: u32, flags: u8) -> WhoId {
        let name = self.of_task.get(task as usize).copied().unwrap_or(u32::MAX);
        WhoId(u64::from(name) << 1 | u64::from(flags & IN_INTERRUPT != 0))
    }

    /// By name.
    pub fn name(&self, who: WhoId) -> Who {
        let name = self.names.get((who.0 >> 1) as usize).copied().flatten();
        Who {
            process: name.map(str::to_owned),
            interrupt: who.0 & 1 == 1,
        }
    }
    /// Requests by process and order, most first; `None` if there were none.
    pub fn asked(&self, counts: HashMap<(WhoId, Option<u64>), u64>) -> Option<Vec<Asked>> {
        let list = counts.into_iter().map(|((who, order), count)| Asked {
            who: self.name(who),
            order: order.map(|o| o as i64),
            count,
        });
        let mut list: Vec<Asked> = list.collect();
        list.sort_by(|a, b| {
            let key = |k: &Asked| (k.who.is_unnamed(), Reverse(k.count), Reverse(k.order));
            key(a).cmp(&key(b)).then_with(|| a.who.cmp(&b.who))
        });
        (!list.is_empty()).then_some(list)
    }
}
