//! Names that are the kernel's own, and numbers in the place of all other names.
//!
//! A user may call a program as the kernel calls a thread. So of a name that begins as one of the kernel's does, only
//! what the kernel itself may have written stays; the rest is a number.
//!
//! Invariant: one name has one number, and two names have two.

use std::collections::HashMap;

use super::removed::Removed;
use crate::event::{Role, Roles};
use crate::recording::{Recording, UNKNOWN_COMM};

/// Numbers in the place of others, from 1 on in the order in which they are first met; 0, which is none, stays.
#[derive(Debug, Default)]
struct Numbers(HashMap<u64, u64>);

impl Numbers {
    fn of(&mut self, n: u64) -> u64 {
        if n == 0 {
            return 0;
        }
        let next = self.0.len() as u64 + 1;
        *self.0.entry(n).or_insert(next)
    }
}

/// Words in the place of others.
#[derive(Debug, Default)]
struct Words(HashMap<String, u64>);

impl Words {
    fn of(&mut self, word: &str) -> u64 {
        if let Some(&n) = self.0.get(word) {
            return n;
        }
        let n = self.0.len() as u64 + 1;
        self.0.insert(word.to_owned(), n);
        n
    }
}

/// What a field's text names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Text {
    /// A program, by the path of its file.
    Path,
    /// A slab cache.
    Cache,
    /// A kernel stack.
    Stack,
    /// A value that the kernel has a word or a number for.
    Value,
    /// What should be a number, and is none.
    Other,
}

/// What becomes of names and numbers.
#[derive(Debug, Default)]
pub(super) struct Names {
    comms: Vec<String>,
    programs: Words,
    /// What follows the kernel's own part of a name.
    rests: Words,
    pids: Numbers,
    addresses: Numbers,
    sites: Numbers,
    /// Functions of modules, and the modules.
    codes: Words,
    modules: Words,
    /// Devices that no driver stands behind, and all others.
    devices: [Numbers; 2],
    /// Inodes that are block devices in those, and all others.
    inodes: [Numbers; 2],
    strings: Vec<String>,
    /// Numbers of the new strings.
    known: HashMap<String, u64>,
    /// By what it names and number of the old string, the number of the new one.
    seen: HashMap<(Text, u64), u64>,
}

/// Bits of a device number that hold its minor number, as page cache counts devices.
const MINOR_BITS: u32 = 20;
/// Major numbers below this one are those of devices.
const MAJORS: u64 = 4096;

impl Names {
    /// Of a recording's tasks, which have these roles.
    pub fn of(recording: &Recording, roles: &Roles) -> Names {
        let mut names = Names::default();
        // An empty string stands for a text that is not there.
        names.string(String::new());
        let tasks = recording.tasks.iter().zip(roles.all());
        let comms = tasks.map(|(task, role)| {
            names.pid(task.pid.into());
            names.comm(&task.comm, *role)
        });
        let comms = comms.collect();
        names.comms = comms;
        names
    }

    /// The new names of the tasks, in order.
    pub fn comms(&mut self) -> Vec<String> {
        std::mem::take(&mut self.comms)
    }

    /// The number of a task in the place of its own; negative ones are none.
    pub fn pid(&mut self, pid: i64) -> u64 {
        self.pids.of(u64::try_from(pid).unwrap_or(0))
    }

    /// The same of one that was noted as text, if it is a task of the recording.
    pub fn known_pid(&self, pid: u64) -> Option<u64> {
        self.pids.0.get(&pid).copied()
    }

    fn comm(&mut self, comm: &str, role: Role) -> String {
        /// As tracers and this recorder call their own tasks.
        const TRACERS: [&str; 6] = [
            "unfrag",
            "spooler",
            "starter",
            "signals",
            "trace-cmd",
            "perf",
        ];
        if comm.is_empty() || comm == UNKNOWN_COMM {
            return comm.to_owned();
        }
        if role == Role::Recorder && TRACERS.contains(&comm) {
            return comm.to_owned();
        }
        match of_kernel(comm) {
            Some((own, "")) => own.to_owned(),
            Some((own, rest)) => format!("{own}-{}", self.rests.of(rest)),
            None => self.program(comm),
        }
    }

