//! Stackful coroutines that pass the ownership of one value to and fro.
//!
//! The side that runs owns the `Box<T>`: [`Fiber::resume`] moves it in, [`Baton::pass`] moves it out.
//! Neither side can reach it while the other runs, so no unsafe code is needed.
//!
//! The only user of `corosensei`.

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

type Inner<T> = Coroutine<Box<T>, Box<T>, Box<T>, DefaultStack>;

/// Bytes of a task's stack, reserved; what is not touched takes no memory.
const STACK_BYTES: usize = 256 << 10;

/// A coroutine, not started, suspended or done.
pub struct Fiber<T: 'static>(Inner<T>);

/// What a running coroutine holds.
pub struct Baton<'y, T: 'static> {
    yielder: &'y Yielder<Box<T>, Box<T>>,
    value: Option<Box<T>>,
}

impl<T: 'static> Baton<'_, T> {
    /// The value.
    #[inline]
    pub fn value(&mut self) -> &mut T {
        match &mut self.value {
            Some(v) => v,
            None => unreachable!("a coroutine that runs has the value"),
        }
    }

    /// Passes the value to the code that resumed this coroutine; returns when resumed again.
    #[inline]
    pub fn pass(&mut self) {
        if let Some(v) = self.value.take() {
            self.value = Some(self.yielder.suspend(v));
        }
    }
}

/// State of a coroutine after it was resumed.
pub enum Resumed<T: 'static> {
    /// It has passed the value back; it can be resumed again.
    Suspended(Box<T>),
    /// Its body returned.
    Done(Box<T>),
}

impl<T: 'static> Fiber<T> {
    /// A coroutine on a stack of the pool. Its body gives the baton back when it ends.
    pub fn new<F>(stacks: &mut Stacks, body: F) -> Fiber<T>
    where
        F: for<'y> FnOnce(Baton<'y, T>) -> Baton<'y, T> + 'static,
    {
        Fiber(Coroutine::with_stack(
            stacks.take(),
            move |yielder, value| {
                let value = Some(value);
                match body(Baton { yielder, value }).value {
                    Some(v) => v,
                    None => unreachable!("a coroutine that runs has the value"),
                }
            },
        ))
    }

    /// Runs it until it passes the value back. A panic in its body comes out here.
    #[inline]
    pub fn resume(&mut self, value: Box<T>) -> Resumed<T> {
        match self.0.resume(value) {
            CoroutineResult::Yield(v) => Resumed::Suspended(v),
            CoroutineResult::Return(v) => Resumed::Done(v),
        }
    }

    /// Gives the stack of a coroutine that is done back to the pool.
    pub fn recycle(self, stacks: &mut Stacks) {
        if self.0.done() {
            stacks.free.push(self.0.into_stack());
        }
    }
}

/// Stacks to be used again.
#[derive(Default)]
pub struct Stacks {
    free: Vec<DefaultStack>,
}

impl Stacks {
    fn take(&mut self) -> DefaultStack {
        self.free
            .pop()
            .unwrap_or_else(|| match DefaultStack::new(STACK_BYTES) {
                Ok(stack) => stack,
                Err(e) => panic!("no address space for the stack of one more task: {e}"),
            })
    }
}
