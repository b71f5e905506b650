//! Small recordings made by hand.

use unfrag_linux::event::coverage::EVENTS_RECORDED;
use unfrag_linux::recording::{EventTable, Field, FieldKind, Recording, Task};

/// Request flags of 6.1: `GFP_HIGHUSER_MOVABLE | __GFP_COMP | __GFP_ZERO`.
pub const USER_PAGE: u64 = 0x14_0dca;
/// `GFP_KERNEL_ACCOUNT | __GFP_ZERO`: the page directory of a new process, at order 1.
pub const PAGE_DIRECTORY: u64 = 0x40_0dc0;

/// A recording that grows event by event.
pub struct Maker {
    /// What has been made.
    pub rec: Recording,
    /// Time of the next event in nanoseconds; each takes a microsecond.
    pub now: u64,
    /// CPU of the next events.
    pub cpu: u16,
    /// `common_flags` of the next events.
    pub flags: u8,
    task: u32,
}

impl Default for Maker {
    /// A recording in which frees of pages count as recorded, whether there are any or not.
    fn default() -> Maker {
        let mut rec = Recording::default();
        let recorded = "kmem:mm_page_free".to_owned();
        rec.meta.facts.insert(EVENTS_RECORDED.into(), recorded);
        Maker {
            rec,
            now: 1_000_000_000,
            cpu: 0,
            flags: 0,
            task: 0,
        }
    }
}

impl Maker {
    /// The task of the next events, by name.
    pub fn task(&mut self, comm: &str) -> &mut Maker {
        let tasks = &mut self.rec.tasks;
        let at = tasks.iter().position(|t| t.comm == comm);
        self.task = at.unwrap_or_else(|| {
            tasks.push(Task {
                pid: tasks.len() as i32,
                comm: comm.into(),
            });
            tasks.len() - 1
        }) as u32;
        self
    }

    /// One event.
    pub fn event(&mut self, name: &str, fields: &[(&str, u64)]) -> &mut Maker {
        if self.rec.tasks.is_empty() {
            self.task("task");
        }
        let ev = &mut self.rec.events;
        let known = ev.tables.iter().position(|t| t.name == name);
        let kind = known.unwrap_or_else(|| {
            let field = |f: &(&str, u64)| Field {
                name: f.0.into(),
                kind: FieldKind::Unsigned,
            };
            ev.tables.push(EventTable {
                system: String::new(),
                name: name.into(),
                fields: fields.iter().map(field).collect(),
                columns: vec![vec![]; fields.len()],
            });
            ev.tables.len() - 1
        });
        for (column, (_, value)) in ev.tables[kind].columns.iter_mut().zip(fields) {
            column.push(*value);
        }
        ev.time.push(self.now);
        ev.cpu.push(self.cpu);
        ev.task.push(self.task);
        ev.flags.push(self.flags);
        ev.preempt.push(0);
        ev.kind.push(kind as u8);
        self.now += 1000;
        self
    }

    /// `mm_page_alloc`.
    pub fn alloc(&mut self, pfn: u64, order: u64, gfp: u64) -> &mut Maker {
        let fields = [
            ("pfn", pfn),
            ("order", order),
            ("gfp_flags", gfp),
            ("migratetype", 1),
        ];
        self.event("mm_page_alloc", &fields)
    }

    /// `mm_page_free`.
    pub fn free(&mut self, pfn: u64, order: u64) -> &mut Maker {
        self.event("mm_page_free", &[("pfn", pfn), ("order", order)])
    }

    /// Lets time pass.
    pub fn wait(&mut self, nanoseconds: u64) -> &mut Maker {
        self.now += nanoseconds;
        self
    }
}