    /// What stands before a slash and a number is one program, whichever of its threads it is.
    fn program(&mut self, name: &str) -> String {
        let is_number = |rest: &str| {
            let rest = rest.trim_start_matches('u');
            rest.starts_with(|c: char| c.is_ascii_digit())
        };
        match name.split_once('/') {
            Some((program, rest)) if is_number(rest) => {
                let thread = self.rests.of(rest);
                format!("program-{}/{thread}", self.programs.of(program))
            }
            _ => format!("program-{}", self.programs.of(name)),
        }
    }

    /// A device in the place of another. Those without a driver have 0 as their major number, and keep that.
    pub fn device(&mut self, device: u64) -> u64 {
        let has_driver = device >> MINOR_BITS != 0;
        let n = self.devices[usize::from(has_driver)].of(device);
        match has_driver {
            false => n,
            true => 1 << MINOR_BITS | n,
        }
    }

    /// An inode in the place of another. Those that are numbered as a block device is stay such.
    pub fn inode(&mut self, inode: u64) -> u64 {
        let is_device = (1..MAJORS).contains(&(inode >> MINOR_BITS));
        let n = self.inodes[usize::from(is_device)].of(inode);
        match is_device {
            true => (1 << MINOR_BITS) + n,
            // Above the numbers of devices, where they reach those.
            false if n >> MINOR_BITS != 0 => n + (MAJORS << MINOR_BITS),
            false => n,
        }
    }

    /// An address of an object, or of a page of a process, in the place of another.
    pub fn address(&mut self, address: u64) -> u64 {
        self.addresses.of(address)
    }

    /// A place in the kernel's code, in the place of another.
    pub fn site(&mut self, site: u64) -> u64 {
        self.sites.of(site)
    }

    /// The number of the new string for the old one with this number.
    pub fn text(&mut self, what: Text, number: u64, old: &[String]) -> u64 {
        if let Some(&new) = self.seen.get(&(what, number)) {
            return new;
        }
        let text = usize::try_from(number).ok().and_then(|n| old.get(n));
        let text = text.map_or("", String::as_str);
        let new = match what {
            _ if text.is_empty() => String::new(),
            Text::Path => self.program(text.rsplit('/').next().unwrap_or(text)),
            Text::Cache => self.cache(text),
            Text::Stack => self.stack(text),
            Text::Value if is_value(text) => text.to_owned(),
            Text::Value => format!("value-{}", self.rests.of(text)),
            Text::Other => format!("value-{}", self.rests.of(text)),
        };
        let new = self.string(new);
        self.seen.insert((what, number), new);
        new
    }

    /// The name of a slab cache: that of its kind, and numbers in the place of the control group or the instance that it
    /// is of, and of addresses.
    pub fn cache(&mut self, name: &str) -> String {
        // Caches that are several in one are called by their size, as in `:A-0000192`.
        let is_own = |(at, c): (usize, char)| {
            c.is_ascii_alphanumeric() || "-_.".contains(c) || (at == 0 && c == ':')
        };
        let end = name.char_indices().find(|&i| !is_own(i)).map(|(at, _)| at);
        let own = &name[..end.unwrap_or(name.len())];
        // `raid5-NAME` has the name of an array.
        let own = own.find("raid5-").map_or(own, |at| &own[..at + 6]);
        let long = |part: &str| {
            let digits = part.bytes().filter(u8::is_ascii_digit).count();
            part.len() >= 8 && digits > 0 && part.bytes().all(|b| b.is_ascii_hexdigit())
        };
        let hex = own.split(['-', '_']).find(|part| long(part));
        let own = hex.and_then(|h| own.find(h)).map_or(own, |at| &own[..at]);
        match own.len() == name.len() {
            true => own.to_owned(),
            false => format!("{own}-{}", self.rests.of(name)),
        }
    }

    /// A kernel stack: functions of the kernel's own code keep their names. A module, and a program that somebody loaded
    /// into the kernel, may bear anybody's name: it and its functions are numbers, and so is code without a name.
    fn stack(&mut self, stack: &str) -> String {
        let is_own = |b: u8| b.is_ascii_alphanumeric() || b"_.".contains(&b);
        let mut function = |function: &str| match function.split_once(' ') {
            Some((_, module)) => {
                let (code, module) = (self.codes.of(function), self.modules.of(module));
                format!("code-{code} [module-{module}]")
            }
            None if function.bytes().all(is_own) && !function.starts_with("0x") => {
                function.to_owned()
            }
            None => format!("code-{}", self.codes.of(function)),
        };
        let functions: Vec<String> = stack.split(';').map(&mut function).collect();
        functions.join(";")
    }

