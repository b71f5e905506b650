//! What the beginning of a report says: who asked, for what, and with which flags. `spec: K.1`

use super::fields;
use super::report::{Kind as About, Report};
use super::statement::{Kind, Statement};

/// What the beginning of a report says.
pub fn report_of(p: &Statement) -> Option<Report> {
    let (kind, text) = (p.kind, p.text.trim());
    let about = match kind {
        Kind::Failure if text.contains("allocation stalls") => About::Stall,
        Kind::Failure | Kind::Length => About::AllocationFailure,
        Kind::Oom => About::Oom,
        Kind::Slab => About::Slab,
        Kind::Vmalloc => About::Vmalloc,
        Kind::Cma => About::Cma,
        _ => About::ShowMemory,
    };
    let mut r = Report::new(about, p.line, p.time.clone());
    r.mask = fields::mask(text);
    r.order = fields::order(text);
    r.nodemask = fields::nodes(text, "nodemask=");
    r.mems_allowed = fields::nodes(text, "mems_allowed=");
    match about {
        About::AllocationFailure if kind == Kind::Length => {
            r.bytes = fields::after(text, "Allocation of length ");
            let name = text.rsplit_once('(').and_then(|(_, n)| n.split_once(')'));
            r.task = name.map(|(n, _)| n.to_owned());
        }
        About::AllocationFailure => {
            r.task = fields::task(text, ": page allocation")
                .filter(|_| !text.starts_with("__alloc_pages"));
            r.is_old_form = text.contains("failure.") || text.contains("-order allocation");
            r.order?;
        }
        About::Stall => {
            r.task = fields::task(text, ": page allocation");
            r.stall_ms = fields::after(text, "stalls for ");
        }
        About::Oom => {
            r.task = fields::task(text, " invoked oom-killer");
            r.is_manual = r.order == Some(-1);
        }
        About::Vmalloc => {
            r.task = fields::task(text, ": vmalloc");
            let sizes = ["allocation failure: ", "of ", "size "];
            r.bytes = sizes.iter().find_map(|s| fields::after(text, s));
            r.order = r.order.or(Some(0));
        }
        About::Cma => {
            let pages = fields::after(text, "req-size:")?;
            r.cma = Some((pages, fields::signed_after(text, "ret:")));
        }
        About::Slab | About::ShowMemory => {}
    }
    Some(r)
}
