use unfrag_lab::replay::model::Prepared;
use unfrag_lab::replay::{StartChoice, start::Frame};
use std::collections::BTreeMap;
fn main() {
    let f = std::env::args().nth(1).unwrap();
    
    let rec = unfrag_linux::file::read(std::path::Path::new(&f)).unwrap();
    let exact = Prepared::new(&rec, StartChoice::Exact).is_ok();
    let a = Prepared::new(&rec, if exact { StartChoice::Exact } else { StartChoice::Counts }).unwrap();
    let b = Prepared::new(&rec, StartChoice::Counts).unwrap();
    println!("snap exact {} at {} first op {}; counts {} at {}", a.snapshots[0].1.name, a.start.time, a.causes.ops[0].time, b.snapshots[0].1.name, b.start.time);
    println!("ops before anchor {}", b.causes.ops.partition_point(|o| o.time < b.snapshots[0].0));
    for (n, s) in [("exact", &a.start), ("counts", &b.start)] {
        let mut m: BTreeMap<(String, u8), Vec<u32>> = BTreeMap::new();
        for x in s.free.iter().filter(|x| x.pfn >= 4096) { m.entry((format!("{:?}", x.mt), x.order)).or_default().push(x.pfn); }
        for (k, v) in &m { println!("{n} {k:?} {} {:?}", v.len(), &v[..v.len().min(12)]); }
        for set in s.sets.iter().filter(|s| s.zone == 1) {
            println!("{n} cpu {} tuning {:?} total {}", set.cpu, set.tuning, set.lists.iter().map(|l| l.1.iter().map(|b| 1usize << b.order).sum::<usize>()).sum::<usize>());
            for (i, l) in &set.lists { println!("   list {i}: {} {:?}", l.len(), l.iter().take(20).map(|b| b.pfn).collect::<Vec<_>>()); }
        }
    }
    let free = |s: &unfrag_lab::replay::start::Start| { s.frames.iter().map(|f| *f == Frame::Free).collect::<Vec<_>>() };
    let (fa, fb) = (free(&a.start), free(&b.start));
    let mut d = [[0u32; 3]; 4];
    let mut spans = vec![];
    for p in 0..fa.len() {
        d[fa[p] as usize * 2 + fb[p] as usize][b.causes.first[p] as usize] += 1;
        if fa[p] != fb[p] { spans.push((p, fa[p], b.causes.first[p])); }
    }
    println!("[exact*2+counts][first]: {d:?}");
    let mut i = 0; while i < spans.len() { let mut j = i; while j + 1 < spans.len() && spans[j + 1].0 == spans[j].0 + 1 && spans[j + 1].1 == spans[i].1 && spans[j+1].2 == spans[i].2 { j += 1; } println!("  {}+{} exact free {} first {}", spans[i].0, j + 1 - i, spans[i].1, spans[i].2); i = j + 1; }
    // lists membership
    let on = |s: &unfrag_lab::replay::start::Start| { let mut v = vec![0u8; s.frames.len()]; for set in &s.sets { for (i, l) in &set.lists { for b in l { for p in b.pfn..b.pfn + (1 << b.order) { v[p as usize] = 1 + set.cpu as u8 * 14 + *i as u8; } } } } v };
    let (oa, ob) = (on(&a.start), on(&b.start));
    let mut m: BTreeMap<(u8, u8), u32> = BTreeMap::new();
    for p in 0..oa.len() { *m.entry((oa[p], ob[p])).or_default() += u32::from(oa[p] != 0 || ob[p] != 0); }
    println!("pcp membership (exact, counts): {m:?}");
    let bt = |s: &unfrag_lab::replay::start::Start| s.block_types.iter().copied().collect::<BTreeMap<_, _>>();
    let (ta, tb) = (bt(&a.start), bt(&b.start));
    println!("types differ: {:?}", tb.iter().filter(|(p, t)| ta.get(p).unwrap_or(&unfrag::MigrateType::Movable) != *t).count());

    // Forward check.
    let args: Vec<String> = std::env::args().collect();
    let choice = if args.get(2).is_some_and(|a| a == "occ") { StartChoice::Occupancy } else { StartChoice::Counts };
    let b = Prepared::new(&rec, choice).unwrap();
    let p = unfrag::kernel::preset(b.era.preset()).unwrap();
    let sysctl = unfrag_lab::era::sysctl::recorded(&rec);
    let mut memory = vec![0; b.start.words(p.rules, sysctl).unwrap()];
    let mut sim = unfrag_lab::replay::model::Sim::new(b.start.manager(p.rules, sysctl, true, &mut memory).unwrap(), b.start.frames.len() as u32);
    let mut cut = false; let mut used_now = vec![false; b.start.frames.len()];
    let mut seen = vec![false; b.start.frames.len()];
    let mut m: BTreeMap<(u16, u8, String), [u32; 2]> = BTreeMap::new();
    let mut run: Option<(i64, u32, u32, usize)> = None; let mut runs = 0;
    for (i, op) in b.causes.ops.iter().enumerate() {
        sim.apply(op, &b.causes);
        for (b, w) in op.allocated().map(|x| (x.0, "alloc")).into_iter().chain(op.freed().map(|x| (x, "free"))) { if args.get(2).and_then(|a| a.parse::<u32>().ok()).is_some_and(|p| b.frames().contains(&p)) { println!("WATCH op {i} {w} {b:?} cpu {} {:?}", op.cpu, op.action); } }
        let Some((block, gfp)) = op.allocated() else { if let Some(x) = op.freed() { for q in x.indices() { seen[q] = true; used_now[q] = false; } } continue; };
        if !cut && (39000..42000).contains(&block.pfn) && !seen[block.pfn as usize] {
            cut = true;
            let mut place = vec![String::new(); seen.len()];
            for x in &b.start.free { for q in x.pfn..x.pfn + (1 << x.order) { place[q as usize] = format!("buddy {:?} {}", x.mt, x.order); } }
            for set in &b.start.sets { for (l, v) in &set.lists { for x in v { for q in x.pfn..x.pfn + (1 << x.order) { place[q as usize] = format!("cpu{} list {l}", set.cpu); } } } }
            let mut given = vec![false; seen.len()];
            for q in 0..seen.len() { if let Some(h) = sim.model_frame(q as u32) { given[h as usize] = true; } }
            let mut mm: BTreeMap<(bool, String), Vec<u32>> = BTreeMap::new();
            for q in 4096..seen.len() { if !b.start.is_free(q as u32) { continue; } 
              let rec_given = used_now[q]; if rec_given != given[q] { mm.entry((given[q], place[q].clone())).or_default().push(q as u32); } }
            for ((g, w), v) in mm { println!("CUT {} {w}: {} {:?}", if g { "model gave, host not" } else { "host gave, model not" }, v.len(), &v[..v.len().min(8)]); }
        }
        for q in block.indices() { used_now[q] = true; }
        let first = block.indices().all(|q| !seen[q]);
        for q in block.indices() { seen[q] = true; }
        if !first || block.pfn < 4096 { continue; }
        if block.order == 9 { println!("THP op {i} t {:.3} cpu {} {}", (op.time - b.causes.ops[0].time) as f64 / 1e9, op.cpu, block.pfn); }
        let at = sim.model_frame(block.pfn).unwrap_or(0);
        let e = m.entry((op.cpu, block.order, format!("{:?}", gfp.mobility()))).or_default();
        e[usize::from(at == block.pfn)] += 1;
        if block.order == 0 && format!("{:?}", gfp.mobility()) == "Some(Movable)" {
            let d = i64::from(at) - i64::from(block.pfn);
            match &mut run { Some(r) if r.0 == d && r.3 == op.cpu as usize => { r.2 += 1; }
              _ => { if let Some(r) = run && runs < 120 && r.2 > 0 { println!("   cpu {} recorded {} x{} delta {}", r.3, r.1, r.2, r.0); runs += 1; } run = Some((d, block.pfn, 1, op.cpu as usize)); } }
        }
    }
    for (t, s) in &b.snapshots[..9] { println!("{} at op {}", s.name, b.causes.ops.partition_point(|o| o.time < *t)); }
    for (k, v) in m { println!("{k:?} wrong {} right {}", v[0], v[1]); }
}
