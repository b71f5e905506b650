//! The check of the numbers in steps: what no machine can do, and what would run forever.

use super::spec::{Pattern, Step};
use crate::input::{Mistake, ScenarioPart};

/// Pages of the longest area: 256 GiB. The tables of a longer one would not fit into the host's memory.
pub(super) const MOST_AREA: u64 = 64 << 20;

/// Files and directories of the largest tree, which are in the host's memory.
pub(super) const MOST_NODES: u64 = 20_000_000;

/// Checks one step, without its inner steps.
///
/// # Errors
/// The first wrong number, and the allowed ones.
pub(super) fn check(step: &Step, place: &ScenarioPart) -> Result<(), Mistake> {
    let wrong = |message: String, help: &str| Err(Mistake::new(place, message, help));
    let order = |order: u8| match order <= unfrag_eras::MAX_ORDER {
        true => Ok(()),
        false => wrong(
            format!("there is no order {order}"),
            &format!("the largest is {}", unfrag_eras::MAX_ORDER),
        ),
    };
    match step {
        Step::Grow(g) if g.size.most().div_ceil(4096) > MOST_AREA => {
            wrong("an area of more than 256 GiB".into(), "256 GiB at most")
        }
        Step::Discard(d) if d.of.0 == 0 => wrong("pieces of nothing".into(), "give `of` above 0"),
        Step::Touch(t) if t.pattern == Pattern::Stride(0) => {
            wrong("a stride of no page".into(), "give 1 or more")
        }
        Step::Recorded(r) => {
            let percent = [r.memory_percent, r.cpu_percent];
            match percent.iter().find(|p| !(1..=10_000).contains(*p)) {
                None => Ok(()),
                Some(p) => wrong(format!("{p} % of what was recorded"), "give 1 to 10000"),
            }
        }
        Step::Kmalloc(k) => match (&k.cache, k.size) {
            (Some(_), None) => Ok(()),
            (None, Some(size)) if (1..=4096).contains(&size.0) => Ok(()),
            (None, Some(_)) => wrong(
                "kmalloc does not serve this size".into(),
                "give 1 B to 4 KiB",
            ),
            _ => wrong(
                "an object has one cache".into(),
                "give `cache` or `size`, one of the two",
            ),
        },
        Step::Repeat(r) if r.steps.is_empty() => {
            wrong("nothing is repeated".into(), "give `steps`")
        }
        Step::Repeat(r) if r.times.is_none() && r.lasting.is_none() && r.until.is_none() => wrong(
            "this repeats without end".into(),
            "give `times`, `for` or `until`",
        ),
        Step::Barrier(b) if b.parties == 0 => {
            wrong("a barrier for nobody".into(), "give `parties` above 0")
        }
        Step::Parallel(p) if p.at_most == 0 => {
            wrong("no job at a time".into(), "give `at-most` above 0")
        }
        Step::HighOrder(h) => order(h.order),
        Step::Receive(r) => {
            order(r.order)?;
            if r.size.0 == 0 || r.rate.0 == 0 || r.chunk.0 == 0 {
                let message = "a stream of which nothing comes".into();
                return wrong(message, "give `size`, `rate` and `chunk` above 0");
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
