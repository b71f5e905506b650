//! What the beginning of a report says: who asked, for what, and with which flags. `spec: K.1`

use super::fields;
use super::report::{Kind as About, Report, Virtual};
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
            let at = failed_at(text);
            r.at = Some(at);
            // The array's order follows from its bytes.
            if let Virtual::PageArray(bytes) = at {
                r.bytes = bytes;
            } else {
                r.order = r.order.or(Some(0));
            }
        }
        About::Cma => {
            let pages = fields::after(text, "req-size:")?;
            r.cma = Some((pages, fields::signed_after(text, "ret:")));
            r.cma_name = area(text);
        }
        About::Slab => r.names_cpu = text.contains("memory on CPU"),
        About::ShowMemory => {}
    }
    Some(r)
}

/// What a virtual allocation failed at.
fn failed_at(text: &str) -> Virtual {
    let has = |phrase: &str| text.contains(phrase);
    if has("exceeds total pages") {
        Virtual::ExceedsPages
    } else if has("vm_struct allocation failed")
        || has("Address range restricted")
        || has("use vmalloc=")
        || has("vmap allocation for size")
    {
        Virtual::NoRoom
    } else if has("page array") {
        Virtual::PageArray(fields::after(text, "array size "))
    } else if has("failed to map pages") {
        Virtual::Mapping
    } else if has("failed to allocate pages") || has("failure, allocated") || has("page order") {
        Virtual::Pages
    } else {
        Virtual::NotSaid
    }
}

/// The contiguous memory area of `cma_alloc: NAME: alloc failed`.
fn area(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("cma_alloc: ")?;
    let name = rest.split_once(": alloc failed")?.0;
    (!name.is_empty() && name.len() <= 64).then(|| name.to_owned())
}
