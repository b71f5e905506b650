//! Tasks and the scheduler: each CPU runs its own tasks in turn, and stays idle when all of them sleep.
//!
//! Invariants: a task runs on one CPU for its whole life. It is either current, or in its CPU's queue. A switch happens with
//! interrupts off and without a lock.

use crate::lock::{IrqLock, Spin};
use crate::tables::{self, State};
use crate::{cpu, frames};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::arch::naked_asm;
use core::cell::Cell;
use core::sync::atomic::{
    AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use lock_api::RawMutex;
use unfrag::Pfn;
use x86_64::VirtAddr;
use x86_64::instructions::interrupts;

/// Words of a task's stack.
const STACK: usize = 4096;
/// At the bottom of each stack: overwritten, if the stack overflows.
const CANARY: u64 = 0x5afe_57ac_05af_e57a;
/// Most tasks of a CPU.
const MOST: usize = 64;

/// A task.
struct Task {
    /// Its stack pointer, while it does not run.
    sp: Cell<u64>,
    stack: Box<[u64]>,
    /// The frame of its first page table.
    root: Cell<Pfn>,
    /// It sleeps until this tick.
    until: Cell<u64>,
    job: Cell<Option<Box<dyn FnOnce() + Send>>>,
    ended: Cell<bool>,
    done: Arc<AtomicBool>,
}

/// The tasks of a CPU.
struct Queue {
    waiting: VecDeque<Box<Task>>,
    current: Option<Box<Task>>,
}

// SAFETY: A task is used by its CPU alone once it is in the queue.
unsafe impl Send for Queue {}

static QUEUES: [Spin<Queue>; cpu::MAX_CPUS] = [const {
    Spin::const_new(
        IrqLock::INIT,
        Queue {
            waiting: VecDeque::new(),
            current: None,
        },
    )
}; cpu::MAX_CPUS];

/// The scheduler's own stack pointer of each CPU, while a task runs.
struct Idle(Cell<u64>);
// SAFETY: Each CPU uses its own.
unsafe impl Sync for Idle {}
static IDLE: [Idle; cpu::MAX_CPUS] = [const { Idle(Cell::new(0)) }; cpu::MAX_CPUS];

/// Ticks of the first CPU's timer.
static TICKS: AtomicU64 = AtomicU64::new(0);
/// Accesses that waited for a page that was being moved.
static WAITED: AtomicU64 = AtomicU64::new(0);

/// Milliseconds since the timers started, about.
pub fn now() -> u64 {
    TICKS.load(Relaxed)
}

/// Waits for the end of a task.
pub struct Handle(Arc<AtomicBool>);

impl Handle {
    /// Waits until the task has ended.
    pub fn join(self) {
        while !self.0.load(Acquire) {
            sleep(1);
        }
    }
}

/// Starts a task on a CPU.
pub fn spawn(cpu: usize, job: impl FnOnce() + Send + 'static) -> Handle {
    let done = Arc::new(AtomicBool::new(false));
    let mut stack = alloc::vec![0u64; STACK].into_boxed_slice();
    stack[0] = CANARY;
    // The switch pops six registers, then returns to `first`. The stack is then 8 off a multiple of 16, as after a call.
    stack[STACK - 2] = first as *const () as u64;
    let sp = (&raw const stack[STACK - 8]) as u64;
    assert!(
        sp.is_multiple_of(16),
        "the heap gives large blocks whole pages"
    );
    let task = Box::new(Task {
        sp: Cell::new(sp),
        stack,
        root: Cell::new(tables::kernel_root()),
        until: Cell::new(0),
        job: Cell::new(Some(Box::new(job))),
        ended: Cell::new(false),
        done: done.clone(),
    });
    let mut queue = QUEUES[cpu].lock();
    assert!(
        queue.waiting.len() < MOST,
        "more than {MOST} tasks on CPU {cpu}"
    );
    queue.waiting.push_back(task);
    Handle(done)
}

/// Prepares the queues. Called once, with the heap in place.
pub fn init() {
    for queue in &QUEUES {
        let room = VecDeque::with_capacity(MOST + 1);
        queue.lock().waiting = room;
    }
}

/// Switches from one stack to another: registers that a call keeps are on the stack meanwhile.
///
/// # Safety
/// `to` is what this function stored before, or what `spawn` made.
#[unsafe(naked)]
unsafe extern "C" fn switch(from: *const Cell<u64>, to: u64) {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov [rdi], rsp",
        "mov rsp, rsi",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
    )
}