    /// The number of a new string.
    pub fn string(&mut self, text: String) -> u64 {
        if let Some(&n) = self.known.get(&text) {
            return n;
        }
        let n = self.strings.len() as u64;
        self.strings.push(text.clone());
        self.known.insert(text, n);
        n
    }

    /// The new strings.
    pub fn into_strings(self) -> Vec<String> {
        self.strings
    }

    /// Counts what is replaced.
    pub fn count(&self, removed: &mut Removed) {
        let len = |n: &Numbers| n.0.len() as u64;
        removed.programs = self.programs.0.len() as u64;
        removed.tasks = len(&self.pids);
        removed.files = self.devices.iter().chain(&self.inodes).map(len).sum();
        removed.addresses = len(&self.addresses) + len(&self.sites);
    }
}

/// Whether a text is as the kernel writes a value: a number, a constant, or several of them.
fn is_value(text: &str) -> bool {
    let is_word =
        |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b"_|x()-+., ".contains(&b);
    let known = matches!(
        text,
        "(null)" | "(nil)" | "DMA" | "DMA32" | "Normal" | "HighMem" | "Movable" | "Device"
    );
    let words = [
        "success",
        "skipped",
        "deferred",
        "partial",
        "continue",
        "complete",
        "contended",
        "no_suitable_page",
        "not_suitable_zone",
        "success_or_partial",
        "try_to_compact",
    ];
    known || text.bytes().all(is_word) || words.contains(&text)
}

