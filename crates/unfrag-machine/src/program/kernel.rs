//! Steps inside the kernel: objects, large blocks, the network, counters.

use super::actor::{Actor, Halt};
use super::report::{Attempt, HighOrderReport, Mark};
use super::spec::{HighOrder, Kmalloc, Receive, Rights};
use crate::Cx;
use crate::error::Fail;
use crate::kmem::caches::CacheKind;
use crate::kmem::{CacheId, Obj};
use crate::mm::frames::Use;
use crate::net::StreamConfig;
use unfrag_eras::{Gfp, Pfn, ZoneId};

impl Actor {
    pub(super) fn kmalloc(&mut self, cx: &mut Cx, k: &Kmalloc) -> Result<(), Halt> {
        let cache = cx.with(|sim| {
            let c = sim.kernel_ref().caches;
            match (&k.cache, k.size) {
                (Some(name), _) => CacheKind::from_name(name).map(|kind| c.of(kind)),
                (None, size) => c.kmalloc(size.map_or(1, |s| s.0 as u32)),
            }
        });
        let Some(cache) = cache else {
            panic!("the scenario was not checked: {k:?}")
        };
        let gfp = match k.rights {
            Rights::Kernel => Gfp::KERNEL,
            Rights::Atomic => Gfp::ATOMIC_MASK,
        };
        for _ in 0..k.count.draw(&mut self.rng) {
            let obj = self.object(cx, cache, gfp)?;
            match &k.keep {
                Some(name) => self.kept.entry(name.clone()).or_default().push(obj),
                None => cx.with(|sim| sim.kmem_free(obj)),
            }
            cx.pay_if_much();
        }
        Ok(())
    }

    fn object(&mut self, cx: &mut Cx, cache: CacheId, gfp: Gfp) -> Result<Obj, Fail> {
        cx.kmem_alloc(self.who, cache, gfp)
    }

    pub(super) fn free_objects(&mut self, cx: &mut Cx, objs: Vec<Obj>) {
        for obj in objs {
            cx.with(|sim| sim.kmem_free(obj));
            cx.pay_if_much();
        }
    }

    /// `spec: 8.1`: attempts at fixed times; the blocks are kept until the last attempt.
    pub(super) fn high_order(&mut self, cx: &mut Cx, h: &HighOrder) -> Result<(), Halt> {
        let gfp = if h.high {
            Gfp::HIGHUSER_MOVABLE
        } else {
            Gfp::USER
        };
        let start = cx.now();
        let mut held: Vec<Pfn> = vec![];
        let mut attempts = vec![];
        for i in 0..h.attempts {
            let due = start + h.every.0 * u64::from(i);
            let now = cx.now();
            if now < due {
                cx.sleep(due - now);
            }
            if cx.killed() {
                break;
            }
            let at_ns = cx.now();
            let got = cx.alloc_pages(self.who, h.order, gfp);
            cx.pay();
            let zone = got.ok().map(|pfn| {
                held.push(pfn);
                cx.with(|sim| {
                    sim.take_kernel(pfn, h.order, Use::Pinned);
                    sim.zone_name(pfn)
                })
            });
            attempts.push(Attempt {
                at_ns,
                took_ns: cx.now() - at_ns,
                zone,
            });
        }
        cx.with(|sim| held.into_iter().for_each(|pfn| sim.free_kernel(pfn)));
        cx.pay();
        let report = HighOrderReport {
            name: self.name(&h.name),
            order: h.order,
            attempts,
        };
        self.workload.state().report.high_order.push(report);
        Ok(())
    }

    pub(super) fn receive(&mut self, cx: &mut Cx, r: &Receive) -> Result<(), Halt> {
        let config = StreamConfig::paced(r.size.0, r.rate.0, r.order);
        let stream = cx.with(|sim| sim.open_stream(config));
        let file = r.file.as_ref().and_then(|f| self.file(f));
        // Frames of a chunk.
        let chunk = r.chunk.0.max(1).div_ceil(StreamConfig::DATA).max(1);
        let mut rest = 0;
        loop {
            let got = cx.receive(stream, chunk);
            let frames = match got {
                Ok(n) => n,
                Err(e) => {
                    cx.with(|sim| sim.close_stream(stream));
                    return Err(e.into());
                }
            };
            rest += frames * StreamConfig::DATA;
            if let Some(file) = file {
                let pages = (rest / 4096) as u32;
                rest %= 4096;
                if pages > 0
                    && let Err(e) = self.write_file(cx, file, pages, true, 0)
                {
                    cx.with(|sim| sim.close_stream(stream));
                    return Err(e.into());
                }
            }
            if frames > 0
                && let Some(text) = &r.line
            {
                self.line(cx, text);
            }
            if frames < chunk {
                return Ok(());
            }
        }
    }

    pub(super) fn record(&mut self, cx: &mut Cx, name: &str) {
        let (counters, obstacles) = cx.with(|sim| (sim.vm_counters(), sim.obstacles()));
        let mark = Mark {
            name: self.name(name),
            task: self.role.name.to_string(),
            number: self.role.number,
            at_ns: cx.now(),
            counters,
            obstacles,
        };
        self.workload.state().report.marks.push(mark);
    }
}

impl crate::Sim {
    /// Name of the zone that holds a frame.
    pub(crate) fn zone_name(&self, pfn: Pfn) -> &'static str {
        let m = self.manager_ref().inspect();
        let holds = |z: &ZoneId| {
            let c = m.zone_config(*z);
            (c.start.0..c.start.0 + c.spanned).contains(&pfn.0)
        };
        m.zones()
            .find(holds)
            .map_or("", |z| m.zone_config(z).kind.name())
    }
}