/// Where a task begins.
extern "C" fn first() -> ! {
    let job = with_current(|t| t.job.take()).flatten();
    interrupts::enable();
    if let Some(job) = job {
        job();
    }
    interrupts::disable();
    leave_space();
    with_current(|t| t.ended.set(true));
    leave();
    unreachable!("a task that has ended does not run");
}

/// Calls `f` with the calling task; `None` in the scheduler.
fn with_current<T>(f: impl FnOnce(&Task) -> T) -> Option<T> {
    let queue = QUEUES[cpu::id()].lock();
    queue.current.as_deref().map(f)
}

/// Goes back to the scheduler of this CPU. Interrupts are off.
fn leave() {
    assert!(cpu::may_switch(), "a task waits while it holds a lock");
    let sp = with_current(|t| {
        assert!(t.stack[0] == CANARY, "a task's stack overflowed");
        &raw const t.sp
    });
    if let Some(sp) = sp {
        // SAFETY: The scheduler's stack pointer was stored when it switched to this task, which stays where it is.
        unsafe { switch(sp, IDLE[cpu::id()].0.get()) };
    }
}

/// Lets other tasks of this CPU run.
pub fn yield_now() {
    let on = interrupts::are_enabled();
    interrupts::disable();
    leave();
    if on {
        interrupts::enable();
    }
}

/// Sleeps for so many ticks.
pub fn sleep(ticks: u64) {
    let until = now() + ticks;
    with_current(|t| t.until.set(until));
    yield_now();
}

/// The timer's tick: time goes on, and the next task may run. Interrupts are off.
pub fn tick() {
    if cpu::id() == 0 {
        TICKS.fetch_add(1, Relaxed);
    }
    leave();
}

/// Has the calling task use the page tables that begin in a frame, from now on.
pub fn enter(root: Pfn) {
    let _off = cpu::interrupts_off();
    with_current(|t| t.root.set(root));
    tables::load(root);
}

/// Has the calling task use the kernel's own page tables.
pub fn leave_space() {
    enter(tables::kernel_root());
}

/// Waits until a page of the calling task's space that is being moved has come to its new place. False, if it is not being
/// moved, and not there.
pub fn wait_for_page(at: VirtAddr) -> bool {
    let Some(root) = with_current(|t| t.root.get()) else {
        return false;
    };
    WAITED.fetch_add(1, Relaxed);
    loop {
        match tables::state(root, at) {
            State::Present => return true,
            State::Moves => {}
            State::Nothing => return false,
        }
        interrupts::enable();
        yield_now();
        interrupts::disable();
    }
}

/// Accesses that waited for a page that was being moved.
pub fn waited() -> u64 {
    WAITED.load(Relaxed)
}

/// Runs the tasks of the calling CPU until the machine ends.
pub fn run() -> ! {
    let id = cpu::id();
    interrupts::disable();
    loop {
        let mut queue = QUEUES[id].lock();
        let now = now();
        let next = queue.waiting.iter().position(|t| t.until.get() <= now);
        let Some(task) = next.and_then(|i| queue.waiting.remove(i)) else {
            drop(queue);
            interrupts::enable_and_hlt();
            interrupts::disable();
            continue;
        };
        let (sp, root) = (task.sp.get(), task.root.get());
        queue.current = Some(task);
        drop(queue);
        tables::load(root);
        // SAFETY: The task is current from now on, and came back to its stack pointer or was made by `spawn`.
        unsafe { switch(&raw const IDLE[id].0, sp) };
        let mut queue = QUEUES[id].lock();
        let task = queue.current.take();
        let Some(task) = task else { continue };
        if task.ended.get() {
            drop(queue);
            let done = task.done.clone();
            drop(task);
            // Its stack is for all, not for this CPU alone.
            frames::flush();
            done.store(true, Release);
        } else {
            queue.waiting.push_back(task);
        }
    }
}