/// The part of a name that is the kernel's own, and the rest, if a thread of the kernel may have it.
fn of_kernel(comm: &str) -> Option<(&str, &str)> {
    /// Whole names.
    const NAMES: [&str; 30] = [
        "<idle>",
        "swapper",
        "kthreadd",
        "khugepaged",
        "ksmd",
        "oom_reaper",
        "writeback",
        "kauditd",
        "kdevtmpfs",
        "khungtaskd",
        "kintegrityd",
        "kblockd",
        "kswapd",
        "kcompactd",
        "khubd",
        "rcu_sched",
        "rcu_preempt",
        "rcu_bh",
        "rcu_gp",
        "rcu_par_gp",
        "rcu_tasks_kthre",
        "rcu_tasks_rude_",
        "rcu_tasks_trace",
        "rcu_exp_par_gp_",
        "rcu_exp_gp_kthr",
        "rcu_tasks_kthread",
        "kworker",
        "netns",
        "mm_percpu_wq",
        "slub_flushwq",
    ];
    /// What names with numbers begin with. Those that end with a slash or an underscore may have anything behind it.
    const PREFIXES: [&str; 20] = [
        "kswapd",
        "kcompactd",
        "khugepaged",
        "kdamond.",
        "kdamond",
        "ksoftirqd/",
        "kworker/",
        "kworker",
        "migration/",
        "swapper/",
        "cpuhp/",
        "rcuop/",
        "rcuos/",
        "rcuog/",
        "rcub/",
        "rcuc/",
        "idle_inject/",
        "irq/",
        "jbd2/",
        "rcu_",
    ];
    /// Work that a kworker of every kernel does.
    const WORK: [&str; 9] = [
        "events",
        "events_unbound",
        "events_long",
        "events_highpri",
        "events_freezable",
        "events_power_efficient",
        "mm_percpu_wq",
        "kblockd",
        "writeback",
    ];
    if NAMES.contains(&comm) {
        return Some((comm, ""));
    }
    let prefix = PREFIXES.iter().find(|p| comm.starts_with(**p))?;
    let rest = &comm[prefix.len()..];
    let is_number = |c: char| c.is_ascii_digit() || c == ':';
    // Numbers of CPUs and pools, such as `u8:2` and `0:1H`.
    let pool = rest.strip_prefix('u').unwrap_or(rest);
    let pool = pool.trim_start_matches(is_number);
    let pool = pool.strip_prefix('H').unwrap_or(pool);
    let own = rest.len() - pool.len();
    let work = pool.trim_start_matches(['-', '+']);
    if WORK.contains(&work) {
        return Some((comm, ""));
    }
    let (own, rest) = (prefix.len() + own, pool);
    Some((&comm[..own], rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::role::of_kernel_thread;

    #[test]
    fn of_a_name_that_the_kernel_may_have_given_only_its_own_part_stays() {
        for (comm, own, rest) in [
            ("kswapd0", "kswapd0", ""),
            ("kswapd12:0", "kswapd12:0", ""),
            ("kswapd0-secret", "kswapd0", "-secret"),
            (
                "kworker/u8:2-events_unbound",
                "kworker/u8:2-events_unbound",
                "",
            ),
            ("kworker/0:1H-kblockd", "kworker/0:1H-kblockd", ""),
            ("kworker/u9:3-flush-8:0", "kworker/u9:3", "-flush-8:0"),
            ("kworker/secret", "kworker/", "secret"),
            ("jbd2/sda1-8", "jbd2/", "sda1-8"),
            ("irq/24-ahci", "irq/24", "-ahci"),
            ("rcu_sched", "rcu_sched", ""),
            ("rcu_secret", "rcu_", "secret"),
            ("migration/11", "migration/11", ""),
            ("swapper/3", "swapper/3", ""),
            ("khugepaged", "khugepaged", ""),
            ("<idle>", "<idle>", ""),
        ] {
            assert_eq!(of_kernel(comm), Some((own, rest)), "{comm}");
            // Its role is the same.
            let new = if rest.is_empty() {
                own.to_owned()
            } else {
                format!("{own}-1")
            };
            assert_eq!(of_kernel_thread(comm), of_kernel_thread(&new), "{comm}");
        }
        for comm in [
            "cc1",
            "migration",
            "irqbalance",
            "kthreaddx",
            "swapperx",
            "/usr/bin/kswapd0",
        ] {
            assert_eq!(of_kernel(comm), None, "{comm}");
        }
    }

    #[test]
    fn of_a_caches_name_its_kind_stays() {
        let mut names = Names::default();
        for (name, new) in [
            ("dentry", "dentry"),
            ("kmalloc-rnd-01-4k", "kmalloc-rnd-01-4k"),
            ("ext4_inode_cache", "ext4_inode_cache"),
            ("dentry(12:session-3.scope)", "dentry-1"),
            ("dentry(13:session-4.scope)", "dentry-2"),
            ("dentry(12:session-3.scope)", "dentry-1"),
            ("nf_conntrack_ffff8880b2c1d000", "nf_conntrack_-3"),
            ("raid5-home", "raid5--4"),
            (":A-0000192", ":A-0000192"),
            ("/home/me", "-5"),
        ] {
            assert_eq!(names.cache(name), new, "{name}");
        }
    }

    #[test]
    fn of_a_stack_the_kernels_own_functions_stay() {
        let mut names = Names::default();
        let stack = "do_syscall_64;send.isra.0 [secret];queue [secret];0xffffffff81000000;kmalloc";
        let kept = "do_syscall_64;code-1 [module-1];code-2 [module-1];code-3;kmalloc";
        assert_eq!(names.stack(stack), kept);
        assert_eq!(
            names.stack("queue [secret];x [other]"),
            "code-2 [module-1];code-4 [module-2]"
        );
    }

    #[test]
    fn threads_of_one_program_stay_its_threads() {
        let mut names = Names::default();
        let [a, b, c, d] =
            ["pool/0", "pool/1", "pool", "pool/x"].map(|n| names.comm(n, Role::Program));
        assert_eq!(
            [&*a, &*b, &*c, &*d],
            ["program-1/1", "program-1/2", "program-1", "program-2"]
        );
    }

    #[test]
    fn inodes_and_devices_keep_their_kind_and_are_told_apart() {
        let mut names = Names::default();
        let is_device = |inode: u64| (1..MAJORS).contains(&(inode >> MINOR_BITS));
        let mut seen = std::collections::HashSet::new();
        for inode in [
            1,
            5,
            1 << MINOR_BITS,
            8 << MINOR_BITS | 1,
            u64::MAX,
            1 << 40,
        ] {
            let new = names.inode(inode);
            assert_eq!(is_device(new), is_device(inode), "{inode:#x}");
            assert!(seen.insert(new) && new == names.inode(inode), "{inode:#x}");
        }
        for n in 0..2 << MINOR_BITS {
            assert!(!is_device(names.inode(1 << 50 | n)), "{n}");
        }
        for device in [1, 2, 8 << MINOR_BITS, 8 << MINOR_BITS | 1] {
            let new = names.device(device);
            assert_eq!(
                new >> MINOR_BITS == 0,
                device >> MINOR_BITS == 0,
                "{device:#x}"
            );
            assert!(seen.insert(new << 32), "{device:#x}");
        }
        assert_eq!(
            [
                names.inode(0),
                names.device(0),
                names.pid(0),
                names.address(0)
            ],
            [0; 4]
        );
    }
}
