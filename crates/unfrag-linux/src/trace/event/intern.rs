//! Tasks and strings by index, each held once.

use std::collections::HashMap;

use crate::recording::{Task, UNKNOWN_COMM};

/// Strings by index, in the order of first use.
#[derive(Default)]
pub(crate) struct Strings {
    list: Vec<String>,
    index: HashMap<Box<[u8]>, u32>,
}

impl Strings {
    /// The index of `s`. Bytes that are not UTF-8 become the replacement character.
    pub fn intern(&mut self, s: &[u8]) -> u32 {
        if let Some(&i) = self.index.get(s) {
            return i;
        }
        let i = self.list.len() as u32;
        self.list.push(String::from_utf8_lossy(s).into_owned());
        self.index.insert(s.into(), i);
        i
    }
    /// The string of this index.
    pub fn get(&self, index: u64) -> Option<&str> {
        self.list.get(usize::try_from(index).ok()?).map(|s| &s[..])
    }
    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }
    /// All of them.
    pub fn into_list(self) -> Vec<String> {
        self.list
    }
}

/// Tasks by index, in the order of first use. One pid may have several names, one after another.
#[derive(Default)]
pub(crate) struct Tasks {
    list: Vec<Task>,
    /// Each pid's task of the moment, and the name it will have when first used.
    by_pid: HashMap<i32, u32>,
    names: HashMap<i32, String>,
    by_task: HashMap<Task, u32>,
    last: Option<(i32, u32)>,
}

impl Tasks {
    /// From here on `pid` is called `comm`.
    pub fn rename(&mut self, pid: i32, comm: &str) {
        if self.names.get(&pid).is_some_and(|n| n == comm) {
            return;
        }
        self.names.insert(pid, comm.to_owned());
        self.by_pid.remove(&pid);
        self.last = None;
    }
    /// `child` begins under the name of `parent`, if that is known.
    pub fn inherit(&mut self, parent: i32, child: i32) {
        if let Some(name) = self.names.get(&parent).cloned() {
            self.rename(child, &name);
        }
    }
    /// Whether `pid` is called `comm`, as far as is known.
    pub fn is_called(&self, pid: i32, comm: &str) -> bool {
        self.names.get(&pid).is_none_or(|n| n == comm)
    }
    /// The index of `pid` under the name it has now; pid 0 is `<idle>`.
    #[inline]
    pub fn of_pid(&mut self, pid: i32) -> u32 {
        match self.last {
            Some((p, t)) if p == pid => t,
            _ => self.look_up(pid),
        }
    }
    /// The index of the task `pid` called `comm`.
    pub fn of_task(&mut self, pid: i32, comm: &str) -> u32 {
        if let Some((p, t)) = self.last
            && p == pid
            && self.list[t as usize].comm == comm
        {
            return t;
        }
        self.rename(pid, comm);
        self.of_pid(pid)
    }
    fn look_up(&mut self, pid: i32) -> u32 {
        let t = match self.by_pid.get(&pid) {
            Some(&t) => t,
            None => {
                let comm = match self.names.get(&pid) {
                    Some(n) => n.clone(),
                    None if pid == 0 => "<idle>".to_owned(),
                    None => UNKNOWN_COMM.to_owned(),
                };
                let task = Task { pid, comm };
                let next = self.list.len() as u32;
                let t = *self.by_task.entry(task.clone()).or_insert(next);
                if t == next {
                    self.list.push(task);
                }
                self.by_pid.insert(pid, t);
                t
            }
        };
        self.last = Some((pid, t));
        t
    }
    /// All of them.
    pub fn into_list(self) -> Vec<Task> {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_pid_is_a_new_task_and_its_old_name_the_old_one() {
        let mut t = Tasks::default();
        assert_eq!(t.of_pid(7), 0);
        t.rename(7, "gcc");
        assert_eq!(t.of_pid(7), 1);
        assert_eq!(t.of_task(7, "cc1"), 2);
        assert_eq!(t.of_task(7, "gcc"), 1);
        assert_eq!(t.of_pid(0), 3);
        let list = t.into_list();
        assert_eq!(list[0].comm, "<...>");
        assert_eq!(list[3].comm, "<idle>");
    }
}
